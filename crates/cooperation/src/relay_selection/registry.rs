//! All relay selectors, by name.

use policy::Build::{Plain, With};
use policy::{ParameterError, UnknownName};

use super::exact::Exact;
use super::greedy_paper::GreedyPaper;
use super::greedy_thesis::GreedyThesis;
use super::random::{self, Random};
use super::ssrs::Ssrs;
use super::{RelaySelector, SelectorSettings, SelectorSpec};

/// A registered relay selector.
pub type Registration = policy::Registration<Build>;

/// How to create a relay selector, from settings that [`build`] has checked.
pub type Build = policy::Build<fn(SelectorSettings) -> Box<dyn RelaySelector>, fn(SelectorSettings, &[f64]) -> Built>;

/// A relay selector, or which value of a parameter is wrong and why. Values are in their ranges: [`build`] checks that.
pub type Built = Result<Box<dyn RelaySelector>, String>;

/// All relay selectors.
pub const SELECTORS: &[Registration] = &[
    Registration {
        name: "ssrs",
        summary: "sets near the target with few relays and few changes, by trimmed subset sums (SSRS)",
        build: Plain(|settings| Box::new(Ssrs::new(settings))),
    },
    Registration {
        name: "greedy-thesis",
        summary: "relays that offer least first, until the range is reached (the thesis' baseline)",
        build: Plain(|_| Box::new(GreedyThesis)),
    },
    Registration {
        name: "greedy-paper",
        summary: "relays in the order of their numbers, until the range is reached (the SSRS paper's baseline)",
        build: Plain(|settings| Box::new(GreedyPaper::new(settings.mode))),
    },
    Registration {
        name: "exact",
        summary: "the costs of SSRS over every subset; for few relays",
        build: Plain(|_| Box::new(Exact)),
    },
    Registration {
        name: "random",
        summary: "relays in random order until the range is reached: a baseline",
        build: With(random::PARAMETERS, |_, values| Ok(Box::new(Random::new(values[0], values[1])))),
    },
];

/// Short names, and the names that they stand for.
pub const SHORT_NAMES: &[(&str, &str)] = &[("greedy", "greedy-thesis")];

/// What the policies of this registry are, in errors.
const KIND: &str = "relay selector";

/// Returns the relay selector called `name`, which may be a short name.
///
/// # Errors
/// Returns the known names if there is no such selector.
pub fn find(name: &str) -> Result<&'static Registration, UnknownName> {
    let full = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| *full);
    policy::find(KIND, SELECTORS, full)
}

/// Smallest epsilon: the work grows with its inverse.
pub const EPSILON_MIN: f64 = 0.001;

/// The reasons why a relay selector cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectorError {
    /// No relay selector has this name.
    #[error(transparent)]
    UnknownSelector(#[from] UnknownName),
    /// Its parameters are wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Epsilon is out of bounds.
    #[error("epsilon = {value} is not between {EPSILON_MIN} and 1")]
    Epsilon {
        /// The given value.
        value: f64,
    },
}

/// Builds the relay selector that `spec` names, perhaps by a short name; omitted parameters take their defaults.
pub fn build(spec: &SelectorSpec, settings: SelectorSettings) -> Result<Box<dyn RelaySelector>, SelectorError> {
    let Registration { name, build, .. } = *find(&spec.name)?;
    let values = spec.values(KIND, name, build.parameters())?;
    if !(EPSILON_MIN..=1.0).contains(&settings.epsilon) {
        return Err(SelectorError::Epsilon { value: settings.epsilon });
    }
    match build {
        Plain(build) => Ok(build(settings)),
        With(_, build) => {
            build(settings, &values).map_err(|reason| ParameterError::Bad { kind: KIND, name, reason }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str, epsilon: f64) -> String {
        let settings = SelectorSettings { epsilon, ..SelectorSettings::default() };
        build(&spec.parse().unwrap(), settings).err().expect("no selector").to_string()
    }

    #[test]
    fn every_selector_goes_by_its_registered_name() {
        for registration in SELECTORS {
            let spec = SelectorSpec::named(registration.name);
            assert_eq!(build(&spec, SelectorSettings::default()).unwrap().name(), registration.name);
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
            let selector = build(&SelectorSpec::named(known.name), SelectorSettings::default()).unwrap();
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
        assert_eq!(error("greedy(1)", 0.1), "relay selector greedy-thesis takes no parameters: write greedy-thesis");
        assert_eq!(error("random(0)", 0.1), "relay selector random: draws = 0 must be a whole number from 1 to 10000");
        assert_eq!(
            error("random(1,0.5,3)", 0.1),
            "relay selector random takes at most 2 parameters, not 3: random(draws,least)"
        );
    }
}
