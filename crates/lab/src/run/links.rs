//! Hops that are links of a relay's own.

use network::impairment::Outage;
use network::{Link, LossModel, Network, Queue, Trace};
use units::{ByteCount, Instant, Rate};

use super::hop::Hop;
use super::{RunError, rate_trace};
use crate::scenario::{self, Burst, Loss, Scenario, TextOr, value_of};

/// The cellular links of relay `index`.
pub(super) fn cellular(network: &mut Network, scenario: &Scenario, index: usize) -> Result<Hop, RunError> {
    hop(network, scenario, index, scenario::Hop::Cellular)
}

/// The Wi-Fi links of relay `index`.
pub(super) fn wifi(network: &mut Network, scenario: &Scenario, index: usize) -> Result<Hop, RunError> {
    hop(network, scenario, index, scenario::Hop::Wifi)
}

fn hop(network: &mut Network, scenario: &Scenario, index: usize, hop: scenario::Hop) -> Result<Hop, RunError> {
    let trace = rate_trace(scenario, index, hop)?;
    let leaves = scenario.relays[index].leaves;
    // The scenario's check asks for a link where there is no medium; without one nothing gets through.
    let nothing = || Link::new(Rate::ZERO, units::Duration::ZERO);
    let link = scenario.relays[index].link(hop);
    let (down, up) = link.map_or_else(|| (nothing(), nothing()), |link| (downlink(link, trace), uplink(link)));
    let (down, up) = (network.add_link(down), network.add_link(up));
    let hop = Hop::links(down, up);
    Ok(leaves.map_or(hop, |leaves| until(network, hop, Instant::ZERO + leaves.0)))
}

/// The link that all paths share, between the source and the core.
pub(super) fn bottleneck(network: &mut Network, link: &scenario::Link) -> Hop {
    let (down, up) = (network.add_link(downlink(link, None)), network.add_link(uplink(link)));
    Hop::links(down, up)
}

/// A hop that carries nothing after `end`.
fn until(network: &mut Network, hop: Hop, end: Instant) -> Hop {
    let mut cut = |before| {
        let node = network.add_node(Box::new(Outage::new([end..Instant::FAR_FUTURE])));
        network.connect(before, node);
        node
    };
    let (down_out, up_out) = (cut(hop.down_out), cut(hop.up_out));
    Hop { down_out, up_out, ..hop }
}

fn downlink(link: &scenario::Link, trace: Option<Trace>) -> Link {
    let delay = value_of(&link.delay);
    let model = match (&link.rate, trace) {
        (_, Some(trace)) => Link::traced(trace, delay),
        (TextOr::Text(rate), None) => Link::new(*rate, delay),
        // The scenario's check asks for a trace or a mean: without either nothing gets through.
        (TextOr::Table(_), None) => Link::new(Rate::ZERO, delay),
    };
    let loss = match link.loss {
        Loss::Text(probability) => LossModel::uniform(probability.value()),
        Loss::Table(Burst { mean, burst_packets: None }) => LossModel::uniform(value_of(&mean).value()),
        Loss::Table(Burst { mean, burst_packets: Some(packets) }) => {
            LossModel::gilbert(value_of(&mean).value(), packets)
        }
    };
    model.queue(queue(link.queue)).loss(loss)
}

fn uplink(link: &scenario::Link) -> Link {
    let up = &link.uplink;
    Link::new(up.rate, value_of(&link.delay)).queue(queue(up.queue)).loss(LossModel::uniform(up.loss.value()))
}

pub(super) fn queue(queue: scenario::Queue) -> Queue {
    match queue {
        scenario::Queue::Packets(packets) => Queue::packets(packets.into()),
        scenario::Queue::Bytes(ByteCount(bytes)) => Queue::bytes(bytes),
    }
}
