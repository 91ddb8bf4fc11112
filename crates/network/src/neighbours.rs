//! The gate of a medium through which a packet leaves.

use core::net::IpAddr;

use crate::address_table::AddressTable;
use crate::{Gate, Packet};

/// The gate behind which each address is. A packet's destination decides its gate; if that is unknown, its source does.
///
/// The second rule serves a device with one address per neighbour (thesis 3.2.2: the destination's virtual addresses,
/// one registered by each relay): packets from such an address go to that neighbour.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    by_destination: AddressTable<Gate>,
    by_source: AddressTable<Gate>,
}

impl Neighbours {
    /// Creates a table without addresses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets to `address` leave at `gate`, which replaces any earlier gate.
    pub fn reach(&mut self, address: IpAddr, gate: Gate) {
        self.by_destination.insert(address, gate);
    }

    /// Packets from `address` to an unknown destination leave at `gate`.
    pub fn leave_from(&mut self, address: IpAddr, gate: Gate) {
        self.by_source.insert(address, gate);
    }

    /// Returns the gate at which `packet` leaves, if it is known.
    #[inline]
    pub fn gate_of(&self, packet: &Packet) -> Option<Gate> {
        let to = packet.destination().and_then(|address| self.by_destination.get(address));
        to.or_else(|| self.by_source.get(packet.source()?))
    }
}
