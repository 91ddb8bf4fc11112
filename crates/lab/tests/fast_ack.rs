//! Whole runs with fast-ACK relays and differentiated forwarding.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, load};

use crate::support::held::{held_before, held_most, moments_of_holding};

/// Two relays with 8 Mbit/s each on one Wi-Fi channel, a file of 1.6 MB, and a range of 100 packets.
const COOPERATION: &str = "
    name = 'fast-ack'
    duration = '60 s'
    [workload]
    kind = 'generated'
    size = '1600 kB'
    [connection]
    mtu = '608 B'
    receive_buffer = '1 MiB'
    [wlan]
    rate = '54 Mbit/s'
    [cooperation]
    relays = 'fast-ack'
    [[relays]]
    cellular = { rate = '8 Mbit/s', delay = '20 ms', queue = '100 packets' }
    [[relays]]
    cellular = { rate = '8 Mbit/s', delay = '60 ms', queue = '100 packets' }
";
const FORWARDING: [&str; 2] = ["cooperation.forwarding.range_packets=100", "cooperation.forwarding.threshold=90 %"];

fn run_with(settings: &[&str]) -> Results {
    let overrides: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = load("fast-ack.toml", COOPERATION, &overrides).unwrap();
    let run = run(&scenario, None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    run.results
}

#[test]
fn spliced_subflows_carry_the_file_over_both_relays() {
    let results = run_with(&[]);
    assert!(results.totals.completed && results.totals.intact);
    // A spliced subflow replaces the first one, which its relay only routes.
    assert_eq!(results.subflows.len(), 3);
    assert!(results.subflows[0].received_bytes < 100_000, "{:?}", results.subflows[0]);
    assert!(results.relays.iter().all(|relay| relay.share_ratio > 0.3), "{:?}", results.relays);
    assert_eq!(held_most(&results), 0, "nothing is held without ranges");
}

/// The relays receive no information about data sequence numbers, and need none.
#[test]
fn checksums_are_no_hindrance() {
    let results = run_with(&["connection.checksum=true"]);
    assert!(results.totals.completed && results.totals.intact);
    assert_eq!(results.subflows.len(), 3, "no join had to be repeated");
    assert!(results.relays.iter().all(|relay| relay.share_ratio > 0.3), "{:?}", results.relays);
}

#[test]
fn relays_hold_what_lies_beyond_the_range_and_no_more() {
    let results = run_with(&FORWARDING);
    assert!(results.totals.completed && results.totals.intact);
    let held = held_most(&results);
    // MAX_BF_SIZE is twice the range: 200 packets of 536 octets.
    assert!(held > 20_000 && held <= 200 * 536, "{held}");
}

#[test]
fn a_relay_that_leaves_while_it_holds_data_breaks_nothing() {
    let stays = run_with(&FORWARDING);
    for relay in 0..2 {
        for at_s in moments_of_holding(&stays, relay) {
            let leaves = format!("relays[{relay}].leaves={at_s:.2} s");
            let results = run_with(&[FORWARDING[0], FORWARDING[1], &leaves]);
            assert!(results.totals.completed && results.totals.intact, "{leaves}");
            assert!(held_before(&results, relay, at_s) > 0, "{leaves}: it held nothing");
        }
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let text = |seed: &str| serde_json::to_string(&run_with(&[FORWARDING[0], seed]).series).unwrap();
    assert_eq!(text("seed=5"), text("seed=5"));
    assert_ne!(text("seed=5"), text("seed=6"));
}

/// If losses limit windows and the Wi-Fi loses nothing, relays that acknowledge deliver no less than relays that
/// forward: the first subflow, which waits as a backup with its initial window, counts for no controller.
#[test]
fn a_subflow_that_waits_takes_no_share_of_coupled_windows() {
    let loses = |relay: &str, rate: &str| {
        format!("relays[{relay}].cellular={{ rate = \"{rate}\", delay = \"20 ms\", loss = \"0.2 %\" }}")
    };
    let (a, b) = (loses("0", "4 Mbit/s"), loses("1", "2 Mbit/s"));
    for controller in ["lia", "balia", "coupled", "ewtcp"] {
        let goodput = |relays: &str| {
            let congestion = format!("connection.congestion={controller}");
            let results = run_with(&[&a, &b, &congestion, "workload={ kind = \"bulk\" }", "duration=30 s", relays]);
            results.totals.goodput_in_order_bps
        };
        let (acknowledging, forwarding) = (goodput("cooperation.relays=fast-ack"), goodput("cooperation.relays=ip"));
        assert!(acknowledging > 0.85 * forwarding, "{controller}: {acknowledging} and {forwarding} bit/s");
    }
}
