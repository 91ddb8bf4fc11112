//! The hosts of a scenario on their network, and the course of a run.

mod cooperate;
mod ending;
mod sample;
mod tally;

use core::cell::RefCell;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::slice;
use std::collections::BTreeMap;
use std::rc::Rc;

use network::MediumId;
use network::cell::{Cell, UeId};
use network::wlan::{StationId, Wlan};
use simulator::traffic::UdpSource;
use simulator::{HostId, Simulation, Source};
use transport::error::CloseReason;
use units::{Duration, Instant};

pub(in crate::run) use ending::Ending;
pub(in crate::run) use sample::Recorders;
use sample::SubflowNumbers;
use tally::Tally;

use super::agents::{Agents, Journal};
use super::backend::{Backend, Berth, KernelDestination, KernelSource, Media, Party, Passed, Place, Standing};
use super::foreign_medium::ForeignMedium;
use super::hop::Hop;
use super::hosts::{EngineHost, LabHost, config, host};
use super::local::LocalCounts;
use super::meter::Meter;
use super::plan::{selects_relays, standing};
use super::sink::{Delivered, Sink};
use super::topology::{RelayParts, Topology};
use super::{Live, Progress, RunError, inputs, local};
use crate::scenario::{Addresses, Scenario};
use cooperate::has_news;

/// Port where the source listens; capture tools associate no protocol with it.
pub const SOURCE_PORT: u16 = 40000;
pub(in crate::run) const SOURCE: HostId = HostId(0);
pub(in crate::run) const DESTINATION: HostId = HostId(1);
/// Simulated time after the last delivery for closing connections; not part of the results.
const FAREWELL: Duration = Duration::from_secs(2);

/// All hosts on their network.
pub(in crate::run) struct Stage {
    pub simulation: Simulation<LabHost>,
    pub relays: Vec<RelayOnStage>,
    /// The link that all paths share, if there is one.
    pub bottleneck: Option<Hop>,
    pub media: Media,
    pub delivered: Rc<RefCell<Delivered>>,
    /// Reports of the destination's agent.
    pub journal: Journal,
    /// The source, where a kernel is the source.
    pub kernel_source: Option<Rc<dyn KernelSource>>,
    /// The destination, where a kernel is the destination, and the packets that arrived there.
    kernel_destination: Option<(Rc<dyn KernelDestination>, Tally)>,
    /// When a relay next reads its counters.
    next_measurement: Instant,
    /// Whether relays hold back data.
    holds: bool,
    /// The attacker on control messages, if there is one.
    pub attacker: Option<MediumId>,
    /// Time of the last delivery, or when it was clear that no more would follow.
    pub ended_at: Instant,
    /// State at that time.
    pub ending: Ending,
    /// The relay through which each of the destination's addresses is reached.
    paths: BTreeMap<IpAddr, usize>,
    /// When relays leave, in reverse order.
    departures: Vec<(Instant, usize)>,
    gone: Vec<bool>,
    /// Number of connections that the destination opens.
    connections: u32,
    numbers: RefCell<SubflowNumbers>,
    pub meter: Meter,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// A relay: the places of its parts, and the counts of its own traffic.
pub(in crate::run) struct RelayOnStage {
    pub parts: RelayParts,
    pub local: LocalCounts,
    /// Its own host, if it has one.
    pub host: Option<HostId>,
    /// Whether data waited for its cellular link whenever it was looked at since its latest measurement.
    pub backlogged: bool,
}

impl Stage {
    pub fn new(
        scenario: &Scenario,
        mut topology: Topology,
        source: Source,
        addresses: &Addresses,
        backend: &mut dyn Backend,
    ) -> Result<Self, RunError> {
        let active = scenario.active_relays();
        let paths: Vec<IpAddr> = active.iter().map(|relay| addresses.paths[*relay]).collect();
        let listen_at = SocketAddr::new(addresses.source, SOURCE_PORT);
        let agents = Agents::new(scenario, addresses, listen_at);
        let config = config(scenario, active.len());
        let server = inputs::server(scenario, source, listen_at, config.clone());
        // The destination's agent decides over which path a connection begins.
        let anywhere = SocketAddr::new(unspecified(listen_at.ip()), 0);
        let sink = Sink::new(anywhere, listen_at, config, inputs::users(scenario));
        let delivered = sink.delivered();
        let berths = Berths::new(backend, scenario, &mut topology, addresses)?;
        let mut simulation = Simulation::new(topology.network);
        let origin = host(scenario, "source", &[addresses.source], agents.source()?);
        let source = berths.source.attach(&mut simulation, LabHost::Engine(server(origin)));
        let destination = host(scenario, "destination", &paths, agents.destination()?).app(sink);
        let destination = berths.destination.attach(&mut simulation, LabHost::Engine(destination));
        let (mut relays, mut correspondents) = (Vec::new(), Vec::new());
        let feeds_cell = local::feeds_cell(scenario) && !backend.has_media();
        for (index, parts) in topology.relays.into_iter().enumerate() {
            let local = local::hosts(scenario, index, addresses, agents.relay(index)?, feeds_cell);
            let host = berths.attach_relay(index, &mut simulation, local.sinks, standing(scenario, index));
            correspondents.push(berths.attach_correspondent(index, &mut simulation, local.sources));
            if berths.has_kernel_correspondent(index) {
                backend.carry(index, local::kernel_flows(scenario, index, addresses, &local.counts));
            }
            feed(&mut simulation, topology.media.cell, index, local.feeds)?;
            relays.push(RelayOnStage { parts, local: local.counts, host, backlogged: false });
        }
        backend.carry_media(topology.media);
        berths.source.open(&mut simulation, Some(source), backend);
        berths.destination.open(&mut simulation, Some(destination), backend);
        let behind = relays.iter().map(|relay| relay.host).chain(correspondents);
        berths.open_others(&mut simulation, behind, backend);
        simulation.check();
        let (ended_at, gone) = (Instant::ZERO, vec![false; scenario.relays.len()]);
        let kernel_destination = tallied(backend, &mut simulation);
        if kernel_destination.is_some() {
            delivered.borrow_mut().expect(scenario.workload.connections as usize);
        }
        Ok(Self {
            simulation,
            relays,
            bottleneck: topology.bottleneck,
            media: topology.media,
            delivered,
            journal: journal(scenario),
            kernel_source: backend.source(),
            kernel_destination,
            next_measurement: Instant::ZERO,
            holds: scenario.cooperation.forwarding.is_some(),
            attacker: topology.attacker,
            ended_at,
            ending: Ending::default(),
            paths: addresses.paths.iter().copied().zip(0..).collect(),
            departures: departures(scenario),
            gone,
            connections: scenario.workload.connections,
            numbers: RefCell::default(),
            meter: Meter::default(),
            interrupted: false,
        })
    }

