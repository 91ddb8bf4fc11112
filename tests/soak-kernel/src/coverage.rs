//! What of everything that can be drawn has been drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::case::Case;

/// Counts of values by dimension, one for each case that has the value.
#[derive(Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Coverage {
    /// Counts a case.
    pub fn add(&mut self, case: &Case) {
        for (dimension, value) in values(case) {
            *self.counts.entry(dimension).or_default().entry(value).or_default() += 1;
        }
    }

    /// Dimensions, and values of all of them.
    pub fn size(&self) -> (usize, usize) {
        (self.counts.len(), self.counts.values().map(BTreeMap::len).sum())
    }
}

/// A line for each dimension: its values, and in how many cases each was drawn.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (dimension, values) in &self.counts {
            let values: Vec<_> = values.iter().map(|(value, count)| format!("{value} {count}")).collect();
            writeln!(f, "  {dimension:<38} {}", values.join(", "))?;
        }
        Ok(())
    }
}

fn values(case: &Case) -> BTreeSet<(String, String)> {
    let mut values = BTreeSet::new();
    let mut add = |dimension: &str, value: String| _ = values.insert((dimension.to_string(), value));
    add("paths", case.paths.len().to_string());
    add("IP", if case.ipv6 { "6" } else { "4" }.into());
    add("kernel is", format!("{:?}", case.kernel_is));
    add("kernel speaks", if case.kernel.mptcp { "MPTCP" } else { "TCP" }.into());
    case.kernel.settings.iter().for_each(|(name, value)| add(name, format!("'{value}'")));
    case.kernel.endpoints.iter().for_each(|endpoint| add("endpoint", format!("{:?}", endpoint.role)));
    add("controller", case.engine.congestion.clone());
    add("scheduler", case.engine.scheduler.clone());
    add("path manager", case.engine.path_manager.clone());
    for path in &case.paths {
        path.boxes.iter().for_each(|middlebox| add("middlebox", word(middlebox)));
        if !path.outages_ms.is_empty() {
            add("middlebox", "outage".into());
        }
    }
    case.actions.iter().for_each(|action| add("action", word(&action.deed)));
    for talk in &case.talks {
        [talk.client, talk.server].iter().for_each(|speaker| add("ending", format!("{:?}", speaker.ending)));
    }
    values
}

/// The first word of a value's debug form: the name of an enumeration's variant.
fn word(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().into()
}
