//! What may be said of many runs: means with intervals, paired comparisons, correlations.
//!
//! Samples are slices in a fixed order, that of the seeds, and sums run over them in that order: the same results give the
//! same bits.
//!
//! ```text
//! sample         mean, sample standard deviation
//! student        Student's t distribution
//! interval       mean with its confidence interval
//! paired         two variants on the same seeds: difference, ratio, verdict
//! correlation    Pearson's r, Kendall's tau
//! many           many tests at once: how many of those that seem to show something do not
//! ```

mod correlation;
mod interval;
mod many;
mod paired;
mod sample;
mod student;

pub use correlation::{kendall_tau, pearson};
pub use interval::Interval;
pub use many::largest_discovery;
pub use paired::{Paired, Verdict};
pub use sample::{mean, standard_deviation};
pub use student::{t_distribution, t_quantile};

/// Confidence of intervals and verdicts.
pub const CONFIDENCE: f64 = 0.95;
