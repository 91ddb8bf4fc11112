//! From a scenario's relays to a network.

use std::path::Path;

use network::{Link, LossModel, Network, PortId, Prefix, Queue, Route, Trace, VertexId};
use units::{ByteCount, Duration, Prng, Rate};

use super::RunError;
use crate::scenario::{self, Addresses, Loss, RateModel, Relay, Scenario, TextOr};

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
        let cellular = network.add_link(downlink(&relay.cellular, scenario.seed, relay, index, "cellular")?);
        let wifi = network.add_link(downlink(&relay.wifi, scenario.seed, relay, index, "wifi")?);
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

fn downlink(link: &scenario::Link, seed: u64, relay: &Relay, index: usize, which: &str) -> Result<Link, RunError> {
    let model = match &link.rate {
        TextOr::Text(rate) => Link::new(*rate, link.delay),
        TextOr::Table(model) => {
            // By the relay's name: adding a relay leaves the others' traces as they are.
            let trace_seed = Prng::fork(seed, &format!("{which} rate of {}", relay.name)).below(u64::MAX);
            let field = format!("relays[{index}].{which}.rate");
            Link::traced(trace(model, trace_seed, &field)?, link.delay)
        }
    };
    let loss = match link.loss {
        Loss::Text(probability) => LossModel::uniform(probability.value()),
        Loss::Table(burst) => LossModel::gilbert(burst.mean.value(), burst.burst_packets),
    };
    Ok(model.queue(queue(link.queue)).loss(loss))
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

fn trace(model: &RateModel, seed: u64, field: &str) -> Result<Trace, RunError> {
    match (&model.trace, model.generator()) {
        (Some(path), _) => read_trace(path, field),
        (None, Some(generator)) => Ok(generator.generate(seed)),
        // The scenario's check asks for a mean; a link without a rate is what is left without one.
        (None, None) => Ok(Trace::constant(Rate::ZERO, Duration::from_secs(1))),
    }
}

fn read_trace(path: &Path, field: &str) -> Result<Trace, RunError> {
    let field = || format!("{field}.trace");
    let text = std::fs::read_to_string(path).map_err(|source| RunError::Unreadable {
        field: field(),
        path: path.into(),
        source,
    })?;
    Trace::parse(&text).map_err(|source| RunError::Trace { field: field(), path: path.into(), source })
}
