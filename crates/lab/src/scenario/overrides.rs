//! `--set path=value`, variants and grids: changing fields of a scenario.

use core::str::FromStr;

use toml::{Table, Value};

use super::field_path::{FieldPath, Step};

/// One `path=value`.
///
/// Paths name fields in the notation of mistakes: `relays[0].cellular.delay`. `relays[*]` means every relay. The value
/// is TOML, or a text without quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The change as given, or as it would be written on the command line.
    pub text: String,
    path: FieldPath,
    value: Value,
    /// The field of the scenario file that contains it; `None` for the command line.
    stands_at: Option<String>,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no \"=\": write a field and its value, like duration=\"10 s\""))?;
        Ok(Self { text: text.into(), path: path.trim().parse()?, value: parse_value(value.trim()), stands_at: None })
    }
}

/// Parses TOML if possible, otherwise a text: `10 ms` needs no quotes.
fn parse_value(text: &str) -> Value {
    let document = format!("value = {text}").parse::<Table>();
    let only = |mut table: Table| if table.len() == 1 { table.remove("value") } else { None };
    document.ok().and_then(only).unwrap_or_else(|| Value::String(text.into()))
}

/// Formats `value` for `--set path=`: a text without quotes if it then reads as the same text.
pub fn typed(value: &Value) -> String {
    let plain = value.as_str().filter(|text| parse_value(text.trim()) == *value);
    plain.map_or_else(|| value.to_string(), String::from)
}

impl Override {
    /// Creates an override that sets the field at `path` to `value` and is contained in the field `stands_at` of the
    /// scenario file.
    ///
    /// # Errors
    /// If `path` names no field.
    pub fn in_file(path: &str, value: &Value, stands_at: &str) -> Result<Self, String> {
        let text = format!("{path}={}", typed(value));
        Ok(Self { text, path: path.parse()?, value: value.clone(), stands_at: Some(stands_at.into()) })
    }

    /// The same change, contained in the field `stands_at` of the scenario file instead of on the command line.
    #[must_use]
    pub fn standing_at(mut self, stands_at: String) -> Self {
        self.stands_at = Some(stands_at);
        self
    }

    /// The field to set.
    pub const fn path(&self) -> &FieldPath {
        &self.path
    }

    /// The value to set it to.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The field of the scenario file that contains it; `None` for the command line.
    pub fn stands_at(&self) -> Option<&str> {
        self.stands_at.as_deref()
    }

    /// Returns whether it decides what `other` would set: it sets the same field, one within it, or a table around it
    /// that contains the field.
    pub fn decides(&self, other: &Self) -> bool {
        if !self.path.overlaps(&other.path) {
            return false;
        }
        let rest = other.path.0.get(self.path.0.len()..).unwrap_or_default();
        rest.iter().try_fold(&self.value, |value, step| step.find(value)).is_some()
    }

    /// Returns whether it sets the number of relays of a section.
    pub(crate) fn counts_relays(&self) -> bool {
        let key = |step: &Step, name: &str| matches!(step, Step::Key(key) if key == name);
        matches!(self.path.0.as_slice(), [relays, _, count] if key(relays, "relays") && key(count, "count"))
    }

    /// Returns whether it sets `field`, at the top level of the scenario, or a part of it.
    pub fn is_of(&self, field: &str) -> bool {
        matches!(self.path.0.first(), Some(Step::Key(key)) if key == field)
    }

    /// Changes `document`; returns the paths of all fields it set.
    ///
    /// # Errors
    /// If a step of the path does not exist.
    pub(super) fn apply(&self, document: &mut Table) -> Result<Vec<String>, String> {
        let mut root = Value::Table(core::mem::take(document));
        let mut paths = Vec::new();
        let result = set(&mut root, &self.path.0, &self.value, String::new(), &mut paths);
        if let Value::Table(table) = root {
            *document = table;
        }
        result.map(|()| paths)
    }
}

fn set(at: &mut Value, steps: &[Step], value: &Value, path: String, set_paths: &mut Vec<String>) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *at = value.clone();
        set_paths.push(path);
        return Ok(());
    };
    match (step, at) {
        (_, Value::Table(table)) if has_paths_as_keys(&path) => {
            let key = key_of(table, steps);
            set_paths.push(format!("{path}.{key}"));
            table.insert(key, value.clone());
            Ok(())
        }
        (Step::Key(key), Value::Table(table)) => {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{key}");
            let inner = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            set(inner, rest, value, path, set_paths)
        }
        (Step::Index(index), Value::Array(items)) => {
            let len = items.len();
            let outside = || format!("{path}[{index}] does not exist: {path} has {len}, counted from 0");
            let item = items.get_mut(*index).ok_or_else(outside)?;
            set(item, rest, value, format!("{path}[{index}]"), set_paths)
        }
        (Step::Every, Value::Array(items)) => {
            let mut items = items.iter_mut().enumerate();
            items.try_for_each(|(index, item)| set(item, rest, value, format!("{path}[{index}]"), set_paths))
        }
        (Step::Key(key), _) => Err(format!("{path} has no field {key:?}: it is not a table")),
        (Step::Index(_) | Step::Every, _) => Err(format!("{path} is not a list: leave the brackets out")),
    }
}

