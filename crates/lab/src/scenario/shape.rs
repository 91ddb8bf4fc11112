//! Finds mistakes in a document before it is read: unknown fields, wrong types, invalid values.
//!
//! The schema of the types defines what is valid. Serde accepts a document without complaints as a [`super::Scenario`];
//! a test compares the two for every field.

use std::fmt::Write;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::check::Complaint;
use super::schema::{FORMS, Form, WHOLE};

/// Minimum similarity of names for a suggestion.
const LIKENESS_MIN: f64 = 0.75;
/// What paths in the grid begin with.
const GRID: &str = "sweep.grid.";
/// Maximum number of characters of a wrong value to repeat.
const QUOTED_MAX: usize = 40;

/// Finds all mistakes in `document`.
pub(super) fn complaints(document: &Table) -> Vec<Complaint> {
    let mut shape = Shape { found: Vec::new() };
    shape.table("", document, &WHOLE);
    shape.found
}

/// Explains why serde rejects `document` although it has no [`complaints`].
pub(super) fn unforeseen(error: &serde_path_to_error::Error<toml::de::Error>) -> Complaint {
    let path = error.path().to_string();
    Complaint::new(if path == "." { "" } else { &path }, error.inner().message(), "")
}

struct Shape {
    found: Vec<Complaint>,
}

impl Shape {
    fn refuse(&mut self, path: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.found.push(Complaint::new(path, problem, remedy));
    }

    fn value(&mut self, path: &str, value: &Value, schema: &Json) {
        let alternatives = alternatives(schema);
        let Some(schema) = alternatives.iter().find(|schema| fits(value, schema)) else {
            let is_integer = alternatives.iter().any(|schema| kind(schema) == Some("integer"));
            if let Some(number) = value.as_str().filter(|text| is_integer && is_too_large(text)) {
                return self.refuse(path, format!("{number} is out of range"), format!("write at most {}", i64::MAX));
            }
            let wanted: Vec<String> = alternatives.iter().map(|schema| wanted(schema)).collect();
            let problem = format!("{} is not {}", described(value), wanted.join(" or "));
            return self.refuse(path, problem, remedy(path, value, &alternatives));
        };
        match value {
            Value::String(text) => self.text(path, text, schema),
            Value::Integer(number) => self.integer(path, *number, schema),
            Value::Array(items) => self.list(path, items, schema),
            Value::Table(table) => self.table(path, table, schema),
            Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
        }
    }

    fn text(&mut self, path: &str, text: &str, schema: &Json) {
        let names = names(schema);
        if !names.is_empty() && !names.contains(&text) {
            self.refuse(path, format!("unknown value {text:?}"), suggestion(text, &names));
        }
        if let Some(Err(problem)) = form(schema).map(|form| (form.check)(text)) {
            self.refuse(path, problem, "");
        }
        if schema["format"] == "ip" && text.parse::<core::net::IpAddr>().is_err() {
            self.refuse(path, format!("{text:?} is not an IP address"), "write it like \"10.1.0.3\" or \"fd00::3\"");
        }
    }

    fn integer(&mut self, path: &str, number: i64, schema: &Json) {
        let most = most(schema);
        if kind(schema) == Some("integer") && !(0..=most).contains(&number) {
            self.refuse(path, format!("{number} is out of range"), whole_number(schema));
        }
    }

    fn list(&mut self, path: &str, items: &[Value], schema: &Json) {
        if schema["minItems"].as_u64().is_some_and(|length| length != items.len() as u64) {
            let problem = format!("has {} items, not {}", items.len(), schema["minItems"]);
            return self.refuse(path, problem, format!("write a list like {}", example(schema)));
        }
        for (index, item) in items.iter().enumerate() {
            self.value(&format!("{path}[{index}]"), item, &schema["items"]);
        }
    }

    fn table(&mut self, path: &str, table: &Table, schema: &Json) {
        let dot = if path.is_empty() { "" } else { "." };
        let fields = schema["properties"].as_object();
        for (key, value) in table {
            let inner = format!("{path}{dot}{key}");
            match (fields.and_then(|fields| fields.get(key)), &schema["additionalProperties"]) {
                (Some(schema), _) => self.value(&inner, value, schema),
                (None, any @ Json::Object(_)) => self.value(&inner, value, any),
                (None, Json::Bool(false)) => {
                    let fields = fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str);
                    let known: Vec<&str> = fields.chain(taken_away(path)).collect();
                    self.refuse(&inner, format!("unknown field {key:?}"), suggestion(key, &known));
                }
                (None, _) => {}
            }
        }
        for missing in required(schema).filter(|name| !table.contains_key(*name)) {
            let line = assignment(schema, missing);
            let whose = if path.is_empty() { "at the top".into() } else { format!("to {path}") };
            self.refuse(&format!("{path}{dot}{missing}"), "is missing", format!("add `{line}` {whose}"));
        }
    }
}

