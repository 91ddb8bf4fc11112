//! The properties of a case, of all that can be drawn.

use std::collections::BTreeSet;

use soak::coverage::word;

use crate::case::Case;

/// Returns the properties of a case: dimensions, each with the values that the case has.
pub fn values(case: &Case) -> BTreeSet<(String, String)> {
    let mut values = BTreeSet::new();
    let mut add = |dimension: &str, value: String| _ = values.insert((dimension.to_string(), value));
    add("paths", case.paths.len().to_string());
    add("IP", if case.ipv6 { "6" } else { "4" }.into());
    add("kernel is", format!("{:?}", case.kernel_is));
    add("kernel speaks", if case.kernel.mptcp { "MPTCP" } else { "TCP" }.into());
    case.kernel.settings.iter().for_each(|(name, value)| add(name, format!("'{value}'")));
    case.kernel.endpoints.iter().for_each(|endpoint| add("endpoint", format!("{:?}", endpoint.role)));
    add("controller", case.engine.congestion.clone());
    add("scheduler", case.engine.scheduler.clone());
    add("path manager", case.engine.path_manager.clone());
    for path in &case.paths {
        path.boxes.iter().for_each(|middlebox| add("middlebox", word(middlebox)));
        if !path.outages_ms.is_empty() {
            add("middlebox", "outage".into());
        }
    }
    case.actions.iter().for_each(|action| add("action", word(&action.deed)));
    for talk in &case.talks {
        [talk.client, talk.server].iter().for_each(|speaker| add("ending", format!("{:?}", speaker.ending)));
    }
    values
}
