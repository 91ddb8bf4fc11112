//! The path MTU of a subflow: ICMP errors (RFC 1191, 8201, 5927), probing and black holes (RFC 4821, RFC 8899).
//!
//! Packets of 1500 octets carry 1460 of payload; the round-trip time is 100 ms.

use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use wire::TooBig;

use crate::script::{Script, config};

/// Writes `bytes` octets at 100 ms; ten segments of 1460 octets are sent.
fn sending(bytes: u32) -> Script {
    let config = ConnectionConfig { mtu: 1500, congestion: ControllerSpec::named("newreno"), ..config() };
    let mut script = Script::established(config, "win 65535 mss 1460 sackok wscale 6");
    script.send(bytes);
    assert_eq!(script.drain().len(), 10);
    script
}

/// A router with a next hop of `mtu` octets reports on the packet whose data start at `seq`.
fn too_big(script: &mut Script, seq: i32, mtu: u32) {
    script.inject_too_big(seq, |error| error.next_hop_mtu = mtu);
}

/// RFC 1191 section 6.4 and RFC 8201: packets shrink at once, the rejected data are sent again, and the window stays.
#[test]
fn a_router_shrinks_packets() {
    let mut script = sending(20_000);
    script.run_until(150);
    too_big(&mut script, 1, 1400);
    let sent = script.drain();
    assert_eq!(sent[..3], ["A 1+1360 ack 1", "A 1361+100 ack 1", "A 1461+1360 ack 1"]);
    let stats = script.stats();
    assert_eq!((stats.path_mtu_bytes, stats.mss_bytes), (1400, 1360));
    assert_eq!((stats.congestion_events, stats.timeouts, stats.cwnd_bytes), (0, 0, 14_600));
    script.run_until(250);
    script.inject("A 1 ack 14601");
    assert_eq!(script.drain()[0], "A 14601+1360 ack 1");
    assert_eq!(script.stats().congestion_events, 0);
}

/// RFC 5927 section 4.1: an error must quote a segment in flight. RFC 1191 and RFC 8201: its MTU must be plausible.
#[test]
fn forged_errors_change_nothing() {
    let mut script = sending(20_000);
    script.run_until(200);
    script.inject("A 1 ack 1461");
    script.drain();
    let change = |error: &mut TooBig| error.next_hop_mtu = 1400;
    for seq in [0, 1, 1460, 20_001, -100_000, 100_000] {
        script.inject_too_big(seq, change);
    }
    let wrong: [fn(&mut TooBig); 6] = [
        |error| error.next_hop_mtu = 67,
        |error| error.next_hop_mtu = 1500,
        |error| error.next_hop_mtu = u32::MAX,
        |error| (error.next_hop_mtu, error.packet_bytes) = (1400, 1400),
        |error| (error.next_hop_mtu, error.dst) = (1400, "10.0.0.2:81".parse().unwrap()),
        |error| (error.next_hop_mtu, error.src) = (1400, "10.0.0.3:4000".parse().unwrap()),
    ];
    wrong.into_iter().for_each(|change| script.inject_too_big(1461, change));
    script.expect_nothing();
    assert_eq!(script.stats().path_mtu_bytes, 1500);
    // The smallest accepted MTU, and an old router's report: the next smaller size in the table of RFC 1191.
    script.inject_too_big(1461, |error| error.next_hop_mtu = 0);
    assert_eq!(script.stats().path_mtu_bytes, 1492);
    script.inject_too_big(1461, |error| error.next_hop_mtu = 100);
    assert_eq!(script.stats().path_mtu_bytes, 552);
}

/// RFC 1191 section 7: an error without an MTU means the plateau below the size that it is about. A window of packets
/// of one size thus causes one step.
#[test]
fn errors_about_one_size_are_one_step_down() {
    let mut script = sending(20_000);
    script.run_until(150);
    for seq in [1, 1461, 2921] {
        too_big(&mut script, seq, 0);
        assert_eq!(script.stats().path_mtu_bytes, 1492);
    }
    script.inject_too_big(1, |error| (error.packet_bytes, error.next_hop_mtu) = (1492, 0));
    assert_eq!(script.stats().path_mtu_bytes, 1006);
}

/// Before the connection is synchronised, no large packet is in flight.
#[test]
fn a_handshake_is_not_to_be_shrunk() {
    let mut script = Script::connect(ConnectionConfig { mtu: 1500, ..config() });
    too_big(&mut script, 0, 600);
    script.expect("S 0");
    script.run_until(100);
    script.inject("SA 0 ack 1 win 65535 mss 1460 sackok");
    assert_eq!(script.stats().path_mtu_bytes, 1500);
}

/// RFC 4821 section 7.7: large packets vanish silently. The second time-out tries a smaller packet, which passes; the
/// next large one times out again: a black hole. This does not reduce the window.
#[test]
fn a_black_hole_is_found_without_a_word() {
    let mut script = sending(60_000);
    script.run_until(300);
    assert_eq!(script.drain(), ["A 13141+1460 ack 1"], "the tail loss probe, for nothing");
    script.expect_at(600, "A 1+1460 ack 1");
    script.expect_at(1200, "A 1+730 ack 1");
    script.run_until(1300);
    script.inject("A 1 ack 731");
    assert_eq!(script.drain(), ["A 731+730 ack 1", "A 1461+1460 ack 1"]);
    script.run_until(1400);
    script.inject("A 1 ack 1461");
    script.drain();
    script.run_until(5000);
    let sent = script.drain();
    assert_eq!(sent[0], "A 1461+1240 ack 1", "{sent:?}");
    assert_eq!((script.stats().path_mtu_bytes, script.stats().mss_bytes), (1280, 1240));
    assert_eq!(script.stats().ssthresh_bytes, u64::MAX);
}