/// The alternative schemas of a value, without references, choices and null.
fn alternatives(schema: &Json) -> Vec<&Json> {
    if let Some(name) = schema["$ref"].as_str() {
        return WHOLE.pointer(name.trim_start_matches('#')).map(alternatives).unwrap_or_default();
    }
    match schema["anyOf"].as_array() {
        Some(any) => any.iter().flat_map(alternatives).collect(),
        None if schema["type"] == "null" => Vec::new(),
        None => vec![schema],
    }
}

/// The field that the loader has removed from the table at `path` before the check against the schema.
fn taken_away(path: &str) -> Option<&'static str> {
    let is_relay = path.starts_with("relays[") && path.ends_with(']') && !path.contains('.');
    let field = if path.is_empty() { "extends" } else { "count" };
    (path.is_empty() || is_relay).then_some(field)
}

fn required(schema: &Json) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str)
}

fn form(schema: &Json) -> Option<&'static Form> {
    FORMS.iter().find(|form| schema["format"] == form.name)
}

/// The type of values by the schema's name for it; `None` if any value is valid.
fn kind(schema: &Json) -> Option<&str> {
    match &schema["type"] {
        Json::String(kind) => Some(kind),
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null"),
        _ => schema["oneOf"].is_array().then_some("string"),
    }
}

/// The texts that a value may be; empty if others are valid, too.
fn names(schema: &Json) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let described = schema["oneOf"].as_array().into_iter().flatten();
    let described = described.flat_map(|one| one["enum"].as_array().into_iter().flatten().chain(one.get("const")));
    plain.chain(described).filter_map(Json::as_str).collect()
}

/// Returns whether `text`, which was read as a text because it is no TOML number, is an integer that is too large.
fn is_too_large(text: &str) -> bool {
    text.bytes().all(|octet| octet.is_ascii_digit()) && !text.is_empty() && text.parse::<i64>().is_err()
}

fn fits(value: &Value, schema: &Json) -> bool {
    match (kind(schema), value) {
        (None, _)
        | (Some("string"), Value::String(_))
        | (Some("number"), Value::Integer(_) | Value::Float(_))
        | (Some("integer"), Value::Integer(_))
        | (Some("boolean"), Value::Boolean(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Table(_)) => true,
        (Some(_), _) => false,
    }
}

/// Largest integer that fits; TOML allows none above [`i64::MAX`].
fn most(schema: &Json) -> i64 {
    match schema["format"].as_str() {
        Some("uint8") => u8::MAX.into(),
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        _ => i64::MAX,
    }
}

fn whole_number(schema: &Json) -> String {
    let least = schema["minimum"].as_i64().unwrap_or(0);
    match most(schema) {
        i64::MAX => format!("write a whole number of at least {least}, without quotes"),
        most => format!("write a whole number from {least} to {most}, without quotes"),
    }
}

fn wanted(schema: &Json) -> String {
    let noun = match kind(schema) {
        Some("string") => return form(schema).map_or("a string", |form| form.noun).into(),
        Some("number") => "a number",
        Some("integer") => "a whole number",
        Some("boolean") => "true or false",
        Some("array") => "a list",
        _ => "a table",
    };
    noun.into()
}

fn remedy(path: &str, value: &Value, alternatives: &[&Json]) -> String {
    // If a text is wrong where a text or a table is valid, the user seldom meant a table.
    let Some(schema) = alternatives.iter().find(|schema| kind(schema) != Some("object")).or(alternatives.first())
    else {
        return String::new();
    };
    match kind(schema) {
        Some("string") if !names(schema).is_empty() => format!("known: {}", names(schema).join(", ")),
        Some("string") => format!("write a string in quotes, like {}", example(schema)),
        Some("integer") => whole_number(schema),
        Some("number") => "write a number without quotes, like 1.5".into(),
        Some("boolean") => "write true or false, without quotes".into(),
        Some("array") if value.is_table() && schema["items"]["$ref"].is_string() => {
            format!("write [[{}]], with two brackets: there may be several", section(path))
        }
        Some("array") if path.starts_with(GRID) && value.is_table() => quoted(&path[GRID.len()..], value),
        Some("array") if schema["items"] == Json::Bool(true) => format!("write a list: [{value}]"),
        Some("array") => format!("write a list: {}", example(schema)),
        _ => format!("write a table: {}", example(schema)),
    }
}

/// Explains how to write the paths in the table at `path` of the grid: TOML reads dots outside of quotes as tables.
fn quoted(path: &str, table: &Value) -> String {
    let mut lines = Vec::new();
    add_quoted(path, table, &mut lines);
    format!("write paths in quotes: {}", lines.join(", "))
}

fn add_quoted(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| add_quoted(&format!("{path}.{key}"), value, lines)),
        Value::Array(_) => lines.push(format!("{path:?} = {value}")),
        _ => lines.push(format!("{path:?} = [{value}]")),
    }
}

