//! Whole runs with links that take no packet beyond a size, with and without ICMP, and the effect on relays.

use std::fs;

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, load};

use crate::support::captured::packets_from;

/// Two relays, and a file that takes a few seconds.
const PATHS: &str = "
    name = 'narrow'
    duration = '60 s'
    [workload]
    kind = 'generated'
    size = '6 MB'
    [[relays]]
    cellular = { rate = '6 Mbit/s', delay = '20 ms' }
    [[relays]]
    cellular = { rate = '4 Mbit/s', delay = '30 ms' }
";
const TOLD: &str = "1400 B";
const SILENT: &str = "{ size = \"1400 B\", silent = true }";

struct Captured {
    results: Results,
    /// Octets of the packets that the source sent, and of those that reached the destination.
    sent: Vec<usize>,
    arrived: Vec<usize>,
}

fn run_with(settings: &[&str]) -> Captured {
    let overrides: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = load("narrow.toml", PATHS, &overrides).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = run(&scenario, Some(folder.path()), &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{settings:?}");
    assert!(run.results.totals.completed && run.results.totals.intact, "{settings:?}");
    let source = scenario.addresses().source;
    let packets = |host: &str| packets_from(source, &fs::read(folder.path().join(host)).unwrap());
    Captured { results: run.results, sent: packets("source.pcapng"), arrived: packets("destination.pcapng") }
}

fn largest(packets: &[usize]) -> usize {
    packets.iter().copied().max().unwrap()
}

fn goodput(captured: &Captured) -> f64 {
    captured.results.totals.goodput_in_order_bps
}

/// Learned at once or after time-outs: the cost is small in both cases, and no larger packets pass.
#[track_caller]
fn assert_found(mode: &str, hops: &[&str]) {
    let mode = format!("cooperation.relays={mode}");
    let wide = run_with(&[&mode]);
    assert_eq!(largest(&wide.arrived), 1500);
    for hop in hops {
        for (mtu, least) in [(TOLD, 0.95), (SILENT, 0.6)] {
            let setting = format!("relays[*].{hop}.mtu={mtu}");
            let narrow = run_with(&[&mode, &setting]);
            let case = format!("{mode}, {setting}");
            let ratio = goodput(&narrow) / goodput(&wide);
            assert!((least..1.01).contains(&ratio), "{case}: {ratio}");
            let behind = if mode.ends_with("fast-ack") && *hop == "cellular" { 1500 } else { 1400 };
            assert!(largest(&narrow.arrived) <= behind, "{case}: {}", largest(&narrow.arrived));
            assert!(narrow.arrived.iter().any(|octets| *octets > 1392), "{case}: small packets only");
        }
    }
}

#[test]
fn behind_relays_that_route() {
    assert_found("ip", &["cellular", "wifi"]);
}

#[test]
fn behind_relays_that_acknowledge() {
    assert_found("fast-ack", &["cellular", "wifi"]);
}

#[test]
fn without_relays_between() {
    assert_found("multi-homed", &["cellular"]);
}

/// For IPv6, every path takes 1280 octets; 1400 are more.
#[test]
fn of_ipv6() {
    for mtu in [TOLD, SILENT] {
        let narrow = run_with(&["source.address=fd00::1", &format!("relays[*].wifi.mtu={mtu}")]);
        assert!(largest(&narrow.arrived) <= 1400 && largest(&narrow.sent) == 1500);
    }
}

/// The narrowest link of a valid scenario, and hosts that begin just above the size that they never doubt.
#[test]
fn of_the_least_size() {
    for (own, mtu, most) in [
        ("1500 B", "576 B", 576),
        ("1500 B", "{ size = \"576 B\", silent = true }", 576),
        ("1281 B", "{ size = \"1000 B\", silent = true }", 1000),
        ("1280 B", "1000 B", 1000),
    ] {
        let narrow = run_with(&[&format!("connection.mtu={own}"), &format!("relays[*].cellular.mtu={mtu}")]);
        assert!(largest(&narrow.arrived) <= most, "{own}, {mtu}: {}", largest(&narrow.arrived));
    }
}

#[test]
fn behind_a_bottleneck() {
    let bottleneck = |mtu: &str| format!("bottleneck={{ rate = \"20 Mbit/s\", delay = \"1 ms\"{mtu} }}");
    let wide = run_with(&[&bottleneck("")]);
    for mtu in [TOLD, SILENT] {
        let written = if mtu == TOLD { format!("\"{mtu}\"") } else { mtu.into() };
        let narrow = run_with(&[&bottleneck(&format!(", mtu = {written}"))]);
        assert!(largest(&narrow.arrived) <= 1400, "{mtu}");
        assert!(goodput(&narrow) > 0.6 * goodput(&wide), "{mtu}");
    }
}

/// Once the source has learned the size, it sends nothing larger, and reports the size in its results.
#[test]
fn what_the_source_knows_is_in_the_results() {
    let narrow = run_with(&["relays[0].cellular.mtu=1400 B"]);
    let known: Vec<_> = narrow.results.subflows.iter().map(|subflow| subflow.path_mtu_bytes).collect();
    assert_eq!(known, [Some(1400), Some(1500)]);
    let large = |packets: &[usize]| packets.iter().filter(|octets| **octets > 1400).count();
    assert!(large(&narrow.sent) > large(&narrow.arrived), "what was too large did not arrive");
}

/// Packets lost because they are too large count as lost on the path.
#[test]
fn packets_that_are_too_large_are_lost() {
    let lost = |mtu: &str| run_with(&[&format!("relays[*].wifi.mtu={mtu}")]).results.subflows[0].lost_packets;
    assert!(lost("1400 B") > lost("1500 B"));
}

/// The return path carries only acknowledgements: a narrow one changes nothing, and the narrow forward path does not
/// affect it.
#[test]
fn each_direction_has_its_own() {
    let wide = run_with(&[]);
    let up = run_with(&["relays[*].cellular.uplink.mtu=600 B"]);
    assert_eq!(goodput(&up), goodput(&wide));
    let down = run_with(&["relays[*].cellular.uplink.mtu=1500 B", "relays[*].cellular.mtu=1400 B"]);
    assert!(largest(&down.arrived) <= 1400);
}

/// Held data are compatible with ICMP messages from routers about their size.
#[test]
fn behind_relays_that_hold_data() {
    for relays in ["ip", "fast-ack"] {
        for hop in ["cellular", "wifi"] {
            for mtu in [TOLD, SILENT] {
                let narrow = run_with(&[
                    &format!("cooperation.relays={relays}"),
                    "cooperation.forwarding.range_packets=100",
                    &format!("relays[*].{hop}.mtu={mtu}"),
                ]);
                let case = format!("{relays} {hop} {mtu}");
                // A relay with a TCP of its own may join what it has received before the Wi-Fi.
                let behind = if relays == "fast-ack" && hop == "cellular" { 1500 } else { 1400 };
                assert!(largest(&narrow.arrived) <= behind, "{case}: {}", largest(&narrow.arrived));
                let held = narrow.results.series.relays.iter().flat_map(|relay| &relay.hold_queue_bytes).max();
                assert!(held.is_some_and(|bytes| *bytes > 0), "{case}: nothing was held");
            }
        }
    }
}

/// A relay's own TCP discovers the size, too.
#[test]
fn local_traffic_finds_out() {
    for mtu in [TOLD, SILENT] {
        let local = "relays[0].local=[{ kind = \"tcp\", rate = \"1 Mbit/s\" }]";
        let narrow = run_with(&[local, &format!("relays[*].cellular.mtu={mtu}")]);
        let got: f64 = narrow.results.series.relays[0].local_goodput_bps.iter().sum();
        assert!(got > 0.0, "{mtu}");
    }
}
