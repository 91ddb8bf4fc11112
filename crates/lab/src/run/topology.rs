//! Builds a network from a scenario: the source, a core, the relays with their hosts, and the destination.
//!
//! ```text
//! source ─────────┐
//!                 backbone ── core ──┬── cellular 1 ── router 1 ── wifi 1 ──┬── destination
//! correspondents ─┘                  │                    └── relay 1       │
//!                                    └── cellular 2 ── router 2 ── wifi 2 ──┘
//!                                                         └── relay 2
//! ```
//!
//! Where a relay does more with packets than routing, its host stands between router and Wi-Fi. The bottleneck, if the
//! scenario has one, joins backbone and core; otherwise they are the same router. Each hop is a separate link, or the
//! relay's gates of a medium that all relays share.

use network::impairment::Delay;
use network::{Gate, MediumId, Network, PortId, Prefix, Route, VertexId};

use simulator::relay::{DESTINATION_GATE, SOURCE_GATE};
use simulator::swallower::Swallower;
use units::text::Text;
use units::{Duration, Instant};

use super::attacker::Attacker;
use super::backend::{Backend, Media};
use super::hop::{Hop, HopKind};
use super::plan::{has_relays, is_on_the_way, relays_converse};
use super::{RunError, links, radio};
use crate::measure::PathCounters;
use crate::scenario::{self, Addresses, RelayMode, Scenario};

/// The network of a scenario and the places of its parts.
pub(super) struct Topology {
    pub network: Network,
    pub source: PortId,
    pub destination: PortId,
    /// In the relays' order.
    pub relays: Vec<RelayParts>,
    /// The link that all paths share, if there is one.
    pub bottleneck: Option<Hop>,
    pub media: Media,
    /// The attacker on control messages, if there is one.
    pub attacker: Option<MediumId>,
}

/// Places of the parts of one relay.
pub(super) struct RelayParts {
    pub cellular: Hop,
    pub wifi: Hop,
    /// Its own host, if it has one.
    pub own: Option<PortId>,
    /// The host that sends its owner's traffic, if there is any.
    pub correspondent: Option<PortId>,
}

/// What a backend provides instead of the network.
#[derive(Clone, Copy)]
pub(super) struct Provided {
    /// Every relay has a host on the path of packets, even where it only routes.
    pub relay_hosts: bool,
    /// The cell and the channel.
    pub media: bool,
}

impl Provided {
    pub fn by(backend: &dyn Backend) -> Self {
        Self { relay_hosts: backend.has_relay_hosts(), media: backend.has_media() }
    }
}

/// Builds the network of `scenario`.
pub(super) fn build(scenario: &Scenario, addresses: &Addresses, provided: Provided) -> Result<Topology, RunError> {
    let mut network = Network::new(scenario.seed);
    let (source, destination) = (network.add_port(), network.add_port());
    let backbone = network.add_router();
    network.connect(source.vertex(), backbone);
    network.add_host_route(backbone, addresses.source, source.vertex());
    network.begin_part("bottleneck");
    let bottleneck = scenario.bottleneck.as_ref().map(|link| links::bottleneck(&mut network, scenario, link));
    let bottleneck = bottleneck.transpose()?;
    let core = bottleneck.as_ref().map_or(backbone, |hop| add_core(&mut network, hop, backbone));
    network.begin_part("cell");
    let cell = radio::add_cell(&mut network, scenario, addresses, provided.media)?;
    network.begin_part("wlan");
    let wlan = radio::add_wlan(&mut network, scenario, addresses, provided.media)?;
    network.begin_part("attacker");
    let attacker = Attacker::of(scenario).map(|attacker| network.add_medium(Box::new(attacker)));
    let mut relays = Vec::new();
    for (index, relay) in scenario.relays.iter().enumerate() {
        network.begin_part(format!("cellular hop of {}", relay.name));
        let cellular = match &cell {
            Some(cell) => cell.hop(&network, index),
            None => links::cellular(&mut network, scenario, index)?,
        };
        network.begin_part(format!("wifi hop of {}", relay.name));
        let wifi = match &wlan {
            _ if scenario.cooperation.relays == RelayMode::MultiHomed => Hop::none(&mut network),
            Some(wlan) => wlan.hop(&network, index),
            None => links::wifi(&mut network, scenario, index)?,
        };
        network.begin_part(format!("relay {}", relay.name));
        let wlan_delay = relay.wlan_delay.map_or(Duration::ZERO, |Text(delay)| delay);
        let between = [
            attacker.map(|id| Between {
                id,
                towards_source: Attacker::gate(index, true),
                towards_destination: Attacker::gate(index, false),
            }),
            add_swallower(&mut network, relay),
        ];
        let hops = RelayHops { cellular, wifi, between: between.into_iter().flatten().collect(), wlan_delay };
        let mut builder = Builder { network: &mut network, addresses, backbone, core, destination };
        let plan = Plan {
            on_the_way: is_on_the_way(scenario) || provided.relay_hosts && has_relays(scenario),
            converses: relays_converse(scenario),
            has_local: !relay.local.is_empty(),
        };
        relays.push(builder.wire_relay(index, hops, plan));
    }
    let media = Media { cell: cell.map(|cell| cell.id), wlan: wlan.map(|wlan| wlan.id) };
    Ok(Topology { network, source, destination, relays, bottleneck, media, attacker })
}

/// Adds the router behind `hop`, the link that all paths share.
fn add_core(network: &mut Network, hop: &Hop, backbone: VertexId) -> VertexId {
    let core = network.add_router();
    network.connect(hop.down_out, core);
    network.connect(hop.up_out, backbone);
    hop.send_answers(network, backbone, core);
    let all = |via| Route { from: None, to: None, via };
    network.add_route(backbone, all(hop.down_in));
    network.add_route(core, all(hop.up_in));
    core
}