/// The section name of the list at `path`: the path without indices.
fn section(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').filter_map(|part| part.split('[').next()).collect();
    parts.join(".")
}

/// `name = ...` with a value that a field of that name may have.
fn assignment(schema: &Json, name: &str) -> String {
    format!("{name} = {}", example(&schema["properties"][name]))
}

/// A value of `schema`, in TOML.
fn example(schema: &Json) -> String {
    if let Some(example) = schema["examples"].get(0) {
        return example.to_string();
    }
    let alternatives = alternatives(schema);
    let Some(schema) = alternatives.first() else { return String::new() };
    match kind(schema) {
        Some("string") if schema["format"] == "ip" => "\"10.1.0.3\"".into(),
        Some("string") => {
            let name = names(schema).first().copied().or(form(schema).map(|form| form.example));
            format!("{:?}", name.unwrap_or("a name"))
        }
        Some("number") => format!("{:?}", schema["minimum"].as_f64().map_or(1.5, |least| least.max(1.5))),
        Some("integer") => schema["minimum"].as_u64().map_or(1, |least| least.max(1)).to_string(),
        Some("boolean") => "true".into(),
        Some("array") => {
            let length = schema["minItems"].as_u64().unwrap_or(1) as usize;
            format!("[{}]", vec![example(&schema["items"]); length].join(", "))
        }
        _ => {
            let fields: Vec<String> = required(schema).map(|name| assignment(schema, name)).collect();
            if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
        }
    }
}

fn described(value: &Value) -> String {
    let kind = match value {
        Value::String(_) => "the string",
        Value::Integer(_) => "the integer",
        Value::Float(_) => "the number",
        Value::Boolean(_) => "the boolean",
        Value::Datetime(_) => "the date",
        Value::Array(_) => return "a list".into(),
        Value::Table(_) => return "a table".into(),
    };
    let mut text = format!("{kind} ");
    let written = value.to_string();
    let _ = write!(text, "{}", written.chars().take(QUOTED_MAX).collect::<String>());
    if written.chars().count() > QUOTED_MAX {
        text.push_str("...");
    }
    text
}

/// Suggests the nearest of `known` to `given`, and lists all of them.
fn suggestion(given: &str, known: &[&str]) -> String {
    let nearest =
        known.iter().map(|name| (strsim::jaro_winkler(given, name), *name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, name)) if likeness > LIKENESS_MIN => {
            format!("did you mean \"{name}\"? Known: {}", known.join(", "))
        }
        _ => format!("known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// A table with every possible field, each with a value of its first or last type.
    fn full(schema: &Json, pick: fn(&[&Json]) -> usize) -> Value {
        let alternatives = alternatives(schema);
        let schema = alternatives[pick(&alternatives)];
        match kind(schema) {
            Some("object") => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                let mut table: Table = fields.map(|(name, schema)| (name.clone(), full(schema, pick))).collect();
                if let any @ Json::Object(_) = &schema["additionalProperties"] {
                    table.insert("connection.mtu".into(), full(any, pick));
                }
                Value::Table(table)
            }
            Some("array") => {
                let length = schema["minItems"].as_u64().unwrap_or(1);
                Value::Array((0..length).map(|_| full(&schema["items"], pick)).collect())
            }
            _ => value(&example(schema)),
        }
    }

    const PICKS: [fn(&[&Json]) -> usize; 2] = [|_| 0, |all| all.len() - 1];

    /// Collects every place in `value`, as steps to it.
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.into());
        match value {
            Value::Table(table) => table.iter().for_each(|(key, value)| places(value, &format!("{at}/{key}"), found)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
            }
            _ => {}
        }
    }

    fn at<'a>(mut value: &'a mut Value, place: &str) -> &'a mut Value {
        for step in place.split('/').skip(1) {
            value = match value {
                Value::Table(table) => table.get_mut(step).unwrap(),
                Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
                _ => panic!("no {place}"),
            };
        }
        value
    }

    const VALUES: [&str; 26] = [
        "-1",
        "0",
        "7",
        "4294967296",
        "9223372036854775807",
        "1.5",
        "nan",
        "inf",
        "true",
        "\"\"",
        "\"x\"",
        "\"5 ms\"",
        "\"3 Mbit/s\"",
        "\"2 kB\"",
        "\"1 %\"",
        "\"2 packets\"",
        "\"1..3\"",
        "\"cubic\"",
        "\"10.0.0.9\"",
        "[]",
        "[1]",
        "[1, 2, 3]",
        "[\"a\", \"b\"]",
        "{}",
        "{ x = 1 }",
        "1979-05-27",
    ];

    /// Describes how our complaints and serde's answer contradict each other, if they do: we find no mistake, but serde
    /// does; or we complain about a value that serde accepts, except for lists and dates instead of tables, and lists
    /// of another length, all of which serde accepts.
    fn contradiction(document: &Value, change: &str) -> Option<String> {
        let table = document.as_table()?;
        let ours: Vec<String> = complaints(table).iter().map(Complaint::in_a_line).collect();
        let lenient = ["a list is not", "the date", "items, not"];
        match serde_path_to_error::deserialize::<_, Scenario>(table.clone()) {
            Ok(_) if ours.iter().all(|line| lenient.iter().any(|words| line.contains(words))) => None,
            Ok(_) => Some(format!("{change}: serde takes it, and we do not: {ours:?}")),
            Err(_) if !ours.is_empty() => None,
            Err(error) => Some(format!("{change}: serde does not take it: {error}")),
        }
    }

    /// `document` with every field of a section changed in every way, one at a time.
    fn changed_documents(section: &str, document: &Value) -> Vec<(String, Value)> {
        let (mut all, mut changed) = (Vec::new(), Vec::new());
        places(&document[section], &format!("/{section}"), &mut all);
        for place in &all {
            for text in VALUES {
                let mut other = document.clone();
                *at(&mut other, place) = value(text);
                changed.push((format!("{place} = {text}"), other));
            }
            let (above, key) = place.rsplit_once('/').unwrap();
            let mut other = document.clone();
            if let Value::Table(table) = at(&mut other, above) {
                let value = table.remove(key).unwrap();
                changed.push((format!("{place} removed"), other.clone()));
                if let Value::Table(table) = at(&mut other, above) {
                    table.insert(format!("{key}x"), value);
                }
                changed.push((format!("{place} renamed"), other));
            }
        }
        changed
    }

    fn value(text: &str) -> Value {
        format!("value = {text}").parse::<Table>().unwrap().remove("value").unwrap()
    }

    /// Each section in a document that otherwise contains only required fields: small documents are read fast.
    fn sections(document: &Table) -> impl Iterator<Item = (&str, Value)> {
        let needed: Vec<&str> = required(&WHOLE).collect();
        document.keys().map(move |section| {
            let kept = |key: &String| key == section || needed.contains(&key.as_str());
            let fields = document.iter().filter(|(key, _)| kept(key));
            (section.as_str(), Value::Table(fields.map(|(key, value)| (key.clone(), value.clone())).collect()))
        })
    }

    #[test]
    fn the_schema_says_what_serde_says_of_every_field() {
        for pick in PICKS {
            let document = full(&WHOLE, pick);
            let document = document.as_table().unwrap();
            let found: Vec<String> = complaints(document).iter().map(Complaint::in_a_line).collect();
            assert_eq!(found, [""; 0]);
            let changed: Vec<_> =
                sections(document).flat_map(|(section, document)| changed_documents(section, &document)).collect();
            assert!(changed.len() > 3000, "{} are not all fields", changed.len());
            let contradictions = changed.iter().filter_map(|(change, document)| contradiction(document, change));
            let contradictions: Vec<String> = contradictions.collect();
            assert!(contradictions.is_empty(), "{}", contradictions.join("\n"));
        }
    }

    /// The mistake in a complete document in which `place` is `text`.
    fn mistake(place: &str, text: &str) -> String {
        let mut document = full(&WHOLE, PICKS[0]);
        *at(&mut document, place) = value(text);
        let found = complaints(document.as_table().unwrap());
        assert_eq!(found.len(), 1, "{place} = {text}");
        found[0].in_a_line()
    }

    /// Place, value, and the resulting message.
    const WORDS: [(&str, &str, &str); 18] = [
        ("/duration", "10", "duration: the integer 10 is not a time | write a string in quotes, like \"30 s\""),
        (
            "/connection/mtu",
            "1.5",
            "connection.mtu: the number 1.5 is not an amount of data | write a string in quotes, like \"64 kB\"",
        ),
        (
            "/relays/0/cellular/loss",
            "0.01",
            "relays[0].cellular.loss: the number 0.01 is not a share or a table | write a string in quotes, like \"1 %\"",
        ),
        ("/name", "7", "name: the integer 7 is not a string | write a string in quotes, like \"my-scenario\""),
        (
            "/seed",
            "\"7\"",
            "seed: the string \"7\" is not a whole number | write a whole number of at least 0, without quotes",
        ),
        ("/seed", "-1", "seed: -1 is out of range | write a whole number of at least 0, without quotes"),
        (
            "/workload/connections",
            "4294967296",
            "workload.connections: 4294967296 is out of range | write a whole number from 1 to 4294967295, without quotes",
        ),
        (
            "/connection/mptcp",
            "1",
            "connection.mptcp: the integer 1 is not true or false | write true or false, without quotes",
        ),
        (
            "/relays/0/exaggerates",
            "\"2\"",
            "relays[0].exaggerates: the string \"2\" is not a number | write a number without quotes, like 1.5",
        ),
        ("/relays", "{}", "relays: a table is not a list | write [[relays]], with two brackets: there may be several"),
        ("/connection", "true", "connection: the boolean true is not a table | write a table: {}"),
        (
            "/workload/kind",
            "\"bluk\"",
            "workload.kind: unknown value \"bluk\" | did you mean \"bulk\"? Known: file, generated, bulk, video, requests, none",
        ),
        ("/workload", "{}", "workload.kind: is missing | add `kind = \"bulk\"` to workload"),
        (
            "/source/address",
            "\"here\"",
            "source.address: \"here\" is not an IP address | write it like \"10.1.0.3\" or \"fd00::3\"",
        ),
        (
            "/relays/0/place/distance_m",
            "[1]",
            "relays[0].place.distance_m: has 1 items, not 2 | write a list like [1.5, 1.5]",
        ),
        (
            "/relays/0/place/distance_m",
            "\"far\"",
            "relays[0].place.distance_m: the string \"far\" is not a number or a list | write a number without quotes, like 1.5",
        ),
        (
            "/target",
            "{ bit_rate = \"3 Mbit/s\", bitrate = 1 }",
            "target.bitrate: unknown field \"bitrate\" | did you mean \"bit_rate\"? Known: bit_rate, paced, tolerance",
        ),
        (
            "/duration",
            "\"5 parsecs\"",
            "duration: \"5 parsecs\" is not a duration: write a number and a unit, like \"20 ms\" (units: h, min, s, ms, us, µs, ns) | ",
        ),
    ];

    /// What a message proposes must not be refused in turn.
    #[test]
    fn examples_of_numbers_are_not_below_the_least() {
        let of = |kind: &str, least: serde_json::Value| example(&serde_json::json!({ "type": kind, "minimum": least }));
        assert_eq!([of("integer", 0.into()), of("integer", 2.into())], ["1", "2"]);
        assert_eq!([of("number", 0.into()), of("number", 3.0.into())], ["1.5", "3.0"]);
    }

    #[test]
    fn every_kind_of_mistake_has_its_words() {
        for (place, text, words) in WORDS {
            assert_eq!(mistake(place, text), words);
        }
    }

    #[test]
    fn every_example_reads() {
        for form in FORMS {
            assert_eq!((form.check)(form.example), Ok(()), "{}", form.name);
        }
    }
}
