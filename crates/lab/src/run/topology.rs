//! From a scenario's relays to a network.

use network::{Link, LossModel, Network, PortId, Prefix, Queue, Route, Trace, VertexId};
use units::{ByteCount, Rate};

use super::{Hop, RunError, rate_trace};
use crate::scenario::{self, Addresses, Loss, Scenario, TextOr};

/// The network of a scenario and where its parts are.
pub(super) struct Topology {
    pub network: Network,
    pub source: PortId,
    pub destination: PortId,
    /// Towards the destination: the links of each relay in the order in which packets pass them.
    pub downlinks: Vec<[VertexId; 2]>,
}

/// Builds the network of `scenario`.
pub(super) fn build(scenario: &Scenario, addresses: &Addresses) -> Result<Topology, RunError> {
    let mut network = Network::new(scenario.seed);
    let (source, destination) = (network.add_port(), network.add_port());
    let mut downlinks = Vec::new();
    for (index, (relay, address)) in scenario.relays.iter().zip(&addresses.paths).enumerate() {
        let cellular = network.add_link(downlink(&relay.cellular, rate_trace(scenario, index, Hop::Cellular)?));
        let wifi = network.add_link(downlink(&relay.wifi, rate_trace(scenario, index, Hop::Wifi)?));
        let wifi_up = network.add_link(uplink(&relay.wifi));
        let cellular_up = network.add_link(uplink(&relay.cellular));
        for pair in [cellular, wifi, destination.vertex()].windows(2) {
            network.connect(pair[0], pair[1]);
        }
        for pair in [wifi_up, cellular_up, source.vertex()].windows(2) {
            network.connect(pair[0], pair[1]);
        }
        let host = Some(Prefix::host(*address));
        network.add_route(source.vertex(), Route { from: None, to: host, via: cellular });
        network.add_route(destination.vertex(), Route { from: host, to: None, via: wifi_up });
        downlinks.push([cellular, wifi]);
    }
    Ok(Topology { network, source, destination, downlinks })
}

fn downlink(link: &scenario::Link, trace: Option<Trace>) -> Link {
    let model = match (&link.rate, trace) {
        (_, Some(trace)) => Link::traced(trace, link.delay),
        (TextOr::Text(rate), None) => Link::new(*rate, link.delay),
        // The scenario's check asks for a trace or a mean: without either nothing gets through.
        (TextOr::Table(_), None) => Link::new(Rate::ZERO, link.delay),
    };
    let loss = match link.loss {
        Loss::Text(probability) => LossModel::uniform(probability.value()),
        Loss::Table(burst) => LossModel::gilbert(burst.mean.value(), burst.burst_packets),
    };
    model.queue(queue(link.queue)).loss(loss)
}

fn uplink(link: &scenario::Link) -> Link {
    let up = &link.uplink;
    Link::new(up.rate, link.delay).queue(queue(up.queue)).loss(LossModel::uniform(up.loss.value()))
}

fn queue(queue: scenario::Queue) -> Queue {
    match queue {
        scenario::Queue::Packets(packets) => Queue::packets(packets.into()),
        scenario::Queue::Bytes(ByteCount(bytes)) => Queue::bytes(bytes),
    }
}
