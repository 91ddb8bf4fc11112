//! The engines of a scenario's hosts.

use core::net::IpAddr;

use cooperation::agent::Role;
use simulator::EndpointHost;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::Prng;

use crate::scenario::{RelayMode, Scenario};

/// A host of a run.
pub(super) type LabHost = EndpointHost<Role>;

/// Where relays and source answer to the destination: a port that capture tools take for no protocol.
pub(super) const CONTROL_PORT: u16 = 40_001;

/// Subflows that a scheduler can mark.
const SUBFLOWS_MAX: usize = 64;

/// A host whose engine draws its randomness from the scenario's seed and its own name.
pub(super) fn host(scenario: &Scenario, name: &str, addresses: &[IpAddr], role: Role) -> LabHost {
    let seed = Prng::fork(scenario.seed, name).below(u64::MAX);
    let local = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    let config = EndpointConfig { local_addresses: local, ..EndpointConfig::default() };
    LabHost::with_agent(Endpoint::with_seed(config, seed), role)
}

/// Settings of the connection. While one set of relays takes over from another, both have subflows.
pub(super) fn config(scenario: &Scenario, relays: usize) -> ConnectionConfig {
    // Where relays splice subflows, the first is one more.
    let relays = relays + usize::from(scenario.cooperation.relays == RelayMode::FastAck);
    if !scenario.cooperation.selection.method.steers() {
        return scenario.connection.to_config(relays);
    }
    let config = scenario.connection.to_config((2 * relays).min(SUBFLOWS_MAX));
    ConnectionConfig { path_manager: "manual".into(), ..config }
}
