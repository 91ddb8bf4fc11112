//! State at the end of a run. After that, connections have some time to close, and owners' traffic continues.

use std::collections::BTreeMap;

use network::cell::{Cell, SiteChange, UeState};
use transport::{ConnectionStats, SubflowId};
use units::Instant;
use units::text::Text;

use super::{DESTINATION, SOURCE, Stage};
use crate::measure::results::{ControlResults, Handover, LatencyResults, VideoResults};
use crate::measure::{PathCounters, Sender};
use crate::scenario::Scenario;

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
    /// Where relays went, by relay; empty unless a cell has several sites.
    pub itineraries: Vec<Itinerary>,
}

/// The sites that served a relay.
pub(in crate::run) struct Itinerary {
    /// The last one.
    pub site: usize,
    pub handovers: Vec<Handover>,
}

impl Stage {
    /// Where relays went so far; those that left, until then.
    fn itineraries(&self, scenario: &Scenario) -> Vec<Itinerary> {
        let cell = self.media.cell.and_then(|id| self.simulation.network().medium::<Cell>(id));
        let Some(cell) = cell.filter(|cell| cell.config().sites.len() > 1) else { return Vec::new() };
        let itinerary = |(index, ue): (usize, UeState)| {
            let leaves = scenario.relays[index].leaves.map_or(Instant::FAR_FUTURE, |Text(at)| Instant::ZERO + at);
            let changes = || cell.site_changes().iter().filter(move |change| change.ue.index() == index);
            let first = changes().next().map_or(ue.site, |change| change.from);
            let handover =
                |change: &SiteChange| Handover { at_s: change.at.as_secs_f64(), from: change.from, to: change.to };
            let handovers: Vec<_> = changes().filter(|change| change.at < leaves).map(handover).collect();
            Itinerary { site: handovers.last().map_or(first, |last| last.to), handovers }
        };
        cell.ues().into_iter().enumerate().map(itinerary).collect()
    }

    /// When a run that has ended would have ended otherwise: one that broke off, with its duration.
    pub fn could_end(&self, scenario: &Scenario) -> Instant {
        let is_over = self.interrupted || self.delivered.borrow().finished();
        if is_over { self.ended_at } else { self.ended_at.max(Instant::ZERO + scenario.duration) }
    }

    /// Ends the run: nothing after this counts.
    pub(super) fn end(&mut self, scenario: &Scenario) {
        let (source, destination) = (self.stats(SOURCE), self.stats(DESTINATION));
        let senders =
            destination.subflows.iter().filter_map(|subflow| Some((subflow.id, self.sender(&source, subflow)?)));
        let locals = || self.relays.iter().map(|relay| &relay.local);
        self.ending = Ending {
            senders: senders.collect(),
            control: self.control(),
            counters: self.path_counters(),
            greedy_bytes: locals().flat_map(|local| local.greedy_bytes()).collect(),
            local_video: locals().map(|local| local.video(self.ended_at, self.could_end(scenario))).collect(),
            local_flows: locals().map(|local| local.flows(self.ended_at)).collect(),
            itineraries: self.itineraries(scenario),
            source,
            destination,
        };
        self.delivered.borrow().end(self.ended_at);
    }
}
