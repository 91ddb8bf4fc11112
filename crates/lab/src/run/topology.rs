//! From a scenario to a network: the source, a core, the relays with their hosts, and the destination.
//!
//! ```text
//! source ─────────┐
//!                 backbone ── core ──┬── cellular 1 ── router 1 ── wifi 1 ──┬── destination
//! correspondents ─┘                  │                    └── relay 1       │
//!                                    └── cellular 2 ── router 2 ── wifi 2 ──┘
//!                                                         └── relay 2
//! ```
//!
//! Backbone and core are joined by the bottleneck, if the scenario has one, and are one otherwise. Each hop is a link of its own, or the relay's gates of a medium that all relays share.

use network::{MediumId, Network, PortId, Prefix, Route, VertexId};

use simulator::relay::{DESTINATION_GATE, SOURCE_GATE};
use simulator::swallower::Swallower;
use units::Instant;

use super::cooperation::forwarding::Element;
use super::hop::{Hop, HopKind};
use super::{RunError, links, radio};
use crate::measure::PathCounters;
use crate::scenario::{self, Addresses, RelayMode, Scenario};

/// The network of a scenario and where its parts are.
pub(super) struct Topology {
    pub network: Network,
    pub source: PortId,
    pub destination: PortId,
    /// In the relays' order.
    pub relays: Vec<RelayParts>,
    pub cell: Option<MediumId>,
    pub wlan: Option<MediumId>,
}

/// Where the parts of one relay are.
pub(super) struct RelayParts {
    pub cellular: Hop,
    pub wifi: Hop,
    /// The relay and whom it talks to, where it has traffic of its own.
    pub local: Option<LocalPorts>,
    /// What decides when data go on, where that is not at once.
    pub forwarding: Option<Element>,
}

/// Where a relay's own traffic begins and ends.
#[derive(Clone, Copy)]
pub(super) struct LocalPorts {
    pub relay: PortId,
    pub correspondent: PortId,
}

/// Builds the network of `scenario`.
pub(super) fn build(scenario: &Scenario, addresses: &Addresses) -> Result<Topology, RunError> {
    let mut network = Network::new(scenario.seed);
    let (source, destination) = (network.add_port(), network.add_port());
    let backbone = network.add_router();
    network.connect(source.vertex(), backbone);
    network.add_host_route(backbone, addresses.source, source.vertex());
    let core = match &scenario.bottleneck {
        Some(link) => add_core(&mut network, scenario, link, backbone)?,
        None => backbone,
    };
    let cell = radio::add_cell(&mut network, scenario, addresses)?;
    let wlan = radio::add_wlan(&mut network, scenario, addresses)?;
    let mut relays = Vec::new();
    for index in 0..scenario.relays.len() {
        let cellular = match &cell {
            Some(cell) => cell.hop(&network, index),
            None => links::cellular(&mut network, scenario, index)?,
        };
        let wifi = match &wlan {
            _ if scenario.cooperation.relays == RelayMode::MultiHomed => Hop::none(&mut network),
            Some(wlan) => wlan.hop(&network, index),
            None => links::wifi(&mut network, scenario, index)?,
        };
        let forwarding = Element::add(&mut network, scenario, index)?;
        let swallower = add_swallower(&mut network, &scenario.relays[index]);
        let mut builder = Builder { network: &mut network, addresses, backbone, core, destination };
        let between = forwarding.map(Element::medium).into_iter().chain(swallower).collect();
        let hops = RelayHops { cellular, wifi, between };
        let local = builder.wire_relay(index, hops, !scenario.relays[index].local.is_empty());
        relays.push(RelayParts { cellular, wifi, local, forwarding });
    }
    let [cell, wlan] = [cell, wlan].map(|medium| medium.map(|medium| medium.id));
    Ok(Topology { network, source, destination, relays, cell, wlan })
}

