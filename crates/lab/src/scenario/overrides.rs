//! `--set path=value`: changing a field from the command line.

use core::str::FromStr;

use toml::{Table, Value};

/// One `path=value`.
///
/// Paths name fields as mistakes do: `relays[0].cellular.delay`. `relays[*]` means every relay. The value is TOML, or a
/// text that needs no quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// As it was given.
    pub text: String,
    steps: Vec<Step>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    Every,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no \"=\": write a field and its value, like duration=\"10 s\""))?;
        let steps = parse_path(path.trim())
            .ok_or_else(|| format!("{path:?} names no field: write it like relays[0].cellular.delay"))?;
        Ok(Self { text: text.into(), steps, value: parse_value(value.trim()) })
    }
}

impl Override {
    /// Sets the field at `path` to `value`.
    ///
    /// # Errors
    /// If `path` names no field.
    pub fn new(path: &str, value: Value) -> Result<Self, String> {
        let steps = parse_path(path)
            .ok_or_else(|| format!("{path:?} names no field: write it like relays[0].cellular.delay"))?;
        Ok(Self { text: format!("{path}={value}"), steps, value })
    }
}

fn parse_path(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (key, mut indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        match key {
            "" => return None,
            "*" => steps.push(Step::Every),
            _ => steps.push(key.parse().map_or_else(|_| Step::Key(key.into()), Step::Index)),
        }
        while !indices.is_empty() {
            let (index, rest) = indices.strip_prefix('[')?.split_once(']')?;
            steps.push(if index == "*" { Step::Every } else { Step::Index(index.parse().ok()?) });
            indices = rest;
        }
    }
    Some(steps)
}

/// TOML if it is, a text otherwise: `10 ms` needs no quotes.
fn parse_value(text: &str) -> Value {
    let document = format!("value = {text}").parse::<Table>();
    document.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.into()))
}

impl Override {
    /// Whether the last step of the path is the field `name`.
    pub(super) fn sets(&self, name: &str) -> bool {
        matches!(self.steps.last(), Some(Step::Key(key)) if key == name)
    }

    /// Changes `document`; gives the paths of all fields it set.
    ///
    /// # Errors
    /// If a step of the path leads nowhere.
    pub(super) fn apply(&self, document: &mut Table) -> Result<Vec<String>, String> {
        let mut root = Value::Table(core::mem::take(document));
        let mut paths = Vec::new();
        let result = set(&mut root, &self.steps, &self.value, String::new(), &mut paths);
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
    fn refuses_paths_that_lead_nowhere() {
        assert!(apply("", "seed").unwrap_err().contains("has no \"=\""));
        assert!(apply("", "a..b=1").unwrap_err().contains("names no field"));
        assert!(apply("", "a[1=1").unwrap_err().contains("names no field"));
        assert!(apply("[[r]]\n", "r[3].a=1").unwrap_err().contains("r[3] does not exist: r has 1"));
        assert!(apply("a = 1", "a.b=1").unwrap_err().contains("not a table"));
        assert!(apply("a = 1", "a[0]=1").unwrap_err().contains("not a list"));
    }
}
