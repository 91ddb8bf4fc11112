//! One hop of a path: where packets enter and leave it, and what was dropped on it.

use network::{Amount, Counters, DropCause, Network, VertexId};

/// The vertices of one hop. Of a link they are the same; of a medium they are its gates.
#[derive(Clone, Copy)]
pub(super) struct Hop {
    /// Where packets towards the destination enter.
    pub down_in: VertexId,
    /// Where they leave.
    pub down_out: VertexId,
    /// Where packets towards the source enter.
    pub up_in: VertexId,
    /// Where they leave.
    pub up_out: VertexId,
    /// What the counters of these vertices tell.
    pub kind: HopKind,
}

/// Where to count what goes towards the destination. The gates of a medium count both directions, and those opposite to
/// the relays count all relays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HopKind {
    /// A link, and perhaps an element behind it.
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
        Self { down_in: down, down_out: down, up_in: up, up_out: up, kind: HopKind::Link }
    }

    /// What entered towards the destination, and what of it was dropped.
    pub fn towards_destination(self, network: &Network) -> (Amount, Drops) {
        let [first, last] = [self.down_in, self.down_out].map(|vertex| network.counters(vertex));
        let drops = |counters: &Counters| Drops {
            lost: counters.dropped_total().packets,
            queue_full: counters.dropped(DropCause::QueueFull).packets,
        };
        match self.kind {
            HopKind::Sender => (first.entered, drops(first)),
            HopKind::Receiver => (last.left + last.dropped_total(), drops(last)),
            HopKind::Link if self.down_in == self.down_out => (first.entered, drops(first)),
            HopKind::Link => {
                let (link, behind) = (drops(first), drops(last));
                let lost = link.lost + behind.lost;
                (first.entered, Drops { lost, queue_full: link.queue_full + behind.queue_full })
            }
        }
    }
}

/// Packets that did not get through.
pub(super) struct Drops {
    /// For any cause.
    pub lost: u64,
    /// Of them, for want of room in a queue.
    pub queue_full: u64,
}
