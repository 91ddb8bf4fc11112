//! The hosts of a scenario on their network, and the play.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::rc::Rc;

use network::MediumId;
use network::cell::{Cell, UeId, UeState};
use network::wlan::{StationId, Wlan};
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, EndpointConfig, SubflowId, SubflowStats};
use units::{Duration, Instant, Prng};

use super::cooperation::forwarding::{self, RangeWatch, Ranges};
use super::cooperation::{Adapting, Cooperating, FirstPath, Messages, Offers, Selecting, Sharing, Steering, Steersman};
use super::hop::Hop;
use super::local::LocalCounts;
use super::sink::{Delivered, Sink};
use super::topology::{RelayParts, Topology};
use super::{Live, Progress, RunError, assemble, cooperation, inputs, local};
use crate::measure::{PathCounters, Recorder, RelayRecorder, RelaySample};
use crate::scenario::{Addresses, RelayMode, Scenario, WorkloadKind};

/// Where the source listens: a port that capture tools take for no protocol.
const SOURCE_PORT: u16 = 40000;
pub(super) const SOURCE: HostId = HostId(0);
pub(super) const DESTINATION: HostId = HostId(1);
/// Subflows that a scheduler can mark.
const SUBFLOWS_MAX: usize = 64;
/// Simulated time after the last delivery in which the hosts say goodbye; not part of the results.
const FAREWELL: Duration = Duration::from_secs(2);

/// All hosts on their network.
pub(super) struct Stage {
    pub simulation: Simulation<EndpointHost>,
    pub relays: Vec<RelayOnStage>,
    pub cell: Option<MediumId>,
    pub wlan: Option<MediumId>,
    pub delivered: Rc<RefCell<Delivered>>,
    /// How the destination and its relays work together.
    pub cooperating: Cooperating,
    /// Relays that swallowed data, as far as the destination found out.
    pub guilty: Rc<RefCell<Vec<usize>>>,
    /// When the last delivery was, or when it was clear that there would be no more.
    pub ended_at: Instant,
    /// The relay behind which each of the destination's addresses is.
    paths: BTreeMap<IpAddr, usize>,
    /// When relays leave, the latest first.
    departures: Vec<(Instant, usize)>,
    gone: Vec<bool>,
    /// How many connections the destination opens.
    connections: u32,
    numbers: RefCell<SubflowNumbers>,
}

/// What is recorded at the end of every window.
pub(super) struct Recorders {
    pub connection: Recorder,
    pub relays: RelayRecorder,
}

/// A relay: where its parts are, and what its own traffic did.
pub(super) struct RelayOnStage {
    pub parts: RelayParts,
    pub local: LocalCounts,
}

