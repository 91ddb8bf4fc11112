//! Paths that die, come back and are shared: reinjection (RFC 8684 section 3.3.6), priorities (section 3.3.8),
//! schedulers, and the subflow interface of RFC 6897.

use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionId, Event, Received, SubflowId, SubflowStats};
use units::Duration;
use wire::Payload;
use wire::mptcp::MptcpOption;

use crate::pair::{Pair, Side, assert_pattern, client_address, has_option, path_of, pattern, server_address};

fn config() -> ConnectionConfig {
    ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
}

fn scheduled_by(scheduler: &str) -> ConnectionConfig {
    ConnectionConfig { scheduler: scheduler.into(), ..config() }
}

/// Creates a connection with one subflow on every path, opened by the client.
fn established(paths: &[u64], config: ConnectionConfig) -> (Pair, ConnectionId, ConnectionId) {
    let mut pair = Pair::new(paths, config.clone(), 1);
    let (client, server) = pair.establish(config);
    for path in 1..paths.len() as u8 {
        pair.client.add_subflow(client, client_address(path), server_address(0), false, pair.now).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    pair.log = Some(Vec::new());
    (pair, client, server)
}

/// A steady stream from server to client, which records the delivered data in order.
struct Stream {
    written: u64,
    received: Vec<Payload>,
}

impl Stream {
    const RATE: u64 = 2000;

    /// Writes [`Self::RATE`] octets every millisecond.
    fn run(&mut self, pair: &mut Pair, ids: (ConnectionId, ConnectionId), span: Duration) {
        let end = pair.now + span;
        while pair.now < end {
            let piece = pattern(self.written, Self::RATE as u32);
            self.written += pair.server.send(ids.1, piece, pair.now).unwrap() as u64;
            pair.run_for(Duration::from_millis(1));
            while let Received::Data(piece) = pair.client.recv(ids.0, usize::MAX, pair.now).unwrap() {
                self.received.push(piece);
            }
        }
    }

    fn received_bytes(&self) -> u64 {
        self.received.iter().map(|piece| piece.len() as u64).sum()
    }
}

fn sent(pair: &Pair, server: ConnectionId) -> Vec<u64> {
    pair.server.stats(server).unwrap().subflows.iter().map(|subflow| subflow.sent_bytes).collect()
}

/// Section 3.3.6: a path goes dead. Within a few time-outs the other carries everything, including the data that were
/// in flight on the dead one. When the path returns it is used again.
#[test]
fn a_dead_path_is_left_and_a_revived_one_used_again() {
    for dead_for_s in [2, 20] {
        let (mut pair, client, server) = established(&[10, 40], config());
        let ids = (client, server);
        let mut stream = Stream { written: 0, received: Vec::new() };
        stream.run(&mut pair, ids, Duration::from_secs(1));
        pair.dark[0] = true;
        stream.run(&mut pair, ids, Duration::from_secs(dead_for_s));
        assert!(stream.written - stream.received_bytes() < 400_000, "the stream goes on over the other path");
        assert!(pair.server.stats(server).unwrap().reinjected_bytes > 0);
        pair.dark[0] = false;
        let before = sent(&pair, server)[0];
        // The subflow retries at the latest after as long as it has been dead, and then has to prove itself.
        stream.run(&mut pair, ids, Duration::from_secs(dead_for_s + 8));
        let carried = sent(&pair, server)[0] - before;
        assert!(carried > 100_000, "{carried} octets after it came back");
        pair.run_for(Duration::from_secs(5));
        stream.run(&mut pair, ids, Duration::from_millis(500));
        assert_pattern(&stream.received, stream.received_bytes());
    }
}

/// All paths go dead for a while, one after the other or at once; the stream survives.
#[test]
fn a_total_blackout_is_survived() {
    for together in [true, false] {
        let (mut pair, client, server) = established(&[10, 40], config());
        let mut stream = Stream { written: 0, received: Vec::new() };
        stream.run(&mut pair, (client, server), Duration::from_secs(1));
        pair.dark[0] = true;
        if !together {
            stream.run(&mut pair, (client, server), Duration::from_secs(1));
        }
        pair.dark[1] = true;
        stream.run(&mut pair, (client, server), Duration::from_secs(10));
        // Only the other path returns.
        pair.dark[1] = false;
        pair.run_for(Duration::from_secs(30));
        stream.run(&mut pair, (client, server), Duration::from_secs(1));
        assert!(stream.received_bytes() > 2_000_000);
        pair.dark[0] = false;
        pair.run_for(Duration::from_secs(30));
        stream.run(&mut pair, (client, server), Duration::from_millis(500));
        assert_pattern(&stream.received, stream.received_bytes());
    }
}

/// Section 3.3.6: a new subflow takes over the data of dead ones at once, not at their next time-out.
#[test]
fn a_new_subflow_takes_over_from_dead_ones() {
    let (mut pair, client, server) = established(&[10, 40], config());
    pair.delays.push(Duration::from_millis(20));
    pair.dark.push(false);
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_secs(1));
    pair.dark[0] = true;
    pair.dark[1] = true;
    stream.run(&mut pair, (client, server), Duration::from_secs(8));
    let before = stream.received_bytes();
    pair.client.add_subflow(client, client_address(2), server_address(0), false, pair.now).unwrap();
    stream.run(&mut pair, (client, server), Duration::from_millis(300));
    assert!(stream.received_bytes() > before + 100_000, "{} octets", stream.received_bytes() - before);
    assert_pattern(&stream.received, stream.received_bytes());
}

