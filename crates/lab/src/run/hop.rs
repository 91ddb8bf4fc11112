//! One hop of a path: where packets enter and leave it, and how many it dropped.

use network::{Counters, DropCause, Network, VertexId};

use super::capacity::Capacity;
use crate::measure::ElementCounters;

/// The vertices of one hop. For a link, they are the same; for a medium, they are its gates.
#[derive(Clone)]
pub(super) struct Hop {
    /// Where packets towards the destination enter.
    pub down_in: VertexId,
    /// For a link, the link itself; otherwise the same as `down_in`.
    pub down_link: VertexId,
    /// Elements that impair these packets between there and `down_out`.
    pub down_between: Vec<VertexId>,
    /// Where packets towards the destination leave.
    pub down_out: VertexId,
    /// What could pass towards the destination, where it is known in advance: for a link.
    pub down_capacity: Option<Capacity>,
    /// Where packets towards the source enter.
    pub up_in: VertexId,
    /// Where packets towards the source leave.
    pub up_out: VertexId,
    /// Whether packets towards the destination may be too large, and are then answered where they enter.
    pub narrow_down: bool,
    /// The same towards the source.
    pub narrow_up: bool,
    /// How to interpret the counters of these vertices.
    pub kind: HopKind,
}

/// Where to count packets towards the destination. The gate opposite the relays counts all relays. A relay's gate counts
/// both directions, except drops: a cell counts them where packets would have left, a channel where they entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HopKind {
    /// A link, and perhaps elements before and after it.
    Link,
    /// A medium on which the relay sends: counts what enters at its gate or is dropped there.
    Sender,
    /// A medium from which the relay receives: counts what leaves at its gate or is dropped for it.
    Receiver,
}

impl Hop {
    /// Creates a hop without any effect.
    pub fn none(network: &mut Network) -> Self {
        Self::links(network.add_router(), network.add_router())
    }

    /// Creates a hop with one link per direction.
    pub fn links(down: VertexId, up: VertexId) -> Self {
        Self {
            down_in: down,
            down_link: down,
            down_between: Vec::new(),
            down_out: down,
            down_capacity: None,
            up_in: up,
            up_out: up,
            narrow_down: false,
            narrow_up: false,
            kind: HopKind::Link,
        }
    }

    /// Creates a hop over a medium from its gates and their neighbours.
    pub fn medium(down: [VertexId; 2], up: [VertexId; 2], kind: HopKind) -> Self {
        let ([down_in, down_out], [up_in, up_out]) = (down, up);
        Self { down_in, down_out, up_in, up_out, kind, ..Self::links(down_in, up_in) }
    }

    /// Sends answers to packets that are too large for the hop back to their senders: `source` and `destination` are
    /// its neighbours on either side.
    pub fn send_answers(&self, network: &mut Network, source: VertexId, destination: VertexId) {
        for (narrow, entry, back) in
            [(self.narrow_down, self.down_in, source), (self.narrow_up, self.up_in, destination)]
        {
            if narrow {
                network.connect(entry, back);
            }
        }
    }

    /// Effect of each element of the hop on packets towards the destination, in order. Elements are separate because
    /// more packets may leave an element than entered it, for example if it splits them.
    pub fn towards_destination(&self, network: &Network) -> Vec<ElementCounters> {
        let [first, last] = [self.down_in, self.down_out].map(|vertex| network.counters(vertex));
        match self.kind {
            HopKind::Sender => vec![element(first, first.originals_entered())],
            HopKind::Receiver => vec![element(last, last.originals_left() + last.lost_total())],
            HopKind::Link => {
                let counters = self.down_elements().into_iter().map(|vertex| network.counters(vertex));
                counters.map(|counters| element(counters, counters.originals_entered())).collect()
            }
        }
    }
}

impl Hop {
    /// What the hop's link sent towards the destination so far, lost packets included, if it is one of links; without
    /// what arrived in outages, which an element directly behind the link drops. Other elements, which may hold back,
    /// split, merge or drop packets, change nothing.
    pub fn sent_bytes(&self, network: &Network) -> u64 {
        let link = network.counters(self.down_link);
        let in_outages =
            self.down_between.first().map_or(0, |vertex| network.counters(*vertex).dropped(DropCause::Outage).bytes);
        (link.left.bytes + link.dropped(DropCause::Loss).bytes).saturating_sub(in_outages)
    }

    /// The vertices that packets towards the destination pass, in order, each once.
    fn down_elements(&self) -> Vec<VertexId> {
        let mut vertices = vec![self.down_in, self.down_link];
        vertices.extend_from_slice(&self.down_between);
        vertices.push(self.down_out);
        vertices.dedup();
        vertices
    }
}

/// Evaluates `counters` of an element that `entered` packets have entered; copies made on the path do not count.
fn element(counters: &Counters, entered: u64) -> ElementCounters {
    ElementCounters { entered, lost: counters.lost_total(), queue_drops: counters.lost(DropCause::QueueFull) }
}
