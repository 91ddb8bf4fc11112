//! What must hold in a case; it follows from the case alone.
//!
//! Always: nothing panics or hangs, the checkers find no fault of the engine, received data equal the sent data as far
//! as they arrive, and at the end the engine holds nothing.
//!
//! If the first path is *sound*, every stream arrives completely, whatever happens on the other paths. If it is
//! *clean*, MPTCP stays in use if both sides support it. If no element of a path removes options, the kernel finds no
//! fault in the engine's segments.

use soak::transport::case::{Ending, Side};
use soak::transport::goals;

use crate::case::{Case, Deed, Middlebox, PathCase, StripFrom, Way};

/// Maximum losses of a sound path, of 100 packets.
const LOSS_PERCENT_MAX: f64 = 3.0;
/// Maximum duration of an outage of a sound path, ms: it must not use up the time-outs of handshakes.
const OUTAGE_MS_MAX: u64 = 1000;
/// Minimum capacity of a clean path's queue in packets, enough for a burst of SYNs.
const CLEAN_QUEUE_PACKETS: u64 = 30;

/// Returns the octets that `side` sends on each connection of a talk.
pub fn bytes_to_send(case: &Case, talk: usize, side: Side) -> u64 {
    goals::bytes_to_send(&case.applications(), talk, side)
}

/// Returns whether the stream of `side` must arrive completely on each connection of a talk.
pub fn must_arrive(case: &Case, talk: usize, side: Side) -> bool {
    let talk = &case.talks[talk];
    let (speaker, listener) = match side {
        Side::Client => (talk.client, talk.server),
        Side::Server => (talk.server, talk.client),
    };
    completes(case) && speaker.ending != Ending::Abort && listener.ending == Ending::Shutdown && {
        // A side that closes stops reading: the peer may then get a reset.
        speaker.ending == Ending::Shutdown || listener.bytes == 0
    }
}

/// Returns whether a kernel that has all octets of a connection after a fallback may get a reset instead of their end.
///
/// If the kernel had sent its DATA_FIN before it fell back, it reports the peer's FIN to its application only when its
/// own is acknowledged (measured with Linux 6.18: up to 1.4 s after it acknowledged the peer's). If that ACK is lost,
/// the kernel's retransmission may reach an engine whose TIME-WAIT, short in all cases, is over.
pub fn end_may_be_a_reset(case: &Case) -> bool {
    case.kernel.mptcp && case.paths.first().is_some_and(|path| !is_clean(path, case))
}

/// Returns whether every connection of a talk ends normally at both sides.
pub fn ends_well(case: &Case, talk: usize) -> bool {
    let talk = &case.talks[talk];
    // A host that forgets a connection too soon answers a retransmitted FIN with a reset.
    completes(case)
        && is_clean(&case.paths[0], case)
        && [talk.client, talk.server].iter().all(|speaker| speaker.ending == Ending::Shutdown)
}

/// Returns whether MPTCP must be in use, or must not be; `None` if it is chance.
pub fn mptcp(case: &Case) -> Option<bool> {
    if !case.kernel.mptcp || !case.engine.mptcp {
        return Some(false);
    }
    let first = case.paths.first()?;
    (keeps_options(first) && is_clean(first, case)).then_some(true)
}

/// Returns whether the kernel must find no fault: no middlebox falsifies anything.
pub fn kernel_finds_nothing(case: &Case) -> bool {
    case.paths.iter().all(keeps_options)
}

/// Returns whether the engine must not join at the address and port at which it opened the connection: the kernel
/// signals this in its SYN/ACK (RFC 8684 section 3.1, flag C).
pub fn is_closed_to_joins(case: &Case) -> bool {
    case.kernel_is == Side::Server && case.setting("mptcp/allow_join_initial_addr_port") == Some("0")
}

/// Returns whether the data of a connection come from one socket of the kernel. A kernel that always sends SYN cookies
/// takes an ACK for the end of a handshake if both streams have since advanced by equally many octets. If its socket is
/// gone, closed with data unread, it accepts the rest of the connection as a new one, whose octets cannot be told from
/// the old one's.
pub fn is_one_socket(case: &Case) -> bool {
    let closes = case.talks.iter().any(|talk| talk.server.ending != Ending::Shutdown);
    !(case.kernel_is == Side::Server && case.setting("ipv4/tcp_syncookies") == Some("2") && closes)
}

/// Returns whether connections can rely on their first path.
fn completes(case: &Case) -> bool {
    case.paths.first().is_some_and(|path| is_sound(path, case)) && keeps_the_first(case)
}

