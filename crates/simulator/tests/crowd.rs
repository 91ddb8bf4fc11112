//! Many connections at once: prefetching for future segments changes nothing except speed.

use core::net::SocketAddr;

use network::{Link, LossModel, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{EndpointHost, Host, HostId, Simulation, Source};
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};
use wire::Segment;

const CONNECTIONS: u16 = 300;

/// A host that is told of future segments, or that hides its wish to be told.
struct Foreseeing {
    host: EndpointHost,
    is_told: bool,
    told: u64,
}

impl Host for Foreseeing {
    fn start(&mut self, now: Instant) {
        self.host.start(now);
    }

    fn is_crowded(&self) -> bool {
        self.is_told && self.host.is_crowded()
    }

    fn expect(&mut self, segment: &Segment) {
        self.told += 1;
        self.host.expect(segment);
    }

    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        self.host.handle_segment(segment, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        self.host.poll_transmit(segment, now)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn faults(&self) -> Vec<String> {
        self.host.faults()
    }
}

/// Returns the fingerprint of a run, and the number of segments of which hosts were told in advance.
fn run(is_told: bool) -> (Option<u64>, u64) {
    let link = Link::new(Rate::from_mbps(50), Duration::from_millis(20)).queue(Queue::packets(400));
    let wired = TwoHosts::new(1).path(link.loss(LossModel::uniform(0.01))).build();
    let (client, server) = (wired.paths[0].client, SocketAddr::new(wired.paths[0].server, 80));
    let host = |seed| EndpointHost::new(Endpoint::with_seed(EndpointConfig::default(), seed));
    let config = ConnectionConfig::default();
    let clients = (0..CONNECTIONS).fold(host(1), |host, number| {
        let begin = Instant::from_millis(u64::from(number % 50));
        host.app(Transfer::connect(SocketAddr::new(client, 1024 + number), server, config.clone()).at(begin))
    });
    let servers = host(2).app(Transfer::listen(server, config).sending(Source::pattern(10_000)));
    let mut simulation = Simulation::new(wired.network);
    simulation.check();
    simulation.take_fingerprint();
    for (port, host) in [(wired.client, clients), (wired.server, servers)] {
        simulation.attach(port, Foreseeing { host, is_told, told: 0 });
    }
    simulation.run_until(Instant::from_secs(20));
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let client = &simulation.host(HostId(0)).host;
    let received: u64 = client.reports().iter().map(|report| report.received_bytes).sum();
    assert_eq!(received, u64::from(CONNECTIONS) * 10_000);
    (simulation.fingerprint(), simulation.host(HostId(0)).told)
}

#[test]
fn to_be_told_of_segments_to_come_changes_nothing() {
    let (told, not_told) = (run(true), run(false));
    assert_eq!(told.0, not_told.0);
    assert_eq!(not_told.1, 0);
    // A segment is foreseen if four others are on the link between it and the arriving one.
    assert!(told.1 > 500, "{}", told.1);
}
