//! Counts which of the possible values have been drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Properties of a case: dimensions, each with the values that the case has.
pub type Values = BTreeSet<(&'static str, String)>;

/// Number of cases by dimension and value.
#[derive(Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Coverage {
    /// Counts a case.
    pub fn add(&mut self, values: impl IntoIterator<Item = (impl Into<String>, String)>) {
        for (dimension, value) in values {
            *self.counts.entry(dimension.into()).or_default().entry(value).or_default() += 1;
        }
    }

    /// Returns the values of a dimension that were drawn.
    pub fn values(&self, dimension: &str) -> Vec<&str> {
        self.counts.get(dimension).into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Returns the number of dimensions, and of values in all of them.
    pub fn size(&self) -> (usize, usize) {
        (self.counts.len(), self.counts.values().map(BTreeMap::len).sum())
    }
}

/// Prints one line per dimension: its values, and the number of cases with each.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.counts.keys().map(String::len).max().unwrap_or(0);
        for (dimension, values) in &self.counts {
            let values: Vec<_> = values.iter().map(|(value, count)| format!("{value} {count}")).collect();
            writeln!(f, "  {dimension:<width$} {}", values.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the first word of a value's debug form: the name of an enumeration's variant.
pub fn word(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().into()
}
