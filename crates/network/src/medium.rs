//! The contract of an element that several vertices share.

use core::any::Any;

use units::{Instant, Prng};
use wire::Segment;

use crate::packet::PacketPool;
use crate::{Amount, DropCause, Packet};

/// A vertex through which packets enter and leave a medium: a station of a shared channel, or the core network's side
/// or a UE of a radio cell. Gates are counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gate(pub u16);

impl Gate {
    /// Returns the gate as an index into a list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A network element with several gates, such as a radio cell or a shared channel.
///
/// A packet that enters at one gate leaves at another, and events at one gate may depend on all others. Otherwise the
/// contract is that of [`crate::Node`].
pub trait Medium: Any + Send {
    /// Returns the number of gates, which never changes.
    fn gates(&self) -> u16;

    /// Takes the packet that entered at a gate, if any, and gives everything that is due by `now` to `out`. Time never
    /// moves back.
    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput);

    /// Returns when [`Self::process`] must be called next if no packet arrives before.
    fn next_wakeup(&self) -> Option<Instant>;

    /// Returns the packets inside the element now: those that entered at any gate and have neither left nor been
    /// dropped.
    ///
    /// If an element keeps packets and conserves them but does not override this, [`crate::Network::imbalances`]
    /// reports it.
    fn held(&self) -> Amount {
        Amount::default()
    }

    /// Returns the packets that the element has made itself so far; they did not enter at any gate.
    fn made(&self) -> Amount {
        Amount::default()
    }

    /// Returns whether everything that enters leaves, is dropped, or is still inside. An element that ends packets and
    /// makes others must override this and return false.
    fn conserves(&self) -> bool {
        true
    }

    /// Gives the element its own randomness. The network calls this once, before any packet.
    fn seed(&mut self, prng: Prng) {
        let _ = prng;
    }

    /// Gives access to the concrete type, for measurements; see [`crate::Network::medium`].
    fn as_any(&self) -> &dyn Any;

    /// Gives mutable access to the concrete type, for commands.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Collects the packets that a [`Medium`] passes on, drops or absorbs.
#[derive(Debug, Default)]
pub struct MediumOutput {
    pub(crate) forwarded: Vec<(Gate, Packet)>,
    pub(crate) dropped: Vec<(Gate, Packet, DropCause)>,
    /// Drops that happened before a packet was made: gate, octets on the wire, cause.
    pub(crate) never_made: Vec<(Gate, u32, DropCause)>,
    /// The network's pool while the element runs, so an element that ends packets and makes others neither allocates
    /// nor accumulates memory.
    pub(crate) pool: PacketPool,
}

impl MediumOutput {
    /// Creates an empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes on a packet, which leaves at `gate`.
    #[inline]
    pub fn forward(&mut self, gate: Gate, packet: Packet) {
        self.forwarded.push((gate, packet));
    }

    /// Drops a packet and counts the drop at `gate`.
    pub fn discard(&mut self, gate: Gate, packet: Packet, cause: DropCause) {
        self.dropped.push((gate, packet, cause));
    }

    /// Counts a drop of `wire_len` octets as [`Self::discard`] does, without making the packet first.
    #[inline]
    pub fn discard_unmade(&mut self, gate: Gate, wire_len: u32, cause: DropCause) {
        self.never_made.push((gate, wire_len, cause));
    }

    /// Makes a packet that holds `segment`.
    pub fn make(&mut self, segment: Segment) -> Packet {
        let fill = |place: &mut Segment| {
            *place = segment;
            true
        };
        self.pool.segment(fill).expect("it was filled")
    }

    /// Takes back a packet that ends here without being dropped; its memory is reused.
    pub fn absorb(&mut self, packet: Packet) {
        self.pool.recycle(packet);
    }

    /// Takes all packets that were passed on, in order.
    pub fn take_forwarded(&mut self) -> impl Iterator<Item = (Gate, Packet)> + '_ {
        self.forwarded.drain(..)
    }

    /// Takes all packets that were dropped, each with its gate and cause.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (Gate, Packet, DropCause)> + '_ {
        self.dropped.drain(..)
    }
}
