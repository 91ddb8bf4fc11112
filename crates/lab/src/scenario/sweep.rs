//! Variants of a scenario and grids over its fields.

use core::ops::RangeInclusive;
use core::str::FromStr;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;
use units::text::Text;

use super::schema::Written;

/// The last seed: TOML has no larger integer, and results state the seed in a form that can be read again.
pub const SEED_MAX: u64 = i64::MAX as u64;
/// Maximum number of seeds in a sweep.
const SEEDS_MAX: u64 = 100_000;

/// One of several variants, which are compared with each other on the same seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name in tables and plots.
    pub name: String,
    /// The fields that differ, by path in the notation of `--set`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, Value>,
    /// Whether it is the baseline of the comparison; by default the first variant is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub baseline: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Grid and seeds of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sweep {
    /// Values by path in the notation of `--set`; every combination is a point of the grid.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    pub grid: BTreeMap<String, Vec<Value>>,
    /// Seeds for each combination; by default `"1..10"`.
    #[schemars(with = "Written<Seeds>")]
    pub seeds: Text<Seeds>,
}

/// Seeds from the first to the last, both included: `"1..30"`, or one: `"7"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

impl Seeds {
    /// All seeds in order.
    pub const fn range(self) -> RangeInclusive<u64> {
        self.first..=self.last
    }
}

impl Default for Seeds {
    fn default() -> Self {
        Self { first: 1, last: 10 }
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "write them like \"1..30\", first and last included, or \"7\"";
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |part: &str| part.trim().trim_start_matches('=').parse::<u64>().ok();
        let is_too_large = |seed: Option<u64>| seed.is_some_and(|seed| seed > SEED_MAX);
        if is_too_large(number(first)) || is_too_large(number(last)) {
            return Err(format!("{text:?} is out of range: the largest seed is {SEED_MAX}"));
        }
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("{text:?} is not a range of seeds: {wanted}"));
        };
        if first > last {
            return Err(format!("{text:?} begins after its end: {wanted}"));
        }
        if last - first >= SEEDS_MAX {
            return Err(format!("{text:?} has more than {SEEDS_MAX} seeds: {wanted}"));
        }
        Ok(Self { first, last })
    }
}

impl core::fmt::Display for Seeds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_with_both_ends() {
        assert_eq!("1..3".parse::<Seeds>().unwrap().range().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!("7".parse::<Seeds>().unwrap().range().collect::<Vec<_>>(), [7]);
        assert_eq!("1..3".parse::<Seeds>().unwrap().to_string(), "1..3");
        assert!("30..1".parse::<Seeds>().unwrap_err().contains("begins after its end"));
        assert!("1..1000000000".parse::<Seeds>().unwrap_err().contains("more than"));
        let too_large = "1..9223372036854775808".parse::<Seeds>().unwrap_err();
        assert!(too_large.contains("the largest seed is 9223372036854775807"));
        assert!("9223372036854775807".parse::<Seeds>().is_ok());
        assert!("a..b".parse::<Seeds>().unwrap_err().contains("is not a range of seeds"));
        assert!("".parse::<Seeds>().is_err());
    }
}
