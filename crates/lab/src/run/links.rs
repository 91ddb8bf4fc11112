//! Hops that are links of a relay's own.

use network::impairment::Outage;
use network::middlebox::{NarrowEntry, NarrowHop};
use network::{Link, LossModel, Network, Queue, Trace, VertexId};
use units::{ByteCount, Instant, Rate};

use super::hop::Hop;
use super::inputs::bottleneck_trace;
use super::{RunError, rate_trace};
use crate::scenario::{self, Burst, Loss, Narrow, Scenario, TextOr, value_of};

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
    let hop = match link {
        Some(link) => both_ways(network, link, trace),
        None => Hop::links(network.add_link(nothing()), network.add_link(nothing())),
    };
    Ok(leaves.map_or(hop, |leaves| until(network, hop, Instant::ZERO + leaves.0)))
}

/// The link that all paths share, between the source and the core.
pub(super) fn bottleneck(network: &mut Network, scenario: &Scenario, link: &scenario::Link) -> Result<Hop, RunError> {
    Ok(both_ways(network, link, bottleneck_trace(scenario)?))
}

fn both_ways(network: &mut Network, link: &scenario::Link, trace: Option<Trace>) -> Hop {
    let (down, up) = (network.add_link(downlink(link, trace)), network.add_link(uplink(link)));
    let (narrow_down, narrow_up) = (link.narrow_down(), link.narrow_up());
    let down_in = narrow_down.map_or(down, |narrow| add_entry(network, narrow, down));
    let up_in = narrow_up.map_or(up, |narrow| add_entry(network, narrow, up));
    let (narrow_down, narrow_up) = (narrow_down.is_some(), narrow_up.is_some());
    Hop { down_in, up_in, narrow_down, narrow_up, ..Hop::links(down, up) }
}

/// What measures the packets before `link`: gives where they enter, and where the answers to those that are too large leave.
fn add_entry(network: &mut Network, narrow: Narrow, link: VertexId) -> VertexId {
    let hop = NarrowHop::new(narrow.mtu_bytes());
    let hop = if narrow.silent { hop.silent() } else { hop };
    let entry = network.add_medium(Box::new(NarrowEntry::new(hop)));
    let inside = network.gate(entry, NarrowEntry::LINK);
    network.connect(inside, link);
    network.gate(entry, NarrowEntry::OUTSIDE)
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
