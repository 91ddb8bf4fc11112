//! What the relays did: what they carried, and how their own traffic fared.

use serde::{Deserialize, Serialize};

/// Measurements of one relay per window. All lists have one entry per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelaySeries {
    /// Its name.
    pub name: String,
    /// What it carried for the destination: payload octets that arrived, duplicates included.
    pub carried_bps: Vec<f64>,
    /// What the cell would grant it if it always had something to receive; null without a cell.
    pub capacity_bps: Vec<Option<f64>>,
    /// Octets that wait for it before the cellular hop, at the end of the window.
    pub cellular_queue_bytes: Vec<u64>,
    /// Octets that wait at it before the Wi-Fi hop, at the end of the window.
    pub wifi_queue_bytes: Vec<u64>,
    /// What its own traffic asked for.
    pub local_demand_bps: Vec<f64>,
    /// What its own traffic got.
    pub local_goodput_bps: Vec<f64>,
}

/// One relay over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayResults {
    /// Its name.
    pub name: String,
    /// Whether it may carry data.
    pub chosen: bool,
    /// Distance from the eNB at the start; null without a cell.
    pub distance_m: Option<f64>,
    /// Payload octets it carried for the destination, duplicates included.
    pub carried_bytes: u64,
    /// Its share of all payload octets that arrived.
    pub share_ratio: f64,
    /// Mean of what the cell would grant it; null without a cell.
    pub capacity_bps: Option<f64>,
    /// Payload octets that its own traffic asked for.
    pub local_demand_bytes: u64,
    /// Payload octets that its own traffic got.
    pub local_received_bytes: u64,
}

impl RelayResults {
    /// What its own traffic got of what it asked for; `None` if it has none.
    pub fn local_ratio(&self) -> Option<f64> {
        (self.local_demand_bytes > 0).then(|| self.local_received_bytes as f64 / self.local_demand_bytes as f64)
    }
}
