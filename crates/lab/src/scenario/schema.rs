//! The JSON Schema of scenario files, for editors.

use serde_json::{Value, json};

use super::Scenario;

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
