//! Two hosts joined by paths, ready to run.

use network::topology::Wired;
use network::{PathEnds, TwoHosts};
use transport::path_manager::LocalAddress;
use transport::{Endpoint, EndpointConfig};

use crate::{EndpointHost, HostId, Simulation};

/// The client of [`two_hosts`].
pub const CLIENT: HostId = HostId(0);
/// The server of [`two_hosts`].
pub const SERVER: HostId = HostId(1);

/// Puts an engine at each end of a topology, as [`CLIENT`] and [`SERVER`], which know all their addresses.
///
/// `equip` gets each host's identifier and the paths, and adds applications. The simulation checks every segment and
/// computes a fingerprint. `seed` seeds the engines; the network has its own seed in `topology`.
pub fn two_hosts(
    topology: TwoHosts,
    seed: u64,
    mut equip: impl FnMut((HostId, &[PathEnds]), EndpointHost) -> EndpointHost,
) -> (Simulation<EndpointHost>, Vec<PathEnds>) {
    let Wired { network, client, server, paths } = topology.build();
    let mut simulation = Simulation::new(network);
    for (id, port) in [(CLIENT, client), (SERVER, server)] {
        let host =
            EndpointHost::new(Endpoint::with_seed(endpoint_config(id, &paths), seed.wrapping_mul(2) + u64::from(id.0)));
        simulation.attach(port, equip((id, &paths), host));
    }
    simulation.check();
    simulation.take_fingerprint();
    (simulation, paths)
}

fn endpoint_config(id: HostId, paths: &[PathEnds]) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    for path in paths {
        let ip = if id == CLIENT { path.client } else { path.server };
        if config.local_addresses.iter().all(|known| known.ip != ip) {
            config.local_addresses.push(LocalAddress { ip, backup: false });
        }
    }
    config
}
