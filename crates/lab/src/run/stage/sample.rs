//! Samples hosts, relays and paths at one instant.

use std::collections::BTreeMap;

use cooperation::agent::relay::RelayAgent;
use network::cell::{Cell, UeId, UeState};
use network::wlan::Wlan;
use simulator::HostId;
use transport::{ConnectionId, ConnectionStats, SubflowId, SubflowStats};
use units::Instant;

use super::{DESTINATION, SOURCE, Stage, station};
use crate::measure::{
    BottleneckRecorder, BottleneckSample, PathCounters, Recorder, RelayRecorder, RelaySample, Sender,
};
use crate::run::foreign_medium::ForeignMedium;
use crate::run::hop::Hop;
use crate::run::hosts::CONTROL_PORT;
use crate::scenario::Scenario;

/// Records samples at the end of every window.
pub(in crate::run) struct Recorders {
    pub connection: Recorder,
    pub relays: RelayRecorder,
    pub bottleneck: BottleneckRecorder,
}

impl Stage {
    pub(super) fn sample(&self, recorders: &mut Recorders) {
        let source = self.stats(SOURCE);
        let sender = |subflow: &SubflowStats| self.sender(&source, subflow);
        let (now, delivered_bytes) = (self.simulation.now(), self.delivered.borrow().bytes);
        let destination = self.stats(DESTINATION);
        let counters = Some(self.path_counters());
        recorders.connection.sample(now, delivered_bytes, &destination, sender, counters);
        let mut carried = vec![0; self.relays.len()];
        for subflow in &destination.subflows {
            if let Some(bytes) = self.path_of(subflow).and_then(|path| carried.get_mut(path)) {
                *bytes += subflow.received_bytes;
            }
        }
        let cell = self.media.cell.and_then(|id| self.simulation.network().medium::<Cell>(id));
        let ues = cell.map(Cell::ues).unwrap_or_default();
        let sample = |(index, carried)| self.relay_sample(index, carried, ues.get(index));
        recorders.relays.sample(now, carried.into_iter().enumerate().map(sample));
        if let Some(hop) = &self.bottleneck {
            recorders.bottleneck.sample(now, self.bottleneck_sample(hop));
        }
    }

    /// The source's view of one of the destination's subflows; `source` are the source's own statistics.
    pub fn sender(&self, source: &ConnectionStats, subflow: &SubflowStats) -> Option<Sender> {
        match &self.kernel_source {
            Some(kernel) => kernel.sender(subflow),
            None => Sender::of(source, subflow),
        }
    }

    /// Returns whether the relays of all `subflows` had left by `at`.
    pub fn all_left(&self, subflows: &[SubflowStats], scenario: &Scenario, at: Instant) -> bool {
        let leaves = |path: usize| scenario.relays.get(path)?.leaves;
        let left = |path: usize| leaves(path).is_some_and(|leaves| Instant::ZERO + leaves.0 <= at);
        !subflows.is_empty() && subflows.iter().all(|subflow| self.path_of(subflow).is_some_and(left))
    }

    /// The relay of one of the destination's subflows.
    pub fn path_of(&self, subflow: &SubflowStats) -> Option<usize> {
        self.paths.get(&subflow.local.ip()).copied()
    }

    fn relay_sample(&self, index: usize, carried_bytes: u64, ue: Option<&UeState>) -> RelaySample {
        let now = self.simulation.now();
        let network = self.simulation.network();
        let relay = &self.relays[index];
        let wlan = self.media.wlan.and_then(|id| network.medium::<Wlan>(id));
        // The cell still serves relays that left; they have nothing to offer.
        let capacity_bps = |ue: &UeState| if self.is_gone(index) { 0.0 } else { ue.capacity_estimate.as_bps() as f64 };
        // What a relay held when it left is lost.
        let held_bytes = |relay: &RelayAgent| if self.is_gone(index) { Some(0) } else { relay.held_bytes() };
        RelaySample {
            carried_bytes,
            capacity_bps: ue.map(capacity_bps),
            could_carry_bits: relay.parts.cellular.down_capacity.as_ref().map(|capacity| capacity.bits_until(now)),
            cellular_queue_bytes: self.waiting_bytes(index, ue),
            wifi_queue_bytes: wlan.map_or_else(|| self.wifi_backlog(index), |wlan| wlan.queued(station(index)).bytes),
            hold_queue_bytes: self.relay_agent(index).and_then(held_bytes).filter(|_| self.holds),
            local_demand_bytes: relay.local.demanded_bytes(),
            local_received_bytes: relay.local.received_bytes(),
            local_taken_bytes: relay.local.taken_packet_bytes(),
            lends_bps: self.relay_agent(index).and_then(RelayAgent::lends).map(|rate| rate.as_bps() as f64),
        }
    }

    fn bottleneck_sample(&self, hop: &Hop) -> BottleneckSample {
        let (now, network) = (self.simulation.now(), self.simulation.network());
        BottleneckSample {
            carried_bytes: hop.sent_bytes(network),
            could_carry_bits: hop.down_capacity.as_ref().map_or(0.0, |capacity| capacity.bits_until(now)),
            queue_bytes: network.backlog(hop.down_link, now).bytes,
            counters: PathCounters { elements: hop.towards_destination(network) },
        }
    }

