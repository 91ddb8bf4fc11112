//! The methods of relay selection in scenario files: every relay, a fixed list, or a relay selector by name.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use cooperation::relay_selection::{self, SELECTORS, SHORT_NAMES, SelectorSpec, SpecError, UnknownName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::text::Text;

use super::policy_names::list;
use super::schema::Writable;

/// The methods that choose nothing during a run, and what they do.
const PLAIN: [(&str, &str); 2] =
    [("all", "every relay, all the time"), ("fixed", "the relays that `fixed` lists, all the time")];

/// Methods of relay selection.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectionMethod {
    /// Every relay, all the time.
    All,
    /// The relays that `fixed` lists, all the time.
    Fixed,
    /// The choice of a selector, whose name is registered.
    Selector(SelectorSpec),
}

impl SelectionMethod {
    /// Returns whether it chooses relays for a target.
    pub const fn steers(&self) -> bool {
        matches!(self, Self::Selector(_))
    }

    /// Returns its name in scenario files, without parameters.
    pub fn name(&self) -> &str {
        match self {
            Self::All => "all",
            Self::Fixed => "fixed",
            Self::Selector(spec) => &spec.name,
        }
    }

    /// Returns the selector that chooses the relays, if one does.
    pub const fn selector(&self) -> Option<&SelectorSpec> {
        match self {
            Self::Selector(spec) => Some(spec),
            Self::All | Self::Fixed => None,
        }
    }
}

/// Why a text is no method of relay selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// It is not written as a name, with or without parameters.
    #[error(transparent)]
    Form(#[from] SpecError),
    /// There is no such method.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The method has no parameters.
    #[error("method {0} takes no parameters: write {0}")]
    NoParameters(&'static str),
}

/// Names are checked here, and parameters by the registry when the selector is built.
impl FromStr for SelectionMethod {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let spec: SelectorSpec = text.parse()?;
        let plain = [Self::All, Self::Fixed].into_iter().zip(PLAIN).find(|(_, (name, _))| *name == spec.name);
        if let Some((method, (name, _))) = plain {
            return if spec.parameters.is_empty() { Ok(method) } else { Err(MethodError::NoParameters(name)) };
        }
        let known = relay_selection::find(&spec.name).map_err(|error| UnknownName {
            kind: "method of relay selection",
            known: PLAIN.iter().map(|(name, _)| *name).chain(error.known).collect(),
            name: error.name,
        })?;
        Ok(Self::Selector(SelectorSpec { name: known.name.into(), ..spec }))
    }
}

impl fmt::Display for SelectionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All | Self::Fixed => f.write_str(self.name()),
            Self::Selector(spec) => spec.fmt(f),
        }
    }
}

impl Serialize for SelectionMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SelectionMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(method)| method)
    }
}

impl JsonSchema for SelectionMethod {
    fn schema_name() -> Cow<'static, str> {
        "SelectionMethod".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "description": "Methods of relay selection.",
            "type": "string",
            "format": Self::FORM.name,
        });
        let short = SHORT_NAMES.iter().map(|(short, full)| (*short, format!("short for {full}")));
        let selectors = SELECTORS.iter().map(|known| (known.name, known.summary.into()));
        let plain = PLAIN.map(|(name, does)| (name, String::from(does)));
        let all: Vec<(&str, String)> = plain.into_iter().chain(selectors).chain(short).collect();
        list(&mut schema, all.iter().map(|(name, does)| (*name, does.as_str())));
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> SelectionMethod {
        serde_json::from_value(json!(text)).unwrap()
    }

    #[test]
    fn every_registered_selector_is_a_method() {
        let schema = schemars::schema_for!(SelectionMethod).to_value();
        for known in SELECTORS {
            let method = read(known.name);
            assert_eq!(serde_json::to_value(&method).unwrap(), json!(known.name));
            assert!(method.steers());
            let examples = schema["examples"].as_array().unwrap();
            assert!(examples.contains(&json!(known.name)), "{} is not in the schema", known.name);
            let described = schema["description"].as_str().unwrap();
            assert!(described.contains(&format!("\n- `{}`: {}", known.name, known.summary)), "{described}");
        }
        for (name, _) in PLAIN {
            assert_eq!((read(name).name(), read(name).steers()), (name, false));
        }
    }

    /// The short names are those of `anabranch select`.
    #[test]
    fn greedy_is_the_thesis_baseline() {
        assert_eq!(serde_json::to_value(read("greedy")).unwrap(), json!("greedy-thesis"));
    }

    #[test]
    fn parameters_are_kept_as_they_are_written() {
        let method = read(" random( 20, 0.10 )");
        assert_eq!((method.name(), method.to_string()), ("random", "random(20,0.1)".into()));
        assert_eq!(method.selector().unwrap().parameters, [20.0, 0.1]);
    }

    #[test]
    fn errors_name_the_remedy() {
        let error = |text: &str| text.parse::<SelectionMethod>().unwrap_err().to_string();
        let names: Vec<_> = SELECTORS.iter().map(|known| known.name).collect();
        let listed = format!("(there are: all, fixed, {})", names.join(", "));
        assert_eq!(error("best"), format!("unknown method of relay selection \"best\" {listed}"));
        assert!(error("randon(3)").contains("did you mean random?"));
        assert_eq!(error("all(1)"), "method all takes no parameters: write all");
        assert!(error("random(draws=3)").contains("without names"));
        assert!(error("").starts_with("\"\" does not name a policy"));
    }

    #[test]
    fn no_method_has_the_name_of_a_selector() {
        assert!(SELECTORS.iter().all(|known| PLAIN.iter().all(|(name, _)| *name != known.name)));
    }
}
