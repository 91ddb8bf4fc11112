//! MPTCP-rec over unequal lossy paths: its goodput, its options on the wire, and its behaviour if one side does not
//! speak it.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use network::{Link, LossModel, Queue, TwoHosts};
use simulator::app::{Echo, RequestResponse, Transfer};
use simulator::{CLIENT, Direction, Interface, SERVER, Source, Tap, two_hosts};
use transport::receiver_centric::{ReceiverCentric, WindowRule};
use transport::{ConnectionConfig, ConnectionStats};
use units::{Duration, Instant, Rate};
use wire::Segment;
use wire::mptcp::{MptcpOption, RateReport};

const LIMIT: Instant = Instant::from_secs(600);

/// Three paths like those of the paper's table 1, without their background traffic.
fn paths(seed: u64, loss: f64) -> TwoHosts {
    let link = |rate_kbps: u64, delay_ms| {
        let link = Link::new(Rate::from_bps(rate_kbps * 1000), Duration::from_millis(delay_ms));
        link.queue(Queue::packets(50)).loss(LossModel::uniform(loss))
    };
    let topology = TwoHosts::new(seed).one_server_address();
    topology.path(link(11_000, 110)).path(link(10_000, 110)).path(link(384, 210))
}

fn config(receiver_centric: Option<ReceiverCentric>) -> ConnectionConfig {
    ConnectionConfig { receiver_centric, receive_buffer_bytes: 384 << 10, ..ConnectionConfig::default() }
}

/// Counts of MPTCP-rec's options, and the longest options.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    offers: u32,
    data_segments: u32,
    data_with_round: u32,
    reports: u32,
    option_bytes_max: usize,
}

struct Watch(Rc<RefCell<Seen>>);

impl Tap for Watch {
    fn segment(&mut self, _: Instant, _: Interface, direction: Direction, segment: &Segment) {
        if direction == Direction::Received {
            return;
        }
        let mut seen = self.0.borrow_mut();
        for option in &segment.options.mptcp {
            if let MptcpOption::Experimental(option) = option {
                seen.offers += u32::from(option.is_receiver_centric_offer());
                seen.reports += u32::from(RateReport::read(option).is_some());
            }
        }
        if !segment.payload.is_empty() {
            seen.data_segments += 1;
            seen.data_with_round += u32::from(segment.options.round.is_some());
        }
        seen.option_bytes_max = seen.option_bytes_max.max(segment.options.encoded_len());
    }
}

/// A transfer of 4 MB from server to client.
struct Run {
    seconds: f64,
    seen: Seen,
    fingerprint: u64,
    stats: ConnectionStats,
}

fn run(client: Option<ReceiverCentric>, server: Option<ReceiverCentric>, seed: u64, loss: f64) -> Run {
    let source = Source::pattern(4_000_000);
    let (mut simulation, _) = two_hosts(paths(seed, loss), seed, |(id, paths), host| {
        let address = SocketAddr::new(paths[0].server, 80);
        if id == SERVER {
            host.app(Transfer::listen(address, config(server)).sending(source.clone()))
        } else {
            let local = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(local, address, config(client)).expecting(source.clone()))
        }
    });
    let seen = Rc::new(RefCell::new(Seen::default()));
    simulation.add_tap(Box::new(Watch(seen.clone())));
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let report = simulation.host(CLIENT).reports().remove(0);
    assert_eq!(report.received_bytes, source.len(), "at {:?}", simulation.now());
    let connection = simulation.host(SERVER).reports().remove(0).connections[0];
    let seen = *seen.borrow();
    Run {
        seconds: report.completed_at.unwrap().saturating_since(Instant::ZERO).as_secs_f64(),
        seen,
        fingerprint: simulation.fingerprint().unwrap(),
        stats: simulation.host(SERVER).endpoint.stats(connection).unwrap(),
    }
}

const REC: Option<ReceiverCentric> = Some(ReceiverCentric::DEFAULT);

