//! Measuring: from what hosts and the paths between them say to numbers, whatever backend they live in.
//!
//! ```text
//! metrics      the papers' metrics, from what happens to a connection
//! recorder     series and totals of a connection and its paths
//! sender       the source's counters, if it is one of ours or a kernel
//! relays       series of relays
//! hindsight    what the best choice of relays would have been
//! integrity    whether what arrived is what was sent
//! results      what a run yields: the schema that every backend fills in
//! values       its numbers by name; course, how it went over time in few numbers
//! statistics   means with intervals, paired comparisons, correlations over runs
//! ```

mod course;
mod hindsight;
pub mod integrity;
pub mod metrics;
mod recorder;
mod relays;
pub mod results;
mod sender;
pub mod statistics;
mod values;

pub use course::Course;
pub use hindsight::Oracle;
pub(crate) use recorder::bps;
pub use recorder::{Paths, Recorder};
pub use relays::{RelayRecorder, RelaySample};
pub use sender::{ElementCounters, PathCounters, Sender};
pub(crate) use values::{goodput_points_bps, values};
