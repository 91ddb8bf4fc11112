//! Checks the local traffic of the relays.

use transport::congestion;
use units::text::Text;
use units::{Duration, Rate};

use super::link::{highest, refuse_bounds};
use super::traffic::{NO_PICTURE, NO_PICTURE_REMEDY, Refuse, check_rate, check_video, refuse_varied};
use super::{Complaint, MTU_MAX};
use crate::scenario::vary::{draw_of, most};
use crate::scenario::{Change, Link, LocalKind, LocalTraffic, Narrow, Relay, Scenario};

/// Maximum number of flows of one section.
const FLOWS_MAX: u32 = 1000;
/// Maximum number of datagrams of one flow per second: each causes several events.
const DATAGRAMS_PER_S_MAX: u64 = 1_000_000;
/// IP and UDP headers of a datagram.
const HEADERS_V4_BYTES: u64 = 28;
const HEADERS_V6_BYTES: u64 = 48;
/// Largest packet of `vbr`, headers included.
pub(super) const VBR_DATAGRAM_BYTES: u64 = 1500;
/// Minimum time between changes of a random process: below it, the changes cause more events than the packets.
const STATE_MIN: Duration = Duration::from_millis(1);

pub(super) fn check_local(scenario: &Scenario, found: &mut Vec<Complaint>) {
    for (index, relay) in scenario.relays.iter().enumerate() {
        for (number, local) in relay.local.iter().enumerate() {
            let field = format!("relays[{index}].local[{number}]");
            let mut refuse = |name: &str, problem: String, remedy: &str| {
                found.push(Complaint::new(format!("{field}.{name}"), problem, remedy));
            };
            check_kind(local, &mut refuse);
            check_quantities(local, scenario, &mut refuse);
            check_narrow(local, scenario, relay, &mut refuse);
            check_changes(local, &mut refuse);
        }
    }
}

/// Checks that the kind has all fields it needs, and no others.
fn check_kind(local: &LocalTraffic, refuse: &mut impl Refuse) {
    let kind = local.kind;
    let sized = kind == LocalKind::ShortFlows;
    if kind.is_datagrams() && local.congestion.is_some() {
        refuse("congestion", "datagrams have no congestion control".into(), "remove it, or write kind = \"tcp\"");
    }
    let unknown = local.congestion.as_ref().and_then(|spec| congestion::build(&spec.0).err());
    if let Some(error) = unknown {
        refuse("congestion", error.to_string(), "");
    }
    if local.rate.is_none() && !sized && kind != LocalKind::Tcp {
        refuse("rate", "is missing: only TCP finds a rate by itself".into(), "add a line `rate = \"1 Mbit/s\"`");
    }
    if local.sizes.is_none() && sized {
        refuse("sizes", "is missing: short flows need it".into(), "add a line `sizes = \"20 kB\"`");
    }
    let demanded = !sized && kind != LocalKind::Video;
    let fields = [
        ("rate", local.rate.is_some(), !sized),
        ("sizes", local.sizes.is_some(), sized),
        ("pauses", local.pauses.is_some(), sized),
        ("video", local.video.is_some(), kind == LocalKind::Video),
        ("changes", !local.changes.is_empty(), demanded),
        ("on_off", local.on_off.is_some(), demanded),
        ("redrawn", local.redrawn.is_some(), demanded),
    ];
    for (name, _, _) in fields.into_iter().filter(|(_, given, allowed)| *given && !allowed) {
        let remedy = format!("remove {name}, or choose another kind");
        refuse(name, format!("contradicts kind = \"{}\"", kind.name()), &remedy);
    }
    let without_rate = [
        ("changes", !local.changes.is_empty()),
        ("on_off", local.on_off.is_some()),
        ("redrawn", local.redrawn.is_some()),
    ];
    for (name, _) in without_rate.into_iter().filter(|(_, given)| *given && local.rate.is_none() && demanded) {
        refuse(name, "there is no rate to change".into(), "add `rate`, or remove it");
    }
    if local.on_off.is_some() && local.redrawn.is_some() {
        refuse("redrawn", "contradicts on_off: a rate has one random process".into(), "remove one of them");
    }
}

fn check_quantities(local: &LocalTraffic, scenario: &Scenario, refuse: &mut impl Refuse) {
    if local.count == 0 || local.count > FLOWS_MAX {
        refuse("count", format!("{} is not a valid number of flows", local.count), "write 1 to 1000");
    }
    if let Some(rate) = &local.rate {
        refuse_bounds(rate, "rate", refuse);
        check_rate(highest(rate), "rate", refuse);
        if local.kind == LocalKind::Video && highest(rate) == Rate::ZERO {
            refuse("rate", NO_PICTURE.into(), NO_PICTURE_REMEDY);
        }
    }
    check_size(local, scenario, refuse);
    check_datagrams(local, refuse);
    if local.on_off.is_some_and(|times| times.on.is_zero()) {
        refuse("on_off.on", "would never send".into(), "write a time above zero");
    }
    let states = [
        ("on_off.on", local.on_off.map(|times| times.on).filter(|on| !on.is_zero())),
        ("on_off.off", local.on_off.map(|times| times.off).filter(|off| !off.is_zero())),
        ("redrawn", local.redrawn.map(|Text(every)| every)),
    ];
    for (name, span) in states.into_iter().filter_map(|(name, span)| Some((name, span.filter(|at| *at < STATE_MIN)?))) {
        refuse(name, format!("{span} is too short for a change of the rate"), "write at least \"1 ms\"");
    }
    let start = local.start.map_or(Duration::ZERO, |start| start.0);
    if local.stop.is_some_and(|stop| stop.0 <= start) {
        refuse("stop", format!("is not after its start at {start}"), "write a later time");
    }
    refuse_varied(local.sizes.as_ref(), "sizes", refuse);
    if local.sizes.as_ref().and_then(|sizes| draw_of(sizes).ok()).is_some_and(|draw| most(draw) <= 0.0) {
        refuse("sizes", "flows of size zero carry nothing".into(), "write a size, like \"20 kB\"");
    }
    refuse_varied(local.pauses.as_ref(), "pauses", refuse);
    if let Some(video) = &local.video {
        check_video(video, refuse);
    }
}

