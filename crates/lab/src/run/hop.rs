//! One hop of a path: where packets enter and leave it, and what was dropped on it.

use network::{Counters, DropCause, Network, VertexId};

use crate::measure::ElementCounters;

/// The vertices of one hop. Of a link they are the same; of a medium they are its gates.
#[derive(Clone)]
pub(super) struct Hop {
    /// Where packets towards the destination enter.
    pub down_in: VertexId,
    /// Of a link, the link itself; else where they enter.
    pub down_link: VertexId,
    /// What impairs them between there and where they leave.
    pub down_between: Vec<VertexId>,
    /// Where they leave.
    pub down_out: VertexId,
    /// Where packets towards the source enter.
    pub up_in: VertexId,
    /// Where they leave.
    pub up_out: VertexId,
    /// Whether packets that enter towards the destination may be too large, and answered where they enter.
    pub narrow_down: bool,
    /// The same towards the source.
    pub narrow_up: bool,
    /// What the counters of these vertices tell.
    pub kind: HopKind,
}

/// Where to count what goes towards the destination. The gates of a medium count both directions, and those opposite to
/// the relays count all relays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HopKind {
    /// A link, and perhaps elements before and behind it.
    Link,
    /// A medium on which the relay sends: what enters at its gate, or is dropped there.
    Sender,
    /// A medium from which the relay receives: what leaves at its gate, or is dropped for it.
    Receiver,
}

impl Hop {
    /// No hop at all.
    pub fn none(network: &mut Network) -> Self {
        Self::links(network.add_router(), network.add_router())
    }

    /// A link each way.
    pub fn links(down: VertexId, up: VertexId) -> Self {
        Self {
            down_in: down,
            down_link: down,
            down_between: Vec::new(),
            down_out: down,
            up_in: up,
            up_out: up,
            narrow_down: false,
            narrow_up: false,
            kind: HopKind::Link,
        }
    }

    /// A medium, whose gates and their neighbours these are.
    pub fn medium(down: [VertexId; 2], up: [VertexId; 2], kind: HopKind) -> Self {
        let ([down_in, down_out], [up_in, up_out]) = (down, up);
        Self { down_in, down_out, up_in, up_out, kind, ..Self::links(down_in, up_in) }
    }

    /// Sends answers to packets that are too large for the hop back to where those came from: `source` and `destination` are
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

    /// What each element of the hop did to packets towards the destination, in their order. One by one, since what leaves an element
    /// may be more packets than entered it, as behind what splits them.
    pub fn towards_destination(&self, network: &Network) -> Vec<ElementCounters> {
        let [first, last] = [self.down_in, self.down_out].map(|vertex| network.counters(vertex));
        match self.kind {
            HopKind::Sender => vec![element(first, first.originals_entered())],
            HopKind::Receiver => vec![element(last, last.originals_left() + last.lost_total())],
            HopKind::Link => {
                let mut vertices = vec![self.down_in, self.down_link];
                vertices.extend_from_slice(&self.down_between);
                vertices.push(self.down_out);
                vertices.dedup();
                let counters = vertices.into_iter().map(|vertex| network.counters(vertex));
                counters.map(|counters| element(counters, counters.originals_entered())).collect()
            }
        }
    }
}

/// What `counters` say of packets of which so many `entered`; copies that the path had made of others are none.
fn element(counters: &Counters, entered: u64) -> ElementCounters {
    ElementCounters { entered, lost: counters.lost_total(), queue_drops: counters.lost(DropCause::QueueFull) }
}