struct Builder<'a> {
    network: &'a mut Network,
    addresses: &'a Addresses,
    backbone: VertexId,
    core: VertexId,
    destination: PortId,
}

/// The hops on both sides of a relay, and the elements between them besides a router.
struct RelayHops {
    cellular: Hop,
    wifi: Hop,
    /// In order from the source's side to the destination's.
    between: Vec<Between>,
    /// One-way delay between the relay and the channel that it shares.
    wlan_delay: Duration,
}

/// An element that packets pass between a relay and its Wi-Fi.
struct Between {
    id: MediumId,
    towards_source: Gate,
    towards_destination: Gate,
}

/// Purposes of a relay's host.
#[derive(Clone, Copy)]
struct Plan {
    /// It processes packets that pass.
    on_the_way: bool,
    /// It talks to the destination.
    converses: bool,
    /// Its owner has traffic.
    has_local: bool,
}

/// Adds the element of a relay that turns bad.
fn add_swallower(network: &mut Network, relay: &scenario::Relay) -> Option<Between> {
    let swallows = relay.swallows?;
    let swallower = Swallower::new(Instant::ZERO + swallows.from, swallows.forges_data_acks);
    let id = network.add_medium(Box::new(swallower));
    Some(Between { id, towards_source: SOURCE_GATE, towards_destination: DESTINATION_GATE })
}

impl Builder<'_> {
    /// Connects the two hops of a relay by its router, and both ends to the rest.
    fn wire_relay(&mut self, index: usize, hops: RelayHops, plan: Plan) -> RelayParts {
        let RelayHops { cellular, wifi, between, wlan_delay } = hops;
        let (network, path) = (&mut *self.network, self.addresses.paths[index]);
        let [wifi_in, wifi_out] = far_ends(network, &wifi, wlan_delay);
        let router = network.add_router();
        let own = (plan.on_the_way || plan.converses || plan.has_local).then(|| network.add_port());
        let on_the_way = own.filter(|_| plan.on_the_way).map(PortId::vertex);
        let (down, up) = chain(network, &between, on_the_way.unwrap_or(router), wifi_in);
        network.add_host_route(self.core, path, cellular.down_in);
        network.connect(cellular.down_out, router);
        network.add_host_route(router, path, on_the_way.unwrap_or(down));
        network.connect(wifi.down_out, self.destination.vertex());
        // On a shared channel, all packets leave through one gate, and the channel knows the relay.
        if wifi.kind == HopKind::Sender {
            network.connect(self.destination.vertex(), wifi.up_in);
        } else {
            let from_path = Route { from: Some(Prefix::host(path)), to: None, via: wifi.up_in };
            network.add_route(self.destination.vertex(), from_path);
        }
        network.connect(wifi_out, up);
        network.connect(cellular.up_out, self.core);
        cellular.send_answers(network, self.core, router);
        wifi.send_answers(network, up, self.destination.vertex());
        if let Some(own) = own {
            network.add_host_route(router, self.addresses.relays[index], own.vertex());
            if on_the_way.is_some() {
                network.add_host_route(own.vertex(), path, down);
            }
            network.add_route(own.vertex(), Route { from: None, to: None, via: router });
        }
        let correspondent = plan.has_local.then(|| self.wire_correspondent(index, cellular.down_in));
        self.network.add_route(router, Route { from: None, to: None, via: cellular.up_in });
        RelayParts { cellular, wifi, own, correspondent }
    }

    /// Adds the host that sends to a relay's owner, behind the core.
    fn wire_correspondent(&mut self, index: usize, cellular: VertexId) -> PortId {
        let (network, addresses) = (&mut *self.network, self.addresses);
        let correspondent = network.add_port();
        network.add_host_route(self.core, addresses.relays[index], cellular);
        network.add_host_route(self.backbone, addresses.correspondents[index], correspondent.vertex());
        network.connect(correspondent.vertex(), self.backbone);
        correspondent
    }
}

/// Connects elements between a relay and its Wi-Fi hop. Returns where packets enter towards the destination and towards
/// the source.
fn chain(network: &mut Network, elements: &[Between], router: VertexId, wifi: VertexId) -> (VertexId, VertexId) {
    let (mut down, mut up) = (wifi, router);
    for element in elements {
        let [towards_source, towards_destination] =
            [element.towards_source, element.towards_destination].map(|gate| network.gate(element.id, gate));
        network.connect(towards_source, up);
        match up == router {
            true => down = towards_source,
            false => network.connect(up, towards_source),
        }
        up = towards_destination;
    }
    if up != router {
        network.connect(up, wifi);
    }
    (down, up)
}

/// Where packets enter the Wi-Fi hop of a relay, and where they leave it towards the source; with a delay each if the
/// relay is far from the channel.
fn far_ends(network: &mut Network, wifi: &Hop, delay: Duration) -> [VertexId; 2] {
    if delay.is_zero() {
        return [wifi.down_in, wifi.up_out];
    }
    let [down, up] = [(); 2].map(|()| network.add_node(Box::new(Delay::new(delay))));
    network.connect(down, wifi.down_in);
    network.connect(wifi.up_out, up);
    [down, up]
}

impl RelayParts {
    /// Counts packets in both hops towards the destination so far, including the cell's local traffic.
    pub fn counters(&self, network: &Network) -> PathCounters {
        let hops = [&self.cellular, &self.wifi];
        PathCounters { elements: hops.into_iter().flat_map(|hop| hop.towards_destination(network)).collect() }
    }
}
