//! What a person would notice of each module, under every condition of the map: whether it helps, and whom.
//!
//! Each effect compares runs with and without a module on the same seeds. As in the map of claims, a difference in the
//! exploration must remain after the correction for all comparisons, and have the same sign on other seeds.
//!
//! ```text
//! list       the modules, and the measures
//! seen       results of two sets of seeds
//! ```

mod list;
mod seen;

pub use list::{EFFECTS, needs};
pub use seen::{Comparison, Difference, Seen, State, judge};

use super::{Metric, Needs};

/// Effect of a module on a person.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// The module.
    pub module: &'static str,
    /// The measure, with the affected person and the unit.
    pub measure: &'static str,
    /// The runs needed.
    pub needs: Needs,
    /// The variant with the module.
    pub with: &'static str,
    /// The variant without it.
    pub without: &'static str,
    /// The metric.
    pub metric: Metric,
    /// Whether smaller values are better.
    pub less_is_better: bool,
}
