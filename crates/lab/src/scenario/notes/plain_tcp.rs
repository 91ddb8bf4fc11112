//! Settings for Multipath TCP where the connection is plain TCP.

use crate::scenario::{Connection, RelayMode, Scenario};

/// Maximum number of relays to name; further ones are counted.
const TOLD_MAX: usize = 3;

/// Names the settings that have no effect with plain TCP; `None` if a variant or the grid uses Multipath TCP.
pub(super) fn note(scenario: &Scenario) -> Option<String> {
    if scenario.connection.mptcp || scenario.varies("connection.mptcp") {
        return None;
    }
    let mut idle = of_connection(&scenario.connection);
    // Messages of the control plane, which relays send, also share the links under plain TCP.
    if !scenario.has_control_plane() {
        idle.extend(of_cooperation(scenario));
        idle.extend(unused(scenario));
    }
    let (verb, last) = (if idle.len() == 1 { "does" } else { "do" }, idle.pop()?);
    let first = if idle.is_empty() { String::new() } else { format!("{} and ", idle.join(", ")) };
    Some(format!("connection.mptcp: {first}{last} {verb} nothing with plain TCP, which takes one path"))
}

fn of_connection(connection: &Connection) -> Vec<String> {
    let (default, era) = (Connection::default(), &connection.era);
    let fields = [
        ("scheduler", connection.scheduler != default.scheduler),
        ("path_manager", connection.path_manager != default.path_manager),
        ("checksum", connection.checksum != default.checksum),
        ("subflows_max", connection.subflows_max.is_some()),
        ("suspension", connection.suspension != default.suspension),
        ("receiver_centric", connection.receiver_centric.is_some()),
        ("era.reinjection", era.reinjection != default.era.reinjection),
        ("era.reinjection_timeouts", era.reinjection_timeouts != default.era.reinjection_timeouts),
        ("era.idle_reinjection", era.idle_reinjection != default.era.idle_reinjection),
    ];
    let set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| format!("connection.{name}")).collect()
}

fn of_cooperation(scenario: &Scenario) -> Vec<String> {
    let cooperation = &scenario.cooperation;
    let fields = [
        ("relays = \"fast-ack\"", cooperation.relays == RelayMode::FastAck),
        ("adaptive_congestion", cooperation.adaptive_congestion.is_some()),
        ("watch", cooperation.watch.is_some()),
    ];
    let set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| format!("cooperation.{name}")).collect()
}

/// Relays that neither the connection nor their owners use. `None` in a cell, where such relays exist nevertheless and
/// may be scheduled.
fn unused(scenario: &Scenario) -> Option<String> {
    let used = scenario.active_relays().first().copied();
    let is_unused = |index: &usize| Some(*index) != used && scenario.relays[*index].local.is_empty();
    let mut unused: Vec<String> =
        (0..scenario.relays.len()).filter(is_unused).map(|index| format!("relays[{index}]")).collect();
    if scenario.cell.is_some() || unused.is_empty() {
        return None;
    }
    if unused.len() > TOLD_MAX {
        let more = unused.len() - TOLD_MAX;
        unused.truncate(TOLD_MAX);
        unused.push(format!("{more} more relays"));
    }
    Some(unused.join(", "))
}