    /// Octets that wait in a relay's cellular link; if the cell is foreign, those under way in it, too.
    pub(super) fn cellular_backlog(&self, index: usize) -> u64 {
        let (now, network) = (self.simulation.now(), self.simulation.network());
        let foreign = self.media.cell.and_then(|id| network.medium::<ForeignMedium>(id));
        let link = || network.backlog(self.relays[index].parts.cellular.down_link, now);
        foreign.map_or_else(link, |cell| cell.towards(UeId(index as u16).gate())).bytes
    }

    /// The same of its Wi-Fi.
    fn wifi_backlog(&self, index: usize) -> u64 {
        let (now, network) = (self.simulation.now(), self.simulation.network());
        let foreign = self.media.wlan.and_then(|id| network.medium::<ForeignMedium>(id));
        let link = || network.backlog(self.relays[index].parts.wifi.down_link, now);
        foreign.map_or_else(link, |wlan| wlan.sent_by(station(index).gate())).bytes
    }

    /// Statistics of the connections of `host`, combined. Where a kernel is the host, they are those that packets show
    /// at the destination, and zeros at the source.
    pub fn stats(&self, host: HostId) -> ConnectionStats {
        if let Some((_, tally)) = self.kernel_destination.as_ref().filter(|_| host == DESTINATION) {
            return tally.stats();
        }
        let Some(endpoint) = self.simulation.host(host).engine().map(|engine| &engine.endpoint) else {
            return ConnectionStats::default();
        };
        let is_control = |connection: &ConnectionId| {
            let ends = endpoint.addresses(*connection);
            ends.is_some_and(|(local, remote)| [local, remote].iter().any(|end| end.port() == CONTROL_PORT))
        };
        let of_the_application = endpoint.connections().filter(|connection| !is_control(connection));
        let connections = of_the_application.filter_map(|connection| Some((connection, endpoint.stats(connection)?)));
        let numbered = connections.map(|(connection, stats)| match self.connections {
            0 | 1 => stats,
            _ => self.numbers.borrow_mut().of_all(host, connection, stats),
        });
        numbered.reduce(merge).unwrap_or_default()
    }

    /// The connection of each of the destination's subflows, as a number in order of opening; empty if there is only
    /// one connection.
    pub fn connections_of_subflows(&self) -> BTreeMap<SubflowId, usize> {
        self.numbers.borrow().connections(DESTINATION)
    }

    /// Packet counters of every path so far.
    pub fn path_counters(&self) -> Vec<PathCounters> {
        self.relays.iter().map(|relay| relay.parts.counters(self.simulation.network())).collect()
    }
}

/// Numbers the subflows of several connections in the order of their first appearance: a connection that gains one must
/// not change the numbers of others.
#[derive(Default)]
pub(super) struct SubflowNumbers {
    known: BTreeMap<(HostId, ConnectionId, SubflowId), u16>,
    /// For each host, the next number.
    next: BTreeMap<HostId, u16>,
}

impl SubflowNumbers {
    fn of_all(&mut self, host: HostId, connection: ConnectionId, mut stats: ConnectionStats) -> ConnectionStats {
        let next = self.next.entry(host).or_default();
        for subflow in &mut stats.subflows {
            let number = self.known.entry((host, connection, subflow.id)).or_insert_with(|| {
                *next += 1;
                *next - 1
            });
            subflow.id = SubflowId(*number);
        }
        stats
    }

    fn connections(&self, host: HostId) -> BTreeMap<SubflowId, usize> {
        let mut places = BTreeMap::new();
        let known = self.known.iter().filter(|((of, ..), _)| *of == host);
        let placed = known.map(|((_, connection, _), number)| {
            let next = places.len();
            (SubflowId(*number), *places.entry(*connection).or_insert(next))
        });
        placed.collect()
    }
}

/// Combines two connections: adds their counts, takes the larger peak, and appends the subflows of `next`.
fn merge(mut all: ConnectionStats, next: ConnectionStats) -> ConnectionStats {
    for (sum, part) in [
        (&mut all.written_bytes, next.written_bytes),
        (&mut all.acked_bytes, next.acked_bytes),
        (&mut all.received_bytes, next.received_bytes),
        (&mut all.read_bytes, next.read_bytes),
        (&mut all.reinjected_bytes, next.reinjected_bytes),
        (&mut all.duplicate_bytes, next.duplicate_bytes),
        (&mut all.out_of_order_bytes, next.out_of_order_bytes),
    ] {
        *sum += part;
    }
    // Their peaks are of different times.
    all.out_of_order_peak_bytes = all.out_of_order_peak_bytes.max(next.out_of_order_peak_bytes);
    all.subflows.extend(next.subflows);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_of_several_connections_are_not_added() {
        let stats = |out_of_order_bytes, out_of_order_peak_bytes| ConnectionStats {
            out_of_order_bytes,
            out_of_order_peak_bytes,
            ..ConnectionStats::default()
        };
        let both = merge(stats(2, 5), stats(1, 3));
        assert_eq!((both.out_of_order_bytes, both.out_of_order_peak_bytes), (3, 5));
    }
}
