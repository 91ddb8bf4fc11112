//! Paths of fields, as in mistakes and `--set`: `relays[0].cellular.delay`.

use core::fmt;
use core::str::FromStr;

use toml::Value;

/// A path from the top of a scenario to a field. `relays[*]` means every relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(pub(super) Vec<Step>);

/// One step into a table or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field of a table.
    Key(String),
    /// An item of a list.
    Index(usize),
    /// Every item of a list.
    Every,
}

impl Step {
    /// Returns whether both lead to a common field.
    fn meets(&self, other: &Self) -> bool {
        let numbers = |step: &Self| matches!(step, Self::Index(_) | Self::Every);
        self == other || (*self == Self::Every && numbers(other)) || (*other == Self::Every && numbers(self))
    }

    /// Where it leads from `value`; of every item, to the first.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Key(key) => value.get(key),
            Self::Index(index) => value.get(index),
            Self::Every => value.get(0),
        }
    }

    /// Returns whether this step leads to everything that `other` leads to.
    fn covers(&self, other: &Self) -> bool {
        self == other || (*self == Self::Every && matches!(other, Self::Index(_)))
    }
}

impl FieldPath {
    /// Returns whether setting one changes part of the other: they are equal, or one is within the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, other)| one.meets(other))
    }

    /// For a path into every relay, the same path into one relay.
    pub fn of_relay(&self, index: usize) -> Option<Self> {
        let is_of_every_relay = matches!(self.0.as_slice(), [Step::Key(list), Step::Every, ..] if list == "relays");
        is_of_every_relay.then(|| {
            let mut steps = self.0.clone();
            steps[1] = Step::Index(index);
            Self(steps)
        })
    }

    /// The value at this path in `document`; of every item, that of the first.
    pub(super) fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, step| step.find(value))
    }

    /// Returns whether setting this path replaces everything set at `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| one.covers(other))
    }
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} names no field: write it like relays[0].cellular.delay");
        steps(text).map(Self).ok_or_else(refuse)
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
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

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.0)
    }
}

fn write_steps(to: &mut impl fmt::Write, steps: &[Step]) -> fmt::Result {
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Key(key) if number == 0 => write!(to, "{key}")?,
            Step::Key(key) => write!(to, ".{key}")?,
            Step::Index(index) => write!(to, "[{index}]")?,
            Step::Every => write!(to, "[*]")?,
        }
    }
    Ok(())
}

/// Returns whether `field` is `of` or a field within it, both in the notation of mistakes.
pub(super) fn is_within(field: &str, of: &str) -> bool {
    field.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_is_written_as_it_was_read() {
        for text in ["seed", "relays[0].cellular.delay", "relays[*].local[2].rate", "wlan.hidden[0][1]"] {
            assert_eq!(path(text).to_string(), text);
        }
        assert_eq!(path("relays.0.local.*.rate").to_string(), "relays[0].local[*].rate");
        for text in ["", "a..b", "a[1", "a[x]", ".a", "[0]"] {
            assert!(text.parse::<FieldPath>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn paths_overlap_within_each_other_and_under_stars() {
        for (one, other, overlap) in [
            ("workload.size", "workload.size", true),
            ("workload", "workload.size", true),
            ("relays[0].cellular.rate.mean", "relays[0].cellular.rate", true),
            ("relays[*].cellular.loss", "relays[3].cellular.loss", true),
            ("relays[1].cellular.loss", "relays[3].cellular.loss", false),
            ("workload.size", "workload.kind", false),
            ("connection.mtu", "connection.mtu_max", false),
        ] {
            assert_eq!((path(one).overlaps(&path(other)), path(other).overlaps(&path(one))), (overlap, overlap));
        }
    }

    #[test]
    fn a_table_covers_its_fields_and_a_star_every_item() {
        for (one, other, covers) in [
            ("workload", "workload.size", true),
            ("workload.size", "workload", false),
            ("relays[*].x", "relays[3].x", true),
            ("relays[3].x", "relays[*].x", false),
            ("relays[*].x", "relays[*].x", true),
        ] {
            assert_eq!(path(one).covers(&path(other)), covers, "{one} {other}");
        }
    }

    #[test]
    fn within_means_whole_steps() {
        assert!(is_within("connection.mtu", "connection.mtu") && is_within("connection.mtu", "connection"));
        assert!(is_within("relays[1].name", "relays[1]") && !is_within("relays[10].name", "relays[1]"));
        assert!(!is_within("connection.mtu_max", "connection.mtu"));
    }
}
