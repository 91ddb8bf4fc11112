//! Adaptive congestion control and bandwidth sharing in runs, alone and with all other modules.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, load};

fn results(text: &str, overrides: &[&str]) -> Results {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    let run = run(&load("modules.toml", text, &overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.intact);
    run.results
}

/// Two relays whose owners demand most of their links.
const KEEN: &str = r#"
name = "keen"
duration = "40 s"
workload = { kind = "bulk" }
cell = { fading = "none", early_drop_above = "15 kB" }
wlan = {}
[[relays]]
count = 2
bit_rate_max = "1.2 Mbit/s"
[[relays.local]]
kind = "tcp"
rate = "1 Mbit/s"
"#;

/// The share of its demand that an owner's flow received: the smaller one.
fn least_local_ratio(results: &Results) -> f64 {
    results.relays.iter().map(|relay| relay.local_ratio().unwrap()).fold(f64::INFINITY, f64::min)
}

#[test]
fn a_source_that_hears_of_the_owners_flows_leaves_them_more() {
    // A mean over seeds: with one seed, the estimated signal gains between -0.02 and 0.26.
    let least = |sharing: &[&str]| {
        let of_seed = |seed: u32| {
            let seed = format!("seed={seed}");
            least_local_ratio(&results(KEEN, &[&["connection.congestion=mcc-coop", &seed], sharing].concat()))
        };
        (1..=20).map(of_seed).sum::<f64>() / 20.0
    };
    let alone = least(&[]);
    for sharing in ["demands=known", "demands=estimated", "fixed=[5.0, 5.0]"] {
        let shared = least(&[&format!("cooperation.bandwidth_sharing.{sharing}")]);
        assert!(shared > alone + 0.07, "{sharing}: {shared} after {alone}");
    }
}

#[test]
fn signals_mean_nothing_to_other_controllers() {
    let json = |overrides: &[&str]| {
        let results = results(KEEN, overrides);
        (results.series, results.totals.delivered_bytes)
    };
    // The signals cost a few octets of the links, whatever their value.
    let told = |rho: &str| json(&["duration=10 s", &format!("cooperation.bandwidth_sharing.fixed=[{rho}, {rho}]")]);
    assert_eq!(told("1.0"), told("50.0"));
}

/// A short and a long path, which drop packets only when their queues are full.
const UNEQUAL: &str = r#"
name = "unequal"
duration = "40 s"
workload = { kind = "bulk" }
connection = { receive_buffer = "4 MiB", send_buffer = "4 MiB" }
[[relays]]
cellular = { rate = "2 Mbit/s", delay = "60 ms", queue = "10 packets" }
[[relays]]
cellular = { rate = "2 Mbit/s", delay = "60 ms", queue = "40 packets" }
"#;

/// Mean window of the second relay's subflow after 10 s.
fn mean_cwnd_bytes(results: &Results) -> f64 {
    let slow = results.series.subflows.iter().find(|subflow| subflow.path == "relay-2").unwrap();
    let later: Vec<u64> = slow.cwnd_bytes.iter().skip(100).copied().collect();
    later.iter().sum::<u64>() as f64 / later.len() as f64
}

#[test]
fn adaptive_congestion_control_holds_the_slow_path_back() {
    let alone = results(UNEQUAL, &[]);
    let adaptive = results(UNEQUAL, &["cooperation.adaptive_congestion={}"]);
    let (before, after) = (mean_cwnd_bytes(&alone), mean_cwnd_bytes(&adaptive));
    assert!(after < 0.9 * before, "{after} after {before}");
    let delay = |results: &Results| results.metrics.as_ref().unwrap().totals.delay_s.unwrap();
    assert!(delay(&adaptive) < delay(&alone), "{} after {}", delay(&adaptive), delay(&alone));
}

#[test]
fn every_subset_of_modules_runs() {
    let base = r#"
name = "subsets"
duration = "12 s"
target = { bit_rate = "3 Mbit/s" }
workload = { kind = "bulk" }
connection = { congestion = "mcc-coop", receive_buffer = "4 MiB", send_buffer = "4 MiB" }
cell = {}
wlan = {}
[[relays]]
count = 5
bit_rate_max = "2 Mbit/s"
[[relays.local]]
kind = "tcp"
rate = { uniform = ["0.5 Mbit/s", "1.2 Mbit/s"] }
"#;
    let modules: [&[&str]; 4] = [
        &["cooperation.selection.method=ssrs"],
        &["cooperation.adaptive_congestion={}"],
        &["cooperation.relays=fast-ack", "cooperation.forwarding={}"],
        &["cooperation.bandwidth_sharing={}"],
    ];
    for subset in 0..16_u32 {
        let chosen = (0..4).filter(|module| subset >> module & 1 == 1).flat_map(|module| modules[module]);
        let chosen: Vec<&str> = chosen.copied().collect();
        let delivered = results(base, &chosen).totals.delivered_bytes;
        assert!(delivered > 2_000_000, "{chosen:?}: {delivered}");
    }
}
