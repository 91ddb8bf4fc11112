//! Settings with which only one of several relays carries data.

use crate::scenario::{Scenario, WorkloadKind};

/// The path manager that joins over every relay.
const FULL_MESH: &str = "full-mesh";

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
    // Relay selection opens subflows with any path manager.
    let opens_no_other = connection.path_manager != FULL_MESH && !scenario.cooperation.selection.method.steers();
    (opens_no_other && !scenario.varies("connection.path_manager")).then(|| {
        format!(
            "connection.path_manager: \"{}\" opens only the first subflow, so only {first} of {relays} relays carries data; \
             \"{FULL_MESH}\" uses all",
            connection.path_manager
        )
    })
}
