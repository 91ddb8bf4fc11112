//! `extends = "base.toml"`: a scenario that states only the differences from one or several others.

use std::collections::BTreeSet;

use toml::de::DeTable;
use toml::{Table, Value};

use super::mistake::{LoadError, Mistake, Place};
use super::source_map::SourceMap;

/// Maximum number of files of a scenario: more indicate a circle.
const DEPTH_MAX: usize = 8;

/// Maximum number of syntax mistakes to show per file: with more, it is probably no scenario at all, and showing them
/// does not help.
const SYNTAX_MISTAKES_MAX: usize = 8;

/// One file: its name as given, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The file's name, for mistakes.
    pub name: String,
    /// Its contents.
    pub text: String,
    /// Whether it ships with the program instead of being a file: what it extends ships, too.
    pub ships: bool,
}

/// Finds the file that another file, the first argument, names in `extends`; the error explains why there is none.
pub type FindBase<'a> = dyn Fn(&Layer, &str) -> Result<Layer, String> + 'a;

/// Reads `top` and everything it extends; the first layer is `top`.
pub(super) fn read(top: Layer, find_base: &FindBase<'_>) -> Result<Vec<Layer>, LoadError> {
    let mut layers = vec![top];
    read_bases(0, &mut layers, find_base)?;
    Ok(layers)
}

/// Reads the files that the layer at index `at` extends: the last of several files lies on top, and each lies on the
/// files that it extends.
fn read_bases(at: usize, layers: &mut Vec<Layer>, find_base: &FindBase<'_>) -> Result<(), LoadError> {
    for base in bases_of(&layers[at])?.iter().rev() {
        if layers.len() == DEPTH_MAX {
            return Err(mistake(&layers[0], "leads back to this file, or to too many files".into()));
        }
        let found = find_base(&layers[at], base).map_err(|why| mistake(&layers[at], why))?;
        layers.push(found);
        read_bases(layers.len() - 1, layers, find_base)?;
    }
    Ok(())
}

/// The document of all layers: merges tables and replaces everything else.
pub(super) fn merge(layers: &[Layer]) -> Result<Table, LoadError> {
    let mut merged = Table::new();
    for layer in layers.iter().rev() {
        overlay(&mut merged, parse(layer)?);
    }
    merged.remove("extends");
    Ok(merged)
}

fn parse(layer: &Layer) -> Result<Table, LoadError> {
    let map = SourceMap::new(&layer.name, &layer.text);
    let syntax = |error: &toml::de::Error| {
        let place = map.place_at(error.span().map_or(0, |span| span.start));
        let remedy = "write TOML as `field = value`, with quantities in quotes, like \"10 ms\"";
        let (field, context) = (String::new(), String::new());
        let written = error.span().and_then(|span| layer.text.get(span)).unwrap_or_default();
        if is_whole_number(written) {
            let (problem, remedy) = (format!("{written} is too large"), "write a smaller number".into());
            return Mistake { place, field, problem, remedy, context };
        }
        Mistake { place, field, problem: error.message().into(), remedy: remedy.into(), context }
    };
    layer.text.parse().map_err(|first| {
        // A mistake may cause others after it, so one mistake per line is enough.
        let (_, all) = DeTable::parse_recoverable(&layer.text);
        let mut mistakes: Vec<Mistake> = [&first].into_iter().chain(&all).map(syntax).collect();
        let mut lines = BTreeSet::new();
        mistakes.retain(|mistake| lines.insert(mistake.place.line()));
        if mistakes.len() > SYNTAX_MISTAKES_MAX {
            let others = mistakes.len() - 1;
            mistakes.truncate(1);
            mistakes[0].remedy =
                format!("this may not be TOML at all: {others} more lines are wrong; {}", mistakes[0].remedy);
        }
        LoadError::mistakes(mistakes)
    })
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit() || octet == b'_')
}

fn bases_of(layer: &Layer) -> Result<Vec<String>, LoadError> {
    let name = |value: &Value| match value {
        Value::String(base) => Ok(base.clone()),
        other => Err(mistake(layer, format!("{other} is not a file name"))),
    };
    match parse(layer)?.get("extends") {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(name).collect(),
        Some(one) => Ok(vec![name(one)?]),
    }
}

fn mistake(layer: &Layer, problem: String) -> LoadError {
    let map = SourceMap::new(&layer.name, &layer.text);
    let remedy = "write the name of a scenario file, relative to this one, or of a scenario that ships".into();
    let (place, context) = (map.place("extends"), String::new());
    LoadError::Mistakes(vec![Mistake { place, field: "extends".into(), problem, remedy, context }])
}

/// Merges `above` into `below`; values of `above` take precedence.
pub(super) fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

/// Finds the place of every field: in the uppermost layer that contains it. Layers below one that replaces it, or a list
/// around it, say nothing about it.
pub(super) struct Places<'a>(Vec<SourceMap<'a>>);

