//! Names of the methods of relay selection in scenario files.

use std::borrow::Cow;

use cooperation::relay_selection::{self, SELECTORS, SHORT_NAMES, UnknownName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

/// Methods of relay selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionMethod {
    /// Every relay, all the time.
    All,
    /// The relays that `fixed` lists, all the time.
    Fixed,
    /// The choice of the selector registered by this name.
    Selector(&'static str),
}

impl SelectionMethod {
    /// Returns whether it chooses relays for a target.
    pub const fn steers(self) -> bool {
        matches!(self, Self::Selector(_))
    }

    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Fixed => "fixed",
            Self::Selector(name) => name,
        }
    }

    fn named(name: &str) -> Result<Self, UnknownName> {
        match name {
            "all" => Ok(Self::All),
            "fixed" => Ok(Self::Fixed),
            _ => relay_selection::find(name).map(|known| Self::Selector(known.name)),
        }
    }
}

impl Serialize for SelectionMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for SelectionMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::named(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Like the derived schema of an enumeration: every name with a description.
impl JsonSchema for SelectionMethod {
    fn schema_name() -> Cow<'static, str> {
        "SelectionMethod".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |(name, does): (&str, String)| json!({ "description": does, "type": "string", "const": name });
        let plain = [("all", "every relay, all the time"), ("fixed", "the relays that `fixed` lists, all the time")];
        let plain = plain.map(|(name, does)| (name, does.into()));
        let selectors = SELECTORS.iter().map(|known| (known.name, known.summary.into()));
        let short = SHORT_NAMES.iter().map(|(short, full)| (*short, format!("short for {full}")));
        let all: Vec<Value> = plain.into_iter().chain(selectors).chain(short).map(one).collect();
        json_schema!({ "description": "Methods of relay selection.", "oneOf": all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_selector_is_a_method() {
        let schema = schemars::schema_for!(SelectionMethod).to_value();
        for known in SELECTORS {
            let method: SelectionMethod = serde_json::from_value(json!(known.name)).unwrap();
            assert_eq!(serde_json::to_value(method).unwrap(), json!(known.name));
            assert!(method.steers());
            let listed = schema["oneOf"].as_array().unwrap().iter().any(|one| one["const"] == known.name);
            assert!(listed, "{} is not in the schema", known.name);
        }
        for name in ["all", "fixed"] {
            let method: SelectionMethod = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((method.name(), method.steers()), (name, false));
        }
    }

    /// The short names are those of `anabranch select`.
    #[test]
    fn greedy_is_the_thesis_baseline() {
        let method: SelectionMethod = serde_json::from_value(json!("greedy")).unwrap();
        assert_eq!(serde_json::to_value(method).unwrap(), json!("greedy-thesis"));
    }

    #[test]
    fn no_method_has_the_name_of_a_selector() {
        assert!(SELECTORS.iter().all(|known| !["all", "fixed"].contains(&known.name)));
    }
}
