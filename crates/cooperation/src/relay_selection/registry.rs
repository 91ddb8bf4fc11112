//! All relay selectors, by name.

use policy::UnknownName;

use super::exact::Exact;
use super::greedy_paper::GreedyPaper;
use super::greedy_thesis::GreedyThesis;
use super::ssrs::Ssrs;
use super::{RelaySelector, SelectorSettings};

/// A registered relay selector: its name, and how to build it from settings that [`build`] has checked.
pub type Registration = policy::Registration<fn(SelectorSettings) -> Box<dyn RelaySelector>>;

/// All relay selectors.
pub const SELECTORS: &[Registration] = &[
    Registration {
        name: "ssrs",
        summary: "sets near the target with few relays and few changes, by trimmed subset sums (SSRS)",
        build: |settings| Box::new(Ssrs::new(settings)),
    },
    Registration {
        name: "greedy-thesis",
        summary: "relays that offer least first, until the range is reached (the thesis' baseline)",
        build: |_| Box::new(GreedyThesis),
    },
    Registration {
        name: "greedy-paper",
        summary: "relays in the order of their numbers, until the range is reached (the SSRS paper's baseline)",
        build: |settings| Box::new(GreedyPaper::new(settings.mode)),
    },
    Registration {
        name: "exact",
        summary: "the costs of SSRS over every subset; for few relays",
        build: |_| Box::new(Exact),
    },
];

/// Short names, and the names that they stand for.
pub const SHORT_NAMES: &[(&str, &str)] = &[("greedy", "greedy-thesis")];

/// Returns the relay selector called `name`, which may be a short name.
///
/// # Errors
/// Returns the known names if there is no such selector.
pub fn find(name: &str) -> Result<&'static Registration, UnknownName> {
    let full = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| *full);
    policy::find("relay selector", SELECTORS, full)
}

/// Smallest epsilon: the work grows with its inverse.
pub const EPSILON_MIN: f64 = 0.001;

/// The reasons why a relay selector cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectorError {
    /// No relay selector has this name.
    #[error(transparent)]
    UnknownSelector(#[from] UnknownName),
    /// Epsilon is out of bounds.
    #[error("epsilon = {value} is not between {EPSILON_MIN} and 1")]
    Epsilon {
        /// The given value.
        value: f64,
    },
}

/// Builds the relay selector called `name`, which may be a short name.
pub fn build(name: &str, settings: SelectorSettings) -> Result<Box<dyn RelaySelector>, SelectorError> {
    let registration = find(name)?;
    if !(EPSILON_MIN..=1.0).contains(&settings.epsilon) {
        return Err(SelectorError::Epsilon { value: settings.epsilon });
    }
    Ok((registration.build)(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, epsilon: f64) -> String {
        let settings = SelectorSettings { epsilon, ..SelectorSettings::default() };
        build(name, settings).err().expect("no selector").to_string()
    }

    #[test]
    fn every_selector_goes_by_its_registered_name() {
        for registration in SELECTORS {
            assert_eq!(build(registration.name, SelectorSettings::default()).unwrap().name(), registration.name);
        }
    }

    #[test]
    fn a_name_in_short_stands_for_one_that_is_registered() {
        for (short, full) in SHORT_NAMES {
            assert_eq!(find(short).unwrap().name, *full);
            assert!(SELECTORS.iter().all(|known| known.name != *short));
        }
    }

    #[test]
    fn every_selector_says_why() {
        for known in SELECTORS {
            let selector = build(known.name, SelectorSettings::default()).unwrap();
            for reasons in [true, false].map(|feasible| selector.reasons(feasible)) {
                assert!(!reasons.active.is_empty() && !reasons.backup.is_empty(), "{}", known.name);
            }
        }
    }

    #[test]
    fn errors_name_the_remedy() {
        let names: Vec<_> = SELECTORS.iter().map(|known| known.name).collect();
        let said = format!("unknown relay selector \"best\" (there are: {})", names.join(", "));
        assert_eq!(error("best", 0.1), said);
        for epsilon in [0.0, -0.1, 1.5, f64::NAN] {
            assert!(error("ssrs", epsilon).ends_with("is not between 0.001 and 1"));
        }
    }
}
