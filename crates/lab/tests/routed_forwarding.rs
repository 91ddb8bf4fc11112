//! Whole runs with differentiated forwarding at relays that only route.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, load};

use crate::support::held::{held_after, held_before, held_most, moments_of_holding};

/// Two relays, one of them slower and farther away, a file of 1.6 MB, and a range of 100 packets.
const ROUTED: &str = "
    name = 'routed'
    duration = '60 s'
    [workload]
    kind = 'generated'
    size = '1600 kB'
    [connection]
    mtu = '608 B'
    receive_buffer = '1 MiB'
    [wlan]
    rate = '54 Mbit/s'
    [cooperation.forwarding]
    range_packets = 100
    threshold = '90 %'
    [[relays]]
    cellular = { rate = '8 Mbit/s', delay = '20 ms', queue = '100 packets' }
    [[relays]]
    cellular = { rate = '4 Mbit/s', delay = '60 ms', queue = '100 packets' }
";

fn run_with(settings: &[&str]) -> Results {
    let overrides: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let run = run(&load("routed.toml", ROUTED, &overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{settings:?}");
    assert!(run.results.totals.completed && run.results.totals.intact, "{settings:?}");
    run.results
}

#[test]
fn routers_hold_what_lies_beyond_the_range_and_no_more() {
    let results = run_with(&[]);
    let held = held_most(&results);
    // MAX_BF_SIZE is twice the range: 200 packets of 536 octets.
    assert!(held > 5_000 && held <= 200 * 536, "{held}");
    // There are no more subflows than relays, because nothing is spliced.
    assert_eq!(results.subflows.len(), 2);
}

#[test]
fn the_destination_has_less_to_sort_when_routers_hold() {
    let peak = |settings: &[&str]| run_with(settings).totals.out_of_order_peak_bytes;
    let (with, without) = (peak(&[]), peak(&["cooperation.forwarding.range_packets=100000"]));
    assert!(with < without, "{with} octets out of order, {without} without ranges");
}

/// If octets behind holes count as arrived, ranges move on earlier, and less is held.
#[test]
fn what_counts_as_received_is_a_setting() {
    for relays in ["cooperation.relays=ip", "cooperation.relays=fast-ack"] {
        let threshold = "cooperation.forwarding.threshold=50 %";
        let held = |count: &str| {
            let results = run_with(&[relays, threshold, &format!("cooperation.forwarding.count={count}")]);
            results.series.relays.iter().flat_map(|relay| relay.hold_queue_bytes.iter().copied()).sum::<u64>()
        };
        let (any, contiguous) = (held("any"), held("contiguous"));
        assert!(any < contiguous, "{relays}: {any} and {contiguous} octets held");
    }
}

#[test]
fn a_small_limit_is_kept_and_a_limit_of_zero_holds_nothing() {
    let small = held_most(&run_with(&["cooperation.forwarding.hold_buffer=10 kB"]));
    assert!(small > 0 && small <= 10_000, "{small}");
    assert_eq!(held_most(&run_with(&["cooperation.forwarding.hold_buffer=0 B"])), 0);
    assert_eq!(held_most(&run_with(&["cooperation.relays=fast-ack", "cooperation.forwarding.hold_buffer=0 B"])), 0);
}

/// Relays that acknowledge at once store what is under way besides.
#[test]
fn the_largest_limit_is_no_limit() {
    for relays in ["ip", "fast-ack"] {
        let most = format!("cooperation.forwarding.hold_buffer={} B", u64::MAX);
        assert!(held_most(&run_with(&[&format!("cooperation.relays={relays}"), &most])) > 5_000);
    }
}

#[test]
fn a_router_that_leaves_while_it_holds_packets_breaks_nothing() {
    let stays = run_with(&[]);
    for relay in 0..2 {
        for at_s in moments_of_holding(&stays, relay) {
            let results = run_with(&[&format!("relays[{relay}].leaves={at_s:.2} s")]);
            assert!(held_before(&results, relay, at_s) > 0, "relays[{relay}], {at_s} s: it held nothing");
            assert_eq!(held_after(&results, relay, at_s), 0, "relays[{relay}], {at_s} s: who has left holds nothing");
        }
    }
}

#[test]
fn touched_messages_hold_nothing_for_ever() {
    for share in ["30 %", "100 %"] {
        run_with(&[&format!("attack.messages={share}")]);
    }
}
