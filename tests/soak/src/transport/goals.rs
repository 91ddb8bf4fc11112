//! What must hold in a case; it follows from the case alone.
//!
//! Always: nothing panics, no checker finds a fault, no host sends or wakes without end, received data equal the sent
//! data as far as they arrive, every connection ends, and then nothing remains.
//!
//! If the first path is *sound*, every stream arrives completely, whatever happens on the other paths, and whatever the
//! applications do to subflows while another one on a sound path remains.

use network::Trace;
use units::Duration;

use super::case::{Action, Case, Deed, Element, Ending, Loss, PathCase, Settings, Side, Speaker, Strip, Talk, Way};

/// Time by which the outages of a sound path have ended, ms.
pub const CALM_MS: u64 = 20_000;
/// Maximum number of windows in a stream: with one octet each, a window takes a round trip.
const WINDOWS_MAX: u64 = 400;
/// Maximum number of pieces in which a stream is written or read, if there are pauses between them.
const PAUSES_MAX: u64 = 200;
/// Number of silent keep-alive intervals after which a host gives a subflow up.
const KEEP_ALIVE_PROBES: u64 = 9;
/// TIME-WAIT that outlasts any retransmission of a FIN on a sound path, s.
const TIME_WAIT_S: u64 = 60;
/// Maximum number of consecutive losses on a sound path. With time-outs that double from one second, they cost half a
/// minute.
const DROPPED_MAX: u64 = 4;
/// Maximum number of pieces in which a stream is written.
const PIECES_MAX: u64 = 20_000;

/// What the applications of a case can expect of their streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Received data equal the sent data.
    Intact,
    /// The same while the connection is MPTCP with checksums.
    IntactWithChecksums,
}

/// Returns the octets that `side` sends on each connection of a talk: the number in the case, limited to what can be
/// sent in reasonable time.
pub fn bytes_to_send(case: &Case, talk: usize, side: Side) -> u64 {
    let talk = &case.talks[talk];
    let (speaker, listener, other) = match side {
        Side::Client => (talk.client, talk.server, Side::Server),
        Side::Server => (talk.server, talk.client, Side::Client),
    };
    let settings = case.settings(side);
    let buffer = settings.send_buffer_bytes.min(settings.unsent_max_bytes.unwrap_or(u64::MAX));
    let window = buffer.min(case.settings(other).receive_buffer_bytes);
    let piece = u64::from(speaker.piece_bytes);
    let limits = [
        window.saturating_mul(WINDOWS_MAX),
        piece * if speaker.pause_ms > 0 { PAUSES_MAX } else { PIECES_MAX },
        if listener.read_pause_ms > 0 { u64::from(listener.read_bytes) * PAUSES_MAX } else { u64::MAX },
    ];
    limits.into_iter().fold(speaker.bytes, u64::min)
}

/// Returns whether the stream of `side` must arrive completely on each connection of a talk.
pub fn must_arrive(case: &Case, talk: usize, side: Side) -> bool {
    let talk = &case.talks[talk];
    let (speaker, listener) = speakers(talk, side);
    completes(case) && speaker.ending != Ending::Abort && listener.ending == Ending::Shutdown && {
        // A side that closes discards data for a minute; after that the peer may get a reset.
        speaker.ending == Ending::Shutdown || listener.bytes == 0
    }
}

/// Returns whether every connection of a talk ends normally at both sides.
pub fn ends_well(case: &Case, talk: usize) -> bool {
    let talk = &case.talks[talk];
    // A host that forgets a connection too soon answers a retransmitted FIN with a reset.
    let remembers = Side::ALL.iter().all(|side| case.settings(*side).time_wait_s >= TIME_WAIT_S);
    completes(case) && remembers && [talk.client, talk.server].iter().all(|speaker| speaker.ending == Ending::Shutdown)
}

const fn speakers(talk: &Talk, side: Side) -> (Speaker, Speaker) {
    match side {
        Side::Client => (talk.client, talk.server),
        Side::Server => (talk.server, talk.client),
    }
}