/// An outage loses the first trial. The next one, half as large, arrives, and so does its rest; what was suspected
/// before the outage stays suspect: the next large packet that times out shows the black hole.
#[test]
fn a_black_hole_is_found_although_an_outage_lost_the_first_trial() {
    let mut script = sending(60_000);
    script.run_until(4700);
    assert!(script.drain().contains(&"A 1+730 ack 1".to_owned()));
    script.expect_at(4800, "A 1+365 ack 1");
    script.run_until(4900);
    for acked in [366, 731, 1461] {
        script.inject(&format!("A 1 ack {acked}"));
    }
    assert!(script.drain().contains(&"A 1461+1460 ack 1".to_owned()));
    assert_eq!(script.stats().path_mtu_bytes, 1500);
    script.run_until(12_000);
    let sent = script.drain();
    assert_eq!(sent[0], "A 1461+1240 ack 1", "{sent:?}");
    assert_eq!(script.stats().path_mtu_bytes, 1280);
}

/// An outage is no black hole: after the small packet the large ones pass too.
#[test]
fn an_outage_shrinks_nothing() {
    let mut script = sending(60_000);
    script.run_until(300);
    script.drain();
    script.expect_at(600, "A 1+1460 ack 1");
    script.expect_at(1200, "A 1+730 ack 1");
    script.run_until(1300);
    let mut acked = 731;
    for ack in [731, 1461, 2921, 5841, 8761, 11_681, 14_601] {
        script.inject(&format!("A 1 ack {ack}"));
        acked = ack;
        script.run_for(100);
    }
    script.drain();
    script.inject(&format!("A 1 ack {acked}"));
    script.run_until(60_000);
    assert_eq!(script.stats().path_mtu_bytes, 1500);
}

/// Brings a connection to the base size, with all sent data acknowledged. Returns their number of octets.
fn at_the_base() -> (Script, u32) {
    let mut script = sending(14_600);
    script.run_until(150);
    too_big(&mut script, 1, 1280);
    script.drain();
    script.run_until(250);
    script.inject("A 1 ack 14601");
    assert_eq!(script.stats().path_mtu_bytes, 1280);
    (script, 14_601)
}

/// RFC 1191 section 6.3: ten minutes after a router's report a larger packet is tried, the largest first. Its loss is
/// no congestion (RFC 4821 section 7.5); three losses end the trial of a size, and one arrival raises the size.
#[test]
fn probes_find_the_way_up() {
    let (mut script, una) = at_the_base();
    script.run_until(600_000);
    script.send(1240);
    script.drain();
    script.run_for(100);
    let mut acked = una + 1240;
    script.inject(&format!("A 1 ack {acked}"));
    script.run_until(600_200);
    for _ in 0..3 {
        // The probe is lost; four segments behind it arrive.
        script.send(1460 + 4 * 1240);
        let sent = script.drain();
        assert_eq!(sent[0], format!("A {acked}+1460 ack 1"), "{sent:?}");
        let cwnd = script.stats().cwnd_bytes;
        script.run_for(100);
        let behind = acked + 1460;
        script.inject(&format!("A 1 ack {acked} sack {behind}-{}", behind + 4 * 1240));
        script.run_for(30);
        assert_eq!(script.drain(), [format!("A {acked}+1240 ack 1"), format!("A {}+220 ack 1", acked + 1240)]);
        assert_eq!((script.stats().congestion_events, script.stats().cwnd_bytes), (0, cwnd));
        script.run_for(100);
        acked = behind + 4 * 1240;
        script.inject(&format!("A 1 ack {acked}"));
        assert_eq!(script.stats().path_mtu_bytes, 1280);
        script.run_for(30);
    }
    // Half way between 1280, which passes, and 1500, which does not.
    script.send(1350 + 4 * 1240);
    assert_eq!(script.drain()[0], format!("A {acked}+1350 ack 1"));
    script.run_for(100);
    script.inject(&format!("A 1 ack {}", acked + 1350));
    assert_eq!(script.stats().path_mtu_bytes, 1390);
}

/// Without SACK the lost packet cannot be identified, so there are no probes.
#[test]
fn without_sack_nothing_is_probed() {
    let config = ConnectionConfig { mtu: 1500, ..config() };
    let mut script = Script::established(config, "win 65535 mss 1460");
    script.send(14_600);
    script.drain();
    script.run_until(150);
    too_big(&mut script, 1, 1400);
    script.drain();
    script.run_until(250);
    script.inject("A 1 ack 14601");
    script.run_until(700_000);
    script.send(5000);
    assert_eq!(script.drain()[0], "A 14601+1360 ack 1");
}

/// The smaller MSS of a peer, or a configured MTU, is the maximum.
#[test]
fn nothing_exceeds_what_the_peer_takes() {
    let config = ConnectionConfig { mtu: 1500, ..config() };
    let mut script = Script::established(config, "win 65535 mss 1300 sackok");
    assert_eq!(script.stats().path_mtu_bytes, 1340);
    script.send(13_000);
    assert_eq!(script.drain()[0], "A 1+1300 ack 1");
    too_big(&mut script, 1, 1400);
    assert_eq!(script.stats().path_mtu_bytes, 1340);
}
