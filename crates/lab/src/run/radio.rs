//! The hops that all relays share: the cell and the Wi-Fi channel.

use network::{Gate, MediumId, Network, PortId, VertexId};

use super::RunError;
use super::topology::Hop;
use crate::scenario::{Addresses, Scenario};

/// A medium as one of the two hops of every relay.
pub(super) struct SharedHop {
    pub id: MediumId,
    /// Whether the relays' gates are where packets towards the destination leave: so in a cell, not in a WLAN.
    relays_receive: bool,
}

impl SharedHop {
    /// The vertices of the hop of relay `index`, whose gate follows that of the other end.
    pub fn hop(&self, network: &Network, index: usize) -> Hop {
        let hub = network.gate(self.id, Gate(0));
        let relay = network.gate(self.id, Gate(index as u16 + 1));
        match self.relays_receive {
            true => Hop { down_in: hub, down_out: relay, up_in: relay, up_out: hub },
            false => Hop { down_in: relay, down_out: hub, up_in: hub, up_out: relay },
        }
    }
}

pub(super) fn add_cell(
    _: &mut Network,
    scenario: &Scenario,
    _: &Addresses,
    _: VertexId,
) -> Result<Option<SharedHop>, RunError> {
    match scenario.cell {
        None => Ok(None),
        Some(_) => Err(RunError::Unsupported { field: "cell", problem: "cannot be run yet".into(), remedy: "" }),
    }
}

pub(super) fn add_wlan(
    _: &mut Network,
    scenario: &Scenario,
    _: &Addresses,
    _: PortId,
) -> Result<Option<SharedHop>, RunError> {
    match scenario.wlan {
        None => Ok(None),
        Some(_) => Err(RunError::Unsupported { field: "wlan", problem: "cannot be run yet".into(), remedy: "" }),
    }
}