/// Returns whether connections can rely on their first path.
fn completes(case: &Case) -> bool {
    let Some(first) = case.paths.first().filter(|path| is_sound(path)) else { return false };
    let has_room = ways(first).all(|way| fits(way, &case.talks)) && acks_fit(case, first);
    let are_patient = Side::ALL.iter().all(|side| is_patient(case.settings(*side)))
        && Side::ALL.iter().all(|side| outlasts_queues(case, first, *side));
    // A relay that does not know all bits of the numbers cannot recompute checksums, and ends the subflow.
    let passes = first.relay.is_none() || !has_checksums(case);
    let serves = repairs_well(case, first) && keeps_the_first(case) && hands_over(case);
    has_room && are_patient && passes && serves && (has_checksums(case) || !case.paths.iter().any(shifts))
}

/// Returns whether losses are found without a time-out for each: with SACK, or with almost no losses.
fn repairs_well(case: &Case, path: &PathCase) -> bool {
    let strips = |element: &Element| matches!(element, Element::StripSyn { sack: true, .. });
    let has_rack = !case.client.era.no_rack && !case.server.era.no_rack;
    let has_sack =
        has_rack && case.client.sack && case.server.sack && !ways(path).any(|way| way.elements.iter().any(strips));
    let is_roomy = |way: &Way| way.queue_packets >= 30 && way.queue_bytes.is_none_or(|bytes| bytes >= 30 * 1500);
    has_sack || ways(path).all(|way| lost_percent(way) == 0.0 && is_roomy(way))
}

/// Returns whether no data stay behind on a path that is not sound. Without reinjection they stay while the subflow
/// lasts.
fn hands_over(case: &Case) -> bool {
    Side::ALL.iter().all(|side| !case.settings(*side).era.no_reinjection) || case.paths.iter().all(is_sound)
}

/// Returns whether no backups replace the first subflow while a path is not sound: a backup waits for its turn.
fn keeps_the_first(case: &Case) -> bool {
    let sets_backup = |action: &Action| {
        matches!(action.deed, Deed::SetPriority { backup: true, .. } | Deed::AddSubflow { backup: true, .. })
    };
    !case.actions.iter().any(sets_backup) || case.paths.iter().all(is_sound)
}

/// Returns whether the ACKs for one way leave room for data on the other. If they fill the queue, it is chance what
/// gets through.
fn acks_fit(case: &Case, path: &PathCase) -> bool {
    let mtu = u64::from(case.client.mtu.min(case.server.mtu)).min(1500);
    // An ACK with its options has up to 100 octets, and there is one for every second packet.
    let suffices = |acks: &Way, data: &Way| bits_per_s(acks) * 2 * mtu / 100 > 2 * bits_per_s(data);
    suffices(&path.up, &path.down) && suffices(&path.down, &path.up)
}

fn bits_per_s(way: &Way) -> u64 {
    match Trace::from_times_ms(way.trace_ms.clone()) {
        Ok(trace) => trace.mean_rate().as_bps(),
        Err(_) => way.rate_kbps * 1000,
    }
}

/// Returns whether a host keeps subflows through any outage of a sound path.
const fn is_patient(settings: &Settings) -> bool {
    match settings.keep_alive_s {
        Some(idle_s) => idle_s * KEEP_ALIVE_PROBES > 2 * CALM_MS / 1000,
        None => true,
    }
}

/// Returns whether a host gives nothing up while an answer waits in a full queue. No packet is larger than what a host
/// sends at once, and no queue is longer than all windows.
fn outlasts_queues(case: &Case, path: &PathCase, side: Side) -> bool {
    let connections: u64 = case.talks.iter().map(|talk| u64::from(talk.connections)).sum();
    let drains = |way: &Way, from: &Settings, to: &Settings| {
        let packet_bytes = u64::from(from.offload_max_bytes).max(from.mtu.into());
        let windows_bytes = connections.saturating_mul(from.send_buffer_bytes.min(to.receive_buffer_bytes));
        let queued_bytes = way.queue_packets.saturating_mul(packet_bytes).min(windows_bytes);
        queued_bytes.saturating_mul(8) / bits_per_s(way).max(1)
    };
    let turn_s = drains(&path.up, &case.client, &case.server) + drains(&path.down, &case.server, &case.client);
    2 * turn_s < case.settings(side).user_timeout_s
}