impl Stage {
    pub fn new(
        scenario: &Scenario,
        topology: Topology,
        source: Source,
        addresses: &Addresses,
    ) -> Result<Self, RunError> {
        let active = scenario.active_relays();
        let paths: Vec<IpAddr> = active.iter().map(|relay| addresses.paths[*relay]).collect();
        let listen_at = SocketAddr::new(addresses.source, SOURCE_PORT);
        let cooperating = cooperating(scenario, &topology, addresses, listen_at)?;
        let first = cooperating.selection.as_ref().map_or(active[0], |selection| selection.steering.borrow().first());
        let config = config(scenario, active.len());
        let server = inputs::server(scenario, source, listen_at, config.clone());
        let sink = Sink::new(SocketAddr::new(addresses.paths[first], 0), listen_at, config, inputs::users(scenario));
        let delivered = sink.delivered();
        let mut simulation = Simulation::new(topology.network);
        let mut origin = server(host(scenario, "source", &[addresses.source]));
        if let Some(sharing) = &cooperating.sharing {
            origin = origin.app(sharing.listener());
        }
        simulation.attach(topology.source, origin);
        let mut destination = host(scenario, "destination", &paths).app(sink);
        if let Some(selection) = &cooperating.selection {
            destination = destination.app(Steersman(Rc::clone(&selection.steering)));
        } else if scenario.cooperation.relays == RelayMode::FastAck {
            destination = destination.app(FirstPath::new(addresses.paths[first], listen_at));
        }
        if let Some(ranges) = &cooperating.ranges {
            destination = destination.app(RangeWatch(Rc::clone(ranges)));
        }
        let guilty = Rc::default();
        let (seen, found) = (Rc::clone(&delivered), Rc::clone(&guilty));
        if let Some(watchman) = cooperation::Watchman::new(scenario, addresses, listen_at, seen, found) {
            destination = destination.app(watchman);
        }
        simulation.attach(topology.destination, destination);
        let relays = topology.relays.into_iter().enumerate();
        let relays = relays.map(|(index, parts)| {
            let attach = |ports| local::attach(&mut simulation, scenario, index, ports, addresses);
            RelayOnStage { local: parts.local.map(attach).unwrap_or_default(), parts }
        });
        let relays = relays.collect();
        simulation.check();
        let departures = departures(scenario);
        let (cell, wlan) = (topology.cell, topology.wlan);
        let paths = addresses.paths.iter().copied().zip(0..).collect();
        let (ended_at, gone) = (Instant::ZERO, vec![false; scenario.relays.len()]);
        let (connections, numbers) = (scenario.workload.connections, RefCell::default());
        Ok(Self {
            simulation,
            relays,
            cell,
            wlan,
            delivered,
            cooperating,
            guilty,
            ended_at,
            paths,
            departures,
            gone,
            connections,
            numbers,
        })
    }

