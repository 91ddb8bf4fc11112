//! Paper mode: the settings with which a scenario runs the papers as printed where this version corrects them.
//!
//! It does not include what was never implemented as printed, because it cannot run or cannot be told from a slip of
//! the pen; the documents under `docs/algorithms/` list these cases.

use units::text::Text;

use crate::scenario::{Mode, ReceiverCentricMode, RhoDefinition, Scenario};

/// One change of paper mode.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// The setting, in the notation of `--set`.
    pub setting: &'static str,
    /// Its effect.
    pub what: &'static str,
    /// Where the paper prints it.
    pub source: &'static str,
    /// Changes the scenario; does nothing if the scenario does not use the setting's subject.
    pub apply: fn(&mut Scenario),
}

/// All changes of paper mode.
pub const AS_PRINTED: &[Printed] = &[
    Printed {
        setting: "cooperation.selection.mode=paper",
        what: "one list of sums instead of one for each cardinality, no search of all subsets, no hold-down, removal without drain",
        source: "thesis algorithms 1 to 3",
        apply: |scenario| scenario.cooperation.selection.mode = Mode::Paper,
    },
    Printed {
        setting: "cooperation.adaptive_congestion.mode=paper",
        what: "the fastest path's age counts, in slow start as well; the count of cuts ends only at m; no floor",
        source: "thesis algorithm 3",
        apply: |scenario| scenario.cooperation.adaptive_congestion.iter_mut().for_each(|acc| acc.mode = Mode::Paper),
    },
    Printed {
        setting: "cooperation.bandwidth_sharing.rho=eq7.3",
        what: "rho by equation (7.3), where it is measured",
        source: "thesis (7.3)",
        apply: |scenario| {
            scenario.cooperation.bandwidth_sharing.iter_mut().for_each(|sharing| sharing.rho = RhoDefinition::Eq73);
        },
    },
    Printed {
        setting: "connection.congestion=mcc-coop(1,0)",
        what: "MCC-Coop yields by rho, not by its square, and may grow faster than LIA",
        source: "thesis (7.15)",
        apply: |scenario| replace(scenario, "mcc-coop", &[1.0, 0.0]),
    },
    Printed {
        setting: "connection.congestion=gmcc-coop(1,0,1)",
        what: "GMCC-Coop likewise, and a loss halves its window",
        source: "thesis (7.15), list in 7.2.3",
        apply: |scenario| replace(scenario, "gmcc-coop", &[1.0, 0.0, 1.0]),
    },
    Printed {
        setting: "connection.congestion=mveno",
        what: "algorithm 1; in build mode as well",
        source: "mVeno algorithm 1, decision 0013",
        apply: |scenario| replace(scenario, "mveno", &[]),
    },
    Printed {
        setting: "connection.receiver_centric.mode=paper",
        what: "the last round-trip time weighs 7/8, a sample is P / (n RTT), the first path is never left out",
        source: "MPTCP-rec equations 1 and 2, algorithm 1",
        apply: |scenario| {
            let settings = &mut scenario.connection.receiver_centric;
            settings.iter_mut().for_each(|settings| settings.mode = ReceiverCentricMode::Paper);
        },
    },
];

/// Changes `scenario` to follow the papers as printed.
pub fn as_printed(scenario: &mut Scenario) {
    AS_PRINTED.iter().for_each(|printed| (printed.apply)(scenario));
}

/// Sets the parameters of the controller, if it is the one called `name`; all its variants become the printed one.
fn replace(scenario: &mut Scenario, name: &str, parameters: &[f64]) {
    let Text(controller) = &mut scenario.connection.congestion;
    if controller.name == name {
        controller.parameters = parameters.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    fn scenario(settings: &str) -> Scenario {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\nworkload = {{ kind = \"bulk\" }}\n{settings}\n\
             [[relays]]\ncellular = {{ rate = \"3 Mbit/s\", delay = \"5 ms\" }}\n"
        );
        load("x.toml", &text, &[]).unwrap()
    }

    #[test]
    fn what_a_scenario_uses_becomes_what_is_printed() {
        let settings = "[connection]\ncongestion = \"gmcc-coop\"\n[cooperation]\nadaptive_congestion = {}\nbandwidth_sharing = {}\n";
        let mut scenario = scenario(settings);
        as_printed(&mut scenario);
        assert_eq!(scenario.connection.congestion.0.to_string(), "gmcc-coop(1,0,1)");
        let cooperation = &scenario.cooperation;
        assert_eq!(cooperation.selection.mode, Mode::Paper);
        assert_eq!(cooperation.adaptive_congestion.as_ref().unwrap().mode, Mode::Paper);
        assert_eq!(cooperation.bandwidth_sharing.as_ref().unwrap().rho, RhoDefinition::Eq73);
    }

    #[test]
    fn what_it_does_not_use_stays_away() {
        let mut scenario = scenario("[connection]\ncongestion = \"lia\"\n");
        as_printed(&mut scenario);
        assert_eq!(scenario.connection.congestion.0.to_string(), "lia");
        assert!(scenario.cooperation.adaptive_congestion.is_none() && scenario.cooperation.bandwidth_sharing.is_none());
    }
}
