//! Adaptive congestion control (ACC): cuts the window of the slowest path so that the delays of all paths come closer together
//! (thesis chapter 5, algorithm 3). A layer over any controller, which goes on to say how windows grow.
//!
//! ```text
//! every F, if at least two paths were measured:
//!     j = argmax d_r,  l = argmin d_r,  eta = d_j / d_l
//!     cut if eta_min < eta <= eta_max, fewer than m cuts of j in a row, j older than Gamma, j in congestion avoidance:
//!     cwnd_j = max(2 MSS, cwnd_j / eta),  ssthresh_j = min(ssthresh_j, cwnd_j)
//! ```
//!
//! The symbols, and where this departs from what is printed, are in `docs/algorithms/adaptive-congestion.md`.

mod acc;
mod delay_meter;
pub mod model;
mod settings;
mod waiting;

pub use acc::Acc;
pub use delay_meter::DelayMeter;
pub use settings::{ActsOn, Beyond, Mode, Settings, SettingsError};
pub use waiting::Waiting;

use transport::SubflowId;
use units::{Duration, Instant};

/// What ACC needs to know of a path in use, at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// Its subflow.
    pub path: SubflowId,
    /// Mean delay over the period (d_r). The source cannot see one way alone, so by default the round trip's; where a relay
    /// acknowledges, with what it reports of its own way to the destination.
    pub mean_delay: Duration,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// The shortest round-trip time ever, without any queue.
    pub min_rtt: Duration,
    /// Congestion window, octets.
    pub cwnd: u64,
    /// Slow start threshold, octets.
    pub ssthresh: u64,
    /// Maximum segment size, octets.
    pub mss: u32,
    /// Whether it is repairing a loss.
    pub in_recovery: bool,
    /// When it was established (T_init).
    pub established_at: Instant,
}

/// A window to lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whose.
    pub path: SubflowId,
    /// The congestion window, octets.
    pub cwnd: u64,
    /// The slow start threshold, octets.
    pub ssthresh: u64,
}
