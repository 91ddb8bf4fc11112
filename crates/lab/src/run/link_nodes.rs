//! Turns descriptions of links in files into network nodes: the same for scenarios and for emulated networks.

use core::net::IpAddr;

use bytes::Bytes;
use network::impairment::{self, Corrupt, Detection, Duplicate};
use network::middlebox::{self, Edit, EditStream, NarrowHop, OptionKinds, StripOn, StripOptions};
use network::{LossModel, Network, Node, Queue, VertexId};
use units::text::Text;
use units::{ByteCount, Instant};

use crate::scenario::{self, Burst, Deed, Impairments, Loss, Merge, Narrow, OptionKind, Outage, Overwrite, ShiftDsn};
use crate::scenario::{Split, Strip, StripFrom, value_of};

/// The capacity of a queue.
pub fn queue(queue: scenario::Queue) -> Queue {
    match queue {
        scenario::Queue::Packets(packets) => Queue::packets(packets.into()),
        scenario::Queue::Bytes(ByteCount(bytes)) => Queue::bytes(bytes),
    }
}

/// The loss process; if the scenario draws it, the one that was drawn.
pub fn loss(loss: &Loss) -> LossModel {
    match loss {
        Loss::Text(probability) => LossModel::uniform(probability.value()),
        Loss::Table(Burst { mean, burst_packets: None }) => LossModel::uniform(value_of(mean).value()),
        Loss::Table(Burst { mean, burst_packets: Some(packets) }) => {
            LossModel::gilbert(value_of(mean).value(), *packets)
        }
    }
}

/// The check of packet sizes before a narrow link.
pub fn narrow(narrow: Narrow) -> NarrowHop {
    let hop = NarrowHop::new(narrow.mtu_bytes());
    if narrow.silent { hop.silent() } else { hop }
}

/// Adds the element that duplicates packets, if there is one. It stands before the link, where copies queue like all
/// packets; after the link, it would send more than the link's rate.
pub fn duplicate(network: &mut Network, impairments: &Impairments) -> Option<VertexId> {
    let Text(probability) = impairments.duplicate?;
    Some(network.add_node(Box::new(Duplicate::new(probability.value()))))
}

/// Adds the elements that impair one direction after the link, in order, still unconnected. Outages come first: what
/// they drop there is what the link sends in them. Packets held back until an outage are dropped as well.
pub fn impair(network: &mut Network, impairments: &Impairments, outages: &[Outage]) -> Vec<VertexId> {
    let mut chain = Vec::new();
    let mut add = |node: Box<dyn Node>| chain.push(network.add_node(node));
    let span = |outage: &Outage| Instant::ZERO + outage.from..Instant::ZERO + outage.until;
    let outage = (!outages.is_empty()).then(|| impairment::Outage::new(outages.iter().map(span)));
    if let Some(outage) = &outage {
        add(Box::new(outage.clone()));
    }
    if let Some(reorder) = impairments.reorder {
        add(Box::new(impairment::Reorder::new(reorder.probability.value(), reorder.delay)));
        if let Some(outage) = outage {
            add(Box::new(outage));
        }
    }
    if let Some(Text(probability)) = impairments.corrupt {
        add(Box::new(Corrupt::new(probability.value(), Detection::Detected)));
    }
    chain
}

/// Creates the node of a middlebox that treats each direction separately; `None` for others.
pub fn of_one_way(deed: Deed<'_>) -> Option<Box<dyn Node>> {
    match deed {
        Deed::Strip(strip) => strip_options(strip).map(|node| Box::new(node) as Box<dyn Node>),
        Deed::Split(Split { payload }) => Some(Box::new(middlebox::Split::new(payload.0 as usize))),
        Deed::Merge(Merge { payload, hold }) => Some(Box::new(middlebox::Merge::new(payload.0 as usize, *hold))),
        Deed::ShiftDsn(ShiftDsn { by, after }) => Some(Box::new(middlebox::ShiftDsn::new(*by).after(*after))),
        Deed::Overwrite(_) | Deed::Narrow(_) | Deed::Nat(_) => None,
    }
}

/// Creates the element that overwrites octets in the streams of `sender`, or of all who send in this direction.
pub fn overwrite(overwrite: &Overwrite, sender: Option<IpAddr>) -> EditStream {
    let (at, octets) = (overwrite.at, Bytes::from(overwrite.text.clone()));
    match sender {
        Some(sender) => EditStream::new(sender, Edit::Overwrite { at, octets }),
        None => EditStream::overwriting(at, octets),
    }
}

/// Returns `None` if there is nothing to strip.
fn strip_options(strip: &Strip) -> Option<StripOptions> {
    let kinds = strip.options.iter().copied().map(kind).reduce(OptionKinds::and)?;
    let on = match strip.on {
        StripFrom::All => StripOn::All,
        StripFrom::Syn => StripOn::Syn,
        StripFrom::SynAck => StripOn::SynAck,
    };
    Some(StripOptions::new(kinds, on).after(strip.after))
}

fn kind(option: OptionKind) -> OptionKinds {
    match option {
        OptionKind::Mptcp => OptionKinds::MPTCP,
        OptionKind::Mss => OptionKinds::MSS,
        OptionKind::WindowScale => OptionKinds::WINDOW_SCALE,
        OptionKind::Sack => OptionKinds::SACK,
        OptionKind::Timestamps => OptionKinds::TIMESTAMPS,
    }
}