    /// Counts with `meter` from now on.
    pub fn watch(&mut self, mut meter: Meter) {
        meter.take_taps().into_iter().for_each(|tap| self.simulation.add_tap(tap));
        self.meter = meter;
    }

    /// Runs until everything is delivered, the connection fails, or the scenario's duration is over.
    pub fn play(
        &mut self,
        scenario: &Scenario,
        total_bytes: u64,
        recorders: &mut Recorders,
        backend: &mut dyn Backend,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), RunError> {
        let end = Instant::ZERO + scenario.duration;
        while self.simulation.now() < end && self.goes_on() {
            let window_end = end.min(self.simulation.now() + scenario.metrics.window);
            self.run_to(window_end, backend)?;
            self.sample(recorders);
            self.note_backlogs();
            let (now, delivered_bytes) = (self.simulation.now(), self.delivered.borrow().bytes);
            let in_time = now.as_secs_f64() / scenario.duration.as_secs_f64();
            let done_ratio = in_time.max(delivered_bytes as f64 / total_bytes.max(1) as f64).min(1.0);
            let live = Some(Live { series: recorders.connection.series(), relays: recorders.relays.series() });
            progress(Progress { now, delivered_bytes, done_ratio, live });
        }
        self.ended_at = self.simulation.now();
        // A stream of nothing ends when the destination learns of its end.
        if self.delivered.borrow().finished() && self.delivered.borrow().bytes > 0 {
            self.ended_at = self.delivered.borrow().last_at;
        }
        self.end(scenario);
        if self.delivered.borrow().finished() {
            self.pass_until(self.simulation.now() + FAREWELL, backend)?;
        }
        Ok(())
    }

    /// Lets time pass up to `end`, regardless of what happens.
    pub fn pass_until(&mut self, end: Instant, backend: &mut dyn Backend) -> Result<(), RunError> {
        let meter = &self.meter;
        // The measured part is over: an interruption now does not count as one of the run.
        let _ = backend.pass(&mut self.simulation, end, &|simulation| meter.tick(simulation.now()))?;
        self.catch_up();
        Ok(())
    }

