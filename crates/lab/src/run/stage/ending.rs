//! What had happened when a run ended: its connections are seen off for a while after that, and owners' traffic goes on meanwhile.

use super::Stage;
use crate::measure::PathCounters;
use crate::measure::results::{LatencyResults, VideoResults};

/// What counts of all that goes on.
#[derive(Default)]
pub(in crate::run) struct Ending {
    /// What every path did.
    pub counters: Vec<PathCounters>,
    /// Octets of every owner's flow that takes all it can get.
    pub greedy_bytes: Vec<u64>,
    /// What owners saw, by relay.
    pub local_video: Vec<Option<VideoResults>>,
    /// How long owners' short flows took, by relay.
    pub local_flows: Vec<Option<LatencyResults>>,
}

impl Stage {
    /// The run ends here: nothing that comes later counts.
    pub(super) fn end(&mut self) {
        let locals = || self.relays.iter().map(|relay| &relay.local);
        self.ending = Ending {
            counters: self.path_counters(),
            greedy_bytes: locals().flat_map(|local| local.greedy_bytes()).collect(),
            local_video: locals().map(|local| local.video(self.ended_at)).collect(),
            local_flows: locals().map(|local| local.flows(self.ended_at)).collect(),
        };
        self.delivered.borrow().end(self.ended_at);
    }
}
