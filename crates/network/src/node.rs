//! The contract of a network element.

use units::{Instant, Prng};

use crate::Packet;

/// A network element: packets in, packets out later.
///
/// The owner calls [`Self::process`] with every packet that arrives and, without one, at [`Self::next_wakeup`].
pub trait Node: Send {
    /// Takes `packet`, if any, and gives everything that is due by `now` to `out`. Time never moves back.
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output);

    /// Returns when [`Self::process`] must be called next if no packet arrives before.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Returns the packets inside the element now.
    fn held(&self) -> Amount {
        Amount::default()
    }

    /// Returns whether every octet that enters leaves or is dropped. Elements that rewrite or multiply packets return
    /// false.
    fn conserves(&self) -> bool {
        true
    }

    /// Gives the element its own randomness. The network calls this once, before any packet.
    fn seed(&mut self, prng: Prng) {
        let _ = prng;
    }
}

/// Collects the packets that a [`Node`] passes on, drops or absorbs. One output serves a whole network and keeps its
/// memory.
#[derive(Debug, Default)]
pub struct Output {
    pub(crate) forwarded: Vec<Packet>,
    pub(crate) dropped: Vec<(Packet, DropCause)>,
    pub(crate) absorbed: Vec<Packet>,
}

impl Output {
    /// Creates an empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes a packet on.
    #[inline]
    pub fn forward(&mut self, packet: Packet) {
        self.forwarded.push(packet);
    }

    /// Drops a packet; its memory is reused.
    pub fn discard(&mut self, packet: Packet, cause: DropCause) {
        self.dropped.push((packet, cause));
    }

    /// Takes back a packet whose content moved into another packet; its memory is reused.
    pub fn absorb(&mut self, packet: Packet) {
        self.absorbed.push(packet);
    }

    /// Takes all packets that were passed on, in order.
    pub fn take_forwarded(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.forwarded.drain(..)
    }

    /// Takes all packets that were dropped, each with its cause.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (Packet, DropCause)> + '_ {
        self.dropped.drain(..)
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// The packet was lost on the wire.
    Loss,
    /// The packet was damaged, and a checksum detected it.
    Corruption,
    /// The link was down.
    Outage,
    /// A filter matched the packet.
    Filtered,
    /// There is no route, or no translation, for the destination.
    NoRoute,
    /// The packet passed too many vertices: it was in a loop.
    HopLimit,
    /// The packet was larger than the next hop takes.
    TooBig,
}

impl DropCause {
    /// Number of causes.
    pub const COUNT: usize = 8;
}

/// Packets and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Octets from the IP header on.
    pub bytes: u64,
}

impl Amount {
    /// Counts one packet of `wire_len` octets.
    pub(crate) const fn one(wire_len: u32) -> Self {
        Self { packets: 1, bytes: wire_len as u64 }
    }

    /// Counts one more packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.wire_len());
    }
}

impl core::ops::Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Traffic through one vertex so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// All packets that entered.
    pub entered: Amount,
    /// All packets that left.
    pub left: Amount,
    /// Copies of other packets among those that entered, and among those that left.
    entered_copies: u64,
    left_copies: u64,
    dropped: [Amount; DropCause::COUNT],
    /// Copies of other packets among those that were dropped.
    dropped_copies: [u64; DropCause::COUNT],
}

impl Counters {
    /// Returns the amount dropped for one cause.
    pub fn dropped(&self, cause: DropCause) -> Amount {
        self.dropped[cause as usize]
    }

    /// Returns the amount dropped for all causes.
    pub fn dropped_total(&self) -> Amount {
        self.dropped.iter().fold(Amount::default(), |sum, amount| sum + *amount)
    }

    /// Returns the packets dropped for one cause, without copies that an element on the way made.
    pub fn lost(&self, cause: DropCause) -> u64 {
        self.dropped(cause).packets - self.dropped_copies[cause as usize]
    }

    /// Returns the packets dropped for all causes, without copies.
    pub fn lost_total(&self) -> u64 {
        self.dropped_total().packets - self.dropped_copies.iter().sum::<u64>()
    }

    /// Returns the packets that entered, without copies that an element on the way made.
    pub fn originals_entered(&self) -> u64 {
        self.entered.packets - self.entered_copies
    }

    /// Returns the packets that left, without copies.
    pub fn originals_left(&self) -> u64 {
        self.left.packets - self.left_copies
    }

    #[inline]
    pub(crate) fn enter(&mut self, packet: &Packet) {
        self.entered.add(packet);
        self.entered_copies += u64::from(packet.is_copy());
    }

    #[inline]
    pub(crate) fn leave(&mut self, packet: &Packet) {
        self.left.add(packet);
        self.left_copies += u64::from(packet.is_copy());
    }

    pub(crate) fn drop_packet(&mut self, packet: &Packet, cause: DropCause) {
        self.drop_one(packet.wire_len(), cause);
        self.dropped_copies[cause as usize] += u64::from(packet.is_copy());
    }

    pub(crate) fn drop_one(&mut self, wire_len: u32, cause: DropCause) {
        let dropped = &mut self.dropped[cause as usize];
        *dropped = *dropped + Amount::one(wire_len);
    }
}
