//! The public state of a UE, and what happened to it.

use units::{Instant, Rate};

use super::UeId;
use crate::Amount;

/// State of one UE, as of the latest TTI in which something happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UeState {
    /// Whether it is attached: it has not left.
    pub attached: bool,
    /// Index of the site that serves it.
    pub site: usize,
    /// Packets that wait for it at the site.
    pub queue: Amount,
    /// Packets in the air, or waiting for earlier ones.
    pub in_air: Amount,
    /// Octets delivered to it so far.
    pub served_bytes: u64,
    /// Packets that wait at the UE for the uplink.
    pub uplink_queue: Amount,
    /// B_i of the thesis: what the scheduler would grant it at the present load of the others. It is the larger of
    /// `share_estimate` and the capacity that the others leave unused, at most the limit. It includes fading and is
    /// averaged over [`super::CellConfig::estimate_window`].
    pub capacity_estimate: Rate,
    /// What the scheduler would grant it if all UEs of its site always had data, at most the limit.
    pub share_estimate: Rate,
    /// SINR of the latest report, mean over the resource blocks in dB.
    pub sinr_db: f64,
    /// Wideband CQI of the latest report; 0 is out of range.
    pub cqi: u8,
    /// Modulation and coding scheme for this CQI.
    pub mcs: u8,
}

/// A change of the site that serves a UE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteChange {
    /// When it began; the UE gets nothing for [`super::HandoverConfig::interruption`] from then on.
    pub at: Instant,
    /// The UE.
    pub ue: UeId,
    /// The site before, as an index of [`super::CellConfig::sites`].
    pub from: usize,
    /// The site that serves it from then on.
    pub to: usize,
}
