//! Policies as text: `lia`, `aimd(0.7,0.625)`.

use core::fmt;
use core::str::FromStr;

use crate::{Parameter, ParameterError};

/// A policy by name, with its parameters: `"lia"`, `"aimd(0.7,0.625)"`.
///
/// Parsing checks only the form; the registry checks name and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// A name of the registry.
    pub name: String,
    /// The values between the parentheses; those omitted at the end take their defaults.
    pub parameters: Vec<f64>,
}

/// A text that does not have the form of a [`Spec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No name before the parentheses.
    #[error("{text:?} does not name a policy; write a name as in lia, or with parameters as in aimd(0.7,0.625)")]
    NoName {
        /// The text.
        text: String,
    },
    /// The text does not end with the closing parenthesis.
    #[error("{text:?} does not end with the closing parenthesis of its parameters; write them as in aimd(0.7,0.625)")]
    Parentheses {
        /// The text.
        text: String,
    },
    /// A parameter is not a finite number.
    #[error(
        "parameter {position} of {text:?}, {parameter:?}, is not a finite number; parameters are written in their \
         order, without names, as in aimd(0.7,0.625)"
    )]
    NotANumber {
        /// The text.
        text: String,
        /// Position of the parameter, from 1.
        position: usize,
        /// The parameter as written.
        parameter: String,
    },
}

impl Spec {
    /// Creates the specification of `name` with default parameters.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), parameters: Vec::new() }
    }

    /// Returns the values of all `parameters` of the policy `name`, in order: those given, then the defaults. `kind` is
    /// what the policy is, such as "scheduler".
    ///
    /// # Errors
    /// If there are more values than parameters, or a value that its parameter may not have.
    pub fn values(
        &self,
        kind: &'static str,
        name: &'static str,
        parameters: &'static [Parameter],
    ) -> Result<Vec<f64>, ParameterError> {
        let given = self.parameters.len();
        if given > parameters.len() {
            let known = parameters.iter().map(|parameter| parameter.name).collect();
            return Err(ParameterError::TooMany { kind, name, known, given });
        }
        for (parameter, value) in parameters.iter().zip(&self.parameters) {
            parameter.check(*value).map_err(|reason| ParameterError::Bad { kind, name, reason })?;
        }
        let defaults = parameters[given..].iter().map(|parameter| parameter.default);
        Ok(self.parameters.iter().copied().chain(defaults).collect())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, parameters) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => (name, Some(rest)),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(SpecError::NoName { text: text.into() });
        }
        let parentheses = || SpecError::Parentheses { text: text.into() };
        let parameters = match parameters {
            None if name.contains(')') => return Err(parentheses()),
            None => Vec::new(),
            Some(rest) => {
                let inside = rest.trim_end().strip_suffix(')').ok_or_else(parentheses)?;
                if inside.contains(['(', ')']) {
                    return Err(parentheses());
                }
                parse_parameters(inside, text)?
            }
        };
        Ok(Self { name: name.into(), parameters })
    }
}

fn parse_parameters(inside: &str, text: &str) -> Result<Vec<f64>, SpecError> {
    if inside.trim().is_empty() {
        return Ok(Vec::new());
    }
    let parse = |(index, parameter): (usize, &str)| match parameter.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(SpecError::NotANumber { text: text.into(), position: index + 1, parameter: parameter.trim().into() }),
    };
    inside.split(',').enumerate().map(parse).collect()
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, parameter) in self.parameters.iter().enumerate() {
            write!(f, "{}{parameter}", if index == 0 { '(' } else { ',' })?;
        }
        if self.parameters.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "pace", default: 2.0, values: Values::Whole(1, 9), meaning: "beats" },
        Parameter { name: "lean", default: 0.5, values: Values::Inside(0.0, 1.0), meaning: "share" },
    ];

    fn parsed(text: &str) -> (String, Vec<f64>) {
        let spec: Spec = text.parse().unwrap();
        (spec.name, spec.parameters)
    }

    fn error(text: &str) -> String {
        text.parse::<Spec>().unwrap_err().to_string()
    }

    #[test]
    fn names_with_and_without_parameters() {
        assert_eq!(parsed("lia"), ("lia".into(), vec![]));
        assert_eq!(parsed("aimd(0.7,0.625)"), ("aimd".into(), vec![0.7, 0.625]));
        assert_eq!(parsed(" aimd ( 1 , 5e-1 ) "), ("aimd".into(), vec![1.0, 0.5]));
        assert_eq!(parsed("lia()"), ("lia".into(), vec![]));
    }

    #[test]
    fn errors_say_what_and_where() {
        assert!(error("").starts_with("\"\" does not name a policy"));
        assert!(error("(1)").contains("does not name"));
        assert!(error("aimd(1").contains("does not end with the closing"));
        assert!(error("aimd)").contains("parenthesis"));
        assert!(error("aimd(1)(2)").contains("parenthesis"));
        assert!(error("aimd(1,x)").starts_with("parameter 2 of \"aimd(1,x)\", \"x\", is not a finite number"));
        assert!(error("aimd(beta=1)").ends_with("in their order, without names, as in aimd(0.7,0.625)"));
        assert!(error("aimd(1,)").starts_with("parameter 2"));
        assert!(error("aimd(inf)").starts_with("parameter 1"));
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        for text in ["lia", "aimd(0.7,0.625)", "aimd(2)"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn values_left_out_are_the_defaults() {
        let values = |text: &str| text.parse::<Spec>().unwrap().values("gait", "trot", PARAMETERS);
        assert_eq!(values("trot"), Ok(vec![2.0, 0.5]));
        assert_eq!(values("trot(3)"), Ok(vec![3.0, 0.5]));
        assert_eq!(values("trot(3,0.25)"), Ok(vec![3.0, 0.25]));
        let error = |text: &str| values(text).unwrap_err().to_string();
        assert_eq!(error("trot(3,1)"), "gait trot: lean = 1 must be above 0 and below 1");
        assert_eq!(error("trot(3,1,1)"), "gait trot takes at most 2 parameters, not 3: trot(pace,lean)");
        let none = Spec { name: "trot".into(), parameters: vec![1.0] }.values("gait", "trot", &[]).unwrap_err();
        assert_eq!(none.to_string(), "gait trot takes no parameters: write trot");
    }
}
