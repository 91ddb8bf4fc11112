//! From a scenario's relays to a network.

use std::path::Path;

use network::{Link, LossModel, Network, PortId, Prefix, Queue, Route, Trace, VertexId};
use units::{ByteCount, Duration, Prng, Rate};

use super::RunError;
use crate::scenario::{self, Addresses, Loss, RateModel, Scenario, TextOr};

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
        let downlink = |link, which: &str| {
            // By the relay's name: adding a relay leaves the others' traces as they are.
            let trace_seed = Prng::fork(scenario.seed, &format!("{which} rate of {}", relay.name)).below(u64::MAX);
            let field = format!("relays[{index}].{which}.rate.trace");
            downlink(link, |model| trace(model, trace_seed, &scenario.directory, field))
        };
        let cellular = network.add_link(downlink(&relay.cellular, "cellular")?);
        let wifi = network.add_link(downlink(&relay.wifi, "wifi")?);
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

fn downlink(
    link: &scenario::Link,
    trace: impl FnOnce(&RateModel) -> Result<Trace, RunError>,
) -> Result<Link, RunError> {
    let model = match &link.rate {
        TextOr::Text(rate) => Link::new(*rate, link.delay),
        TextOr::Table(model) => Link::traced(trace(model)?, link.delay),
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

fn trace(model: &RateModel, seed: u64, directory: &Path, field: String) -> Result<Trace, RunError> {
    match (&model.trace, model.generator()) {
        (Some(path), _) => read_trace(&directory.join(path), field),
        (None, Some(generator)) => Ok(generator.generate(seed)),
        // The scenario's check asks for a mean; a link without a rate is what is left without one.
        (None, None) => Ok(Trace::constant(Rate::ZERO, Duration::from_secs(1))),
    }
}

fn read_trace(path: &Path, field: String) -> Result<Trace, RunError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Trace::parse(&text).map_err(|source| RunError::Trace { field, path: path.into(), source }),
        Err(source) => Err(RunError::Unreadable { field, path: path.into(), source }),
    }
}