/// Returns whether all connections fit on a way at once. In queues that are always full it is chance whose packets get
/// through in time.
fn fits(way: &Way, talks: &[Talk]) -> bool {
    let connections: u32 = talks.iter().map(|talk| talk.connections).sum();
    connections == 1 || (way.rate_kbps >= 2000 && way.trace_ms.is_empty() && way.queue_packets >= 100)
}

/// Returns whether checksums are used wherever MPTCP is.
fn has_checksums(case: &Case) -> bool {
    case.client.checksum || case.server.checksum
}

/// Returns what the applications can expect of received data.
pub fn content(case: &Case) -> Option<Content> {
    match case.paths.iter().any(falsifies) {
        false => Some(Content::Intact),
        true => has_checksums(case).then_some(Content::IntactWithChecksums),
    }
}

/// Returns whether a path replaces right data by wrong ones.
fn shifts(path: &PathCase) -> bool {
    ways(path).any(|way| way.elements.iter().any(|element| matches!(element, Element::ShiftDsn { .. })))
        || path.gateway.is_some_and(|gateway| gateway.inserts)
}

fn falsifies(path: &PathCase) -> bool {
    let corrupts = |element: &Element| matches!(element, Element::Corrupt { .. });
    shifts(path) || path.gateway.is_some() || ways(path).any(|way| way.elements.iter().any(corrupts))
}

fn ways(path: &PathCase) -> impl Iterator<Item = &Way> {
    [&path.up, &path.down].into_iter()
}

/// Returns whether a path is good enough, at the latest from [`CALM_MS`] on, to carry a connection to its end.
pub fn is_sound(path: &PathCase) -> bool {
    path.gateway.is_none() && path.nat_idle_s.is_none_or(|idle_s| idle_s >= 300) && ways(path).all(is_sound_way)
}

fn is_sound_way(way: &Way) -> bool {
    let in_bursts = matches!(way.loss, Loss::Gilbert { .. });
    // Capacity in bursts needs room for a burst.
    let flows = match Trace::from_times_ms(way.trace_ms.clone()) {
        Ok(trace) => trace.longest_gap() <= Duration::from_secs(1) && way.queue_packets >= 100,
        Err(_) => way.queue_packets >= 4,
    };
    lost_percent(way) <= 5.0
        && !in_bursts
        && flows
        && bits_per_s(way) >= 100_000
        && way.elements.iter().all(is_sound_element)
        && way.elements.iter().map(dropped).sum::<u64>() <= DROPPED_MAX
}

/// Returns the number of segments of one kind that an element loses in a row.
const fn dropped(element: &Element) -> u64 {
    match element {
        Element::Drop { count, .. } => *count,
        _ => 0,
    }
}

fn lost_percent(way: &Way) -> f64 {
    way.loss.percent() + way.elements.iter().map(loss_percent).sum::<f64>()
}

const fn loss_percent(element: &Element) -> f64 {
    match element {
        Element::Damage { percent } => *percent,
        _ => 0.0,
    }
}

const fn is_sound_element(element: &Element) -> bool {
    match element {
        Element::Outage { until_ms, .. } => *until_ms <= CALM_MS,
        Element::Flaps { every_ms, for_ms } => *every_ms >= 10 * *for_ms,
        Element::Reorder { .. }
        | Element::Duplicate { .. }
        | Element::Damage { .. }
        | Element::StripSyn { .. }
        | Element::Split { .. }
        | Element::Drop { .. }
        | Element::StripMptcp(Strip::Syn | Strip::SynAck) => true,
        Element::Dead { .. }
        | Element::Corrupt { .. }
        | Element::StripMptcp(_)
        | Element::Merge { .. }
        | Element::ShiftDsn { .. } => false,
    }
}
