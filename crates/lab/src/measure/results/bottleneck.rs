//! Results of the link that all paths share.

use serde::{Deserialize, Serialize};

/// The shared link over the whole run, towards the destination. Packets of every sender count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckResults {
    /// Its mean rate, headers included; 0 in outages.
    pub capacity_bps: f64,
    /// What it sent, headers included, also packets that were then lost at random; without outages.
    pub carried_bps: f64,
    /// Its share of the capacity; null for a link without any.
    pub utilisation_ratio: Option<f64>,
    /// Packets that came to it, without copies by `duplicate`.
    pub entered_packets: u64,
    /// Packets that it dropped, for any reason.
    pub lost_packets: u64,
    /// Of these, packets that found its queue full.
    pub queue_drop_packets: u64,
    /// Probability that a packet is lost here, as in [`super::SubflowResults::loss_ratio`].
    pub loss_ratio: f64,
    /// Mean of the octets in its queue at the ends of windows.
    pub queue_mean_bytes: f64,
    /// Maximum of these.
    pub queue_max_bytes: u64,
}

/// The shared link per window. All lists have one entry per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckSeries {
    /// Mean rate, as in [`BottleneckResults::capacity_bps`].
    pub capacity_bps: Vec<f64>,
    /// What it sent, as in [`BottleneckResults::carried_bps`].
    pub carried_bps: Vec<f64>,
    /// Octets that wait in its queue or are being sent, at the end of the window.
    pub queue_bytes: Vec<u64>,
}
