//! Parameters of policies: their names, defaults and ranges.

use core::fmt;

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The value if none is given.
    pub default: f64,
    /// The values that it may have.
    pub values: Values,
    /// Its meaning, with its unit.
    pub meaning: &'static str,
}

/// The values that a parameter may have. Both limits are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// From the first to the second, both included.
    Within(f64, f64),
    /// Above the first, up to and including the second.
    Above(f64, f64),
    /// Between the two, both excluded.
    Inside(f64, f64),
    /// Whole numbers from the first to the second, both included.
    Whole(u32, u32),
}

impl Values {
    /// Returns whether `value` is one of them.
    pub fn contains(self, value: f64) -> bool {
        match self {
            Self::Within(least, most) => least <= value && value <= most,
            Self::Above(limit, most) => limit < value && value <= most,
            Self::Inside(lower, upper) => lower < value && value < upper,
            Self::Whole(least, most) => {
                f64::from(least) <= value && value <= f64::from(most) && value.fract().abs() <= 0.0
            }
        }
    }

    /// Returns the lower and the upper limit, whether or not they are among the values.
    pub fn limits(self) -> (f64, f64) {
        match self {
            Self::Within(lower, upper) | Self::Above(lower, upper) | Self::Inside(lower, upper) => (lower, upper),
            Self::Whole(least, most) => (least.into(), most.into()),
        }
    }
}

/// For people: what follows "must be".
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Within(least, most) => write!(f, "from {least} to {most}"),
            Self::Above(limit, most) => write!(f, "above {limit} and at most {most}"),
            Self::Inside(lower, upper) => write!(f, "above {lower} and below {upper}"),
            Self::Whole(least, most) if most == least + 1 => write!(f, "{least} or {most}"),
            Self::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
        }
    }
}

impl Parameter {
    /// Checks a value.
    ///
    /// # Errors
    /// If it may not have this value: what is wrong, and which values there are.
    pub fn check(&self, value: f64) -> Result<(), String> {
        let Self { name, values, .. } = self;
        if values.contains(value) { Ok(()) } else { Err(format!("{name} = {value} must be {values}")) }
    }
}

/// Why the parameters of a policy are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// More values than the policy has parameters.
    #[error("{kind} {name} takes {}", most(name, known, *given))]
    TooMany {
        /// What the policy is.
        kind: &'static str,
        /// Its name.
        name: &'static str,
        /// The names of its parameters.
        known: Vec<&'static str>,
        /// Number of values given.
        given: usize,
    },
    /// A parameter has an invalid value.
    #[error("{kind} {name}: {reason}")]
    Bad {
        /// What the policy is.
        kind: &'static str,
        /// Its name.
        name: &'static str,
        /// The parameter, and what is wrong with it.
        reason: String,
    },
}

/// How many parameters a policy takes, and how it is written with all of them.
fn most(name: &str, known: &[&str], given: usize) -> String {
    match known.len() {
        0 => format!("no parameters: write {name}"),
        1 => format!("one parameter, not {given}: {name}({})", known[0]),
        most => format!("at most {most} parameters, not {given}: {name}({})", known.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_belong_to_the_values_or_not() {
        let contained = |values: Values| [0.0, 0.5, 1.0, 2.0, f64::NAN].map(|value| values.contains(value));
        assert_eq!(contained(Values::Within(0.0, 1.0)), [true, true, true, false, false]);
        assert_eq!(contained(Values::Above(0.0, 1.0)), [false, true, true, false, false]);
        assert_eq!(contained(Values::Inside(0.0, 1.0)), [false, true, false, false, false]);
        assert_eq!(contained(Values::Whole(0, 1)), [true, false, true, false, false]);
    }

    #[test]
    fn a_refusal_names_the_values() {
        let told = |values| Parameter { name: "x", default: 0.0, values, meaning: "" }.check(-1.5).unwrap_err();
        assert_eq!(told(Values::Within(0.0, 1.0)), "x = -1.5 must be from 0 to 1");
        assert_eq!(told(Values::Above(0.0, 1000.0)), "x = -1.5 must be above 0 and at most 1000");
        assert_eq!(told(Values::Inside(0.0, 1.0)), "x = -1.5 must be above 0 and below 1");
        assert_eq!(told(Values::Whole(0, 1)), "x = -1.5 must be 0 or 1");
        assert_eq!(told(Values::Whole(1, 10)), "x = -1.5 must be a whole number from 1 to 10");
    }
}