/// So does a subflow that revives, from one that died later and still holds the head of the stream.
#[test]
fn a_revived_subflow_takes_over_from_dead_ones() {
    let (mut pair, client, server) = established(&[10, 40], config());
    let ids = (client, server);
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, ids, Duration::from_secs(1));
    pair.dark[0] = true;
    stream.run(&mut pair, ids, Duration::from_secs(1));
    pair.dark[1] = true;
    stream.run(&mut pair, ids, Duration::from_secs(25));
    pair.dark[0] = false;
    let arrived = |pair: &Pair| pair.client.stats(client).unwrap().subflows[0].received_bytes;
    let (before, in_order) = (arrived(&pair), stream.received_bytes());
    let mut waited = 0;
    while arrived(&pair) == before {
        stream.run(&mut pair, ids, Duration::from_millis(100));
        waited += 1;
        assert!(waited < 400, "its time-out is no longer than it was dead");
    }
    stream.run(&mut pair, ids, Duration::from_secs(2));
    assert!(stream.received_bytes() > in_order + 100_000, "{} octets", stream.received_bytes() - in_order);
}

/// A path that was slow for a while is not avoided forever because of old measurements.
#[test]
fn a_path_that_was_slow_is_tried_again() {
    let (mut pair, client, server) = established(&[10, 40], scheduled_by("lowest-rtt"));
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_secs(1));
    pair.delays[0] = Duration::from_millis(150);
    stream.run(&mut pair, (client, server), Duration::from_secs(3));
    let slow = sent(&pair, server);
    pair.delays[0] = Duration::from_millis(10);
    stream.run(&mut pair, (client, server), Duration::from_secs(6));
    let after = sent(&pair, server);
    let (first, second) = (after[0] - slow[0], after[1] - slow[1]);
    assert!(first > second, "{first} octets on the path that is fast again, {second} on the other");
    pair.run_for(Duration::from_secs(1));
    stream.run(&mut pair, (client, server), Duration::from_millis(100));
    assert_pattern(&stream.received, stream.received_bytes());
}

/// A dead subflow's user time-out ends it; the full mesh opens it again once the path is back.
#[test]
fn the_full_mesh_replaces_subflows_that_time_out() {
    // The receiving side notices by its probes.
    let mesh = ConnectionConfig {
        user_timeout: Duration::from_secs(10),
        keep_alive: Some(Duration::from_secs(2)),
        ..ConnectionConfig::default()
    };
    let mut pair = Pair::new(&[10, 40], mesh.clone(), 1);
    let ids = pair.establish(mesh);
    let count = |pair: &Pair| {
        let stats = pair.client.stats(ids.0).unwrap();
        stats.subflows.iter().filter(|subflow| subflow.state == "ESTABLISHED").count()
    };
    let before = count(&pair);
    pair.dark[1] = true;
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, ids, Duration::from_secs(40));
    assert!(count(&pair) < before);
    pair.dark[1] = false;
    stream.run(&mut pair, ids, Duration::from_secs(150));
    assert_eq!(count(&pair), before);
    assert_pattern(&stream.received, stream.received_bytes());
}

