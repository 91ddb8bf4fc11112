//! Results of the relays: what they carried, and how their own traffic fared.

use serde::{Deserialize, Serialize};

use super::{LatencyResults, VideoResults};

/// Measurements of one relay per window. All lists have one entry per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelaySeries {
    /// Its name.
    pub name: String,
    /// Payload octets that it carried to the destination, duplicates included.
    pub carried_bps: Vec<f64>,
    /// Rate that the cell would grant it if it always had data to receive, at the end of the window. Without a cell, the
    /// mean rate of its cellular link over the window, towards the destination, headers included; 0 in outages. 0 once
    /// it has left. Null where the backend simulates the cell.
    pub capacity_bps: Vec<Option<f64>>,
    /// Octets that wait for it before the cellular hop, at the end of the window.
    pub cellular_queue_bytes: Vec<u64>,
    /// Octets that wait at it before the Wi-Fi hop, at the end of the window.
    pub wifi_queue_bytes: Vec<u64>,
    /// Octets in its hold queue at the end of the window; empty without differentiated forwarding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hold_queue_bytes: Vec<u64>,
    /// That capacity less the demand of its own traffic, in packets; at most the rate that it lends, and 0 once the
    /// volume that it lends is spent.
    #[serde(default)]
    pub available_bps: Vec<Option<f64>>,
    /// Demand of its own traffic, 0 once it has left with its owner; null if a flow takes all it can get.
    pub local_demand_bps: Vec<Option<f64>>,
    /// Goodput of its own traffic.
    pub local_goodput_bps: Vec<f64>,
}

/// A change of the eNB that serves a relay; eNBs are indices of `cell.sites_m`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    /// When it began. Nothing is sent for `cell.handover.interruption` from then on; what is in the air still arrives.
    /// While no packet waits at any eNB there are no handovers; they follow with the next packet.
    pub at_s: f64,
    /// The eNB before.
    pub from: usize,
    /// The eNB from then on.
    pub to: usize,
}

/// One relay over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayResults {
    /// Its name.
    pub name: String,
    /// Whether it was ever allowed to carry data: it was in a selected set, or has a subflow without having been
    /// selected, because a connection begins over its first relay before any selection.
    pub chosen: bool,
    /// Distance at the start from the eNB, the first one if there are several; null without a cell.
    pub distance_m: Option<f64>,
    /// The eNB that serves it at the end, or when it left: an index of `cell.sites_m`, from 0. Absent unless there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<usize>,
    /// Its changes of the eNB, in order; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handovers: Vec<Handover>,
    /// Payload octets it carried for the destination, duplicates included.
    pub carried_bytes: u64,
    /// Its share of all payload octets that arrived.
    pub share_ratio: f64,
    /// Mean over the run of the rate that the cell would grant it or, without a cell, of the rate of its cellular link;
    /// 0 once it has left. Null where the backend simulates the cell. Each run begins with an unused cell, which would
    /// grant each relay all of its capacity: in short runs this raises the mean noticeably.
    pub capacity_bps: Option<f64>,
    /// Demand of its own traffic until it left, payload octets; null if a flow takes all it can get.
    pub local_demand_bytes: Option<u64>,
    /// Payload octets that its own traffic received.
    pub local_received_bytes: u64,
    /// Energy that it spent on the data it carried; null if the scenario names no price.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// Results of its owner's videos until it left; null if none had begun.
    #[serde(default)]
    pub local_video: Option<VideoResults>,
    /// Durations of its owner's short flows until it left; null without any.
    #[serde(default)]
    pub local_flows: Option<LatencyResults>,
}

impl RelayResults {
    /// Share of its own traffic's demand that was met; `None` if it has no such traffic, or a flow takes all it can
    /// get.
    pub fn local_ratio(&self) -> Option<f64> {
        let demand = self.local_demand_bytes.filter(|demand| *demand > 0)?;
        Some(self.local_received_bytes as f64 / demand as f64)
    }

    /// Returns whether it has traffic of its own.
    pub fn has_local_traffic(&self) -> bool {
        self.local_demand_bytes != Some(0)
    }
}
