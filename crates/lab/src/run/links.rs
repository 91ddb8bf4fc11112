//! Hops that are links of a relay's own.

use network::{Link, LossModel, Network, Queue, Trace};
use units::{ByteCount, Rate};

use super::topology::Hop;
use super::{RunError, rate_trace};
use crate::scenario::{self, Loss, Scenario, TextOr};

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
    // The scenario's check asks for a link where there is no medium; without one nothing gets through.
    let nothing = || Link::new(Rate::ZERO, units::Duration::ZERO);
    let link = scenario.relays[index].link(hop);
    let (down, up) = link.map_or_else(|| (nothing(), nothing()), |link| (downlink(link, trace), uplink(link)));
    let (down, up) = (network.add_link(down), network.add_link(up));
    Ok(Hop::links(down, up))
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

pub(super) fn queue(queue: scenario::Queue) -> Queue {
    match queue {
        scenario::Queue::Packets(packets) => Queue::packets(packets.into()),
        scenario::Queue::Bytes(ByteCount(bytes)) => Queue::bytes(bytes),
    }
}