/// Only datagrams have exactly the size in the file. TCP fills the MTU; for other kinds, the size at most determines
/// when the first packet leaves.
fn check_size(local: &LocalTraffic, scenario: &Scenario, refuse: &mut impl Refuse) {
    let (mtu, name) = match local.kind {
        LocalKind::Udp | LocalKind::Poisson => (scenario.connection.mtu.0, "the MTU"),
        LocalKind::Tcp | LocalKind::Vbr | LocalKind::ShortFlows | LocalKind::Video => (MTU_MAX, "any packet"),
    };
    let largest = mtu.saturating_sub(headers_bytes(scenario));
    if local.datagram.0 == 0 || local.datagram.0 > largest {
        let problem = format!("a datagram of {} does not fit {name}", local.datagram);
        refuse("datagram", problem, &format!("write a size from \"1 B\" to \"{largest} B\""));
    }
}

fn headers_bytes(scenario: &Scenario) -> u64 {
    if scenario.addresses().source.is_ipv4() { HEADERS_V4_BYTES } else { HEADERS_V6_BYTES }
}

/// Refuses datagrams so small that, at the given rate, there would be too many.
fn check_datagrams(local: &LocalTraffic, refuse: &mut impl Refuse) {
    if !local.kind.is_datagrams() {
        return;
    }
    let bps = |rate: Option<Text<Rate>>| rate.map_or(0, |Text(rate)| rate.as_bps());
    let set_bps = local.rate.iter().map(|rate| highest(rate).as_bps());
    let set_bps = set_bps.chain(local.changes.iter().map(|change| bps(change.to))).max().unwrap_or(0);
    let raised_bps = local.changes.iter().map(|change| bps(change.raise)).fold(0, u64::saturating_add);
    let rate = Rate::from_bps(set_bps.saturating_add(raised_bps));
    let least = rate.as_bps().div_ceil(8 * DATAGRAMS_PER_S_MAX);
    if local.datagram.0 < least {
        let problem = format!("datagrams of {} are too many at {rate}", local.datagram);
        refuse("datagram", problem, &format!("write a size of at least \"{least} B\", or a lower rate"));
    }
}

/// Datagrams are neither fragmented nor retransmitted: one that does not fit the links on its path never arrives.
fn check_narrow(local: &LocalTraffic, scenario: &Scenario, relay: &Relay, refuse: &mut impl Refuse) {
    let links = scenario.bottleneck.iter().chain(&relay.cellular);
    let Some(Narrow { size, .. }) = links.filter_map(Link::narrow_down).min_by_key(|narrow| narrow.size) else {
        return;
    };
    let most = size.0.saturating_sub(headers_bytes(scenario));
    match local.kind {
        LocalKind::Udp | LocalKind::Poisson if local.datagram.0 > most => {
            let problem = format!("a datagram of {} B does not fit a link whose mtu is {} B", local.datagram.0, size.0);
            refuse("datagram", problem, &format!("write a size from \"1 B\" to \"{most} B\""));
        }
        LocalKind::Vbr if size.0 < VBR_DATAGRAM_BYTES => {
            let problem =
                format!("its datagrams of {VBR_DATAGRAM_BYTES} B do not fit a link whose mtu is {} B", size.0);
            refuse("kind", problem, "write another kind, or a larger mtu");
        }
        _ => {}
    }
}

fn check_changes(local: &LocalTraffic, refuse: &mut impl Refuse) {
    let mut over = local.start.map_or(Duration::ZERO, |Text(start)| start);
    for (index, change) in local.changes.iter().enumerate() {
        let field = format!("changes[{index}]");
        check_change(change, &field, refuse);
        if index > 0 && change.at < over {
            let problem = format!("is before the end of the change at {}", local.changes[index - 1].at);
            let remedy = "sort the changes by time, and let each end before the next begins";
            refuse(&format!("{field}.at"), problem, remedy);
        } else if change.at < over {
            refuse(&format!("{field}.at"), format!("is before the start at {over}"), "write a later time");
        }
        over = over.max(change.at + change.lasts());
    }
}

fn check_change(change: &Change, field: &str, refuse: &mut impl Refuse) {
    let rates = [("raise", change.raise), ("lower", change.lower), ("to", change.to)];
    let given = rates.iter().filter(|(_, rate)| rate.is_some()).count();
    if given != 1 {
        let remedy = "write exactly one of them, like { at = \"7 s\", raise = \"0.2 Mbit/s\" }";
        refuse(field, format!("has {given} of raise, lower and to"), remedy);
    }
    for (name, rate) in rates.into_iter().filter_map(|(name, rate)| Some((name, rate?.0))) {
        check_rate(rate, &format!("{field}.{name}"), refuse);
        if rate == Rate::ZERO && name != "to" {
            refuse(field, "changes nothing".into(), "write a rate above zero, or remove it");
        }
    }
}
