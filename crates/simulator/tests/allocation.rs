//! In steady state no packet allocates: packets reuse the memory of earlier ones.

use core::net::SocketAddr;

use network::{Link, LossModel, PathEnds, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::traffic::video::{FrameSizes, PlaybackConfig, VideoFlow, VideoFormat, VideoPlayer, VideoSource};
use simulator::traffic::{
    Background, DatagramSizes, Demand, OnOff, PacedSource, TcpFlow, TcpSink, UdpFlow, UdpSink, UdpSource,
};
use simulator::{EndpointHost, Host, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Prng, Rate};

use crate::{dummy, live};

/// Allocations between two times of a run.
fn allocations<H: Host>(simulation: &mut Simulation<H>, from_s: u64, to_s: u64) -> u64 {
    simulation.run_until(Instant::from_secs(from_s));
    let before = live::allocations();
    simulation.run_until(Instant::from_secs(to_s));
    live::allocations() - before
}

fn link() -> Link {
    Link::new(Rate::from_mbps(100), Duration::from_millis(10)).queue(Queue::packets(200))
}

#[test]
fn the_counter_counts() {
    let before = live::allocations();
    drop(std::hint::black_box(Box::new(1_u8)));
    assert_eq!(live::allocations() - before, 1);
}

#[test]
fn links_and_driver() {
    // A narrow queue and random loss: dropped packets must return their memory, too.
    let lossy = link().queue(Queue::packets(50)).loss(LossModel::uniform(0.001));
    let mut simulation = dummy::simulation(vec![link(), lossy], 300, 1);
    assert_eq!(allocations(&mut simulation, 5, 15), 0);
    assert!(simulation.network().imbalances().next().is_none());
}

fn host(ips: impl Iterator<Item = core::net::IpAddr>, seed: u64) -> EndpointHost {
    let local_addresses = ips.map(|ip| LocalAddress { ip, backup: false }).collect();
    EndpointHost::new(Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed))
}

#[test]
fn the_engine_at_both_ends() {
    let wired = TwoHosts::new(1).path(link()).path(link()).one_server_address().build();
    let remote = SocketAddr::new(wired.paths[0].server, 80);
    let local = SocketAddr::new(wired.paths[0].client, 0);
    let config = ConnectionConfig::default();
    let receiver = Transfer::connect(local, remote, config.clone()).expecting(Source::endless());
    let sender = Transfer::listen(remote, config).sending(Source::endless());
    let client_ip = |path: &PathEnds| path.client;
    let mut simulation = Simulation::new(wired.network);
    simulation.attach(wired.client, host(wired.paths.iter().map(client_ip), 1).app(receiver));
    simulation.attach(wired.server, host([remote.ip()].into_iter(), 2).app(sender));
    assert_eq!(allocations(&mut simulation, 20, 30), 0);
    let report = &simulation.host(HostId(0)).reports()[0];
    assert!(report.received_bytes > 400_000_000, "{} octets in 30 s", report.received_bytes);
}

#[test]
fn local_traffic() {
    let wired = TwoHosts::new(1).path(link()).build();
    let at = |port| SocketAddr::new(wired.paths[0].server, port);
    let from = |port| SocketAddr::new(wired.paths[0].client, port);
    let config = ConnectionConfig { mptcp: false, ..ConnectionConfig::default() };
    let (start, stop) = (Instant::ZERO, Instant::FAR_FUTURE);
    let second = Duration::from_secs(1);
    let on_off = Demand::constant(Rate::from_mbps(20), start).on_off(OnOff { on: second, off: second }, Prng::new(1));
    let (demand, sizes) = (on_off, DatagramSizes::Constant(1400));
    let datagrams = UdpFlow { local: from(1), remote: at(1), demand, sizes, stop };
    let half = Demand::constant(Rate::from_mbps(20), start);
    let Background { tcp, udp } = Background::new(half.redrawn(second, Prng::new(2)));
    let mixed = UdpFlow { local: from(2), remote: at(2), demand: udp, sizes: DatagramSizes::Mix(Prng::new(3)), stop };
    let (demand, backlog_bytes) = (Some(tcp), 64_000);
    let paced = TcpFlow { local: from(3), remote: at(3), config: config.clone(), demand, backlog_bytes, start, stop };
    let frames = FrameSizes::new(VideoFormat::default(), 4);
    let video =
        VideoFlow { local: from(4), remote: at(4), config: config.clone(), frames: frames.clone(), start, stop };
    let sources = host([from(0).ip()].into_iter(), 1).app(UdpSource::new(datagrams)).app(UdpSource::new(mixed));
    let sinks = host([at(0).ip()].into_iter(), 2).app(UdpSink::new(at(1))).app(UdpSink::new(at(2)));
    let player = VideoPlayer::new(at(4), config.clone(), frames, PlaybackConfig::default());
    let mut simulation = Simulation::new(wired.network);
    simulation
        .attach(wired.client, sources.app(PacedSource::new(paced).mixed(Prng::new(5))).app(VideoSource::new(video)));
    simulation.attach(wired.server, sinks.app(TcpSink::new(at(3), config)).app(player));
    // Random sizes at random rates: occasionally one more datagram is in flight than ever before, and needs memory.
    // None of the other quarter of a million packets in this time does.
    let allocations = allocations(&mut simulation, 300, 400);
    assert!(allocations < 10, "{allocations}");
    for report in simulation.host(HostId(1)).reports() {
        assert!(report.received_bytes > 40_000_000, "{} octets in 400 s", report.received_bytes);
    }
}
