//! Hops whose links belong to one relay only.

use core::net::IpAddr;

use network::impairment::Outage;
use network::middlebox::NarrowEntry;
use network::{Link, LossModel, Network, Node, Trace, VertexId};
use units::{Duration, Instant, Rate};

use super::RunError;
use super::capacity::Capacity;
use super::hop::Hop;
use super::inputs::{Traces, bottleneck_traces, rate_traces};
use crate::run::link_nodes::{self, duplicate, impair, loss, of_one_way, queue};
use crate::scenario::{self, Deed, Impairments, LinkRate, Middlebox, Narrow, Scenario, TextOr, value_of};

/// The cellular links of relay `index`.
pub(super) fn cellular(network: &mut Network, scenario: &Scenario, index: usize) -> Result<Hop, RunError> {
    hop(network, scenario, index, scenario::Hop::Cellular)
}

/// The Wi-Fi links of relay `index`.
pub(super) fn wifi(network: &mut Network, scenario: &Scenario, index: usize) -> Result<Hop, RunError> {
    hop(network, scenario, index, scenario::Hop::Wifi)
}

fn hop(network: &mut Network, scenario: &Scenario, index: usize, hop: scenario::Hop) -> Result<Hop, RunError> {
    let traces = rate_traces(scenario, index, hop)?;
    let leaves = scenario.relays[index].leaves;
    // The scenario's check requires a link where there is no medium; without either, the hop passes nothing.
    let nothing = || Link::new(Rate::ZERO, Duration::ZERO);
    let link = scenario.relays[index].link(hop);
    let hop = match link {
        Some(link) => both_ways(network, link, traces, scenario.addresses().source),
        None => Hop::links(network.add_link(nothing()), network.add_link(nothing())),
    };
    Ok(match leaves {
        Some(leaves) => until(network, hop, Instant::ZERO + leaves.0),
        None => hop,
    })
}

/// The link that all paths share, between the source and the core.
pub(super) fn bottleneck(network: &mut Network, scenario: &Scenario, link: &scenario::Link) -> Result<Hop, RunError> {
    Ok(both_ways(network, link, bottleneck_traces(scenario)?, scenario.addresses().source))
}

fn both_ways(network: &mut Network, link: &scenario::Link, traces: Traces, source: IpAddr) -> Hop {
    let down_capacity = Some(Capacity::new(&link.rate, traces.down.clone(), &link.outages));
    let (down, up) = (network.add_link(downlink(link, traces.down)), network.add_link(uplink(link, traces.up)));
    let (narrow_down, narrow_up) = (link.narrow_down(), link.narrow_up());
    let down_in = before(network, &link.impairments(), narrow_down, down);
    let up_in = before(network, &link.uplink.impairments(), narrow_up, up);
    let (narrow_down, narrow_up) = (narrow_down.is_some(), narrow_up.is_some());
    let mut behind = impair(network, &link.impairments(), &link.outages);
    let mut behind_up = impair(network, &link.uplink.impairments(), &link.outages);
    let middleboxes = || link.middleboxes.iter().filter_map(Middlebox::deed);
    for deed in middleboxes() {
        let one_way = match deed {
            Deed::Overwrite(overwrite) => {
                Some(Box::new(link_nodes::overwrite(overwrite, Some(source))) as Box<dyn Node>)
            }
            other => of_one_way(other),
        };
        behind.extend(one_way.map(|node| network.add_node(node)));
    }
    // Packets in the other direction pass them in the reverse order.
    let deeds: Vec<Deed<'_>> = middleboxes().collect();
    behind_up.splice(0..0, deeds.into_iter().rev().filter_map(of_one_way).map(|node| network.add_node(node)));
    let [down_out, up_out] = [(down, &behind), (up, &behind_up)].map(|(link, behind)| {
        behind.iter().fold(link, |before, node| {
            network.connect(before, *node);
            *node
        })
    });
    Hop {
        down_in,
        up_in,
        down_between: behind,
        down_out,
        down_capacity,
        up_out,
        narrow_down,
        narrow_up,
        ..Hop::links(down, up)
    }
}

/// Adds the elements before `link`; returns where packets enter.
fn before(network: &mut Network, impairments: &Impairments, narrow: Option<Narrow>, link: VertexId) -> VertexId {
    let duplicate = duplicate(network, impairments);
    duplicate.into_iter().for_each(|node| network.connect(node, link));
    let entry = duplicate.unwrap_or(link);
    narrow.map_or(entry, |narrow| add_entry(network, narrow, entry))
}

/// Adds the element that checks packet sizes before `link`; returns where packets enter and where the answers to too
/// large ones leave.
fn add_entry(network: &mut Network, narrow: Narrow, link: VertexId) -> VertexId {
    let entry = network.add_medium(Box::new(NarrowEntry::new(link_nodes::narrow(narrow))));
    let inside = network.gate(entry, NarrowEntry::LINK);
    network.connect(inside, link);
    network.gate(entry, NarrowEntry::OUTSIDE)
}

/// Ends the hop's traffic at `end`.
fn until(network: &mut Network, hop: Hop, end: Instant) -> Hop {
    let mut cut = |before| {
        let node = network.add_node(Box::new(Outage::new([end..Instant::FAR_FUTURE])));
        network.connect(before, node);
        node
    };
    let (down_out, up_out) = (cut(hop.down_out), cut(hop.up_out));
    let mut down_between = hop.down_between;
    down_between.push(hop.down_out);
    let down_capacity = hop.down_capacity.map(|capacity| capacity.until(end));
    Hop { down_between, down_out, down_capacity, up_out, ..hop }
}

fn downlink(link: &scenario::Link, trace: Option<Trace>) -> Link {
    one_way(&link.rate, trace, value_of(&link.delay)).queue(queue(link.queue)).loss(loss(&link.loss))
}

fn uplink(link: &scenario::Link, trace: Option<Trace>) -> Link {
    let up = &link.uplink;
    let model = one_way(&up.rate, trace, value_of(&link.delay));
    model.queue(queue(up.queue)).loss(LossModel::uniform(up.loss.value()))
}

fn one_way(rate: &LinkRate, trace: Option<Trace>, delay: Duration) -> Link {
    match (rate, trace) {
        (_, Some(trace)) => Link::traced(trace, delay),
        (TextOr::Text(rate), None) => Link::new(*rate, delay),
        // The scenario's check requires a trace or a mean: without either, the link passes nothing.
        (TextOr::Table(_), None) => Link::new(Rate::ZERO, delay),
    }
}
