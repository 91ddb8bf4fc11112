//! BBR with pacing: it reaches the rate of the path despite losses, and keeps the queue short.

use core::net::SocketAddr;

use network::{Link, LossModel, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, SERVER, Source, two_hosts};
use transport::ConnectionConfig;
use units::{Duration, Instant, Rate};

/// Runs 30 s over paths of 10 Mbit/s and 40 ms with a queue of 400 packets (480 ms). Returns the rate in Mbit/s, and
/// the final smoothed round-trip times in ms.
fn run(controller: &str, paths: usize, loss: f64) -> (f64, Vec<f64>) {
    let link = || Link::new(Rate::from_mbps(10), Duration::from_millis(20)).queue(Queue::packets(400));
    let topology = (0..paths).fold(TwoHosts::new(2).one_server_address(), |topology, _| {
        topology.path(link().loss(LossModel::uniform(loss)))
    });
    let config = ConnectionConfig { congestion: controller.parse().unwrap(), ..ConnectionConfig::default() };
    let (mut simulation, _) = two_hosts(topology, 4, |(id, paths), host| {
        let server = SocketAddr::new(paths[0].server, 80);
        if id == SERVER {
            host.app(Transfer::listen(server, config.clone()).sending(Source::pattern(1 << 40)))
        } else {
            host.app(Transfer::connect(SocketAddr::new(paths[0].client, 0), server, config.clone()))
        }
    });
    simulation.run_until(Instant::from_secs(30));
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let connection = simulation.host(SERVER).reports()[0].connections[0];
    let subflows = simulation.host(SERVER).endpoint.stats(connection).unwrap().subflows;
    let rtts = subflows.iter().map(|subflow| subflow.srtt.unwrap().as_secs_f64() * 1000.0).collect();
    (simulation.host(CLIENT).reports()[0].received_bytes as f64 * 8.0 / 30.0 / 1e6, rtts)
}

#[test]
fn a_deep_queue_stays_short() {
    // Payload at 10 Mbit/s is 9.5 Mbit/s; NewReno gets that too, and fills the queue.
    let (rate, rtts) = run("bbr", 1, 0.0);
    assert!(rate > 9.2 && rtts[0] < 60.0, "{rate} Mbit/s, {rtts:?} ms");
    let (rate, rtts) = run("newreno", 1, 0.0);
    assert!(rate > 9.2 && rtts[0] > 200.0, "{rate} Mbit/s, {rtts:?} ms");
}

#[test]
fn random_losses_cost_little() {
    // NewReno falls to 2.6 Mbit/s.
    let (rate, _) = run("bbr", 1, 0.01);
    assert!(rate > 8.5, "{rate} Mbit/s");
}

#[test]
fn subflows_do_not_disturb_each_other() {
    let (rate, rtts) = run("bbr", 2, 0.0);
    assert!(rate > 18.4 && rtts.iter().all(|rtt| *rtt < 60.0), "{rate} Mbit/s, {rtts:?} ms");
}