/// RFC 9293 section 3.8.4: every question gets a sign of life, and its octet is not data.
#[test]
fn questions_are_answered_however_soon_one_follows_another() {
    let (mut pair, client, server) = established(&[10, 40], config());
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_millis(500));
    pair.run_for(Duration::from_secs(1));
    let before = pair.server.stats(server).unwrap().received_bytes;
    let subflows = pair.client.stats(client).unwrap().subflows;
    for subflow in subflows.iter().cycle().take(6) {
        let asked_at = pair.now;
        pair.client.probe_subflow(client, subflow.id, asked_at).unwrap();
        pair.run_for(Duration::from_millis(90));
        assert!(pair.client.hearing(client, subflow.id).unwrap().heard_at > asked_at);
    }
    assert_eq!(pair.server.stats(server).unwrap().received_bytes, before);
    stream.run(&mut pair, (client, server), Duration::from_millis(100));
    pair.run_for(Duration::from_secs(1));
    stream.run(&mut pair, (client, server), Duration::from_millis(100));
    assert_pattern(&stream.received, stream.received_bytes());
}

/// RFC 6897: either side adds and removes subflows during a transfer, which the stream does not notice.
#[test]
fn subflows_come_and_go_under_load() {
    let (mut pair, client, server) = established(&[10, 20, 30], config());
    let mut stream = Stream { written: 0, received: Vec::new() };
    for round in 0..10_u8 {
        stream.run(&mut pair, (client, server), Duration::from_millis(200));
        let side = if round % 2 == 0 { Side::Client } else { Side::Server };
        let id = if side == Side::Client { client } else { server };
        let now = pair.now;
        let subflows = pair.endpoint(side).stats(id).unwrap().subflows;
        let oldest = subflows.iter().find(|subflow| subflow.state == "ESTABLISHED").unwrap().id;
        pair.endpoint(side).remove_subflow(id, oldest, now).unwrap();
        pair.client.add_subflow(client, client_address(round % 3), server_address(0), false, now).unwrap();
    }
    stream.run(&mut pair, (client, server), Duration::from_secs(1));
    pair.run_for(Duration::from_secs(1));
    stream.run(&mut pair, (client, server), Duration::from_millis(100));
    assert_pattern(&stream.received, stream.received_bytes());
    assert!(stream.received_bytes() > 5_000_000);
    let unknown = pair.client.remove_subflow(client, SubflowId(999), pair.now);
    assert!(unknown.is_err());
}

/// Section 3.3.8: a backup carries data only while no regular subflow is usable. MP_PRIO changes that at once, as seen
/// by both sides.
#[test]
fn backups_wait_until_they_are_needed() {
    let (mut pair, client, server) = established(&[10, 40], config());
    let ids = (client, server);
    pair.client.set_priority(client, SubflowId(1), true, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let told = Event::PriorityChanged { connection: server, subflow: SubflowId(1), backup: true };
    assert_eq!(pair.server_events.iter().filter(|event| **event == told).count(), 1);
    let prio = |_: Side, segment: &wire::Segment| has_option(segment, |option| matches!(option, MptcpOption::Prio(_)));
    let options = pair.logged(prio);
    assert_eq!((options.len(), path_of(Side::Client, options[0])), (1, 1));
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, ids, Duration::from_secs(1));
    assert_eq!(sent(&pair, server)[1], 0);
    pair.dark[0] = true;
    stream.run(&mut pair, ids, Duration::from_secs(3));
    assert!(sent(&pair, server)[1] > 4_000_000, "the backup takes over");
    pair.dark[0] = false;
    stream.run(&mut pair, ids, Duration::from_secs(5));
    let before = sent(&pair, server)[1];
    stream.run(&mut pair, ids, Duration::from_secs(1));
    assert_eq!(sent(&pair, server)[1], before, "the regular one is back");
    pair.client.set_priority(client, SubflowId(0), true, pair.now).unwrap();
    pair.client.set_priority(client, SubflowId(1), false, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let before = sent(&pair, server);
    stream.run(&mut pair, ids, Duration::from_secs(1));
    let after = sent(&pair, server);
    assert_eq!(after[0], before[0]);
    assert!(after[1] > before[1]);
    assert_pattern(&stream.received, stream.received_bytes());
}

/// Redundant: every octet goes on every subflow, and a subflow that falls behind skips the data that others have
/// delivered.
#[test]
fn redundant_sends_everything_everywhere_but_nothing_in_vain() {
    let (mut pair, client, server) = established(&[10, 12], scheduled_by("redundant"));
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_secs(1));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(sent(&pair, server), [stream.written, stream.written]);
    // One path dies: its copies are not missed, not even briefly.
    pair.dark[1] = true;
    let start = stream.written;
    stream.run(&mut pair, (client, server), Duration::from_secs(2));
    assert!(stream.written - stream.received_bytes() < 60_000);
    assert_eq!(pair.server.stats(server).unwrap().reinjected_bytes, 0, "the living path has them already");
    pair.dark[1] = false;
    pair.run_for(Duration::from_secs(5));
    let late: u64 = sent(&pair, server)[1] - start;
    assert!(late < 1_000_000, "{late} octets of four million were sent although they had arrived");
    stream.run(&mut pair, (client, server), Duration::from_millis(500));
    assert_pattern(&stream.received, stream.received_bytes());
}

