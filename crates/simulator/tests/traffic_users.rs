//! Traffic of users: they watch videos, fetch small objects, and request answers.

use core::net::SocketAddr;

use network::{Link, PathEnds, Queue, TwoHosts};
use simulator::app::{Echo, RequestResponse};
use simulator::traffic::video::{
    FrameSizes, PlaybackConfig, PlaybackStats, VideoFlow, VideoFormat, VideoPlayer, VideoSource,
};
use simulator::traffic::{Draw, Octets, ShortFlowSource, ShortFlows, TcpSink};
use simulator::{CLIENT, EndpointHost, Report, SERVER, Simulation, two_hosts};
use transport::ConnectionConfig;
use units::{Duration, Instant, Prng, Rate};

/// `count` links of `kbps` kbit/s and 20 ms.
fn links(count: usize, kbps: u64) -> TwoHosts {
    let link = || Link::new(Rate::from_bps(kbps * 1000), Duration::from_millis(20)).queue(Queue::packets(50));
    (0..count).fold(TwoHosts::new(1), |topology, _| topology.path(link()))
}

fn ends(paths: &[PathEnds]) -> (SocketAddr, SocketAddr) {
    (SocketAddr::new(paths[0].client, 0), SocketAddr::new(paths[0].server, 1000))
}

fn plain() -> ConnectionConfig {
    ConnectionConfig { mptcp: false, ..ConnectionConfig::default() }
}

/// Plays 20 s of video; returns the statistics at `until`.
fn watch(topology: TwoHosts, rate: Rate, config: &ConnectionConfig, until: Instant) -> PlaybackStats {
    let frames = FrameSizes::new(VideoFormat { rate, ..VideoFormat::default() }, 3);
    let (mut screen, mut counts) = (None, (Octets::default(), Octets::default()));
    let (mut simulation, _) = two_hosts(topology, 1, |(id, paths), host| {
        let (local, remote) = ends(paths);
        let (config, frames) = (config.clone(), frames.clone());
        if id == SERVER {
            let player = VideoPlayer::new(remote, config, frames, PlaybackConfig::default());
            (screen, counts.1) = (Some(player.screen()), player.received());
            return host.app(player);
        }
        let (start, stop) = (Instant::ZERO, Instant::from_secs(20));
        let source = VideoSource::new(VideoFlow { local, remote, config, frames, start, stop });
        counts.0 = source.demanded();
        host.app(source)
    });
    simulation.run_until(until);
    assert_eq!(simulation.faults(), [""; 0]);
    if until > Instant::from_secs(40) {
        assert_eq!(counts.0.get(), counts.1.get());
        assert_eq!(simulation.host(SERVER).reports()[0].completed, 1);
    }
    screen.unwrap().stats(until)
}

#[test]
fn a_video_that_fits_never_stalls() {
    let rate = Rate::from_mbps(1);
    let seen = watch(links(1, 2000), rate, &plain(), Instant::from_secs(10));
    // Two seconds of frames are made within 1.96 s; the last one needs 20 ms of delay and its own serialisation.
    let started = seen.started_at.unwrap().as_millis();
    assert!((1980..2060).contains(&started), "{started}");
    assert_eq!((seen.stalls, seen.stalled), (0, Duration::ZERO));
    // A live source is never ahead: the buffer keeps its initial level, within a frame and the transfer time of large
    // frames.
    assert!((1850..=2050).contains(&seen.level.as_millis()), "{:?}", seen.level);
    let end = watch(links(1, 2000), rate, &plain(), Instant::from_secs(60));
    assert_eq!((end.stalls, end.arrived_frames, end.level), (0, 500, Duration::ZERO));
}

#[test]
fn a_video_beyond_one_link_stalls_and_over_two_links_does_not() {
    let rate = Rate::from_mbps(3);
    let config = ConnectionConfig::default();
    let one = watch(links(1, 2000), rate, &config, Instant::from_secs(60));
    // 60 Mbit at about 1.9 Mbit/s take 31.6 s, and playback begins when 6 Mbit have arrived, after 3.2 s. The picture
    // moves for 20 s, so it stands still for 8.4 s, and for up to one second more, which must be buffered after a
    // stall.
    assert_eq!(one.arrived_frames, 500);
    assert!(one.stalls >= 4, "{one:?}");
    assert!((7800..9800).contains(&one.stalled.as_millis()), "{one:?}");
    let two = watch(links(2, 2000), rate, &config, Instant::from_secs(60));
    assert_eq!((two.stalls, two.arrived_frames), (0, 500));
}

