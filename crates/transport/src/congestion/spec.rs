//! Controllers as text: `lia`, `aimd(0.7,0.625)`.

use core::fmt;
use core::str::FromStr;

/// A controller by name, with its parameters: `"lia"`, `"aimd(0.7,0.625)"`.
///
/// Parsing checks only the form; [`super::build`] checks name and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSpec {
    /// One of [`super::CONTROLLERS`].
    pub name: String,
    /// The values between the parentheses; those omitted at the end take their defaults.
    pub parameters: Vec<f64>,
}

/// A text that does not have the form of a [`ControllerSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No name before the parentheses.
    #[error("{text:?} is not a congestion controller; write it like lia or aimd(0.7,0.625)")]
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
    #[error("parameter {position} of {text:?}, {parameter:?}, is not a finite number")]
    NotANumber {
        /// The text.
        text: String,
        /// Position of the parameter, from 1.
        position: usize,
        /// The parameter as written.
        parameter: String,
    },
}

impl ControllerSpec {
    /// Creates the specification of `name` with default parameters.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), parameters: Vec::new() }
    }
}

impl FromStr for ControllerSpec {
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

impl fmt::Display for ControllerSpec {
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

    fn parsed(text: &str) -> (String, Vec<f64>) {
        let spec: ControllerSpec = text.parse().unwrap();
        (spec.name, spec.parameters)
    }

    fn error(text: &str) -> String {
        text.parse::<ControllerSpec>().unwrap_err().to_string()
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
        assert!(error("").starts_with("\"\" is not a congestion controller"));
        assert!(error("(1)").contains("is not a"));
        assert!(error("aimd(1").contains("does not end with the closing"));
        assert!(error("aimd)").contains("parenthesis"));
        assert!(error("aimd(1)(2)").contains("parenthesis"));
        assert_eq!(error("aimd(1,x)"), "parameter 2 of \"aimd(1,x)\", \"x\", is not a finite number");
        assert!(error("aimd(1,)").starts_with("parameter 2"));
        assert!(error("aimd(inf)").starts_with("parameter 1"));
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        for text in ["lia", "aimd(0.7,0.625)", "aimd(2)"] {
            assert_eq!(text.parse::<ControllerSpec>().unwrap().to_string(), text);
        }
    }
}
