//! The JSON Schema of scenario files, for editors.

use core::marker::PhantomData;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::Scenario;

/// Schema of [`units::text::TextOr`]: a text, or a table `T`.
pub(super) struct TextOrTable<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for TextOrTable<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("TextOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<T>()] })
    }
}

/// Schema of [`super::Uniform`].
pub(super) struct Bounds;

impl JsonSchema for Bounds {
    fn schema_name() -> Cow<'static, str> {
        "Uniform".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let bounds = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 });
        json_schema!({
            "type": "object",
            "properties": { "uniform": bounds },
            "required": ["uniform"],
            "additionalProperties": false
        })
    }
}

/// A JSON Schema (draft 2020-12) of scenario files, indented, with a newline at the end.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    // Fields that the loader takes away before the rest is read.
    add_property(
        &mut schema,
        "/properties",
        "extends",
        "string",
        "Another scenario file, of which this one says what differs.",
    );
    add_property(&mut schema, "/$defs/Relay/properties", "count", "integer", "That many of a kind.");
    // A file that extends another may leave out everything, except in lists, which are replaced as a whole.
    for table in ["", "/$defs/Workload", "/$defs/Target"] {
        if let Some(object) = schema.pointer_mut(table).and_then(Value::as_object_mut) {
            object.remove("required");
        }
    }
    format!("{schema:#}\n")
}

fn add_property(schema: &mut Value, at: &str, name: &str, kind: &str, description: &str) {
    if let Some(properties) = schema.pointer_mut(at).and_then(Value::as_object_mut) {
        properties.insert(name.into(), json!({ "type": kind, "description": description }));
    }
}