/// Sends short flows over 1.2 Mbit/s for a minute.
fn fetch(sizes_bytes: Draw, pauses_s: Draw) -> (Simulation<EndpointHost>, Report) {
    let (mut simulation, _) = two_hosts(links(1, 1200), 1, |(id, paths), host| {
        let (local, remote) = ends(paths);
        if id == SERVER {
            return host.app(TcpSink::new(remote, plain()));
        }
        let (start, stop) = (Instant::from_secs(1), Instant::from_secs(60));
        let (config, prng) = (plain(), Prng::new(9));
        host.app(ShortFlowSource::new(ShortFlows { local, remote, config, sizes_bytes, pauses_s, prng, start, stop }))
    });
    simulation.run_until(Instant::from_secs(70));
    assert_eq!(simulation.faults(), [""; 0]);
    let report = simulation.host(CLIENT).reports().remove(0);
    (simulation, report)
}

#[test]
fn short_flows_take_as_long_as_they_must() {
    let (mut simulation, report) = fetch(Draw::Constant(12_000.0), Draw::Constant(1.0));
    // A round trip for the handshake and one for data and acknowledgement. 12,000 octets in nine segments with headers
    // are 12,500 at 1.2 Mbit/s: 40 + 40 + 83 ms, and a few small segments.
    let took = report.latencies[0].as_millis();
    assert!((163..175).contains(&took), "{took}");
    assert!(report.latencies.iter().all(|later| later.as_millis().abs_diff(took) <= 1), "{:?}", report.latencies);
    // 59 s at 1.17 s each.
    assert_eq!((report.completed, report.sent_bytes), (51, 51 * 12_000));
    let sink = simulation.host(SERVER).reports().remove(0);
    assert_eq!((sink.completed, sink.received_bytes), (51, 51 * 12_000));
    assert_eq!(simulation.host(SERVER).endpoint.footprint().connections, 0);
    // The side that ends first remembers a connection for a minute (TIME-WAIT). Eight flows had ended after 10 s.
    let remembered = |simulation: &Simulation<EndpointHost>| simulation.host(CLIENT).endpoint.footprint().connections;
    assert_eq!(remembered(&simulation), 51 - 8);
    simulation.run_until(Instant::from_secs(125));
    assert_eq!(remembered(&simulation), 0);
}

#[test]
fn short_flows_of_drawn_sizes_all_arrive() {
    let sizes = Draw::Pareto { min: 1000.0, max: 200_000.0, shape: 1.2 };
    let (simulation, report) = fetch(sizes, Draw::Exponential { mean: 0.2 });
    assert!(report.completed > 60, "{}", report.completed);
    let sink = simulation.host(SERVER).reports().remove(0);
    assert_eq!((sink.completed, sink.received_bytes), (report.completed, report.sent_bytes));
    assert!(report.latencies.iter().min() != report.latencies.iter().max());
}

#[test]
fn no_pause_follows_the_last_answer() {
    let (mut simulation, _) = two_hosts(links(1, 10_000), 1, |(id, paths), host| {
        let (local, remote) = ends(paths);
        if id == SERVER {
            return host.app(Echo::listen(remote, plain()));
        }
        host.app(RequestResponse::new(local, remote, plain(), 3, 100).pausing(Duration::from_secs(1)))
    });
    simulation.run_until(Instant::from_secs(60));
    assert_eq!(simulation.faults(), [""; 0]);
    let report = simulation.host(CLIENT).reports().remove(0);
    let ended_at = report.completed_at.unwrap();
    assert_eq!((report.completed, report.latencies.len()), (1, 3));
    // Two pauses, and four round trips.
    assert!((2.0..2.5).contains(&ended_at.as_secs_f64()), "{ended_at:?}");
}

#[test]
fn requests_of_drawn_sizes_are_answered_after_drawn_pauses() {
    let ask = |seed| {
        let (mut simulation, _) = two_hosts(links(1, 10_000), 1, |(id, paths), host| {
            let (local, remote) = ends(paths);
            if id == SERVER {
                return host.app(Echo::listen(remote, plain()));
            }
            let (sizes, pauses) = (Draw::Uniform { min: 100.0, max: 5000.0 }, Draw::Exponential { mean: 0.5 });
            let asking = RequestResponse::new(local, remote, plain(), 100, 1);
            host.app(asking.drawing(sizes, pauses, Prng::new(seed)))
        });
        simulation.run_until(Instant::from_secs(300));
        assert_eq!(simulation.faults(), [""; 0]);
        simulation.host(CLIENT).reports().remove(0)
    };
    let report = ask(1);
    assert_eq!((report.completed, report.latencies.len(), report.sent_bytes), (1, 100, report.received_bytes));
    // A mean of 2550 octets and a standard deviation of 1415 over 100 requests: a standard error of 142.
    assert!(report.sent_bytes.abs_diff(255_000) < 43_000, "{}", report.sent_bytes);
    // A hundred pauses of 0.5 s and answers of slightly more than 40 ms: 54 s, with a standard error of 5 s.
    let took = report.completed_at.unwrap().as_secs_f64();
    assert!((took - 55.0).abs() < 15.0, "{took}");
    assert_eq!(ask(1).latencies, report.latencies);
    assert_ne!(ask(2).latencies, report.latencies);
}
