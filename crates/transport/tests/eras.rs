//! Effects of each switch of `ConnectionConfig::era` on the wire.

use transport::congestion::ControllerSpec;
use transport::era::{Binding, Era, PartialAcks, RecoveryEnd, RepairTimer, RtoFloor};
use transport::{ConnectionConfig, SettingsChange};
use units::Duration;

use crate::pair::{self, Pair, Side};
use crate::script::{Script, config};

/// Creates a sender of 30 segments of 1000 octets that has sent the initial window of ten.
fn sending(era: Era, peer_options: &str) -> Script {
    let config = ConnectionConfig { congestion: ControllerSpec::named("newreno"), era, ..config() };
    let mut script = Script::established(config, peer_options);
    script.send(30_000);
    script
}

/// RFC 3042 releases a segment for each of the first two duplicate ACKs. Without it nothing leaves until the third (RFC
/// 5681 section 3.2), which retransmits.
#[test]
fn without_limited_transmit_two_duplicate_acks_let_nothing_out() {
    let mut script = sending(Era { limited_transmit: false, ..Era::default() }, "mss 1000");
    assert_eq!(script.drain().len(), 10);
    script.run_until(200);
    (0..2).for_each(|_| script.inject("A 1 ack 1"));
    script.expect_nothing();
    script.inject("A 1 ack 1");
    script.expect("A 1+1000 ack 1");
    assert_eq!((script.stats().ssthresh_bytes, script.stats().congestion_events), (5000, 1));
    assert_eq!(script.stats().in_flight_bytes, 7000, "three have left the network");
}

#[test]
fn a_window_of_its_own_is_all_that_a_subflow_has_in_flight() {
    let mut script = sending(Era { subflow_window_bytes: 5000, ..Era::default() }, "win 65535 mss 1000 sackok");
    assert_eq!(script.drain().len(), 5);
    script.run_until(200);
    script.inject("A 1 ack 5001 win 65535");
    assert_eq!(script.drain().len(), 5);
    script.inject("A 1 ack 10001 win 2000");
    assert_eq!(script.drain().len(), 2, "the peer may take less");
}

/// RFC 5681 section 3.1: slow start ends at the threshold, here after two of ten segments.
#[test]
fn an_initial_threshold_ends_slow_start() {
    let mut script = sending(Era { initial_ssthresh_bytes: 12_000, ..Era::default() }, "mss 1000");
    assert_eq!(script.drain().len(), 10);
    assert_eq!(script.stats().ssthresh_bytes, 12_000);
    script.run_until(200);
    script.inject("A 1 ack 10001");
    let cwnd = script.stats().cwnd_bytes;
    assert!((12_000..13_000).contains(&cwnd), "{cwnd}");
}

/// One segment is SACKed above a hole: RACK waits a quarter of the round-trip time (RFC 8985 section 6.2), and RFC 6675
/// section 4 requires three.
#[test]
fn without_rack_three_segments_above_tell_a_loss() {
    let options = "win 65535 mss 1000 sackok";
    let quiet = Era { tail_loss_probe: false, ..Era::default() };
    for (rack, retransmitted) in [(true, 1), (false, 0)] {
        let mut script = sending(Era { rack, ..quiet }, options);
        script.drain();
        script.run_until(150);
        script.inject("A 1 ack 1 sack 1001-2001");
        script.run_until(190);
        assert_eq!(script.stats().retransmitted_segments, retransmitted, "RACK: {rack}");
    }
    let mut script = sending(Era { rack: false, ..quiet }, options);
    script.drain();
    script.run_until(150);
    script.inject("A 1 ack 1 sack 1001-3001");
    assert_eq!(script.stats().retransmitted_segments, 0, "two");
    script.inject("A 1 ack 1 sack 1001-4001");
    assert_eq!(script.stats().retransmitted_segments, 1, "three");
    assert_eq!(script.stats().congestion_events, 1);
}

