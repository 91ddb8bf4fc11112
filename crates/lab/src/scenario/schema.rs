//! The JSON Schema of scenario files: for editors, and for the loader, which checks every file against it.

use core::fmt::Display;
use core::marker::PhantomData;
use core::str::FromStr;
use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use transport::congestion::ControllerSpec;
use units::{ByteCount, Duration, Probability, Rate};

use super::{Offset, Queue, Scenario, Seeds, SelectionMethod};

/// A type that scenario files write as a text of some form.
pub(super) trait Writable: FromStr<Err: Display> + 'static {
    const FORM: Form;
}

/// A form of texts.
pub(super) struct Form {
    /// Its name as a `format` of JSON Schema. The name is not one of the standard's, because editors would check texts
    /// against those.
    pub name: &'static str,
    /// Noun for such a text.
    pub noun: &'static str,
    /// An example.
    pub example: &'static str,
    /// Checks a text; the error says what is wrong.
    pub check: fn(&str) -> Result<(), String>,
}

impl Form {
    const fn of<T: Writable>(name: &'static str, noun: &'static str, example: &'static str) -> Self {
        Self { name, noun, example, check: check::<T> }
    }
}

fn check<T: Writable>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(|error| error.to_string())
}

impl Writable for Duration {
    const FORM: Form = Form::of::<Self>("time-span", "a time", "20 ms");
}

impl Writable for Rate {
    const FORM: Form = Form::of::<Self>("bit-rate", "a rate", "10 Mbit/s");
}

impl Writable for ByteCount {
    const FORM: Form = Form::of::<Self>("data-size", "an amount of data", "64 kB");
}

impl Writable for Probability {
    const FORM: Form = Form::of::<Self>("share", "a share", "1 %");
}

impl Writable for Queue {
    const FORM: Form = Form::of::<Self>("queue-capacity", "the capacity of a queue", "100 packets");
}

impl Writable for Offset {
    const FORM: Form = Form::of::<Self>("trace-offset", "a place in a trace", "30 s");
}

impl Writable for ControllerSpec {
    const FORM: Form = Form::of::<Self>("congestion-controller", "a congestion controller", "cubic");
}

impl Writable for SelectionMethod {
    const FORM: Form = Form::of::<Self>("relay-selection", "a method of relay selection", "ssrs");
}

impl Writable for Seeds {
    const FORM: Form = Form::of::<Self>("seeds", "seeds", "1..30");
}

/// Every form.
pub(super) const FORMS: [Form; 9] = [
    Duration::FORM,
    Rate::FORM,
    ByteCount::FORM,
    Probability::FORM,
    Queue::FORM,
    Offset::FORM,
    ControllerSpec::FORM,
    SelectionMethod::FORM,
    Seeds::FORM,
];

/// Schema of a `T` written as a text.
pub(super) struct Written<T>(PhantomData<T>);

impl<T: Writable> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::FORM.name.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": T::FORM.name, "examples": [T::FORM.example] })
    }
}

/// Schema of [`units::text::TextOr`]: a `T` as a text, or a table `U`.
pub(super) struct TextOrTable<T, U>(PhantomData<(T, U)>);

impl<T: Writable, U: JsonSchema> JsonSchema for TextOrTable<T, U> {
    fn schema_name() -> Cow<'static, str> {
        format!("TextOr{}", U::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{} or {}", T::FORM.name, U::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Written<T>>(), generator.subschema_for::<U>()] })
    }
}

/// Schema of [`super::Uniform`].
pub(super) struct Bounds<T>(PhantomData<T>);

impl<T: Writable> JsonSchema for Bounds<T> {
    fn schema_name() -> Cow<'static, str> {
        "Uniform".into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("uniform {}", T::FORM.name).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bound = generator.subschema_for::<Written<T>>();
        let bounds = json!({ "type": "array", "items": bound, "minItems": 2, "maxItems": 2 });
        json_schema!({
            "type": "object",
            "properties": { "uniform": bounds },
            "required": ["uniform"],
            "additionalProperties": false
        })
    }
}

/// Schema of a scenario after merging layers and expanding relays.
pub(super) static WHOLE: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(Scenario).to_value());

/// A JSON Schema (draft 2020-12) of scenario files, indented, with a newline at the end.
pub fn schema() -> String {
    let mut schema = WHOLE.clone();
    // The loader removes these fields before it reads the rest.
    let extends = json!({
        "description": "Another scenario that this one extends, a file or one that ships, or several; later ones win.",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    });
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("extends".into(), extends);
    }
    add_property(&mut schema, "/$defs/Relay/properties", "count", "integer", "Number of relays like this one.");
    let mut definitions = schema.get("$defs").cloned().unwrap_or_default();
    let whole = definitions.clone();
    omit_fields(&mut schema, &whole, &mut definitions);
    schema["$defs"] = definitions;
    format!("{schema:#}\n")
}

/// Lets the tables of `schema` omit any field, except in lists: a file that extends another states of a table only what
/// it changes, but replaces lists as a whole. `whole` are the definitions to which the schema refers; those that become
/// others here are added to `definitions`.
fn omit_fields(schema: &mut Value, whole: &Value, definitions: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("required");
    if let Some(Value::Object(fields)) = object.get_mut("properties") {
        fields.values_mut().for_each(|field| omit_fields(field, whole, definitions));
    }
    if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
        forms.iter_mut().for_each(|form| omit_fields(form, whole, definitions));
    }
    let Some(Value::String(reference)) = object.get_mut("$ref") else { return };
    let Some(definition) = reference.strip_prefix("#/$defs/").and_then(|name| Some((name, whole.get(name)?))) else {
        return;
    };
    let (name, mut part) = (format!("{}InPart", definition.0), definition.1.clone());
    omit_fields(&mut part, whole, definitions);
    if part != *definition.1 {
        *reference = format!("#/$defs/{name}");
        definitions[name] = part;
    }
}

fn add_property(schema: &mut Value, at: &str, name: &str, kind: &str, description: &str) {
    if let Some(properties) = schema.pointer_mut(at).and_then(Value::as_object_mut) {
        properties.insert(name.into(), json!({ "type": kind, "description": description }));
    }
}
