//! Every scheduler over a fast and a slow path, with small buffers.

use core::net::SocketAddr;

use network::{Link, LossModel, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, SERVER, Source, two_hosts};
use transport::ConnectionConfig;
use transport::era::{Binding, Era};
use transport::scheduler::SCHEDULERS;
use units::{Duration, Instant, Rate};

const LIMIT: Instant = Instant::from_secs(300);

/// Seconds for 4 MB over 10 Mbit/s with 20 ms and 2 Mbit/s with 200 ms, depending on the size of the receive buffer.
fn duration_s(scheduler: &str, receive_buffer_bytes: u64, loss: f64) -> f64 {
    let config = ConnectionConfig { scheduler: scheduler.into(), receive_buffer_bytes, ..ConnectionConfig::default() };
    duration_with_s(&config, loss)
}

fn duration_with_s(config: &ConnectionConfig, loss: f64) -> f64 {
    let scheduler = &config.scheduler;
    let link = |rate_mbps, delay_ms| {
        let link = Link::new(Rate::from_mbps(rate_mbps), Duration::from_millis(delay_ms));
        link.queue(Queue::packets(50)).loss(LossModel::uniform(loss))
    };
    let topology = TwoHosts::new(5).one_server_address().path(link(10, 10)).path(link(2, 100));
    let source = Source::pattern(4_000_000);
    let (mut simulation, _) = two_hosts(topology, 9, |(id, paths), host| {
        let server = SocketAddr::new(paths[0].server, 80);
        if id == SERVER {
            host.app(Transfer::listen(server, config.clone()).sending(source.clone()))
        } else {
            let client = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(client, server, config.clone()).expecting(source.clone()))
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new(), "{scheduler}");
    let report = simulation.host(CLIENT).reports().remove(0);
    assert_eq!(report.received_bytes, source.len(), "{scheduler} at {:?}", simulation.now());
    report.completed_at.unwrap().saturating_since(Instant::ZERO).as_secs_f64()
}

#[test]
fn all_deliver_over_unlike_lossy_paths() {
    // At a loss rate of 1 % windows stay small: half of the links' capacity would take 5.3 s.
    for registration in SCHEDULERS {
        let seconds = duration_s(registration.name, 100_000, 0.01);
        assert!(seconds < 10.0, "{}: {seconds} s", registration.name);
    }
}

#[test]
fn all_deliver_from_buffers_that_grow() {
    let era = Era { binding: Binding::Autotuned, ..Era::default() };
    for registration in SCHEDULERS {
        let scheduler = registration.name.into();
        let config = ConnectionConfig { scheduler, era, receive_buffer_bytes: 100_000, ..ConnectionConfig::default() };
        let seconds = duration_with_s(&config, 0.01);
        assert!(seconds < 30.0, "{}: {seconds} s", registration.name);
    }
}

#[test]
fn a_small_buffer_is_not_blocked_by_the_slow_path() {
    // A path of 200 ms holds back a buffer that the fast path fills every 80 ms. BLEST avoids the slow path: the fast
    // one alone takes 3.2 s.
    let [lowest_rtt, blest, ecf] = ["lowest-rtt", "blest", "ecf"].map(|name| duration_s(name, 100_000, 0.0));
    assert!(blest < 4.0 && lowest_rtt > 1.5 * blest, "BLEST {blest} s, lowest round-trip time {lowest_rtt} s");
    assert!(ecf < lowest_rtt, "ECF {ecf} s, lowest round-trip time {lowest_rtt} s");
}

#[test]
fn a_blocked_window_is_relieved() {
    // The slow path's data are sent again on the fast one, and the slow path's window shrinks: both help.
    let names = ["lowest-rtt", "opportunistic", "penalizing"];
    let [lowest_rtt, opportunistic, penalizing] = names.map(|name| duration_s(name, 100_000, 0.0));
    assert!(opportunistic < 0.9 * lowest_rtt, "opportunistic {opportunistic} s, lowest round-trip time {lowest_rtt} s");
    assert!(penalizing < 0.8 * opportunistic, "penalizing {penalizing} s, opportunistic {opportunistic} s");
}

#[test]
fn a_large_buffer_lets_all_use_both_paths() {
    let [lowest_rtt, blest, ecf] = ["lowest-rtt", "blest", "ecf"].map(|name| duration_s(name, 1_000_000, 0.0));
    assert!(blest < 1.02 * lowest_rtt, "BLEST {blest} s, lowest round-trip time {lowest_rtt} s");
    assert!(ecf < 1.02 * lowest_rtt, "ECF {ecf} s, lowest round-trip time {lowest_rtt} s");
}