    /// The cell reads its wire once per TTI and calls sources late; this calls them before their counts are read.
    fn catch_up(&mut self) {
        if let Some(id) = self.media.cell {
            self.simulation.with_medium(id, |cell: &mut Cell, _| cell.call_sources());
        }
    }

    fn goes_on(&self) -> bool {
        let delivered = self.delivered.borrow();
        !delivered.finished() && delivered.failure.is_none() && !self.meter.is_halted() && !self.interrupted
    }

    /// Runs up to `end`, or until there is nothing left to wait for.
    fn run_to(&mut self, end: Instant, backend: &mut dyn Backend) -> Result<(), RunError> {
        while self.simulation.now() < end && self.goes_on() && self.meter.tick(self.simulation.now()) {
            let departure = self.departures.last().copied().filter(|(at, _)| *at <= end);
            let stop = departure.map_or(end, |(at, _)| at).min(self.next_measurement());
            let delivered = Rc::clone(&self.delivered);
            let meter = &self.meter;
            let kernel = self.kernel_destination.as_ref().map(|(kernel, _)| kernel.as_ref());
            let goes_on = |simulation: &Simulation<LabHost>| {
                note_arrivals(kernel, &delivered, simulation.now());
                let delivered = delivered.borrow();
                let waits = !delivered.finished() && delivered.failure.is_none() && !has_news(simulation);
                waits && meter.tick(simulation.now())
            };
            self.interrupted |= backend.pass(&mut self.simulation, stop, &goes_on)? == Passed::Interrupted;
            self.catch_up();
            self.depart_due();
            self.hear();
            self.measure();
        }
        Ok(())
    }

    /// When and why the source's connection failed, if it did: the destination may never learn of it.
    pub fn source_failure(&self) -> Option<(Instant, CloseReason)> {
        let source = self.simulation.host(SOURCE).engine()?;
        source.reports().into_iter().find_map(|report| report.failed)
    }

    /// Subflows that a kernel as the destination reset before it had acknowledged data over them; `None` where an
    /// engine receives.
    pub fn subflows_reset(&self) -> Option<u64> {
        self.kernel_destination.as_ref().map(|(_, tally)| tally.reset())
    }

    /// Returns whether a relay has left.
    pub fn is_gone(&self, relay: usize) -> bool {
        self.gone[relay]
    }

    /// Removes the relays whose time has come: all of them, because a window may end now.
    fn depart_due(&mut self) {
        let now = self.simulation.now();
        while let Some((_, relay)) = self.departures.last().copied().filter(|(at, _)| *at <= now) {
            self.departures.pop();
            self.depart(relay);
        }
    }

    /// Removes a relay with all packets under way to it.
    fn depart(&mut self, relay: usize) {
        self.gone[relay] = true;
        self.relays[relay].local.leave(self.simulation.now());
        for id in [self.media.cell, self.media.wlan].into_iter().flatten() {
            self.simulation.with_medium(id, |medium: &mut ForeignMedium, _| medium.leave(UeId(relay as u16).gate()));
        }
        if let Some(id) = self.media.cell {
            self.simulation.with_medium(id, |cell: &mut Cell, _| cell.leave(UeId(relay as u16)));
        }
        if let Some(id) = self.media.wlan {
            self.simulation.with_medium(id, |wlan: &mut Wlan, _| wlan.leave(station(relay)));
        }
        if let Some(host) = self.relays[relay].host {
            self.simulation.with_host(host, |host, _| host.switch_off());
        }
    }
}

/// The destination, if a kernel is the destination, with a tally that counts its packets from now on.
fn tallied(backend: &dyn Backend, simulation: &mut Simulation<LabHost>) -> Option<(Rc<dyn KernelDestination>, Tally)> {
    let (destination, tally) = (backend.destination()?, Tally::new(DESTINATION));
    simulation.add_tap(tally.tap());
    Some((destination, tally))
}

/// A journal of the relays of `scenario`.
fn journal(scenario: &Scenario) -> Journal {
    let names = scenario.relays.iter().map(|relay| relay.name.clone()).collect();
    Journal::new(names, selects_relays(scenario))
}

/// Records what applications of the kernel have read.
fn note_arrivals(kernel: Option<&dyn KernelDestination>, delivered: &RefCell<Delivered>, now: Instant) {
    let arrivals = kernel.map(KernelDestination::take).unwrap_or_default();
    arrivals.into_iter().for_each(|arrival| delivered.borrow_mut().note(arrival, now));
}

/// Locations of all hosts.
struct Berths {
    source: Berth,
    destination: Berth,
    /// In the relays' order, where they have hosts.
    relays: Vec<Option<Berth>>,
    /// In the relays' order, where their owners have traffic.
    correspondents: Vec<Option<Berth>>,
}

impl Berths {
    fn new(
        backend: &mut dyn Backend,
        scenario: &Scenario,
        topology: &mut Topology,
        addresses: &Addresses,
    ) -> Result<Self, RunError> {
        let Topology { network, source, destination, relays, .. } = topology;
        let mut berth = |party, addresses, standing, port| {
            Berth::new(backend, network, &Place { party, addresses, standing }, port)
        };
        let source = berth(Party::Source, slice::from_ref(&addresses.source), Standing::Beside, *source)?;
        let destination = berth(Party::Destination, &addresses.paths, Standing::Beside, *destination)?;
        let (mut of_relays, mut correspondents) = (Vec::new(), Vec::new());
        for (index, parts) in relays.iter().enumerate() {
            let address = slice::from_ref(&addresses.relays[index]);
            let own = parts.own.map(|port| berth(Party::Relay(index), address, standing(scenario, index), port));
            of_relays.push(own.transpose()?);
            let address = slice::from_ref(&addresses.correspondents[index]);
            let from = parts.correspondent;
            let from = from.map(|port| berth(Party::Correspondent(index), address, Standing::Beside, port));
            correspondents.push(from.transpose()?);
        }
        Ok(Self { source, destination, relays: of_relays, correspondents })
    }

