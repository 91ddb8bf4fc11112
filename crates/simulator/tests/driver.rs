//! The driver, with hosts other than the engine.

use std::sync::{Arc, Mutex};

use network::{Link, LossModel, Network, Queue};
use simulator::{Direction, Host, HostId, Interface, Simulation, Tap};
use units::{Duration, Instant, Rate};
use wire::Segment;

use crate::dummy::{self, Dummy};

const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

fn link(rate_mbps: u64, delay_ms: u64) -> Link {
    Link::new(Rate::from_mbps(rate_mbps), Duration::from_millis(delay_ms))
}

fn data_segments(simulation: &Simulation<Dummy>) -> u64 {
    match simulation.host(SERVER) {
        Dummy::Receiver(receiver) => receiver.data_segments,
        Dummy::Sender(_) => unreachable!("the server receives"),
    }
}

fn timeouts(simulation: &Simulation<Dummy>) -> u64 {
    match simulation.host(CLIENT) {
        Dummy::Sender(sender) => sender.timeouts,
        Dummy::Receiver(_) => unreachable!("the client sends"),
    }
}

#[test]
fn a_full_window_fills_the_link() {
    // 1400 octets, headers of 20 + 20 and options of 12 + 16 (timestamps, DSS) make 1468: at 11.744 Mbit/s that is 1 ms.
    let rate = Rate::from_bps(11_744_000);
    let link = Link::new(rate, Duration::from_millis(10)).queue(Queue::unlimited());
    let mut simulation = dummy::simulation(vec![link], 50, 1);
    // The first segment arrives after 1 + 10 ms, later ones every millisecond.
    simulation.run_until(Instant::from_millis(1010));
    assert_eq!(data_segments(&simulation), 1000);
    assert_eq!(simulation.now(), Instant::from_millis(1010));
    assert_eq!(simulation.faults(), Vec::<String>::new());
}

#[test]
fn a_short_window_sends_one_window_per_round_trip() {
    // A pair leaves in 2 x 1 ms and travels 10 ms; its answer of 52 octets takes 0.035 ms and 10 ms. 45 rounds of
    // 22.035 ms end at 991.6 ms, and the next pair arrives 12 ms after that.
    let mut simulation =
        dummy::simulation(vec![Link::new(Rate::from_bps(11_744_000), Duration::from_millis(10))], 2, 1);
    simulation.run_until(Instant::from_secs(1));
    assert_eq!(data_segments(&simulation), 2 * 45);
}

#[test]
fn same_seed_same_run_other_seed_other_run() {
    let run = |seed| {
        let lossy = link(20, 5).queue(Queue::packets(40)).loss(LossModel::uniform(0.01));
        let mut simulation = dummy::simulation(vec![lossy, link(10, 30)], 50, seed);
        simulation.take_fingerprint();
        simulation.run_until(Instant::from_secs(5));
        assert_eq!(simulation.faults(), Vec::<String>::new());
        simulation.fingerprint().unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn watching_changes_nothing() {
    let run = |watched: bool| {
        let mut simulation = dummy::simulation(vec![link(20, 5).queue(Queue::packets(20))], 30, 1);
        if watched {
            simulation.check();
            simulation.take_fingerprint();
        }
        simulation.run_until(Instant::from_secs(3));
        (data_segments(&simulation), simulation.next_event())
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_host_is_called_when_its_last_deadline_comes_and_not_before() {
    // Answers move the deadline while they arrive.
    let mut alive = dummy::simulation(vec![link(10, 10)], 10, 1);
    alive.run_until(Instant::from_secs(10));
    assert_eq!(timeouts(&alive), 0);
    let mut dead = dummy::simulation(vec![link(10, 10).loss(LossModel::uniform(1.0))], 10, 1);
    dead.run_until(Instant::from_millis(999));
    assert_eq!(timeouts(&dead), 0);
    dead.run_until(Instant::from_secs(1));
    assert_eq!(timeouts(&dead), 1);
}

#[test]
fn a_run_stops_when_it_is_told_to() {
    let mut simulation = dummy::simulation(vec![link(10, 10)], 10, 1);
    assert!(simulation.run_while(Instant::from_secs(10), |simulation| data_segments(simulation) < 100));
    assert_eq!(data_segments(&simulation), 100);
    let reached = simulation.now();
    assert!(!simulation.run_while(reached, |_| true));
}

/// Time in microseconds, interface, direction, octets of data.
type Seen = (u64, Interface, Direction, usize);

/// Records the segments it sees.
struct Log(Arc<Mutex<Vec<Seen>>>);

impl Tap for Log {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        self.0.lock().unwrap().push((at.as_micros(), interface, direction, segment.payload.len()));
    }
}

#[test]
fn taps_see_both_ends() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut simulation = dummy::simulation(vec![link(1000, 10)], 2, 1);
    simulation.add_tap(Box::new(Log(seen.clone())));
    simulation.run_until(Instant::from_millis(11));
    let seen = seen.lock().unwrap();
    let summary: Vec<_> = seen.iter().map(|(at, at_host, way, len)| (*at, at_host.host, *way, *len)).collect();
    let (sent, received) = (Direction::Sent, Direction::Received);
    // 1468 octets take 11.744 us at 1 Gbit/s.
    let expected = [
        (0, CLIENT, sent, 1400),
        (0, CLIENT, sent, 1400),
        (10_011, SERVER, received, 1400),
        (10_023, SERVER, received, 1400),
        (10_023, SERVER, sent, 0),
    ];
    assert_eq!(summary, expected);
    assert_eq!(seen[0].1.address, "10.1.0.1".parse::<core::net::IpAddr>().unwrap());
    assert_eq!(seen[4].1.address, "10.1.1.1".parse::<core::net::IpAddr>().unwrap());
}

/// Always asks for a time that has passed.
struct Stuck;

impl Host for Stuck {
    fn handle_segment(&mut self, _segment: &mut Segment, _now: Instant) {}
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _segment: &mut Segment, _now: Instant) -> bool {
        false
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        Some(Instant::from_secs(1))
    }
}

#[test]
#[should_panic(expected = "still asks to be called")]
fn a_host_that_never_moves_on_is_named() {
    let mut network = Network::new(1);
    let port = network.add_port();
    let mut simulation = Simulation::new(network);
    simulation.attach(port, Stuck);
    simulation.run_until(Instant::from_secs(2));
}