/// A router behind the link that all paths share.
fn add_core(
    network: &mut Network,
    scenario: &Scenario,
    link: &scenario::Link,
    backbone: VertexId,
) -> Result<VertexId, RunError> {
    let core = network.add_router();
    let hop = links::bottleneck(network, scenario, link)?;
    network.connect(hop.down_out, core);
    network.connect(hop.up_out, backbone);
    hop.send_answers(network, backbone, core);
    let all = |via| Route { from: None, to: None, via };
    network.add_route(backbone, all(hop.down_in));
    network.add_route(core, all(hop.up_in));
    Ok(core)
}

struct Builder<'a> {
    network: &'a mut Network,
    addresses: &'a Addresses,
    backbone: VertexId,
    core: VertexId,
    destination: PortId,
}

/// What a relay stands between, and what stands there besides a router.
struct RelayHops {
    cellular: Hop,
    wifi: Hop,
    /// From the source's side to the destination's, each with a gate towards either.
    between: Vec<MediumId>,
}

/// A relay that turns bad.
fn add_swallower(network: &mut Network, relay: &scenario::Relay) -> Option<MediumId> {
    let swallows = relay.swallows?;
    let swallower = Swallower::new(Instant::ZERO + swallows.from, swallows.forges_data_acks);
    Some(network.add_medium(Box::new(swallower)))
}

impl Builder<'_> {
    /// Joins the two hops of a relay by its router, and both ends to the rest.
    fn wire_relay(&mut self, index: usize, hops: RelayHops, has_local: bool) -> Option<LocalPorts> {
        let RelayHops { cellular, wifi, between } = hops;
        let (network, path) = (&mut *self.network, self.addresses.paths[index]);
        let router = network.add_router();
        let (down, up) = chain(network, &between, router, wifi.down_in);
        network.add_host_route(self.core, path, cellular.down_in);
        network.connect(cellular.down_out, router);
        network.add_host_route(router, path, down);
        network.connect(wifi.down_out, self.destination.vertex());
        // On a shared channel all leave by one gate, and the channel knows the relay.
        if wifi.kind == HopKind::Sender {
            network.connect(self.destination.vertex(), wifi.up_in);
        } else {
            let from_path = Route { from: Some(Prefix::host(path)), to: None, via: wifi.up_in };
            network.add_route(self.destination.vertex(), from_path);
        }
        network.connect(wifi.up_out, up);
        network.connect(cellular.up_out, self.core);
        cellular.send_answers(network, self.core, router);
        wifi.send_answers(network, up, self.destination.vertex());
        let local = has_local.then(|| self.wire_local(index, cellular, router));
        self.network.add_route(router, Route { from: None, to: None, via: cellular.up_in });
        local
    }

    /// The relay's own host behind its router, and the host that sends to it behind the core.
    fn wire_local(&mut self, index: usize, cellular: Hop, router: VertexId) -> LocalPorts {
        let (network, addresses) = (&mut *self.network, self.addresses);
        let (relay, correspondent) = (network.add_port(), network.add_port());
        network.add_host_route(router, addresses.relays[index], relay.vertex());
        network.connect(relay.vertex(), router);
        network.add_host_route(self.core, addresses.relays[index], cellular.down_in);
        network.add_host_route(self.backbone, addresses.correspondents[index], correspondent.vertex());
        network.connect(correspondent.vertex(), self.backbone);
        LocalPorts { relay, correspondent }
    }
}

/// Joins elements between a router and a Wi-Fi hop. Gives where packets enter towards the destination and towards the source.
fn chain(network: &mut Network, elements: &[MediumId], router: VertexId, wifi: VertexId) -> (VertexId, VertexId) {
    let (mut down, mut up) = (wifi, router);
    for element in elements {
        let [towards_source, towards_destination] =
            [SOURCE_GATE, DESTINATION_GATE].map(|gate| network.gate(*element, gate));
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

impl RelayParts {
    /// What went through both hops towards the destination so far, local traffic of the cell included.
    pub fn counters(&self, network: &Network) -> PathCounters {
        let [(entered, first), (_, second)] = [self.cellular, self.wifi].map(|hop| hop.towards_destination(network));
        PathCounters {
            entered: entered.packets,
            lost: first.lost + second.lost,
            queue_drops: first.queue_full + second.queue_full,
        }
    }
}
