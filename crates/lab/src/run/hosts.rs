//! The hosts of a scenario.

use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use cooperation::agent::Role;
use network::Datagram;
use simulator::traffic::UdpSink;
use simulator::{EndpointHost, Host, Portal};
use transport::inspection::Sight;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig, SUBFLOWS_CAP};
use units::{Instant, Prng};
use wire::Segment;

use crate::scenario::{RelayMode, Scenario};

/// A host that is an engine with an agent and applications.
pub(super) type EngineHost = EndpointHost<Role>;

/// A host attached to the network of a run.
#[expect(clippy::large_enum_variant, reason = "most are engines, and every packet goes through one")]
pub enum LabHost {
    /// An engine with an agent and applications.
    Engine(EndpointHost<Role>),
    /// Sinks of datagrams only.
    Counter(Counter),
    /// A portal: the host is elsewhere.
    Portal(Portal),
}

/// Counts datagrams. Owners' traffic may be most of what a cell carries, and an engine would be called many times for
/// each of these packets although it has nothing to do.
#[derive(Default)]
pub struct Counter {
    sinks: Vec<UdpSink>,
    is_off: bool,
}

impl Counter {
    /// Adds a sink.
    pub(super) fn push(&mut self, sink: UdpSink) {
        self.sinks.push(sink);
    }
}

impl Host for Counter {
    /// Ignores segments: nothing listens.
    fn handle_segment(&mut self, _: &mut Segment, _: Instant) {}

    fn handle_datagram(&mut self, datagram: Datagram, _: Instant) {
        if !self.is_off {
            self.sinks.iter_mut().for_each(|sink| sink.count(&datagram));
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    #[inline]
    fn poll_transmit(&mut self, _: &mut Segment, _: Instant) -> bool {
        false
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

/// Port where relays and source answer the destination; capture tools associate no protocol with it.
pub(super) const CONTROL_PORT: u16 = 40_001;

/// A host whose engine draws its randomness from the scenario's seed and its own name.
pub(super) fn host(scenario: &Scenario, name: &str, addresses: &[IpAddr], role: Role) -> EngineHost {
    let seed = Prng::fork(scenario.seed, name).below(u64::MAX);
    let local = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    let config = EndpointConfig { local_addresses: local, ..EndpointConfig::default() };
    EngineHost::with_agent(Endpoint::with_seed(config, seed), role)
}

/// Settings of the connection. During a migration, both relay sets have subflows.
pub(super) fn config(scenario: &Scenario, relays: usize) -> ConnectionConfig {
    // Where relays splice subflows, the first subflow is an additional one.
    let relays = relays + usize::from(scenario.cooperation.relays == RelayMode::FastAck);
    if !scenario.cooperation.selection.method.steers() {
        return scenario.connection.to_config(relays);
    }
    let config = scenario.connection.to_config((2 * relays).min(SUBFLOWS_CAP));
    ConnectionConfig { path_manager: "manual".into(), ..config }
}

impl LabHost {
    /// The engine with its agent, if it runs in this host.
    #[inline]
    pub(super) fn engine(&self) -> Option<&EngineHost> {
        match self {
            Self::Engine(engine) => Some(engine),
            Self::Counter(_) | Self::Portal(_) => None,
        }
    }

    /// Like [`Self::engine`], but mutable.
    pub(super) fn engine_mut(&mut self) -> Option<&mut EngineHost> {
        match self {
            Self::Engine(engine) => Some(engine),
            Self::Counter(_) | Self::Portal(_) => None,
        }
    }

    /// Switches the host off without notifying anybody.
    pub(super) fn switch_off(&mut self) {
        match self {
            Self::Engine(engine) => engine.switch_off(),
            Self::Counter(counter) => counter.is_off = true,
            Self::Portal(_) => {}
        }
    }

    /// Returns whether packets wait at a portal.
    pub fn has_arrivals(&self) -> bool {
        matches!(self, Self::Portal(portal) if portal.has_arrivals())
    }

    /// The portal, if the host is one.
    pub fn portal(&mut self) -> Option<&mut Portal> {
        match self {
            Self::Engine(_) | Self::Counter(_) => None,
            Self::Portal(portal) => Some(portal),
        }
    }
}

/// Calls the same function of any kind of host.
macro_rules! each {
    ($of:expr, $host:ident => $call:expr) => {
        match $of {
            LabHost::Engine($host) => $call,
            LabHost::Counter($host) => $call,
            LabHost::Portal($host) => $call,
        }
    };
}

impl Host for LabHost {
    fn start(&mut self, now: Instant) {
        each!(self, host => host.start(now));
    }

    #[inline]
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        each!(self, host => host.handle_segment(segment, now));
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        each!(self, host => host.handle_datagram(datagram, now));
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        each!(self, host => host.handle_octets(octets, now));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, host => host.handle_timeout(now));
    }

    #[inline]
    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        each!(self, host => host.poll_transmit(segment, now))
    }

    #[inline]
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        each!(self, host => host.poll_datagram(now))
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        each!(self, host => host.poll_octets())
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        each!(self, host => host.poll_timeout())
    }

    fn handle_end(&mut self, now: Instant) {
        each!(self, host => host.handle_end(now));
    }

    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        each!(self, host => host.is_in_transit(segment))
    }

    fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        each!(self, host => host.inspect(local, remote))
    }

    fn faults(&self) -> Vec<String> {
        each!(self, host => host.faults())
    }
}
