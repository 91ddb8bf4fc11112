//! Whole runs under attack: what was sent arrives, and no rule is broken.

use lab::run::{Run, run};
use lab::scenario::{Override, load};

/// Four relays on one Wi-Fi channel, all modules at work, and a file that takes some periods.
const EVERYTHING: &str = "
    name = 'attacks'
    duration = '120 s'
    target = { bit_rate = '4 Mbit/s' }
    [workload]
    kind = 'generated'
    size = '6 MB'
    [connection]
    mtu = '608 B'
    congestion = 'mcc-coop'
    [metrics]
    period = '1 s'
    [wlan]
    rate = '54 Mbit/s'
    [cooperation]
    relays = 'fast-ack'
    adaptive_congestion = {}
    bandwidth_sharing = { period = '1 s' }
    [cooperation.selection]
    method = 'ssrs'
    period = '1 s'
    [cooperation.forwarding]
    range_packets = 100
    threshold = '90 %'
    [[relays]]
    count = 2
    cellular = { rate = '2 Mbit/s', delay = '20 ms', queue = '100 packets' }
    [[relays]]
    count = 2
    cellular = { rate = '3 Mbit/s', delay = '60 ms', queue = '100 packets' }
";

#[track_caller]
fn survives(scenario: &str, overrides: &[&str]) -> Run {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    let run = run(&load("attacks.toml", scenario, &overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{overrides:?}");
    let totals = &run.results.totals;
    assert!(totals.completed && totals.sha256_ok, "{overrides:?}: {} octets", totals.delivered_bytes);
    run
}

#[test]
fn touched_messages_close_channels_and_nothing_else() {
    let calm = survives(EVERYTHING, &[]);
    assert_eq!((calm.attacked.messages, calm.attacked.channels), (0, 0));
    for share in ["5 %", "50 %"] {
        let run = survives(EVERYTHING, &[&format!("attack.messages={share}")]);
        // One in six is withheld or cut, which the next message shows; each closes the channel once.
        assert!(run.attacked.messages > 20 && run.attacked.channels > run.attacked.messages / 2, "{:?}", run.attacked);
        let slower = run.results.totals.duration_s / calm.results.totals.duration_s;
        assert!(slower < 2.0, "{share}: {slower}");
    }
}

#[test]
fn without_a_single_untouched_message_the_stream_goes_on() {
    let run = survives(EVERYTHING, &["attack.messages=100 %"]);
    assert!(run.attacked.messages > 100, "{:?}", run.attacked);
}

#[test]
#[ignore = "slow: run by make test-long"]
fn touched_messages_with_many_seeds() {
    for seed in 1..=40 {
        survives(EVERYTHING, &[&format!("seed={seed}"), "attack.messages=30 %", "relays[1].leaves=3 s"]);
    }
}
