//! Local traffic of the relays.

use network::PortId;
use simulator::{EndpointHost, HostId, Simulation};

use super::topology::LocalPorts;
use crate::scenario::{Addresses, Scenario};

/// The hosts between which a relay's own traffic goes.
#[derive(Clone, Copy)]
pub(super) struct LocalHosts {
    pub relay: HostId,
    pub correspondent: HostId,
}

pub(super) fn attach(
    simulation: &mut Simulation<EndpointHost>,
    scenario: &Scenario,
    index: usize,
    ports: LocalPorts,
    addresses: &Addresses,
) -> LocalHosts {
    let name = &scenario.relays[index].name;
    let mut attach = |port: PortId, role: &str, address| {
        simulation.attach(port, super::stage::host(scenario, &format!("{role} {name}"), &[address]))
    };
    LocalHosts {
        relay: attach(ports.relay, "relay", addresses.relays[index]),
        correspondent: attach(ports.correspondent, "correspondent of", addresses.correspondents[index]),
    }
}
