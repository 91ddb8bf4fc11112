//! Rates of links: recorded, in both directions, from any place on; the capacity that results state; and a link that all
//! paths share.

use core::fmt::Write;

use lab::measure::results::Results;
use lab::present::{report, summary};
use lab::run::{check_inputs, run};
use lab::scenario::{Override, Scenario, load};

const TEXT: &str = "name = 'rates'\nduration = '8 s'\nworkload = { kind = 'bulk' }\n[[relays]]\n\
    cellular = { rate = '4 Mbit/s', delay = '20 ms' }\n";

fn scenario(changes: &[&str]) -> Scenario {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    load("test.toml", TEXT, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn results(changes: &[&str]) -> Results {
    let run = run(&scenario(changes), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{changes:?}");
    run.results
}

fn refused(change: &str) -> String {
    load("test.toml", TEXT, &[change.parse().unwrap()]).unwrap_err().to_string()
}

/// A file of 10 s: an opportunity every 2 ms (6 Mbit/s) in the first 5 s, then one every 20 ms.
fn trace() -> (tempfile::TempDir, String) {
    let mut text = String::new();
    let times = (2..=5000).step_by(2).chain((5020..=10_000).step_by(20));
    times.for_each(|time_ms: u32| writeln!(text, "{time_ms}").unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("walk.down");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn a_recording_begins_where_the_scenario_says() {
    let (_directory, path) = trace();
    let from = |rest: &str| results(&[&format!("relays[0].cellular.rate={{ trace = '{path}'{rest} }}")]);
    let (start, thin) = (from(""), from(", offset = '5 s'"));
    assert_eq!(from(", offset = '0 s'").series, start.series);
    // It wraps around.
    assert_eq!(from(", offset = '25 s'").series, thin.series);
    let early = |results: &Results| results.series.aggregate_throughput_bps[..40].iter().sum::<f64>() / 40.0;
    assert!(early(&start) > 4e6 && early(&thin) < 0.6e6, "{} and {}", early(&start), early(&thin));
}

#[test]
fn seeds_meet_a_recording_at_different_places() {
    let (_directory, path) = trace();
    let of = |rest: &str, seed: u32| {
        let rate = format!("relays[0].cellular.rate={{ trace = '{path}'{rest} }}");
        results(&[&rate, &format!("seed={seed}")]).totals.delivered_bytes
    };
    let random = |seed| of(", offset = 'random'", seed);
    assert_eq!(of("", 1), of("", 2));
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
}

#[test]
fn uplinks_follow_recordings_and_generated_rates_too() {
    let (_directory, path) = trace();
    let plain = results(&[]);
    let traced = |rest: &str| results(&[&format!("relays[0].cellular.uplink.rate={{ trace = '{path}'{rest} }}")]);
    // Of 4 Mbit/s, ACKs need some 170 packets/s; in the thin part of the trace they wait.
    let (wide, thin) = (traced(""), traced(", offset = '5 s'"));
    let rtt_s = |results: &Results| results.subflows[0].mean_rtt_s.unwrap();
    assert!(rtt_s(&thin) > rtt_s(&wide) && plain.series != wide.series, "{} {}", rtt_s(&thin), rtt_s(&wide));
    let generated = |seed: &str| results(&["relays[0].cellular.uplink.rate={ mean = '300 kbit/s' }", seed]).series;
    assert_ne!(generated("seed=1"), generated("seed=2"));
    let missing = scenario(&["relays[0].cellular.uplink.rate={ trace = 'nowhere' }"]);
    assert!(check_inputs(&missing)[0].starts_with("relays[0].cellular.uplink.rate.trace"));
}

#[test]
fn offsets_belong_to_recordings() {
    let told = refused("relays[0].cellular.uplink.rate={ mean = '3 Mbit/s', offset = 'random' }");
    assert!(told.contains("relays[0].cellular.uplink.rate.offset: is only for a recorded trace"), "{told}");
    let told = refused("relays[0].cellular.rate={ trace = 'x', offset = 'half' }");
    assert!(told.contains("\"random\""), "{told}");
}

#[test]
fn the_capacity_of_a_link_is_its_rate_while_anything_passes() {
    let outages = "relays[0].cellular.outages=[{ from = '2 s', until = '3 s' }]";
    let results = results(&["relays[0].count=2", outages, "relays[1].leaves=6 s"]);
    let series = &results.series;
    for (window, end_s) in series.time_s.iter().enumerate() {
        let up = if *end_s > 2.05 && *end_s < 3.05 { 0.0 } else { 4e6 };
        assert_eq!(series.relays[0].capacity_bps[window], Some(up), "at {end_s} s");
        assert_eq!(series.relays[1].capacity_bps[window], Some(if *end_s > 6.05 { 0.0 } else { 4e6 }), "at {end_s} s");
    }
    assert_eq!(results.relays[0].capacity_bps, Some(3.5e6));
    assert_eq!(results.relays[1].capacity_bps, Some(3e6));
}

#[test]
fn the_capacity_of_a_varying_link_is_what_it_carries_when_full() {
    let (_directory, path) = trace();
    for rate in [format!("{{ trace = '{path}', offset = '3 s' }}"), "{ mean = '3 Mbit/s' }".into()] {
        let results = results(&[&format!("relays[0].cellular.rate={rate}")]);
        let (capacity_bps, carried_bps) = (results.relays[0].capacity_bps.unwrap(), results.subflows[0].throughput_bps);
        assert!((0.85..1.0).contains(&(carried_bps / capacity_bps)), "{rate}: {carried_bps} of {capacity_bps}");
        let series = &results.series.relays[0].capacity_bps;
        let mean_bps = series.iter().map(|bps| bps.unwrap()).sum::<f64>() / series.len() as f64;
        assert!((mean_bps / capacity_bps - 1.0).abs() < 1e-6, "{rate}: {mean_bps} and {capacity_bps}");
    }
}

#[test]
fn results_tell_of_a_link_that_all_paths_share() {
    let shared = "bottleneck={ rate = '3 Mbit/s', delay = '10 ms', queue = '20 packets' }";
    let results = results(&["relays[0].count=2", shared]);
    let link = results.bottleneck.unwrap();
    assert_eq!(link.capacity_bps, 3e6);
    assert!((0.9..=1.0).contains(&link.utilisation_ratio.unwrap()), "{link:?}");
    assert!(link.lost_packets > 0 && link.lost_packets == link.queue_drop_packets, "{link:?}");
    assert!(link.entered_packets > 10 * link.lost_packets && link.loss_ratio > 0.0, "{link:?}");
    assert!(link.queue_mean_bytes > 1000.0 && (10_000..=21 * 1500).contains(&link.queue_max_bytes), "{link:?}");
    // The paths behind it lose nothing.
    assert!(results.subflows.iter().all(|subflow| subflow.lost_packets == 0));
    let series = results.series.bottleneck.as_ref().unwrap();
    let windows = results.series.time_s.len();
    assert_eq!([series.capacity_bps.len(), series.carried_bps.len(), series.queue_bytes.len()], [windows; 3]);
    assert!(
        summary(&results).lines().any(|line| line.starts_with("bottleneck  9") && line.contains("of 3.00 Mbit/s used"))
    );
    assert!(report::render(&results).contains("<h2>Bottleneck</h2>"));
}

#[test]
fn what_the_shared_link_sends_in_outages_is_no_use_of_it() {
    let shared = "bottleneck={ rate = '3 Mbit/s', delay = '10 ms', outages = [{ from = '2 s', until = '4 s' }] }";
    let link = results(&[shared, "duration=20 s"]).bottleneck.unwrap();
    assert_eq!(link.capacity_bps, 2.7e6);
    assert!((0.5..=1.0).contains(&link.utilisation_ratio.unwrap()) && link.lost_packets > 0, "{link:?}");
}

#[test]
fn packets_held_back_behind_the_shared_link_do_not_change_what_it_sent() {
    let shared = "bottleneck={ rate = '3 Mbit/s', delay = '10 ms', \
        reorder = { probability = '100 %', delay = '500 ms' }, outages = [{ from = '2 s', until = '5 s' }] }";
    let results = results(&[shared, "duration=20 s"]);
    let series = results.series.bottleneck.unwrap();
    let window_s = results.series.time_s[0];
    // A packet that is sent across the end of a window counts in one of the two only.
    let bounds = series.capacity_bps.iter().map(|capacity_bps| capacity_bps + 8.0 * 1500.0 / window_s + 1.0);
    let windows: Vec<_> = series.carried_bps.iter().copied().zip(bounds).collect();
    assert!(windows.iter().all(|(carried_bps, bound_bps)| carried_bps <= bound_bps), "{windows:?}");
    let mean_bps = series.carried_bps.iter().sum::<f64>() / windows.len() as f64;
    let carried_bps = results.bottleneck.unwrap().carried_bps;
    assert!((mean_bps / carried_bps - 1.0).abs() < 1e-3, "{mean_bps} and {carried_bps}");
}

/// Nearly all packets are full: 1500 octets enter the link with each.
#[test]
fn what_happens_behind_the_shared_link_does_not_change_what_it_sent() {
    for behind in ["corrupt = '30 %'", "middleboxes = [{ split = { payload = '100 B' } }]"] {
        let shared = format!("bottleneck={{ rate = '3 Mbit/s', delay = '10 ms', queue = '20 packets', {behind} }}");
        let link = results(&["relays[0].count=8", &shared]).bottleneck.unwrap();
        let sent = link.entered_packets - link.queue_drop_packets;
        let duration_s = 8.0;
        let mean_bytes = link.carried_bps * duration_s / 8.0 / sent as f64;
        assert!((1200.0..=1500.0).contains(&mean_bytes), "{behind}: {mean_bytes} octets each, {link:?}");
    }
}

#[test]
fn without_a_shared_link_nothing_is_said_of_one() {
    let results = results(&["duration=2 s"]);
    assert!(results.bottleneck.is_none() && !summary(&results).contains("bottleneck"));
    assert!(!results.to_json().contains("bottleneck\": {\n    \"capacity"));
}

#[test]
fn a_manifest_has_the_content_of_recordings() {
    let (_directory, path) = trace();
    let rate = format!("relays[*].cellular.rate={{ trace = '{path}' }}");
    let scenario = scenario(&["relays[0].count=2", "duration=1 s", &rate]);
    let digests = || {
        let mut run = run(&scenario, None, &mut |_| {}).unwrap();
        assert_eq!(run.results.manifest.files, []);
        run.add_digests(&scenario);
        run.results.manifest.files
    };
    let before = digests();
    assert_eq!((before.len(), before[0].path.as_str()), (1, path.as_str()));
    assert_eq!(before[0].sha256.as_ref().unwrap().len(), 64);
    std::fs::write(&path, "2\n4\n").unwrap();
    assert_ne!(digests()[0].sha256, before[0].sha256);
}
