//! Maps fields to their lines in a file.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

use super::mistake::Place;

/// Places of all fields of a TOML document.
pub(super) struct SourceMap<'a> {
    name: &'a str,
    text: &'a str,
    /// Octet offsets of keys, and of list items, by path, like `relays[1].cellular.rate`.
    offsets: BTreeMap<String, usize>,
    /// The paths of everything that is no table.
    values: BTreeSet<String>,
}

impl<'a> SourceMap<'a> {
    /// Reads the positions of all fields in `text`, the contents of the file `name`. Empty if it is not TOML.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let mut map = Self { name, text, offsets: BTreeMap::new(), values: BTreeSet::new() };
        if let Ok(document) = DeTable::parse(text) {
            map.add_table("", document.get_ref());
        }
        map
    }

    /// The place of `field`, or of the nearest enclosing field in the file.
    pub fn place(&self, field: &str) -> Place {
        self.place_at(self.offsets.get(self.nearest(field)).copied().unwrap_or(0))
    }

    /// The nearest field in the file: `field` itself, or one that encloses it, or none.
    pub fn nearest<'b>(&self, field: &'b str) -> &'b str {
        let mut path = field;
        while !self.offsets.contains_key(path) {
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return "",
            }
        }
        path
    }

    /// Returns whether the file has `field` or something that encloses it as a value or a list: what a file that this
    /// one extends says about `field` is then replaced.
    pub fn replaces(&self, field: &str) -> bool {
        let ends = field.match_indices(['.', '[']).map(|(end, _)| end).chain([field.len()]);
        ends.into_iter().any(|end| self.values.contains(&field[..end]))
    }

    /// Returns whether the file has `field` itself.
    pub fn contains(&self, field: &str) -> bool {
        self.offsets.contains_key(field)
    }

    /// The place of the octet at `offset`.
    pub fn place_at(&self, offset: usize) -> Place {
        let before = &self.text[..offset.min(self.text.len())];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::File {
            name: self.name.into(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: self.text[start..].lines().next().unwrap_or_default().into(),
        }
    }

    fn add_table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let path = format!("{prefix}{dot}{}", key.get_ref());
            self.offsets.insert(path.clone(), key.span().start);
            self.add_value(&path, value.get_ref());
        }
    }

    fn add_value(&mut self, path: &str, value: &DeValue<'_>) {
        if !matches!(value, DeValue::Table(_)) {
            self.values.insert(path.into());
        }
        match value {
            DeValue::Table(table) => self.add_table(path, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.offsets.insert(path.clone(), item.span().start);
                    self.add_value(&path, item.get_ref());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"a\"\n\n[[relays]]\nrate = { mean = \"1 Mbit/s\" }\n[[relays]]\n  delay = 5\n";

    fn line_and_column(field: &str) -> (usize, usize) {
        match SourceMap::new("x.toml", TEXT).place(field) {
            Place::File { line, column, .. } => (line, column),
            Place::Override(_) => unreachable!(),
        }
    }

    #[test]
    fn fields_have_places() {
        assert_eq!(line_and_column("name"), (1, 1));
        assert_eq!(line_and_column("relays[0].rate.mean"), (4, 10));
        assert_eq!(line_and_column("relays[1].delay"), (6, 3));
    }

    #[test]
    fn a_missing_field_stands_where_its_section_does() {
        assert_eq!(line_and_column("relays[1].cellular.rate"), line_and_column("relays[1]"));
        assert_eq!(line_and_column("relays[1]").0, 5);
        assert_eq!(line_and_column("workload"), (1, 1));
    }
}