    /// Attaches the host of relay `index`, if it does more than routing.
    fn attach_relay(
        &self,
        index: usize,
        simulation: &mut Simulation<LabHost>,
        host: LabHost,
        standing: Standing,
    ) -> Option<HostId> {
        let berth = self.relays[index].as_ref().filter(|_| standing != Standing::Absent);
        berth.map(|berth| berth.attach(simulation, host))
    }

    /// Attaches the host that sends to the owner of relay `index`, if there is one.
    fn attach_correspondent(
        &self,
        index: usize,
        simulation: &mut Simulation<LabHost>,
        host: Option<EngineHost>,
    ) -> Option<HostId> {
        let berth = self.correspondents[index].as_ref().zip(host);
        berth.map(|(berth, host)| berth.attach(simulation, LabHost::Engine(host)))
    }

    /// Returns whether a kernel sends to the owner of relay `index`.
    fn has_kernel_correspondent(&self, index: usize) -> bool {
        self.correspondents[index].as_ref().is_some_and(Berth::is_kernel)
    }

    /// Opens the portals of all relays and then of all correspondents; `attached` has their hosts in this order.
    fn open_others(
        &self,
        simulation: &mut Simulation<LabHost>,
        attached: impl Iterator<Item = Option<HostId>>,
        backend: &mut dyn Backend,
    ) {
        for (berth, host) in self.relays.iter().chain(&self.correspondents).zip(attached) {
            berth.iter().for_each(|berth| berth.open(simulation, host, backend));
        }
    }
}

/// Lets the cell's wire carry what `feeds` send to relay `index`.
fn feed(
    simulation: &mut Simulation<LabHost>,
    cell: Option<MediumId>,
    index: usize,
    feeds: Vec<UdpSource>,
) -> Result<(), RunError> {
    // Without a cell there are no feeds.
    let Some(cell) = cell else { return Ok(()) };
    for source in feeds {
        let fed =
            simulation.with_medium(cell, |cell: &mut Cell, now| cell.feed(UeId(index as u16), Box::new(source), now));
        fed.transpose().map_err(|error| RunError::Radio(error.to_string()))?;
    }
    Ok(())
}

/// The unspecified address of the same family.
const fn unspecified(family_of: IpAddr) -> IpAddr {
    match family_of {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// The station of a relay: station 0 is the destination.
fn station(relay: usize) -> StationId {
    StationId(relay as u16 + 1)
}

/// When each relay leaves, in reverse order.
fn departures(scenario: &Scenario) -> Vec<(Instant, usize)> {
    let relays = scenario.relays.iter().enumerate();
    let leaves = relays.filter_map(|(index, relay)| Some((Instant::ZERO + relay.leaves?.0, index)));
    let mut departures: Vec<_> = leaves.collect();
    departures.sort_unstable_by_key(|(at, index)| core::cmp::Reverse((*at, *index)));
    departures
}
