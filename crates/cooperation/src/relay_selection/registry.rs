//! All relay selectors, by name.

use policy::UnknownName;

use super::exact::Exact;
use super::greedy_paper::GreedyPaper;
use super::greedy_thesis::GreedyThesis;
use super::ssrs::Ssrs;
use super::{RelaySelector, SelectorSettings};

/// A relay selector that can be asked for by name, and is made from settings that [`build`] has checked.
pub type Registration = policy::Registration<fn(SelectorSettings) -> Box<dyn RelaySelector>>;

/// Every relay selector there is.
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

/// Smallest epsilon: the work grows with its inverse.
const EPSILON_MIN: f64 = 0.001;

/// Why there is no such relay selector.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectorError {
    /// No relay selector has this name.
    #[error(transparent)]
    UnknownSelector(#[from] UnknownName),
    /// Epsilon is out of bounds.
    #[error("epsilon = {value} is not between {EPSILON_MIN} and 1")]
    Epsilon {
        /// What was given.
        value: f64,
    },
}

/// Makes the relay selector called `name`.
pub fn build(name: &str, settings: SelectorSettings) -> Result<Box<dyn RelaySelector>, SelectorError> {
    let registration = policy::find("relay selector", SELECTORS, name)?;
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
    fn errors_name_the_remedy() {
        assert_eq!(
            error("greedy", 0.1),
            "unknown relay selector \"greedy\" (there are: ssrs, greedy-thesis, greedy-paper, exact)"
        );
        for epsilon in [0.0, -0.1, 1.5, f64::NAN] {
            assert!(error("ssrs", epsilon).ends_with("is not between 0.001 and 1"));
        }
    }
}
