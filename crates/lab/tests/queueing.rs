//! Queues whose mean wait has a closed form.

use lab::measure::statistics::Interval;
use lab::run::run;
use lab::scenario::load;

/// Octets of a packet: 972 of payload, and the headers of IPv4 and UDP.
const PACKET_BYTES: f64 = 1000.0;
/// Time that the link takes to send one, at 1 Mbit/s (S).
const SERVICE_S: f64 = 0.008;
const DURATION_S: f64 = 300.0;

/// The mean wait of packets before the link of 1 Mbit/s begins to send them, if the owner's traffic takes the share
/// `rho` of it. What is on the wire no longer waits.
fn wait_s(kind: &str, rho: f64, seed: u64) -> f64 {
    let rate_bps = (rho / SERVICE_S * 972.0 * 8.0).round();
    let text = format!(
        "name = \"x\"\nseed = {seed}\nduration = \"{DURATION_S} s\"\nworkload = {{ kind = \"none\" }}\n\
         metrics = {{ window = \"50 ms\" }}\nbottleneck = {{ rate = \"1 Mbit/s\", delay = \"20 ms\", queue = \"lossless\" }}\n\
         [[relays]]\ncellular = {{ rate = \"1 Gbit/s\", delay = \"1 ms\" }}\n\
         local = [{{ kind = \"{kind}\", rate = \"{rate_bps} bit/s\", datagram = \"972 B\" }}]\n"
    );
    let run = run(&load("x.toml", &text, &[]).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    let link = run.results.bottleneck.unwrap();
    assert_eq!(link.lost_packets, 0);
    // Little's law: packets that wait or are being sent, over their rate, are the time that each is there.
    let packets = link.queue_mean_bytes / PACKET_BYTES;
    packets / (link.entered_packets as f64 / DURATION_S) - SERVICE_S
}

/// Pollaczek and Khinchine for a constant time of service, an M/D/1 queue: W = rho S / (2 (1 - rho)).
#[test]
fn poisson_traffic_waits_as_pollaczek_and_khinchine_say() {
    for rho in [0.3, 0.6, 0.8] {
        let waits: Vec<f64> = (1..=20).map(|seed| wait_s("poisson", rho, seed)).collect();
        let interval = Interval::of(&waits).unwrap();
        let (low, high) = (interval.low().unwrap(), interval.high().unwrap());
        let expected = rho * SERVICE_S / (2.0 * (1.0 - rho));
        assert!((low..=high).contains(&expected), "rho = {rho}: {expected} s is not in [{low}, {high}]");
        assert!(high - low < 0.1 * expected, "rho = {rho}: [{low}, {high}] is too wide to tell anything");
    }
}

/// Evenly spaced packets of the same rate never find another one. Their gaps of 13.04 ms are no fraction of the windows,
/// at whose ends the queue is looked at.
#[test]
fn evenly_spaced_traffic_does_not_wait() {
    let wait_s = wait_s("udp", 0.6137, 1);
    assert!(wait_s.abs() < 0.03 * SERVICE_S, "{wait_s}");
}
