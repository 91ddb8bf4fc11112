//! One hop of a path: where packets enter and leave it, and what was dropped on it.

use network::{Amount, Counters, DropCause, Network, VertexId};

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

    /// What entered towards the destination, and what of it was dropped.
    pub fn towards_destination(&self, network: &Network) -> (Amount, Drops) {
        let [first, last] = [self.down_in, self.down_out].map(|vertex| network.counters(vertex));
        let drops = |counters: &Counters| Drops {
            lost: counters.lost_total(),
            queue_full: counters.lost(DropCause::QueueFull),
        };
        match self.kind {
            HopKind::Sender => (first.entered, drops(first)),
            HopKind::Receiver => (last.left + last.dropped_total(), drops(last)),
            HopKind::Link => {
                let mut vertices = vec![self.down_in, self.down_link];
                vertices.extend_from_slice(&self.down_between);
                vertices.push(self.down_out);
                vertices.dedup();
                let all = vertices.into_iter().map(|vertex| drops(network.counters(vertex)));
                (first.entered, all.fold(Drops { lost: 0, queue_full: 0 }, Drops::and))
            }
        }
    }
}

/// Packets that did not get through; copies that the path had made of others are none.
pub(super) struct Drops {
    /// For any cause.
    pub lost: u64,
    /// Of them, for want of room in a queue.
    pub queue_full: u64,
}

impl Drops {
    fn and(self, other: Self) -> Self {
        Self { lost: self.lost + other.lost, queue_full: self.queue_full + other.queue_full }
    }
}