/// RFC 8985 section 7.2: the probe leaves after twice the round-trip time of 100 ms, before the time-out of 300 ms
/// after the last segment.
#[test]
fn without_tail_loss_probes_the_time_out_comes_first() {
    for (tail_loss_probe, at_ms) in [(true, 200), (false, 300)] {
        let era = Era { tail_loss_probe, ..Era::default() };
        let config = ConnectionConfig { era, nagle: false, ..config() };
        let mut script = Script::established(config, "win 65535 mss 1000 sackok");
        script.send(3000);
        assert_eq!(script.drain().len(), 3);
        let first = if tail_loss_probe { "A 2001+1000 ack 1" } else { "A 1+1000 ack 1" };
        script.expect_at(100 + at_ms, first);
    }
}

/// RFC 6298 section 2.4: the minimum is a second; Linux's minimum applies to the variance alone.
#[test]
fn the_floor_under_all_of_the_time_out_is_its_least() {
    for (rto_floor, at_ms) in [(RtoFloor::Variance, 1100), (RtoFloor::Whole, 1000)] {
        let era = Era { rto_floor, ..Era::default() };
        let config = ConnectionConfig { era, rto_min: Duration::from_secs(1), ..config() };
        let mut script = Script::established(config, "mss 1000");
        script.send(1000);
        script.expect("A 1+1000 ack 1");
        script.expect_at(100 + at_ms, "A 1+1000 ack 1");
    }
}

/// Three partial ACKs, 100 ms apart: the time-out counts from the last of them, or from the first (RFC 6582 section 4).
#[test]
fn the_first_partial_ack_alone_may_restart_the_timer() {
    for (partial_acks, timeouts) in [(PartialAcks::Every, 0), (PartialAcks::First, 1)] {
        let mut script = sending(Era { partial_acks, ..Era::default() }, "mss 1000");
        script.drain();
        script.run_until(150);
        (0..3).for_each(|_| script.inject("A 1 ack 1"));
        for (at_ms, ack) in [(250, 1001), (350, 2001), (450, 3001), (550, 4001)] {
            script.run_until(at_ms);
            script.inject(&format!("A 1 ack {ack}"));
        }
        script.run_until(640);
        assert_eq!(script.stats().timeouts, timeouts, "{partial_acks:?}");
    }
}

/// The first of ten segments is found lost 290 ms after the last ACK that advanced, 10 ms before the time-out, and is
/// retransmitted. Its ACK arrives in time only if the repair restarts the timer (RFC 6675 section 6).
#[test]
fn a_repair_may_restart_the_timer() {
    let quiet = Era { tail_loss_probe: false, ..Era::default() };
    for (repair_timer, timeouts) in [(RepairTimer::OnResend, 0), (RepairTimer::OnAck, 1)] {
        let mut script = sending(Era { repair_timer, ..quiet }, "win 65535 mss 1000 sackok");
        script.drain();
        script.run_until(390);
        script.inject("A 1 ack 1 sack 1001-5001");
        assert_eq!(script.stats().retransmitted_segments, 1);
        script.run_until(490);
        assert_eq!(script.stats().timeouts, timeouts, "{repair_timer:?}");
        script.run_until(1500);
        assert_ne!(script.stats().timeouts, 0, "a repair that is lost as well ends in a time-out");
    }
}

/// The first of ten segments is retransmitted at 390 ms. 210 ms later SACKs arrive for four segments sent before that.
/// The window then releases data that would reveal the loss of the repair too, if the timer leaves them the time.
#[test]
fn sacks_of_what_was_sent_before_a_repair_may_restart_the_timer() {
    let quiet = Era { tail_loss_probe: false, ..Era::default() };
    for (repair_timer, timeouts) in [(RepairTimer::OnSack, 0), (RepairTimer::OnResend, 1)] {
        let mut script = sending(Era { repair_timer, ..quiet }, "win 65535 mss 1000 sackok");
        script.drain();
        script.run_until(390);
        script.inject("A 1 ack 1 sack 1001-5001");
        script.run_until(600);
        script.inject("A 1 ack 1 sack 1001-9001");
        script.run_until(1000);
        assert_eq!(script.stats().timeouts, timeouts, "{repair_timer:?}");
        script.run_until(5000);
        assert_ne!(script.stats().timeouts, 0, "a path that falls silent ends in a time-out");
    }
}

