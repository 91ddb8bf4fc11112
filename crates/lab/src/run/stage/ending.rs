//! What had happened when a run ended: its connections are seen off for a while after that, and owners' traffic goes on meanwhile.

use std::collections::BTreeMap;

use transport::{ConnectionStats, SubflowId};

use super::{DESTINATION, SOURCE, Stage};
use crate::measure::results::{ControlResults, LatencyResults, VideoResults};
use crate::measure::{PathCounters, Sender};

/// What counts of all that goes on.
#[derive(Default)]
pub(in crate::run) struct Ending {
    /// The connections at the source, as if they were one.
    pub source: ConnectionStats,
    /// The same at the destination.
    pub destination: ConnectionStats,
    /// The source's view of the destination's subflows.
    pub senders: BTreeMap<SubflowId, Sender>,
    /// What the control plane cost, where there is one.
    pub control: Option<ControlResults>,
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
        let (source, destination) = (self.stats(SOURCE), self.stats(DESTINATION));
        let senders =
            destination.subflows.iter().filter_map(|subflow| Some((subflow.id, self.sender(&source, subflow)?)));
        let locals = || self.relays.iter().map(|relay| &relay.local);
        self.ending = Ending {
            senders: senders.collect(),
            control: self.control(),
            counters: self.path_counters(),
            greedy_bytes: locals().flat_map(|local| local.greedy_bytes()).collect(),
            local_video: locals().map(|local| local.video(self.ended_at)).collect(),
            local_flows: locals().map(|local| local.flows(self.ended_at)).collect(),
            source,
            destination,
        };
        self.delivered.borrow().end(self.ended_at);
    }
}
