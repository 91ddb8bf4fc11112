//! State at the end of a run. After that, connections have some time to close, and owners' traffic continues.

use std::collections::BTreeMap;

use transport::{ConnectionStats, SubflowId};

use super::{DESTINATION, SOURCE, Stage};
use crate::measure::results::{ControlResults, LatencyResults, VideoResults};
use crate::measure::{PathCounters, Sender};

/// The part of the state that counts as the result.
#[derive(Default)]
pub(in crate::run) struct Ending {
    /// The connections at the source, combined.
    pub source: ConnectionStats,
    /// The connections at the destination, combined.
    pub destination: ConnectionStats,
    /// The source's view of the destination's subflows.
    pub senders: BTreeMap<SubflowId, Sender>,
    /// Cost of the control plane, where there is one.
    pub control: Option<ControlResults>,
    /// Packet counters of every path.
    pub counters: Vec<PathCounters>,
    /// Octets of every owner's flow that takes all it can get.
    pub greedy_bytes: Vec<u64>,
    /// What owners saw of videos, by relay.
    pub local_video: Vec<Option<VideoResults>>,
    /// Durations of owners' short flows, by relay.
    pub local_flows: Vec<Option<LatencyResults>>,
}

impl Stage {
    /// Ends the run: nothing after this counts.
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
