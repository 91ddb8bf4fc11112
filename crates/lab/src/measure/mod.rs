//! From what both hosts and the paths between them say to series and totals, whatever backend they live in.

pub mod digest;
mod hindsight;
mod recorder;
mod relays;
mod sender;

pub use hindsight::Oracle;
pub(crate) use recorder::bps;
pub use recorder::{Paths, Recorder};
pub use relays::{RelayRecorder, RelaySample};
pub use sender::{PathCounters, Sender};