/// Round robin: equal paths carry equal numbers of segments. Octets may differ, because a short segment can fall to the
/// same subflow turn after turn.
#[test]
fn round_robin_shares_evenly() {
    let (mut pair, client, server) = established(&[20, 20, 20], scheduled_by("round-robin"));
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_secs(2));
    let subflows = pair.server.stats(server).unwrap().subflows;
    let shares: Vec<u64> = subflows.iter().map(|subflow| subflow.sent_segments).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(*least > 900 && most - least < 10, "{shares:?}");
}

/// Lowest round-trip time: a fast path that can carry everything does.
#[test]
fn the_fastest_path_comes_first() {
    let (mut pair, client, server) = established(&[50, 5], scheduled_by("lowest-rtt"));
    let mut stream = Stream { written: 0, received: Vec::new() };
    stream.run(&mut pair, (client, server), Duration::from_secs(2));
    let shares = sent(&pair, server);
    assert!(shares[1] > 50 * shares[0].max(1), "{shares:?}");
}

/// What ends is over for its owner at once: TIME-WAIT, which lasts a minute, is no part of a subflow's life.
#[test]
fn a_removed_subflow_has_ended_before_time_wait_is_over() {
    let (mut pair, client, _) = established(&[10, 10], config());
    let (id, removed_at) = (SubflowId(1), pair.now);
    pair.client.remove_subflow(client, id, pair.now).unwrap();
    pair.run_for(Duration::from_secs(1));
    let ended = |pair: &Pair| {
        let stats = pair.client.stats(client).unwrap();
        stats
            .subflows
            .iter()
            .find(|subflow| subflow.id == id)
            .map(|subflow| (subflow.state, subflow.closed_at))
            .unwrap()
    };
    let (state, closed_at) = ended(&pair);
    assert_eq!(state, "TIME-WAIT");
    let closed_at = closed_at.expect("it has ended");
    assert!((removed_at..=pair.now).contains(&closed_at), "{closed_at:?}");
    pair.run_for(Duration::from_secs(120));
    assert_eq!(ended(&pair), ("CLOSED", Some(closed_at)));
}

/// The full mesh drops the subflows of a removed local address, and uses an added one.
#[test]
fn local_addresses_come_and_go() {
    let mesh = ConnectionConfig::default();
    let mut pair = Pair::new(&[10, 40], mesh.clone(), 1);
    let ids = pair.establish(mesh);
    let mut stream = Stream { written: 0, received: Vec::new() };
    let from_second = |pair: &Pair| {
        let is_open =
            |subflow: &SubflowStats| subflow.local.ip() == client_address(1).ip() && subflow.state == "ESTABLISHED";
        pair.client.stats(ids.0).unwrap().subflows.into_iter().filter(is_open).count()
    };
    stream.run(&mut pair, ids, Duration::from_millis(500));
    assert_eq!(from_second(&pair), 2);
    pair.client.remove_local_address(client_address(1).ip(), pair.now);
    pair.dark[1] = true;
    stream.run(&mut pair, ids, Duration::from_secs(3));
    assert_eq!(from_second(&pair), 0);
    pair.dark[1] = false;
    pair.client.add_local_address(LocalAddress { ip: client_address(1).ip(), backup: false }, pair.now);
    stream.run(&mut pair, ids, Duration::from_secs(2));
    assert_eq!(from_second(&pair), 2);
    pair.client.remove_local_address(client_address(0).ip(), pair.now);
    pair.dark[0] = true;
    stream.run(&mut pair, ids, Duration::from_secs(3));
    assert!(stream.written - stream.received_bytes() < 1_000_000);
    pair.run_for(Duration::from_secs(2));
    stream.run(&mut pair, ids, Duration::from_millis(100));
    assert_pattern(&stream.received, stream.received_bytes());
}