/// SACKs of data sent after the repair do not delay the time-out: they show that the repair is lost.
#[test]
fn sacks_of_what_was_sent_after_a_repair_send_it_again() {
    let era = Era { repair_timer: RepairTimer::OnSack, tail_loss_probe: false, ..Era::default() };
    let mut script = sending(era, "win 65535 mss 1000 sackok");
    script.drain();
    script.run_until(200);
    script.inject("A 1 ack 1 sack 1001-10001");
    assert_eq!(script.stats().retransmitted_segments, 1);
    assert!(!script.drain().is_empty());
    script.run_until(300);
    script.inject("A 1 ack 1 sack 1001-11001");
    assert_eq!((script.stats().retransmitted_segments, script.stats().timeouts), (2, 0));
}

/// Nine of ten segments are SACKed at once and the first is retransmitted, followed by nothing or by a full window.
/// When the recovery ends, the window is the flight plus a segment, or the threshold plus the growth for the last ACK.
#[test]
fn a_recovery_ends_with_what_is_in_flight_or_at_the_threshold() {
    let ended = |recovery_end, more_bytes: u32| {
        let era = Era { recovery_end, tail_loss_probe: false, ..Era::default() };
        let config = ConnectionConfig { congestion: ControllerSpec::named("newreno"), era, ..config() };
        let mut script = Script::established(config, "win 65535 mss 1000 sackok");
        script.send(10_000 + more_bytes);
        script.drain();
        script.run_until(200);
        script.inject("A 1 ack 1 sack 1001-10001");
        script.drain();
        assert_eq!(script.stats().ssthresh_bytes, 5000);
        script.run_until(300);
        script.inject("A 1 ack 10001");
        script.stats().cwnd_bytes
    };
    assert_eq!(ended(RecoveryEnd::Flight, 0), 2000);
    assert_eq!(ended(RecoveryEnd::Threshold, 0), 5000, "it was not in use, and does not grow");
    assert_eq!(ended(RecoveryEnd::Flight, 20_000), 5000);
    assert_eq!(
        ended(RecoveryEnd::Threshold, 20_000),
        5200,
        "an MSS for each window delivered, here for a fifth of one"
    );
}

/// Creates two paths, of 10 and 200 ms one way, for data that alternate between them.
fn two_paths(era: Era) -> (Pair, ConnectionConfig) {
    let config = ConnectionConfig { scheduler: "round-robin".into(), era, ..ConnectionConfig::default() };
    (Pair::new(&[10, 200], config.clone(), 1), config)
}

/// Returns the payload octets of first transmissions on each path.
fn carried(pair: &Pair) -> [u64; 2] {
    let on = |path| {
        let data = pair.logged(|side, segment| side == Side::Client && pair::path_of(side, segment) == path);
        data.iter().map(|segment| segment.payload.len() as u64).sum()
    };
    [on(0), on(1)]
}

/// 200 kB fit the two buffers of 128 KiB. Alternating, each subflow gets half of the data at once, and the slow one
/// keeps its half. With late binding, the fast subflow carries the data that exceed the slow one's window.
#[test]
fn what_is_bound_early_stays_where_it_is() {
    let shares = [Binding::Late, Binding::Early { buffer_bytes: 131_072 }].map(|binding| {
        let (mut pair, config) = two_paths(Era { binding, ..Era::default() });
        let (client, server) = pair.establish(config);
        pair.run_for(Duration::from_secs(2));
        pair.log = Some(Vec::new());
        let received = pair.transfer(Side::Client, client, server, 200_000);
        pair::assert_pattern(&received, 200_000);
        carried(&pair)
    });
    let [late, early] = shares;
    assert!(late[1] < 60_000, "{late:?}");
    assert!((95_000..=105_000).contains(&early[1]), "{early:?}");
}

