//! What others may read of a UE.

use units::Rate;

use crate::Amount;

/// One UE, as of the latest TTI in which something happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UeState {
    /// Whether it is there: it has not left.
    pub attached: bool,
    /// Index of the site that serves it.
    pub site: usize,
    /// What waits for it at the site.
    pub queue: Amount,
    /// What is in the air, or waits for something before it.
    pub in_air: Amount,
    /// Octets delivered to it so far.
    pub served_bytes: u64,
    /// What waits at the UE for the uplink.
    pub uplink_queue: Amount,
    /// B_i of the thesis: what the scheduler would grant it with the others' present load. The larger of `share_estimate` and
    /// of what the others leave unused, at most the ceiling; fading included, averaged over
    /// [`super::CellConfig::estimate_window`].
    pub capacity_estimate: Rate,
    /// What the scheduler would grant it if all UEs of its site had data all the time, at most the ceiling.
    pub share_estimate: Rate,
    /// SINR of the latest report, mean over the resource blocks in dB.
    pub sinr_db: f64,
    /// Wideband CQI of the latest report; 0 is out of range.
    pub cqi: u8,
    /// Modulation and coding scheme that goes with it.
    pub mcs: u8,
}