impl<'a> Places<'a> {
    pub fn new(layers: &'a [Layer]) -> Self {
        Self(layers.iter().map(|layer| SourceMap::new(&layer.name, &layer.text)).collect())
    }

    /// The place of `field`, or of the nearest enclosing field in a file.
    pub fn place(&self, field: &str) -> Place {
        let deepest = self.visible(field).iter().rev().max_by_key(|map| map.nearest(field).len());
        deepest.map_or_else(|| Place::Override(String::new()), |map| map.place(field))
    }

    /// Returns whether a file has `field` itself.
    pub fn contains(&self, field: &str) -> bool {
        self.visible(field).iter().any(|map| map.contains(field))
    }

    /// The file that sets `field`, by index; the top one if none does.
    pub fn layer(&self, field: &str) -> usize {
        self.visible(field).iter().position(|map| map.contains(field)).unwrap_or(0)
    }

    fn visible(&self, field: &str) -> &[SourceMap<'a>] {
        let last = self.0.iter().position(|map| map.replaces(field));
        last.map_or(&self.0, |last| &self.0[..=last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, text: &str) -> Layer {
        Layer { name: name.into(), text: text.into(), ships: false }
    }

    const BASE: &str =
        "name = \"base\"\n[connection]\nmtu = \"1400 B\"\nscheduler = \"random\"\n[[relays]]\n[[relays]]\n";
    const TOP: &str = "extends = \"base.toml\"\nname = \"top\"\n[connection]\nscheduler = \"redundant\"\n";

    fn find(_: &Layer, name: &str) -> Result<Layer, String> {
        match name {
            "base.toml" => Ok(layer(name, BASE)),
            "profile.toml" => Ok(layer(name, "[connection]\nmtu = \"576 B\"\nscheduler = \"random\"\n")),
            "circle.toml" => Ok(layer(name, "extends = \"circle.toml\"")),
            _ => Err("there is no such file".into()),
        }
    }

    fn refusal(text: &str) -> String {
        read(layer("x.toml", text), &find).unwrap_err().to_string()
    }

    #[test]
    fn what_is_above_wins_and_the_rest_shows_through() {
        let layers = read(layer("top.toml", TOP), &find).unwrap();
        let document = merge(&layers).unwrap();
        assert_eq!(document["name"].as_str(), Some("top"));
        assert_eq!(document["connection"]["mtu"].as_str(), Some("1400 B"));
        assert_eq!(document["connection"]["scheduler"].as_str(), Some("redundant"));
        assert_eq!(document["relays"].as_array().unwrap().len(), 2);
        assert!(!document.contains_key("extends"));
    }

    #[test]
    fn of_several_the_last_lies_on_top() {
        let merged = |bases: &str| {
            let top = format!("extends = {bases}\nname = \"top\"\n");
            merge(&read(layer("top.toml", &top), &find).unwrap()).unwrap()
        };
        let mtu = |document: &Table| document["connection"]["mtu"].as_str().map(String::from);
        let document = merged("[\"base.toml\", \"profile.toml\"]");
        assert_eq!((mtu(&document), document["relays"].as_array().map(Vec::len)), (Some("576 B".into()), Some(2)));
        assert_eq!(mtu(&merged("[\"profile.toml\", \"base.toml\"]")).as_deref(), Some("1400 B"));
        assert!(refusal("extends = [\"base.toml\", 7]").contains("7 is not a file name"));
        assert!(refusal("extends = [\"base.toml\", \"circle.toml\"]").contains("leads back"));
    }

    #[test]
    fn mistakes_stand_where_the_field_does() {
        let layers = read(layer("top.toml", TOP), &find).unwrap();
        let places = Places::new(&layers);
        let at = |field: &str| match places.place(field) {
            Place::File { name, line, .. } => (name, line),
            Place::Override(_) => unreachable!(),
        };
        assert_eq!(at("connection.scheduler"), ("top.toml".into(), 4));
        assert_eq!(at("connection.mtu"), ("base.toml".into(), 3));
        assert_eq!(at("relays[1].cellular"), ("base.toml".into(), 6));
        assert_eq!(at("duration"), ("top.toml".into(), 1));
    }

    /// A list is replaced as a whole: what the file below says about its items is gone.
    #[test]
    fn mistakes_in_a_list_stand_in_the_file_that_has_it() {
        let base = layer("base.toml", "[[relays]]\ncellular = { rate = \"1 Mbit/s\" }\n");
        let layers = [layer("top.toml", "extends = \"base.toml\"\n[[relays]]\nname = \"only\"\n"), base];
        let place = Places::new(&layers).place("relays[0].cellular");
        assert!(matches!(&place, Place::File { name, line: 2, .. } if name == "top.toml"), "{place:?}");
    }

    #[test]
    fn files_that_lead_nowhere_are_refused() {
        assert!(refusal("extends = \"none.toml\"").contains("x.toml:1:1: extends: there is no such file"));
        assert!(refusal("extends = \"circle.toml\"").contains("leads back"));
        assert!(refusal("extends = 7").contains("7 is not a file name"));
    }
}