/// A subflow's own buffer respects its limit; the rest waits for the next subflow with room.
#[test]
fn a_full_buffer_takes_no_more() {
    let (mut pair, config) = two_paths(Era { binding: Binding::Early { buffer_bytes: 20_000 }, ..Era::default() });
    let (client, server) = pair.establish(config);
    pair.run_for(Duration::from_secs(2));
    pair.log = Some(Vec::new());
    let received = pair.transfer(Side::Client, client, server, 400_000);
    pair::assert_pattern(&received, 400_000);
    let [fast, slow] = carried(&pair);
    assert!(slow < fast / 4, "{fast} and {slow}: the slow one is full most of the time");
}

/// Linux gives a subflow a burst of 64 kB, whatever its window, and the rest to the subflow that holds less.
#[test]
fn bursts_wait_where_linux_puts_them() {
    let unsent = [Binding::Late, Binding::Autotuned].map(|binding| {
        let (mut pair, config) = two_paths(Era { binding, ..Era::default() });
        let config = ConnectionConfig { scheduler: "linux".into(), ..config };
        let (client, _) = pair.establish(config);
        pair.run_for(Duration::from_secs(2));
        let now = pair.now;
        assert_eq!(pair.client.send(client, pair::pattern(0, 80_000), now), Ok(80_000));
        pair.run_for(Duration::from_millis(1));
        let stats = pair.client.stats(client).unwrap();
        [0, 1].map(|subflow| stats.subflows[subflow].unsent_bytes)
    });
    let [late, autotuned] = unsent;
    assert_eq!(late, [0, 0]);
    // Windows of ten segments: of 65428 octets 14 kB are in flight, and of the 15 kB left a few hundred wait.
    assert!((50_000..53_000).contains(&autotuned[0]) && autotuned[1] < 2000, "{autotuned:?}");
}

/// As in Linux, a connection's send buffer grows with its windows, up to its limit.
#[test]
fn a_send_buffer_grows_with_the_windows() {
    let era = Era { binding: Binding::Autotuned, ..Era::default() };
    let config = ConnectionConfig { era, ..config() };
    // Twice ten, then twice twenty segments, of 2304 octets each including overhead.
    for (send_buffer_bytes, first, then) in
        [(1 << 20, 46_080, 92_160), (50_000, 46_080, 50_000), (15_000, 15_000, 15_000)]
    {
        let config = ConnectionConfig { send_buffer_bytes, ..config.clone() };
        let mut script = Script::established(config, "win 65535 mss 1000");
        let capacity = |script: &Script| script.endpoint.send_capacity(script.id());
        assert_eq!(capacity(&script), first);
        script.send(10_000);
        assert_eq!(script.drain().len(), 10);
        script.run_until(200);
        script.inject("A 1 ack 10001");
        assert_eq!(capacity(&script), then);
    }
}

/// The buffer keeps its size when the subflow with the wide window has ended, also when a setting changes that has
/// nothing to do with it.
#[test]
fn a_send_buffer_that_has_grown_does_not_shrink() {
    let (mut pair, config) = two_paths(Era { binding: Binding::Autotuned, ..Era::default() });
    let (client, server) = pair.establish(config);
    pair.run_for(Duration::from_secs(2));
    let mut written = 0;
    for _ in 0..10 {
        let wanted = pair.client.send_capacity(client).min(100_000);
        written += pair.client.send(client, pair::pattern(written, wanted as u32), pair.now).unwrap() as u64;
        pair.run_for(Duration::from_millis(50));
        while let Ok(transport::Received::Data(_)) = pair.server.recv(server, usize::MAX, pair.now) {}
    }
    pair.run_for(Duration::from_secs(2));
    let wide = |subflow: &transport::SubflowStats| subflow.cwnd_bytes;
    let widest = pair.client.stats(client).unwrap().subflows.iter().max_by_key(|subflow| wide(subflow)).unwrap().id;
    pair.client.remove_subflow(client, widest, pair.now).unwrap();
    // It is gone after TIME-WAIT.
    pair.run_for(Duration::from_secs(100));
    let grown = pair.client.send_capacity(client);
    assert!(grown > 100_000, "{grown}");
    for (send_buffer_bytes, then) in [(None, grown), (Some(100_000), 100_000)] {
        let keep_alive = Some(Some(Duration::from_secs(60)));
        let change = SettingsChange { keep_alive, send_buffer_bytes, ..SettingsChange::default() };
        pair.client.change(client, &change, pair.now).unwrap();
        assert_eq!(pair.client.send_capacity(client), then, "of {grown}");
    }
}

