//! Adaptive congestion control (ACC): cuts the window of the slowest path, so the delays of all paths move closer
//! together (thesis chapter 5, algorithm 3). It is a layer over any controller; the controller still decides how
//! windows grow.
//!
//! ```text
//! every F, if at least two paths were measured:
//!     j = argmax d_r,  l = argmin d_r,  eta = d_j / d_l
//!     cut if eta_min < eta <= eta_max, fewer than m cuts of j in a row, j older than Gamma, j in congestion avoidance:
//!     cwnd_j = max(2 MSS, cwnd_j / eta),  ssthresh_j = min(ssthresh_j, cwnd_j)
//! ```
//!
//! `docs/algorithms/adaptive-congestion.md` explains the symbols and where this departs from the printed algorithm.

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

/// The state of a path in use at the end of a period, as ACC needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSample {
    /// The path's subflow.
    pub path: SubflowId,
    /// Mean delay over the period, as far as the window changes it. The source cannot measure one direction alone, so
    /// this is the round trip's.
    pub mean_delay: Duration,
    /// Delay beyond the round trip: if a relay acknowledges, that from the relay to the destination, as the relay
    /// reports it. No window of the source changes it.
    pub way: Duration,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Shortest round-trip time of the last minutes, without any queue.
    pub min_rtt: Duration,
    /// Congestion window, octets.
    pub cwnd: u64,
    /// Slow start threshold, octets.
    pub ssthresh: u64,
    /// Maximum segment size, octets.
    pub mss: u32,
    /// Whether the path is repairing a loss, or answering a mark (ECN): its window then follows the recovery.
    pub in_recovery: bool,
    /// Time of its establishment (T_init).
    pub established_at: Instant,
}

impl PathSample {
    /// Returns the whole delay (d_r).
    pub fn delay(&self) -> Duration {
        self.mean_delay + self.way
    }
}

/// A window to lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The subflow.
    pub path: SubflowId,
    /// The new congestion window, octets.
    pub cwnd: u64,
    /// The new slow start threshold, octets.
    pub ssthresh: u64,
}
