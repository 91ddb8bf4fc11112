//! Conditions under which claims are measured: environments that the authors of a paper, or a reader, may have used.
//!
//! A condition changes settings that a scenario leaves open. It does not change what the scenario's variants and grid
//! points set, so rows remain true to their names. Settings that do not apply to a scenario (a cell's queue without a
//! cell) leave it unchanged.
//!
//! ```text
//! list       the conditions; a new one is one entry there, named before anything is run under it
//! ```

mod list;

use crate::scenario::{Override, RelayMode, Scenario};

pub use list::{CONDITIONS, WITH_NS3};

/// An environment in which claims are measured.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Its name for `--conditions`.
    pub name: &'static str,
    /// Whether it is one difference, or several that go together.
    pub kind: Kind,
    /// Why somebody may have used this environment, and where its values come from.
    pub why: &'static str,
    /// The settings that it changes.
    pub settings: &'static [Setting],
}

/// Composition of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Changes nothing.
    Shipped,
    /// A single difference.
    Switch,
    /// Differences that occur together in practice.
    World,
}

/// A setting in the notation of `--set`, and the scenarios to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// In every scenario.
    Always(&'static str),
    /// In scenarios with a target bit rate, on which units and periods depend.
    WithTarget(&'static str),
    /// In scenarios where the sender's scheduler chooses the subflow, instead of the receiver (MPTCP-rec).
    WithScheduler(&'static str),
    /// In scenarios whose scheduler does not itself send again what a subflow delays.
    WithoutRemedy(&'static str),
    /// In scenarios where relays hold data back by their range.
    WithForwarding(&'static str),
    /// In scenarios with relays in a cell.
    InCell(&'static str),
    /// In scenarios where each relay has a cellular link of its own.
    OnLinks(&'static str),
    /// In scenarios where relays and destination share a Wi-Fi channel.
    OnWlan(&'static str),
    /// In scenarios where relays and destination share a Wi-Fi channel, and relays are separate devices: sets a field
    /// of each relay to these values in turn.
    EachOnWlan {
        /// The field of the relay.
        field: &'static str,
        /// The values for the first relay, the second and so on; then they repeat.
        values: &'static [&'static str],
    },
}

impl Condition {
    /// The overrides that the condition applies to `scenario`.
    ///
    /// # Errors
    /// If a setting is invalid, which is a mistake in the list.
    pub fn overrides(&self, scenario: &Scenario) -> Result<Vec<Override>, String> {
        self.settings.iter().flat_map(|setting| setting.texts(scenario)).map(|text| text.parse()).collect()
    }
}

impl Setting {
    /// The setting's changes to `scenario`, each in the notation of `--set`; empty if it does not apply.
    fn texts(self, scenario: &Scenario) -> Vec<String> {
        let if_so = |there: bool, text: &str| if there { vec![text.to_owned()] } else { Vec::new() };
        match self {
            Self::Always(text) => if_so(true, text),
            Self::WithTarget(text) => if_so(scenario.target.is_some(), text),
            Self::WithScheduler(text) => if_so(scenario.connection.receiver_centric.is_none(), text),
            Self::WithoutRemedy(text) => if_so(!scenario.connection.scheduler_reinjects(), text),
            Self::WithForwarding(text) => if_so(scenario.cooperation.forwarding.is_some(), text),
            Self::InCell(text) => if_so(scenario.cell.is_some(), text),
            Self::OnLinks(text) => if_so(scenario.cell.is_none(), text),
            Self::OnWlan(text) => if_so(scenario.wlan.is_some(), text),
            Self::EachOnWlan { field, values } if has_hops(scenario) => {
                let of_each = values.iter().cycle().take(scenario.relays.len());
                of_each.enumerate().map(|(index, value)| format!("relays[{index}].{field}={value}")).collect()
            }
            Self::EachOnWlan { .. } => Vec::new(),
        }
    }

    /// Describes what it sets.
    pub fn text(self) -> String {
        match self {
            Self::Always(text) => text.into(),
            Self::WithTarget(text) => format!("{text} (with a target)"),
            Self::WithScheduler(text) => format!("{text} (not with MPTCP-rec)"),
            Self::WithoutRemedy(text) => format!("{text} (not with schedulers that send again themselves)"),
            Self::WithForwarding(text) => format!("{text} (with differentiated forwarding)"),
            Self::InCell(text) => format!("{text} (in a cell)"),
            Self::OnLinks(text) => format!("{text} (without a cell)"),
            Self::OnWlan(text) => format!("{text} (with a Wi-Fi channel)"),
            Self::EachOnWlan { field, values } => format!("{field} of each relay: {} in turn", values.join(", ")),
        }
    }
}

fn has_hops(scenario: &Scenario) -> bool {
    scenario.wlan.is_some() && scenario.cooperation.relays != RelayMode::MultiHomed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    const CELL: &str = "name = \"x\"\nduration = \"1 s\"\ntarget = { bit_rate = \"3 Mbit/s\" }\nworkload = { kind = \"bulk\" }\n\
        [cell]\n[wlan]\n[[relays]]\ncount = 3\nplace = { distance_m = [800.0, 1000.0] }\n";
    const LINKS: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n\
        [[relays]]\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n";

    fn texts(setting: Setting, text: &str) -> Vec<String> {
        setting.texts(&load("x.toml", text, &[]).unwrap())
    }

    #[test]
    fn a_setting_changes_only_what_is_there() {
        for (setting, in_cell, on_links) in [
            (Setting::Always("connection.sack=false"), 1, 1),
            (Setting::InCell("cell.queue=1 MB"), 1, 0),
            (Setting::OnLinks("relays[*].cellular.queue=1 MB"), 0, 1),
            (Setting::OnWlan("wlan.frame_loss=5 %"), 1, 0),
            (Setting::WithTarget("metrics.unit_packets=100"), 1, 0),
            (Setting::WithScheduler("connection.era.binding=early"), 1, 1),
            (Setting::WithoutRemedy("connection.era.reinjection=false"), 1, 1),
            (Setting::WithForwarding("cooperation.forwarding.range_packets=100"), 0, 0),
            (Setting::EachOnWlan { field: "name", values: &["a", "b"] }, 3, 0),
        ] {
            assert_eq!((texts(setting, CELL).len(), texts(setting, LINKS).len()), (in_cell, on_links), "{setting:?}");
        }
    }

    #[test]
    fn values_go_round() {
        let setting = Setting::EachOnWlan { field: "bit_rate_max", values: &["1 Mbit/s", "2 Mbit/s"] };
        let expected =
            ["relays[0].bit_rate_max=1 Mbit/s", "relays[1].bit_rate_max=2 Mbit/s", "relays[2].bit_rate_max=1 Mbit/s"];
        assert_eq!(texts(setting, CELL), expected);
    }

    #[test]
    fn every_condition_has_a_name_of_its_own_and_a_reason() {
        let names: std::collections::BTreeSet<_> = CONDITIONS.iter().map(|condition| condition.name).collect();
        assert_eq!(names.len(), CONDITIONS.len());
        assert_eq!((CONDITIONS[0].name, CONDITIONS[0].settings.len()), ("shipped", 0));
        assert!(CONDITIONS.iter().all(|condition| !condition.why.is_empty()));
        let switches = CONDITIONS.iter().filter(|condition| condition.kind == Kind::Switch).count();
        let worlds = CONDITIONS.iter().filter(|condition| condition.kind == Kind::World).count();
        assert!(switches + worlds >= 12 && worlds >= 5, "{switches} {worlds}");
    }
}