/// A path goes dark: its data move at its first time-out, or after the configured number. Data missing for long at the
/// data level move anyway.
#[test]
fn reinjection_may_wait_for_more_time_outs() {
    let reinjected = [1, 3].map(|reinjection_timeouts| {
        let (mut pair, config) = two_paths(Era { reinjection_timeouts, ..Era::default() });
        let (client, _) = pair.establish(config);
        pair.run_for(Duration::from_secs(2));
        let now = pair.now;
        pair.dark[1] = true;
        pair.client.send(client, pair::pattern(0, 100_000), now).unwrap();
        // A probe and a time-out have passed on the subflow, but no time-out at the data level.
        [2200, 2000].map(|millis| {
            pair.run_for(Duration::from_millis(millis));
            pair.client.stats(client).unwrap().reinjected_bytes
        })
    });
    assert!(reinjected[0][0] > 0 && reinjected[1][0] == 0 && reinjected[1][1] > 0, "{reinjected:?}");
}

/// 64 KiB go to the fast path and the rest to the slow one, which is dark. The fast one is soon idle, and gets the rest
/// long before the slow one's time-outs.
#[test]
fn what_the_head_waits_for_goes_to_who_owes_nothing() {
    let reinjected = [true, false].map(|idle_reinjection| {
        let era = Era { binding: Binding::Autotuned, reinjection_timeouts: 5, idle_reinjection, ..Era::default() };
        let (mut pair, config) = two_paths(era);
        let (client, server) = pair.establish(ConnectionConfig { scheduler: "linux".into(), ..config });
        pair.run_for(Duration::from_secs(2));
        let now = pair.now;
        pair.dark[1] = true;
        pair.client.send(client, pair::pattern(0, 80_000), now).unwrap();
        pair.run_for(Duration::from_millis(1200));
        let mut bytes = 0;
        while let Ok(transport::Received::Data(payload)) = pair.server.recv(server, usize::MAX, pair.now) {
            bytes += payload.len();
        }
        (pair.client.stats(client).unwrap().reinjected_bytes, bytes)
    });
    assert_eq!(reinjected, [(80_000 - 65_536, 80_000), (0, 65_536)]);
}

/// A path goes dark with data in flight: with reinjection the other path delivers them, without it they wait for the
/// path.
#[test]
fn without_reinjection_data_wait_for_their_subflow() {
    let reinjected = [true, false].map(|reinjection| {
        let (mut pair, config) = two_paths(Era { reinjection, ..Era::default() });
        let (client, server) = pair.establish(config);
        pair.run_for(Duration::from_secs(2));
        let now = pair.now;
        pair.dark[1] = true;
        pair.client.send(client, pair::pattern(0, 100_000), now).unwrap();
        pair.run_for(Duration::from_secs(20));
        let reinjected = pair.client.stats(client).unwrap().reinjected_bytes;
        pair.dark[1] = false;
        pair.run_for(Duration::from_secs(100));
        let mut bytes = 0;
        while let Ok(transport::Received::Data(payload)) = pair.server.recv(server, usize::MAX, pair.now) {
            bytes += payload.len();
        }
        assert_eq!(bytes, 100_000);
        reinjected
    });
    assert!(reinjected[0] > 0 && reinjected[1] == 0, "{reinjected:?}");
}
