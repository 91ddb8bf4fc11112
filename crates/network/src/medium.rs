//! The contract of an element that several vertices share.

use core::any::Any;

use units::{Instant, Prng};
use wire::Segment;

use crate::packet::PacketPool;
use crate::{Amount, DropCause, Packet};

/// One of the vertices through which packets enter and leave a medium: a station of a shared channel, the core network's
/// side of a radio cell or one of its UEs. Counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gate(pub u16);

impl Gate {
    /// As an index of a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A network element with several gates, such as a radio cell or a shared channel. What enters at one gate leaves at
/// another, and what happens at one gate may depend on all others. Otherwise as a [`crate::Node`].
pub trait Medium: Any + Send {
    /// How many gates there are; never changes.
    fn gates(&self) -> u16;

    /// Takes the packet that entered at a gate, if any, and gives to `out` everything that is due by `now`. Time never
    /// moves back.
    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput);

    /// When [`Self::process`] must be called next, without a packet if none arrives before.
    fn next_wakeup(&self) -> Option<Instant>;

    /// What is inside now: what entered at any gate and has neither left nor been dropped. Whoever keeps packets, conserves
    /// them and forgets this is found by [`crate::Network::imbalances`].
    fn held(&self) -> Amount {
        Amount::default()
    }

    /// What it made itself so far, and that did not enter at any gate.
    fn made(&self) -> Amount {
        Amount::default()
    }

    /// Whether everything that enters leaves, is dropped, or is still inside. False for elements that end packets and make
    /// others: they must say so.
    fn conserves(&self) -> bool {
        true
    }

    /// Gives the element its own randomness; called once, before any packet.
    fn seed(&mut self, prng: Prng) {
        let _ = prng;
    }

    /// For measurements of the concrete type; see [`crate::Network::medium`].
    fn as_any(&self) -> &dyn Any;

    /// As [`Self::as_any`], for commands.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Where a [`Medium`] puts the packets it is done with.
#[derive(Debug, Default)]
pub struct MediumOutput {
    pub(crate) forwarded: Vec<(Gate, Packet)>,
    pub(crate) dropped: Vec<(Gate, Packet, DropCause)>,
    /// What was dropped before there was a packet: octets on the wire.
    pub(crate) never_made: Vec<(Gate, u32, DropCause)>,
    /// The network's, while the element runs: what ends packets and makes others neither allocates nor hoards.
    pub(crate) pool: PacketPool,
}

impl MediumOutput {
    /// An empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes a packet on; it leaves at `gate`.
    #[inline]
    pub fn forward(&mut self, gate: Gate, packet: Packet) {
        self.forwarded.push((gate, packet));
    }

    /// Drops a packet; the drop is counted at `gate`.
    pub fn discard(&mut self, gate: Gate, packet: Packet, cause: DropCause) {
        self.dropped.push((gate, packet, cause));
    }

    /// As [`Self::discard`], for a packet that the element would have had to make for that purpose; of `wire_len` octets.
    #[inline]
    pub fn discard_unmade(&mut self, gate: Gate, wire_len: u32, cause: DropCause) {
        self.never_made.push((gate, wire_len, cause));
    }

    /// A packet that holds `segment`.
    pub fn make(&mut self, segment: Segment) -> Packet {
        let fill = |place: &mut Segment| {
            *place = segment;
            true
        };
        self.pool.segment(fill).expect("it was filled")
    }

    /// Takes back a packet that ends here, and is not dropped; its memory is reused.
    pub fn absorb(&mut self, packet: Packet) {
        self.pool.recycle(packet);
    }

    /// Takes everything passed on, in order.
    pub fn take_forwarded(&mut self) -> impl Iterator<Item = (Gate, Packet)> + '_ {
        self.forwarded.drain(..)
    }

    /// Takes everything dropped.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (Gate, Packet, DropCause)> + '_ {
        self.dropped.drain(..)
    }
}
