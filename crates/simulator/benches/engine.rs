//! Simulated data packets per wall-clock second with the engine at both ends: bulk transfer over two 100 Mbit/s paths.
//!
//! `cargo bench -p simulator --bench engine [-- SECONDS] [NAME]`: all cases, or those whose name contains NAME.

use core::net::SocketAddr;
use std::time::Instant as WallClock;

use network::{Link, PathEnds, Queue, TwoHosts, Wired};
use simulator::app::Transfer;
use simulator::{EndpointHost, HostId, Simulation, Source};
use transport::congestion::ControllerSpec;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    println!("{:<24} {:>12} {:>10} {:>12} {:>10}", "scenario", "data packets", "wall s", "packets/s", "Mbit/s");
    let lia = ConnectionConfig::default();
    measure("2 paths, lia", 2, &lia, false, seconds);
    let cubic = ConnectionConfig { congestion: ControllerSpec::named("cubic"), ..lia.clone() };
    measure("2 paths, cubic", 2, &cubic, false, seconds);
    measure("2 paths, lia, checked", 2, &lia, true, seconds);
    let plain = ConnectionConfig { mptcp: false, ..cubic };
    measure("1 path, plain TCP", 1, &plain, false, seconds);
}

fn measure(name: &str, paths: usize, config: &ConnectionConfig, checked: bool, seconds: u64) {
    let is_wanted =
        |argument: String| argument.parse::<u64>().is_ok() || argument == "--bench" || name.contains(&argument);
    if !std::env::args().skip(1).all(is_wanted) {
        return;
    }
    let link = Link::new(Rate::from_mbps(100), Duration::from_millis(10)).queue(Queue::packets(200));
    let topology = (0..paths).fold(TwoHosts::new(1), |topology, _| topology.path(link.clone()));
    let mut simulation = simulation(topology.build(), config);
    if checked {
        simulation.check();
    }
    #[expect(clippy::disallowed_methods, reason = "a bench measures the real clock")]
    let begin = WallClock::now();
    simulation.run_until(Instant::from_secs(seconds));
    let wall_s = begin.elapsed().as_secs_f64();
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let receiver = &simulation.host(CLIENT).reports()[0];
    let stats = simulation.host(CLIENT).endpoint.stats(receiver.connections[0]).unwrap_or_default();
    let packets: u64 = stats.subflows.iter().map(|subflow| subflow.received_segments).sum();
    let mbps = receiver.received_bytes as f64 * 8e-6 / seconds as f64;
    println!("{name:<24} {packets:>12} {wall_s:>10.3} {:>12.0} {mbps:>10.1}", packets as f64 / wall_s);
}

fn simulation(wired: Wired, config: &ConnectionConfig) -> Simulation<EndpointHost> {
    let Wired { network, client, server, paths } = wired;
    let remote = SocketAddr::new(paths[0].server, 80);
    let local = SocketAddr::new(paths[0].client, 0);
    let mut simulation = Simulation::new(network);
    let receiver = Transfer::connect(local, remote, config.clone()).expecting(Source::endless());
    simulation.attach(client, host(CLIENT, &paths).app(receiver));
    let sender = Transfer::listen(remote, config.clone()).sending(Source::endless());
    simulation.attach(server, host(SERVER, &paths).app(sender));
    simulation
}

fn host(id: HostId, paths: &[PathEnds]) -> EndpointHost {
    // With one address at the server, there is one subflow per path.
    let addresses = paths.iter().take(if id == CLIENT { paths.len() } else { 1 });
    let ip = |path: &PathEnds| if id == CLIENT { path.client } else { path.server };
    let local_addresses = addresses.map(|path| LocalAddress { ip: ip(path), backup: false }).collect();
    let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
    EndpointHost::new(Endpoint::with_seed(config, u64::from(id.0)))
}
