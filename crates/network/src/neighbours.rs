//! Which gate of a medium a packet leaves at.

use core::net::IpAddr;

use crate::address_table::AddressTable;
use crate::{Gate, Packet};

/// The gates behind which addresses are: by the packet's destination, else by its source.
///
/// The second rule serves a device with an address per neighbour (thesis 3.2.2: the destination's virtual addresses, one
/// registered by each relay): what it sends from such an address goes to that neighbour.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    by_destination: AddressTable<Gate>,
    by_source: AddressTable<Gate>,
}

impl Neighbours {
    /// No address is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets to `address` leave at `gate`; what was set before is forgotten.
    pub fn reach(&mut self, address: IpAddr, gate: Gate) {
        self.by_destination.insert(address, gate);
    }

    /// Packets from `address` to an unknown destination leave at `gate`.
    pub fn leave_from(&mut self, address: IpAddr, gate: Gate) {
        self.by_source.insert(address, gate);
    }

    /// Where `packet` leaves, if it is known.
    #[inline]
    pub fn gate_of(&self, packet: &Packet) -> Option<Gate> {
        let to = packet.destination().and_then(|address| self.by_destination.get(address));
        to.or_else(|| self.by_source.get(packet.source()?))
    }
}
