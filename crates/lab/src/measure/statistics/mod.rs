//! Statistics over many runs: means with intervals, paired comparisons, correlations.
//!
//! Samples are slices in the order of the seeds, and sums run in that order: the same results yield the same bits.
//!
//! ```text
//! sample         mean, sample standard deviation
//! student        Student's t distribution
//! interval       mean with its confidence interval
//! paired         two variants on the same seeds: difference, ratio, verdict
//! correlation    Pearson's r, Kendall's tau
//! many           many tests at once: how many of the apparently significant ones are not
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