/// 2.5 % of the packets of each path are lost, which keeps windows small that halve at each loss.
#[test]
fn losses_cost_less_where_the_receiver_rules() {
    let seconds = |receiver_centric| -> f64 {
        (1..=3).map(|seed| run(receiver_centric, receiver_centric, seed, 0.025).seconds).sum()
    };
    let (standard, rec) = (seconds(None), seconds(REC));
    assert!(rec < 0.5 * standard, "three transfers take {rec} s, and {standard} s without MPTCP-rec");
}

/// The side that controls the window responds to losses: where that is the receiver, few losses end in a time-out.
#[test]
fn the_receiver_s_window_avoids_time_outs() {
    let paced = Some(ReceiverCentric { window: WindowRule::Controller, ..ReceiverCentric::DEFAULT });
    let (paced, ruled) = (run(paced, paced, 1, 0.025), run(REC, REC, 1, 0.025));
    let timeouts = |run: &Run| run.stats.subflows.iter().map(|subflow| subflow.timeouts).sum::<u64>();
    assert!(timeouts(&ruled) < timeouts(&paced) / 2, "{} and {}", timeouts(&ruled), timeouts(&paced));
}

#[test]
fn every_data_segment_has_its_round_and_reports_are_few() {
    let Seen { offers, data_segments, data_with_round, reports, option_bytes_max } = run(REC, REC, 1, 0.025).seen;
    assert_eq!((offers, data_with_round), (2, data_segments), "SYN and SYN/ACK; all data");
    assert!((50..data_segments / 4).contains(&reports), "{reports} reports for {data_segments} segments");
    assert!(option_bytes_max <= 40);
}

#[test]
fn without_losses_it_is_nearly_as_fast() {
    let (standard, rec) = (run(None, None, 1, 0.0), run(REC, REC, 1, 0.0));
    assert!(rec.seconds < 1.25 * standard.seconds, "{} s and {} s", rec.seconds, standard.seconds);
}

/// The data go from server to client. A server that wants MPTCP-rec sends no option for it unless the client has
/// offered it; a client that offers it in vain has sent one offer.
#[test]
fn where_one_side_does_not_speak_it_nothing_of_it_is_said() {
    let standard = run(None, None, 1, 0.025);
    let server_only = run(None, REC, 1, 0.025);
    assert_eq!(server_only.fingerprint, standard.fingerprint, "not a bit is different");
    let client_only = run(REC, None, 1, 0.025);
    let Seen { offers, data_with_round, reports, .. } = client_only.seen;
    assert_eq!((offers, data_with_round, reports), (1, 0, 0));
    assert!((client_only.seconds - standard.seconds).abs() < 0.01 * standard.seconds);
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let [first, again, other] = [7, 7, 8].map(|seed| run(REC, REC, seed, 0.025).fingerprint);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// Two paths of 10 Mbit/s and 50 ms carry six requests of 2 MB, echoed, with a pause after each. Returns the mean time
/// of the last five, in seconds.
fn mean_answer_s(pause: Duration) -> f64 {
    let link = || Link::new(Rate::from_mbps(10), Duration::from_millis(25)).queue(Queue::packets(50));
    let topology = TwoHosts::new(1).one_server_address().path(link()).path(link());
    let (mut simulation, _) = two_hosts(topology, 1, |(id, paths), host| {
        let (local, remote) = (SocketAddr::new(paths[0].client, 0), SocketAddr::new(paths[0].server, 80));
        if id == SERVER {
            host.app(Echo::listen(remote, config(REC)))
        } else {
            host.app(RequestResponse::new(local, remote, config(REC), 6, 2_000_000).pausing(pause))
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let latencies = simulation.host(CLIENT).reports().remove(0).latencies;
    latencies[1..].iter().map(|latency| latency.as_secs_f64()).sum::<f64>() / 5.0
}

/// A pause of the sender is neither a round-trip time nor a low rate.
#[test]
fn answers_after_long_pauses_are_as_fast_as_after_short_ones() {
    let short = mean_answer_s(Duration::from_millis(200));
    for pause_s in [1, 5, 20, 60] {
        let long = mean_answer_s(Duration::from_secs(pause_s));
        assert!(long < 1.15 * short, "{long} s after {pause_s} s, {short} s after 0.2 s");
    }
}
