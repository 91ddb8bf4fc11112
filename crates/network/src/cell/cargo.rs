//! The content of a cell's queues: a packet, or a source's datagram, which becomes a packet when it leaves.

use super::wire::Wire;
use crate::{DropCause, Gate, MediumOutput, Packet};

/// A packet, or a datagram that becomes one. Datagrams in a queue lie in one piece of memory, and no packet is made for
/// those that are dropped.
#[derive(Debug)]
pub(crate) struct Cargo {
    wire_len: u32,
    load: Load,
}

#[derive(Debug)]
enum Load {
    Packet(Packet),
    Datagram(FedDatagram),
}

/// A datagram from a feeder of the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FedDatagram {
    pub feeder: u32,
    pub payload_len: u16,
}

impl From<Packet> for Cargo {
    fn from(packet: Packet) -> Self {
        Self { wire_len: packet.wire_len(), load: Load::Packet(packet) }
    }
}

impl Cargo {
    /// Creates cargo from a datagram of `wire_len` octets on the wire.
    pub(crate) fn fed(datagram: FedDatagram, wire_len: u32) -> Self {
        Self { wire_len, load: Load::Datagram(datagram) }
    }

    /// Octets on the wire.
    #[inline]
    pub(crate) fn wire_len(&self) -> u32 {
        self.wire_len
    }

    /// Returns the packet, or the datagram if it is not a packet yet.
    #[inline]
    pub(crate) fn packet(&self) -> Result<&Packet, FedDatagram> {
        match &self.load {
            Load::Packet(packet) => Ok(packet),
            Load::Datagram(datagram) => Err(*datagram),
        }
    }

    /// Marks congestion experienced if the packet is ECN-capable; returns whether it did.
    pub(crate) fn mark_congestion(&mut self) -> bool {
        match &mut self.load {
            Load::Packet(packet) => packet.mark_congestion(),
            Load::Datagram(_) => false,
        }
    }

    /// Drops it.
    pub(crate) fn discard(self, gate: Gate, cause: DropCause, out: &mut MediumOutput) {
        match self.load {
            Load::Packet(packet) => out.discard(gate, packet, cause),
            Load::Datagram(_) => out.discard_unmade(gate, self.wire_len, cause),
        }
    }

    /// Passes it on at `gate`. Datagrams need the `wire` that they came from.
    #[inline]
    pub(crate) fn forward(self, gate: Gate, wire: Option<&Wire>, out: &mut MediumOutput) {
        let packet = match self.load {
            Load::Packet(packet) => packet,
            Load::Datagram(datagram) => {
                let Some(wire) = wire else { return };
                out.pool.datagram(wire.datagram(datagram))
            }
        };
        out.forward(gate, packet);
    }
}
