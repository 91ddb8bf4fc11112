//! Measuring: turns observations of hosts and paths into numbers, for every backend.
//!
//! ```text
//! metrics      the papers' metrics, from the events of a connection
//! recorder     series and totals of a connection and its paths
//! sender       the source's counters, where the source is our engine or a kernel
//! relays       series of relays; bottleneck, of the link that they share
//! hindsight    the best choice of relays, in hindsight
//! integrity    whether what arrived is what was sent
//! results      results of a run: the schema that every backend fills in
//! values       numbers of a run by name; course, a run over time in few numbers
//! statistics   means with intervals, paired comparisons, correlations over runs
//! ```

mod bottleneck;
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

pub use bottleneck::{BottleneckRecorder, BottleneckSample};
pub use course::Course;
pub use hindsight::Oracle;
pub(crate) use recorder::bps;
pub use recorder::{Paths, Recorder};
pub use relays::{RelayRecorder, RelaySample};
pub use sender::{ElementCounters, PathCounters, Sender};
pub(crate) use values::{goodput_points_bps, values};
