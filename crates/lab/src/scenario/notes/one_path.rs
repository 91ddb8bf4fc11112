//! Settings with which only one of several relays carries data, or fewer than relay selection needs.

use transport::SUBFLOWS_CAP;

use crate::scenario::{Scenario, WorkloadKind};

/// The path managers that open only the first subflow.
const OPEN_NO_OTHER: [&str; 2] = ["manual", "signal-only"];

/// Explains why only the first relay carries data although there are others; `None` for plain TCP, which has a note of
/// its own.
pub(super) fn note(scenario: &Scenario) -> Option<String> {
    let connection = &scenario.connection;
    let active = scenario.active_relays();
    let first = &scenario.relays.get(*active.first()?)?.name;
    if !connection.mptcp || active.len() < 2 || scenario.workload.kind == WorkloadKind::None {
        return None;
    }
    let relays = active.len();
    if connection.subflows_max == Some(1) && !scenario.varies("connection.subflows_max") {
        return Some(format!("connection.subflows_max: with 1, only {first} of {relays} relays carries data"));
    }
    if let Some(note) = crowded(scenario, relays) {
        return Some(note);
    }
    // Relay selection opens subflows with any path manager.
    let opens_no_other =
        OPEN_NO_OTHER.contains(&connection.path_manager.as_str()) && !scenario.cooperation.selection.method.steers();
    (opens_no_other && !scenario.varies("connection.path_manager")).then(|| {
        format!(
            "connection.path_manager: \"{}\" opens only the first subflow, so only {first} of {relays} relays carries data; \
             \"full-mesh\" uses all",
            connection.path_manager
        )
    })
}

/// Relay selection opens new subflows before it closes old ones, so it may need one for each relay.
fn crowded(scenario: &Scenario, relays: usize) -> Option<String> {
    let needed = relays.min(SUBFLOWS_CAP);
    let most = scenario.connection.subflows_max.filter(|most| *most < needed)?;
    let is_meant = scenario.varies("connection.subflows_max") || !scenario.cooperation.selection.method.steers();
    (!is_meant).then(|| {
        format!(
            "connection.subflows_max: with {most} for {relays} relays, new subflows may find no room beside old ones, and \
             their relays then count as lost; leave it out, or write {needed} or more"
        )
    })
}