/// Returns whether the keys of the table at `path` are paths: in `sweep.grid` and in every variant's `set`.
fn has_paths_as_keys(path: &str) -> bool {
    let of_variant = |path: &str| path.strip_prefix("variants[")?.strip_suffix("].set")?.parse::<usize>().ok();
    path == "sweep.grid" || of_variant(path).is_some()
}

/// The key for the path `steps`: an existing key of the table in any notation, or a new one.
fn key_of(table: &Table, steps: &[Step]) -> String {
    let wanted = FieldPath(steps.to_vec());
    let same = |key: &&String| key.parse::<FieldPath>().is_ok_and(|path| path == wanted);
    table.keys().find(same).cloned().unwrap_or_else(|| wanted.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(document: &str, text: &str) -> Result<(Table, Vec<String>), String> {
        let mut table = document.parse().unwrap();
        let paths = text.parse::<Override>()?.apply(&mut table)?;
        Ok((table, paths))
    }

    #[test]
    fn sets_what_the_path_names() {
        let (table, paths) = apply("[[relays]]\ndelay = \"1 ms\"\n[[relays]]\n", "relays[1].wifi.delay=10 ms").unwrap();
        assert_eq!(table["relays"][1]["wifi"]["delay"].as_str(), Some("10 ms"));
        assert_eq!(table["relays"][0]["delay"].as_str(), Some("1 ms"));
        assert_eq!(paths, ["relays[1].wifi.delay"]);
        assert_eq!(apply("", "seed=7").unwrap().0["seed"].as_integer(), Some(7));
        assert_eq!(apply("", "a.b=\"7\"").unwrap().0["a"]["b"].as_str(), Some("7"));
    }

    #[test]
    fn a_star_sets_every_item() {
        let (table, paths) = apply("[[r]]\n[[r]]\n", "r[*].loss=1 %").unwrap();
        assert_eq!((table["r"][0]["loss"].as_str(), table["r"][1]["loss"].as_str()), (Some("1 %"), Some("1 %")));
        assert_eq!(paths, ["r[0].loss", "r[1].loss"]);
    }

    #[test]
    fn grids_and_variants_have_paths_as_keys() {
        let document = "[sweep.grid]\n\"relays.0.loss\" = [1]\n[[variants]]\nset = { \"a.b\" = 1 }\n";
        let (table, paths) = apply(document, "sweep.grid.relays[0].loss=[2, 3]").unwrap();
        assert_eq!(table["sweep"]["grid"]["relays.0.loss"].as_array().unwrap().len(), 2);
        assert_eq!(paths, ["sweep.grid.relays.0.loss"]);
        let (table, _) = apply(document, "sweep.grid.workload.size=[\"1 MB\"]").unwrap();
        assert_eq!(table["sweep"]["grid"]["workload.size"].as_array().unwrap().len(), 1);
        let (table, _) = apply(document, "variants[0].set.a.b=2").unwrap();
        assert_eq!(table["variants"][0]["set"]["a.b"].as_integer(), Some(2));
        let (table, _) = apply(document, "sweep.grid={}").unwrap();
        assert!(table["sweep"]["grid"].as_table().unwrap().is_empty());
    }

    #[test]
    fn refuses_paths_that_lead_nowhere() {
        assert!(apply("", "seed").unwrap_err().contains("has no \"=\""));
        assert!(apply("", "a..b=1").unwrap_err().contains("names no field"));
        assert!(apply("", "a[1=1").unwrap_err().contains("names no field"));
        assert!(apply("[[r]]\n", "r[3].a=1").unwrap_err().contains("r[3] does not exist: r has 1"));
        assert!(apply("a = 1", "a.b=1").unwrap_err().contains("not a table"));
        assert!(apply("a = 1", "a[0]=1").unwrap_err().contains("not a list"));
    }

    #[test]
    fn what_is_typed_reads_as_the_same_value() {
        let text = |text: &str| Value::String(text.into());
        for value in [
            text("1 MB"),
            text("7"),
            text("true"),
            text(" x "),
            text(""),
            text("it's"),
            text("a\nb = 1"),
            text("1 # one"),
            text("1\nother = 2"),
            Value::Integer(7),
            Value::Boolean(false),
            parse_value("{ from = \"5 s\", to = \"9 s\" }"),
            parse_value("[1, 2]"),
        ] {
            assert_eq!(parse_value(typed(&value).trim()), value, "{}", typed(&value));
        }
        assert_eq!((typed(&text("1 MB")), typed(&text("7"))), ("1 MB".into(), "\"7\"".into()));
    }
}
