//! Local traffic of the relays.

use units::{Duration, Rate};

use super::Complaint;
use super::link::refuse_bounds;
use crate::scenario::{Change, LocalKind, LocalTraffic, Scenario};

/// Flows of one section.
const FLOWS_MAX: u32 = 1000;
/// IP and UDP headers of a datagram over IPv6, the longer ones.
const HEADERS_BYTES: u64 = 48;

pub(super) fn check_local(scenario: &Scenario, found: &mut Vec<Complaint>) {
    for (index, relay) in scenario.relays.iter().enumerate() {
        for (number, local) in relay.local.iter().enumerate() {
            check_flow(local, &format!("relays[{index}].local[{number}]"), scenario, found);
        }
    }
}

fn check_flow(local: &LocalTraffic, field: &str, scenario: &Scenario, found: &mut Vec<Complaint>) {
    let mut refuse = |name: &str, problem: String, remedy: &str| {
        found.push(Complaint::new(format!("{field}.{name}"), problem, remedy));
    };
    if let Some(rate) = &local.rate {
        refuse_bounds(rate, "rate", &mut refuse);
    }
    if local.count == 0 || local.count > FLOWS_MAX {
        refuse("count", format!("{} is no number of flows", local.count), "write 1 to 1000");
    }
    if local.kind != LocalKind::Tcp && local.congestion.is_some() {
        refuse("congestion", "datagrams have no congestion control".into(), "remove it, or write kind = \"tcp\"");
    }
    if local.kind != LocalKind::Tcp && local.rate.is_none() {
        refuse("rate", "is missing: only TCP finds a rate by itself".into(), "add a line `rate = \"1 Mbit/s\"`");
    }
    if local.rate.is_none() && !local.changes.is_empty() {
        refuse("changes", "there is no rate that they change".into(), "add `rate`, or remove them");
    }
    let most = scenario.connection.mtu.0.saturating_sub(HEADERS_BYTES);
    if local.datagram.0 == 0 || local.datagram.0 > most {
        let problem = format!("a datagram of {} does not fit the MTU", local.datagram);
        refuse("datagram", problem, &format!("write 1 to {most} octets"));
    }
    if local.on_off.is_some_and(|times| times.on.is_zero()) {
        refuse("on_off.on", "it never sends".into(), "write a time above zero");
    }
    let start = local.start.map_or(Duration::ZERO, |start| start.0);
    if local.stop.is_some_and(|stop| stop.0 <= start) {
        refuse("stop", format!("is not after its start at {start}"), "write a later time");
    }
    check_changes(&local.changes, field, found);
}

fn check_changes(changes: &[Change], field: &str, found: &mut Vec<Complaint>) {
    for (index, change) in changes.iter().enumerate() {
        let given = [change.raise, change.lower, change.to].iter().flatten().count();
        if given != 1 {
            let problem = format!("says {given} of raise, lower and to");
            let remedy = "write one of them, like { at = \"7 s\", raise = \"0.2 Mbit/s\" }";
            found.push(Complaint::new(format!("{field}.changes[{index}]"), problem, remedy));
        }
        if index > 0 && change.at < changes[index - 1].at {
            let problem = format!("is before the change at {}", changes[index - 1].at);
            found.push(Complaint::new(format!("{field}.changes[{index}].at"), problem, "sort the changes by time"));
        }
    }
    let no_rate = |change: &Change| [change.raise, change.lower].iter().flatten().any(|rate| rate.0 == Rate::ZERO);
    if let Some(index) = changes.iter().position(no_rate) {
        let field = format!("{field}.changes[{index}]");
        found.push(Complaint::new(field, "changes nothing", "write a rate above zero, or remove it"));
    }
}
