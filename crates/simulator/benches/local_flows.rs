//! Cost of a packet on hosts with many applications: TCP or UDP flows that share 10 Mbit/s.
//!
//! `cargo bench -p simulator --bench local_flows [-- FLOWS [udp]]`; without numbers, a table.

use core::net::SocketAddr;
use std::time::Instant as WallClock;

use network::{Link, Queue, TwoHosts, Wired};
use simulator::traffic::{DatagramSizes, Demand, PacedSource, TcpFlow, TcpSink, UdpFlow, UdpSink, UdpSource};
use simulator::{EndpointHost, Simulation};
use transport::congestion::ControllerSpec;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};

const TOTAL_BPS: u64 = 10_000_000;
const PACKET_BYTES: u64 = 1400;
const SECONDS: u64 = 100;

fn main() {
    let flows = std::env::args().find_map(|argument| argument.parse().ok());
    let udp_only = std::env::args().any(|argument| argument == "udp");
    println!("{:<8} {:>6} {:>10} {:>12}", "flows of", "count", "packets", "ns/packet");
    let counts = flows.map_or(vec![1, 3, 10, 30, 100], |flows| vec![flows]);
    for udp in [false, true].into_iter().filter(|udp| *udp || !udp_only) {
        counts.iter().for_each(|flows| measure(*flows, udp));
    }
}

fn measure(flows: u64, udp: bool) {
    let link = Link::new(Rate::from_mbps(20), Duration::from_millis(10)).queue(Queue::packets(200));
    let mut simulation = simulation(TwoHosts::new(1).path(link).build(), flows, udp);
    #[expect(clippy::disallowed_methods, reason = "a bench measures the real clock")]
    let begin = WallClock::now();
    simulation.run_until(Instant::from_secs(SECONDS));
    let wall_ns = begin.elapsed().as_nanos() as f64;
    let packets = TOTAL_BPS * SECONDS / 8 / PACKET_BYTES;
    println!("{:<8} {flows:>6} {packets:>10} {:>12.0}", if udp { "UDP" } else { "TCP" }, wall_ns / packets as f64);
}

fn simulation(wired: Wired, flows: u64, udp: bool) -> Simulation<EndpointHost> {
    let Wired { network, client, server, paths } = wired;
    let host = |seed| EndpointHost::new(Endpoint::with_seed(EndpointConfig::default(), seed));
    let (mut sources, mut sinks) = (host(1), host(2));
    let congestion = ControllerSpec::named("newreno");
    let config = ConnectionConfig { mptcp: false, congestion, ..ConnectionConfig::default() };
    for (flow, port) in (0..flows).zip(1000..) {
        let (local, remote) = (SocketAddr::new(paths[0].client, port), SocketAddr::new(paths[0].server, port));
        let start = Instant::from_micros(flow * 997);
        let demand = Demand::constant(Rate::from_bps(TOTAL_BPS / flows), start);
        let stop = Instant::FAR_FUTURE;
        if udp {
            let sizes = DatagramSizes::Constant(PACKET_BYTES as u16);
            sources = sources.app(UdpSource::new(UdpFlow { local, remote, demand, sizes, stop }));
            sinks = sinks.app(UdpSink::new(remote));
        } else {
            let (config, demand, backlog_bytes) = (config.clone(), Some(demand), 64_000);
            let flow = TcpFlow { local, remote, config, demand, backlog_bytes, start, stop };
            sources = sources.app(PacedSource::new(flow));
            sinks = sinks.app(TcpSink::new(remote, ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }));
        }
    }
    let mut simulation = Simulation::new(network);
    simulation.attach(client, sources);
    simulation.attach(server, sinks);
    simulation
}