    /// Runs until everything is delivered, the connection failed, or the scenario's duration is over.
    pub fn play(
        &mut self,
        scenario: &Scenario,
        total_bytes: u64,
        recorders: &mut Recorders,
        progress: &mut dyn FnMut(Progress<'_>),
    ) {
        let end = Instant::ZERO + scenario.duration;
        while self.simulation.now() < end && self.goes_on() {
            let window_end = end.min(self.simulation.now() + scenario.metrics.window);
            self.run_to(window_end);
            self.sample(recorders);
            let (now, delivered_bytes) = (self.simulation.now(), self.delivered.borrow().bytes);
            let in_time = now.as_secs_f64() / scenario.duration.as_secs_f64();
            let done_ratio = in_time.max(delivered_bytes as f64 / total_bytes.max(1) as f64).min(1.0);
            let live = Some(Live { series: recorders.connection.series(), relays: recorders.relays.series() });
            progress(Progress { now, delivered_bytes, done_ratio, live });
        }
        self.ended_at = self.simulation.now();
        if self.delivered.borrow().finished() {
            self.ended_at = self.delivered.borrow().last_at;
            let farewell = self.simulation.now() + FAREWELL;
            self.simulation.run_until(farewell);
        }
    }

    fn goes_on(&self) -> bool {
        let delivered = self.delivered.borrow();
        !delivered.finished() && delivered.failure.is_none()
    }

    /// Runs up to `end`, or until there is nothing more to wait for.
    fn run_to(&mut self, end: Instant) {
        while self.simulation.now() < end && self.goes_on() {
            let departure = self.departures.last().copied().filter(|(at, _)| *at <= end);
            let stop = departure.map_or(end, |(at, _)| at).min(self.cooperating.next_at());
            let delivered = Rc::clone(&self.delivered);
            let ranges = self.cooperating.ranges.clone();
            // A message that sets out now arrives before what is known to be next.
            let on_time = || ranges.as_ref().is_none_or(|ranges| ranges.borrow().next_at() >= stop);
            let goes_on = || !delivered.borrow().finished() && delivered.borrow().failure.is_none() && on_time();
            if !self.simulation.run_while(stop, |_| goes_on()) && on_time() {
                self.simulation.run_until(stop);
            }
            if let Some((_, relay)) = departure.filter(|(at, _)| *at <= self.simulation.now()) {
                self.departures.pop();
                self.depart(relay);
            }
            self.cooperate();
        }
    }

    /// Whether a relay has left.
    pub fn is_gone(&self, relay: usize) -> bool {
        self.gone[relay]
    }

    /// A relay is gone, with all that is under way to it.
    fn depart(&mut self, relay: usize) {
        self.gone[relay] = true;
        if let Some(id) = self.cell {
            self.simulation.with_medium(id, |cell: &mut Cell, _| cell.leave(UeId(relay as u16)));
        }
        if let Some(id) = self.wlan {
            self.simulation.with_medium(id, |wlan: &mut Wlan, _| wlan.leave(station(relay)));
        }
        if let Some(id) = self.relays[relay].parts.fast_ack {
            self.simulation.with_medium(id, |relay: &mut forwarding::Relay, _| relay.kill());
        }
    }

    fn sample(&self, recorders: &mut Recorders) {
        let source = self.stats(SOURCE);
        let sender = |subflow: &SubflowStats| assemble::sender(&source, subflow);
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
        let cell = self.cell.and_then(|id| self.simulation.network().medium::<Cell>(id));
        let ues = cell.map(Cell::ues).unwrap_or_default();
        let sample = |(index, carried)| self.relay_sample(index, carried, ues.get(index));
        recorders.relays.sample(now, carried.into_iter().enumerate().map(sample));
    }

    fn path_of(&self, subflow: &SubflowStats) -> Option<usize> {
        self.paths.get(&subflow.local.ip()).copied()
    }

    fn relay_sample(&self, index: usize, carried_bytes: u64, ue: Option<&UeState>) -> RelaySample {
        let network = self.simulation.network();
        let relay = &self.relays[index];
        let wlan = self.wlan.and_then(|id| network.medium::<Wlan>(id));
        let backlog = |hop: Hop| network.backlog(hop.down_in).bytes;
        RelaySample {
            carried_bytes,
            capacity_bps: ue.map(|ue| ue.capacity_estimate.as_bps() as f64),
            cellular_queue_bytes: ue.map_or_else(|| backlog(relay.parts.cellular), |ue| ue.queue.bytes),
            wifi_queue_bytes: wlan.map_or_else(|| backlog(relay.parts.wifi), |wlan| wlan.queued(station(index)).bytes),
            hold_queue_bytes: self.held_bytes(relay),
            local_demand_bytes: relay.local.demanded_bytes(),
            local_received_bytes: relay.local.received_bytes(),
            local_taken_bytes: relay.local.taken_packet_bytes(),
        }
    }

    /// What a relay holds for later, where there is differentiated forwarding.
    fn held_bytes(&self, relay: &RelayOnStage) -> Option<u64> {
        self.cooperating.ranges.as_ref()?;
        let medium = self.simulation.network().medium::<forwarding::Relay>(relay.parts.fast_ack?)?;
        Some(medium.relay().forwarding().queue().held_bytes())
    }

    /// Statistics of the connections of `host`, as if they were one.
    pub fn stats(&self, host: HostId) -> ConnectionStats {
        let endpoint = &self.simulation.host(host).endpoint;
        let connections =
            endpoint.connections().filter_map(|connection| Some((connection, endpoint.stats(connection)?)));
        let numbered = connections.map(|(connection, stats)| match self.connections {
            0 | 1 => stats,
            _ => self.numbers.borrow_mut().of_all(host, connection, stats),
        });
        numbered.reduce(merge).unwrap_or_default()
    }

    /// What every path did so far.
    pub fn path_counters(&self) -> Vec<PathCounters> {
        self.relays.iter().map(|relay| relay.parts.counters(self.simulation.network())).collect()
    }
}

/// Numbers for the subflows of several connections, in the order in which they are first seen: a connection that gains one
/// must not change those of others.
#[derive(Default)]
struct SubflowNumbers(BTreeMap<(HostId, ConnectionId, SubflowId), u16>);

impl SubflowNumbers {
    fn of_all(&mut self, host: HostId, connection: ConnectionId, mut stats: ConnectionStats) -> ConnectionStats {
        for subflow in &mut stats.subflows {
            let next = self.0.keys().filter(|(known, ..)| *known == host).count() as u16;
            subflow.id = SubflowId(*self.0.entry((host, connection, subflow.id)).or_insert(next));
        }
        stats
    }
}

/// The station of a relay: the destination is the first.
fn station(relay: usize) -> StationId {
    StationId(relay as u16 + 1)
}

/// Two connections as one: their counts add up, and their subflows stand one after the other.
fn merge(mut all: ConnectionStats, next: ConnectionStats) -> ConnectionStats {
    for (sum, part) in [
        (&mut all.written_bytes, next.written_bytes),
        (&mut all.acked_bytes, next.acked_bytes),
        (&mut all.received_bytes, next.received_bytes),
        (&mut all.read_bytes, next.read_bytes),
        (&mut all.reinjected_bytes, next.reinjected_bytes),
        (&mut all.duplicate_bytes, next.duplicate_bytes),
        (&mut all.out_of_order_bytes, next.out_of_order_bytes),
        (&mut all.out_of_order_peak_bytes, next.out_of_order_peak_bytes),
    ] {
        *sum += part;
    }
    all.subflows.extend(next.subflows);
    all
}

/// Settings of the connection. While one set of relays takes over from another, both have subflows.
fn config(scenario: &Scenario, relays: usize) -> ConnectionConfig {
    // Where relays splice subflows, the first is one more.
    let relays = relays + usize::from(scenario.cooperation.relays == RelayMode::FastAck);
    if !scenario.cooperation.selection.method.steers() {
        return scenario.connection.to_config(relays);
    }
    let config = scenario.connection.to_config((2 * relays).min(SUBFLOWS_MAX));
    ConnectionConfig { path_manager: "manual".into(), ..config }
}

/// The modules that the scenario asks for.
fn cooperating(
    scenario: &Scenario,
    topology: &Topology,
    addresses: &Addresses,
    source: SocketAddr,
) -> Result<Cooperating, RunError> {
    let ranges = Ranges::new(scenario).filter(|_| scenario.cooperation.relays == RelayMode::FastAck);
    let ranges = ranges.map(|ranges| Rc::new(RefCell::new(ranges)));
    let mut messages = Messages::new(scenario);
    let (adapting, sharing) = (Adapting::new(scenario)?, Sharing::new(scenario, addresses));
    if !scenario.cooperation.selection.method.steers() || scenario.workload.kind == WorkloadKind::None {
        return Ok(Cooperating { messages, selection: None, ranges, adapting, sharing });
    }
    let mut offers = Offers::new(scenario);
    let links = topology.relays.iter().map(|parts| Some((parts.cellular, 0)));
    let adverts = offers.adverts(&cooperation::measure(&topology.network, topology.cell, links), Instant::ZERO);
    let adverts = messages.adverts(adverts);
    let steering = Steering::begin(scenario, addresses, source, adverts)?;
    let next_at = Instant::ZERO + offers.period();
    let next_advert_at = Instant::ZERO + offers.advert_period();
    let selecting = Selecting { offers, steering: Rc::new(RefCell::new(steering)), next_at, next_advert_at };
    Ok(Cooperating { messages, selection: Some(selecting), ranges, adapting, sharing })
}

/// A host whose engine draws its randomness from the scenario's seed and its own name.
pub(super) fn host(scenario: &Scenario, name: &str, addresses: &[IpAddr]) -> EndpointHost {
    let seed = Prng::fork(scenario.seed, name).below(u64::MAX);
    let local = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    let config = EndpointConfig { local_addresses: local, ..EndpointConfig::default() };
    EndpointHost::new(Endpoint::with_seed(config, seed))
}

/// When which relay leaves, the latest first.
fn departures(scenario: &Scenario) -> Vec<(Instant, usize)> {
    let relays = scenario.relays.iter().enumerate();
    let leaves = relays.filter_map(|(index, relay)| Some((Instant::ZERO + relay.leaves?.0, index)));
    let mut departures: Vec<_> = leaves.collect();
    departures.sort_unstable_by_key(|(at, index)| core::cmp::Reverse((*at, *index)));
    departures
}
