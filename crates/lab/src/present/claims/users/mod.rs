//! What a person would notice of each module, under every condition of the map: does it help, and whom?
//!
//! Each effect compares runs with a module and runs without it on the same seeds. As in the map of claims, what differs where
//! conditions are looked at must remain after the correction for all that is compared, and differ the same way on other seeds.
//!
//! ```text
//! list       the modules, and what is measured
//! seen       what two sets of seeds say
//! ```

mod list;
mod seen;

pub use list::{EFFECTS, needs};
pub use seen::{Comparison, Difference, Seen, State, judge};

use super::{Metric, Needs};

/// What a module does for somebody.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// The module.
    pub module: &'static str,
    /// What is measured, for whom, with its unit.
    pub measure: &'static str,
    /// What must be run.
    pub needs: Needs,
    /// The variant with the module.
    pub with: &'static str,
    /// The variant without it.
    pub without: &'static str,
    /// The number.
    pub metric: Metric,
    /// Whether less of it is better.
    pub less_is_better: bool,
}
