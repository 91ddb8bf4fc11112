//! Checks for settings without effect because the thing that they configure is missing.

use super::Complaint;
use crate::scenario::{Cooperation, NewsKind, RelayMode, Scenario};

pub(super) fn check_idle(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let Cooperation { relays, news, forwarding, .. } = &scenario.cooperation;
    if forwarding.is_some() && *relays == RelayMode::MultiHomed {
        let (problem, remedy) =
            ("needs relays, and \"multi-homed\" has none", "remove it, or write another cooperation.relays");
        found.push(Complaint::new("cooperation.forwarding", problem, remedy));
    }
    if *news == NewsKind::Sparing && *relays != RelayMode::FastAck {
        let problem = "only relays that acknowledge report to the source what the destination has";
        let remedy = "remove it, or write cooperation.relays = \"fast-ack\"";
        found.push(Complaint::new("cooperation.news", problem, remedy));
    }
    let attacks = scenario.attack.is_some_and(|attack| attack.messages.value() > 0.0);
    if attacks && !scenario.has_control_plane() {
        let problem = "there are no messages: hosts exchange only data";
        let remedy = "remove it, or add a module that needs messages, such as cooperation.bandwidth_sharing = {}";
        found.push(Complaint::new("attack.messages", problem, remedy));
    }
}
