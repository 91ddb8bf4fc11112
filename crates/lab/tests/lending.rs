//! Relays lend no more than their owners allow.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, load};

const SCENARIO: &str = "
    name = 'lending'
    duration = '20 s'
    workload = { kind = 'bulk' }
    connection = { congestion = 'cubic' }
    [[relays]]
    cellular = { rate = '8 Mbit/s', delay = '20 ms', queue = '100 packets' }
    [[relays]]
    cellular = { rate = '4 Mbit/s', delay = '20 ms', queue = '100 packets' }
";

fn results(changes: &[&str]) -> Results {
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = load("lending.toml", SCENARIO, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let run = run(&scenario, None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{changes:?}");
    run.results
}

/// Payload that arrived over each relay.
fn carried(results: &Results) -> Vec<u64> {
    results.relays.iter().map(|relay| relay.carried_bytes).collect()
}

#[test]
fn a_rate_is_a_bottleneck_like_any_other() {
    for relays in ["ip", "fast-ack"] {
        let results = results(&[&format!("cooperation.relays={relays}"), "relays[0].lends.rate=2 Mbit/s"]);
        let bps: Vec<f64> = carried(&results).iter().map(|bytes| *bytes as f64 * 8.0 / 20.0).collect();
        assert!((1.6e6..2.0e6).contains(&bps[0]), "{relays}: {bps:?}");
        assert!(bps[1] > 3.2e6, "{relays}: the other is not concerned, {bps:?}");
    }
}

#[test]
fn a_volume_ends_what_a_relay_forwards_and_nothing_is_lost() {
    for relays in ["ip", "fast-ack"] {
        for spent in [0, 1] {
            let volume = format!("relays[{spent}].lends.volume=1 MB");
            let file = "workload={ kind = 'generated', size = '6 MB' }";
            let results = results(&[&format!("cooperation.relays={relays}"), &volume, file, "duration=60 s"]);
            assert!(results.totals.completed && results.totals.intact, "{relays}, {spent}");
            let carried = carried(&results);
            assert!((800_000..1_100_000).contains(&carried[spent]), "{relays}, {spent}: {carried:?}");
        }
    }
}

/// Each of the three relays could carry the target alone.
#[test]
fn selection_turns_elsewhere_before_a_volume_is_spent() {
    let third = "relays[1].count=2";
    let selection = "cooperation.selection={ method = 'ssrs', period = '1 s' }";
    let changes = ["target={ bit_rate = '3 Mbit/s' }", "relays[0].cellular.rate=4 Mbit/s", third, selection];
    let free = results(&changes);
    let first = free.selection.as_ref().unwrap().migrations[0].to[0].clone();
    let index = free.relays.iter().position(|relay| relay.name == first).unwrap();
    // The first two relays are written individually; the second section stands for two relays.
    let volume = format!("relays[{}].lends.volume=2 MB", index.min(1));
    let limited = results(&[changes.as_slice(), &[&volume]].concat());
    assert!(carried(&free)[index] > 4_000_000, "{:?}", carried(&free));
    let migrations = &limited.selection.as_ref().unwrap().migrations;
    assert!(migrations.len() > 1 && !migrations.last().unwrap().to.contains(&first), "{migrations:?}");
    assert!(carried(&limited)[index] < 2_000_000, "{:?}", carried(&limited));
    let ratio = limited.totals.goodput_in_order_bps / free.totals.goodput_in_order_bps;
    assert!(ratio > 0.9, "{ratio}");
}

/// Up to 3.1 Mbit/s each, or less if that is what they lend; the target is 2.7 to 3.3 Mbit/s of payload.
#[test]
fn hindsight_knows_what_relays_lend() {
    let judged = |count: u32, most: &str, lends: &str| {
        let text = format!(
            "name = 'lending'\nduration = '5 s'\nworkload = {{ kind = 'bulk' }}\ncell = {{ fading = 'none' }}\n\
             wlan = {{}}\ntarget = {{ bit_rate = '3 Mbit/s', tolerance = '10 %' }}\n\
             cooperation = {{ selection = {{ method = 'ssrs', period = '1 s' }} }}\n\
             [[relays]]\ncount = {count}\nbit_rate_max = '{most}'\n{lends}"
        );
        let scenario = load("lending.toml", &text, &[]).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let results = run(&scenario, None, &mut |_| {}).unwrap().results;
        let hindsight = results.selection.as_ref().unwrap().hindsight.clone().unwrap();
        (hindsight.attainable, results.series.relays[0].available_bps.iter().flatten().copied().collect::<Vec<_>>())
    };
    let lends = |what: &str| format!("lends = {{ {what} }}\n");
    assert!(judged(1, "3.1 Mbit/s", "").0.contains(&true));
    let (attainable, available_bps) = judged(1, "3.1 Mbit/s", &lends("rate = '1 Mbit/s'"));
    assert!(!attainable.contains(&true) && available_bps.iter().all(|bps| *bps <= 1e6), "{available_bps:?}");
    assert!(judged(3, "4 Mbit/s", &lends("rate = '1.05 Mbit/s'")).0.contains(&true), "all three together");
    let (attainable, available_bps) = judged(1, "3.1 Mbit/s", &lends("volume = '500 kB'"));
    assert!(!attainable.last().unwrap() && available_bps.last() == Some(&0.0), "{attainable:?} {available_bps:?}");
}

#[test]
fn limits_of_nothing_are_refused() {
    for (change, field) in [
        ("relays[0].lends.rate=0 bit/s", "relays[0].lends.rate"),
        ("relays[0].lends.volume=0 B", "relays[0].lends.volume"),
        ("cooperation.relays=multi-homed", "relays[0].lends"),
    ] {
        let changes = ["relays[0].lends.volume=1 MB", change].map(|text| text.parse::<Override>().unwrap());
        let changes = if change.contains("volume") { vec![changes[1].clone()] } else { changes.to_vec() };
        let error = load("lending.toml", SCENARIO, &changes).unwrap_err().to_string();
        assert!(error.contains(field), "{change}: {error}");
    }
}