/// Returns whether no backups replace the first subflow while a path is not sound: a backup waits for its turn.
fn keeps_the_first(case: &Case) -> bool {
    let sets_backup = |deed: &Deed| match deed {
        Deed::EngineSetsPriority { subflow, backup } => *subflow == 0 && *backup,
        Deed::KernelAdds(endpoint) => endpoint.path == 0 && endpoint.backup,
        Deed::KernelSetsPriority { path, backup } => *path == 0 && *backup,
        Deed::EngineAdds { path, backup } => *path == 0 && *backup,
        _ => false,
    };
    let has_backup = case.kernel.endpoints.iter().any(|endpoint| endpoint.path == 0 && endpoint.backup)
        || case.actions.iter().any(|action| sets_backup(&action.deed));
    let cuts = case.actions.iter().any(|action| matches!(action.deed, Deed::Cut { .. }));
    !has_backup || (!cuts && case.paths.iter().all(|path| is_sound(path, case)))
}

fn ways(path: &PathCase) -> [&Way; 2] {
    [&path.up, &path.down]
}

fn lost_percent(way: &Way) -> f64 {
    way.loss_percent + way.corrupt_percent
}

/// Returns whether a path is good enough to carry a connection to its end.
pub fn is_sound(path: &PathCase, case: &Case) -> bool {
    let carries = |way: &&Way| {
        lost_percent(way) <= LOSS_PERCENT_MAX
            && (way.loss_percent == 0.0 || way.burst_packets <= 1.0)
            && way.queue_packets >= 10
    };
    let comes_back = |outage: &[u64; 2]| outage[1] - outage[0] <= OUTAGE_MS_MAX;
    ways(path).iter().all(carries) && path.outages_ms.iter().all(comes_back) && !is_black_hole(path, case)
}

/// Returns whether large packets vanish silently. The engine notices; the kernel only if it is set to probe.
fn is_black_hole(path: &PathCase, case: &Case) -> bool {
    path.boxes.iter().any(|middlebox| match middlebox {
        Middlebox::Narrow { mtu, silent: true } => case.engine.mtu.min(path.mtu) > *mtu,
        _ => false,
    })
}

/// Returns whether a path neither loses packets nor delays them beyond any time-out.
fn is_clean(path: &PathCase, case: &Case) -> bool {
    let flawless = |way: &&Way| lost_percent(way) == 0.0 && way.queue_packets >= CLEAN_QUEUE_PACKETS;
    ways(path).iter().all(flawless) && path.outages_ms.is_empty() && is_sound(path, case)
}

/// Returns whether nothing removes MPTCP's options.
fn keeps_options(path: &PathCase) -> bool {
    let strips = |middlebox: &Middlebox| {
        matches!(middlebox, Middlebox::StripMptcp(StripFrom::Syn | StripFrom::SynAck | StripFrom::All))
    };
    !path.boxes.iter().any(strips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    /// Checks a thousand cases; a soak whose cases demand nothing finds nothing.
    #[test]
    fn most_cases_demand_something() {
        let cases: Vec<_> = (0..1000).map(|number| draw(1, number)).collect();
        let count = |holds: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| holds(case)).count();
        let arrives = count(&|case| Side::ALL.iter().any(|side| must_arrive(case, 0, *side)));
        let stays = count(&|case| mptcp(case) == Some(true));
        let ends = count(&|case| ends_well(case, 0));
        let clean = count(&kernel_finds_nothing);
        assert!(arrives > 500 && stays > 200 && ends > 200 && clean > 700, "{arrives} {stays} {ends} {clean}");
    }

    #[test]
    fn a_path_is_sound_as_long_as_it_loses_little_and_comes_back() {
        let mut case = draw(1, 0);
        case.paths.truncate(1);
        let flawless =
            Way { rate_kbps: 10_000, delay_ms: 10, queue_packets: 100, burst_packets: 1.0, ..Way::default() };
        case.paths[0] = PathCase { up: flawless, down: flawless, mtu: 1500, outages_ms: Vec::new(), boxes: Vec::new() };
        let judged = |change: &dyn Fn(&mut PathCase)| {
            let mut path = case.paths[0].clone();
            change(&mut path);
            (is_sound(&path, &case), is_clean(&path, &case))
        };
        assert_eq!(judged(&|_| ()), (true, true));
        assert_eq!(judged(&|path| path.up.loss_percent = 1.0), (true, false));
        assert_eq!(judged(&|path| path.up.loss_percent = 30.0), (false, false));
        assert_eq!(judged(&|path| path.outages_ms = vec![[0, 500]]), (true, false));
        assert_eq!(judged(&|path| path.outages_ms = vec![[0, 1_000_000]]), (false, false));
    }
}
