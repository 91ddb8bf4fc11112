//! What the relays did: what they carried, and how their own traffic fared.

use serde::{Deserialize, Serialize};

use super::{LatencyResults, VideoResults};

/// Measurements of one relay per window. All lists have one entry per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelaySeries {
    /// Its name.
    pub name: String,
    /// What it carried for the destination: payload octets that arrived, duplicates included.
    pub carried_bps: Vec<f64>,
    /// What the cell would grant it if it always had something to receive, 0 once it has left; null without a cell.
    pub capacity_bps: Vec<Option<f64>>,
    /// Octets that wait for it before the cellular hop, at the end of the window.
    pub cellular_queue_bytes: Vec<u64>,
    /// Octets that wait at it before the Wi-Fi hop, at the end of the window.
    pub wifi_queue_bytes: Vec<u64>,
    /// Octets that it holds because the destination does not want them yet, at the end of the window; empty without
    /// differentiated forwarding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hold_queue_bytes: Vec<u64>,
    /// What the cell would grant it less what its own traffic asked for, in packets; null without a cell.
    #[serde(default)]
    pub available_bps: Vec<Option<f64>>,
    /// What its own traffic asked for; null if a flow takes all it can get.
    pub local_demand_bps: Vec<Option<f64>>,
    /// What its own traffic got.
    pub local_goodput_bps: Vec<f64>,
}

/// One relay over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayResults {
    /// Its name.
    pub name: String,
    /// Whether it ever might carry data: it was in a set that was chosen, or has a subflow without it, for a connection begins over its first
    /// relay where none is chosen yet.
    pub chosen: bool,
    /// Distance from the eNB at the start; null without a cell.
    pub distance_m: Option<f64>,
    /// Payload octets it carried for the destination, duplicates included.
    pub carried_bytes: u64,
    /// Its share of all payload octets that arrived.
    pub share_ratio: f64,
    /// Mean of what the cell would grant it over the run, 0 once it has left; null without a cell. Each run begins with a cell that nobody uses,
    /// which would grant each relay all it has: in short runs that makes much of the mean.
    pub capacity_bps: Option<f64>,
    /// Payload octets that its own traffic asked for; null if a flow takes all it can get.
    pub local_demand_bytes: Option<u64>,
    /// Payload octets that its own traffic got.
    pub local_received_bytes: u64,
    /// What it paid for what it carried; null if the scenario names no price.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// What its owner saw of videos; null without any.
    #[serde(default)]
    pub local_video: Option<VideoResults>,
    /// How long its owner's short flows took; null without any.
    #[serde(default)]
    pub local_flows: Option<LatencyResults>,
}

impl RelayResults {
    /// What its own traffic got of what it asked for; `None` if it has none, or takes all it can get.
    pub fn local_ratio(&self) -> Option<f64> {
        let demand = self.local_demand_bytes.filter(|demand| *demand > 0)?;
        Some(self.local_received_bytes as f64 / demand as f64)
    }

    /// Whether it has traffic of its own.
    pub fn has_local_traffic(&self) -> bool {
        self.local_demand_bytes != Some(0)
    }
}
