//! Values of the enumerations of scenario files, read from their schema, so that new ones are included.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::sample::select;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns every value of an enumeration, in the order of its declaration.
pub fn words<T: JsonSchema + DeserializeOwned>() -> Vec<T> {
    let schema = schema_for!(T).to_value();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    // Values with their own description are listed separately.
    let alone = list(&schema, "oneOf").into_iter().flat_map(|one| {
        let several = list(&one, "enum");
        one.get("const").cloned().into_iter().chain(several)
    });
    let words = list(&schema, "enum").into_iter().chain(alone);
    let words: Vec<T> = words.map(|word| serde_json::from_value(word).expect("a value of the enumeration")).collect();
    assert!(!words.is_empty(), "{} is no enumeration", T::schema_name());
    words
}

/// Draws one of them.
pub fn word<T: JsonSchema + DeserializeOwned + Clone + Debug + 'static>() -> impl Strategy<Value = T> + use<T> {
    select(words::<T>())
}
