//! Whole runs under attack: the data sent arrive, and no rule is broken.

use lab::run::{Run, run};
use lab::scenario::{Override, load};

/// Four relays on one Wi-Fi channel, all modules active, and a file that takes several periods.
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

fn attacked(scenario: &str, overrides: &[&str]) -> Run {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    run(&load("attacks.toml", scenario, &overrides).unwrap(), None, &mut |_| {}).unwrap()
}

#[track_caller]
fn survives(scenario: &str, overrides: &[&str]) -> Run {
    let run = attacked(scenario, overrides);
    assert_eq!(run.faults, [""; 0], "{overrides:?}");
    let totals = &run.results.totals;
    assert!(totals.completed && totals.intact, "{overrides:?}: {} octets", totals.delivered_bytes);
    run
}

#[test]
fn touched_messages_close_channels_and_nothing_else() {
    let calm = survives(EVERYTHING, &[]);
    assert_eq!((calm.attacked.messages, calm.attacked.channels), (0, 0));
    for share in ["5 %", "50 %"] {
        let run = survives(EVERYTHING, &[&format!("attack.messages={share}")]);
        // One message in six is withheld or damaged, which the next message reveals; each closes the channel once.
        assert!(run.attacked.messages > 10 && run.attacked.channels > run.attacked.messages / 2, "{:?}", run.attacked);
        let slower = run.results.totals.duration_s / calm.results.totals.duration_s;
        assert!(slower < 2.0, "{share}: {slower}");
    }
}

#[test]
fn without_a_single_untouched_message_the_stream_goes_on() {
    let run = survives(EVERYTHING, &["attack.messages=100 %"]);
    assert!(run.attacked.messages > 50, "{:?}", run.attacked);
}

#[test]
#[ignore = "slow: run by make test-long"]
fn touched_messages_with_many_seeds() {
    for seed in 1..=40 {
        survives(EVERYTHING, &[&format!("seed={seed}"), "attack.messages=30 %", "relays[1].leaves=3 s"]);
    }
}

/// Three relays, the second of which turns bad in the middle of a file of 5 MB. The source repairs the missing data
/// like any other loss, so the destination must find the relay.
const SWALLOWING: &str = "
    name = 'swallowing'
    duration = '120 s'
    [workload]
    kind = 'generated'
    size = '5 MB'
    [connection]
    suspension = false
    [cooperation]
    watch = {}
    [[relays]]
    cellular = { rate = '3 Mbit/s', delay = '20 ms', queue = '50 packets' }
    [[relays]]
    cellular = { rate = '3 Mbit/s', delay = '20 ms', queue = '50 packets' }
    swallows = { from = '2 s' }
    [[relays]]
    cellular = { rate = '3 Mbit/s', delay = '30 ms', queue = '50 packets' }
";

#[test]
fn a_relay_that_acknowledges_data_and_drops_them_is_found_out() {
    for relays in ["ip", "fast-ack"] {
        let run = survives(SWALLOWING, &[&format!("cooperation.relays={relays}")]);
        assert_eq!(run.attacked.guilty, ["relay-2"], "{relays}");
        // 5 MB at 9 Mbit/s take 4.5 s; the rest, at 6 Mbit/s, takes a little longer.
        let duration_s = run.results.totals.duration_s;
        assert!(duration_s < 20.0, "{relays}: {duration_s}");
    }
}

/// A source that notices by itself whose octets never arrive needs no report.
#[test]
fn a_source_does_without_relays_that_swallow() {
    for relays in ["ip", "fast-ack"] {
        for bad in 0..3 {
            let changes = [
                "connection.suspension=true".into(),
                "relays[1].swallows.from=1 h".into(),
                format!("relays[{bad}].swallows={{ from = \"2 s\" }}"),
                format!("cooperation.relays={relays}"),
                "cooperation.watch.patience=1 min".into(),
            ];
            let run = survives(SWALLOWING, &changes.each_ref().map(String::as_str));
            let duration_s = run.results.totals.duration_s;
            assert!(duration_s < 20.0, "{relays}, {bad}: {duration_s}");
        }
    }
}

/// Two fast-ACK relays whose Wi-Fi is slower than their cellular links: the data they have acknowledged wait there for
/// longer than the data-level time-out, as if the relay had swallowed them.
const SLOW_WIFI: &str = "
    name = 'slow-wifi'
    duration = '120 s'
    [workload]
    kind = 'generated'
    size = '5 MB'
    [connection]
    congestion = 'lia'
    [cooperation]
    relays = 'fast-ack'
    [[relays]]
    cellular = { rate = '3 Mbit/s', delay = '20 ms', queue = '60 packets' }
    wifi = { rate = '54 Mbit/s', delay = '30 ms', loss = '2 %' }
    [[relays]]
    cellular = { rate = '3 Mbit/s', delay = '40 ms', queue = '60 packets' }
    wifi = { rate = '54 Mbit/s', delay = '30 ms', loss = '2 %' }
";

#[test]
fn a_slow_relay_does_not_hide_one_that_swallows() {
    for seed in 1..=3 {
        for bad in 0..2 {
            let swallows = format!("relays[{bad}].swallows={{ from = \"2 s\" }}");
            survives(SLOW_WIFI, &[&swallows, &format!("seed={seed}")]);
        }
    }
}

/// Data that a slow relay has acknowledged are on their way: another relay's losses must not cause their
/// retransmission.
#[test]
fn what_waits_at_a_slow_relay_is_not_sent_again_when_another_leaves() {
    for seed in 1..=3 {
        let alone = survives(SLOW_WIFI, &["cooperation.selection={method='fixed',fixed=[1]}", &format!("seed={seed}")]);
        let run = survives(SLOW_WIFI, &["relays[0].leaves=3 s", &format!("seed={seed}")]);
        let [with, without] = [run, alone].map(|run| run.results.totals);
        assert!(with.duration_s < without.duration_s, "{seed}: {} and {} s", with.duration_s, without.duration_s);
        assert!(with.duplicate_bytes < 500_000, "{seed}: {}", with.duplicate_bytes);
    }
}

/// The only relay ever used swallows data: to the source, ACKs without DATA_ACKs look like those of a destination that
/// has fallen back to plain TCP, which no subflow can join.
#[test]
fn the_only_relay_that_was_used_may_swallow() {
    const ALONE: &str = "
        name = 'alone'
        duration = '60 s'
        target = { bit_rate = '3 Mbit/s', tolerance = '10 %' }
        [workload]
        kind = 'generated'
        size = '12 MB'
        [cooperation.selection]
        method = 'ssrs'
        [[relays]]
        cellular = { rate = '3.1 Mbit/s', delay = '20 ms' }
        swallows = { from = '10 s' }
        [[relays]]
        cellular = { rate = '2 Mbit/s', delay = '20 ms' }
        [[relays]]
        cellular = { rate = '1.2 Mbit/s', delay = '20 ms' }
    ";
    for relays in ["ip", "fast-ack"] {
        let run = survives(ALONE, &[&format!("cooperation.relays={relays}")]);
        // 12 MB at 3 Mbit/s take 32 s.
        let duration_s = run.results.totals.duration_s;
        assert!(duration_s < 45.0, "{relays}: {duration_s}");
    }
}

/// The relay swallows from its first packet on; another relay is honest.
const FROM_THE_START: &str = "
    name = 'from-the-start'
    duration = '60 s'
    [workload]
    kind = 'generated'
    size = '5 MB'
    [[relays]]
    cellular = { rate = '5 Mbit/s', delay = '20 ms' }
    swallows = { from = '0 s' }
    [[relays]]
    cellular = { rate = '5 Mbit/s', delay = '20 ms' }
";

/// The join over the honest relay is under way when the first octets are acknowledged without a DATA_ACK.
#[test]
fn the_first_relay_may_swallow_from_the_start_while_another_joins() {
    for relays in ["ip", "fast-ack"] {
        let run = survives(FROM_THE_START, &[&format!("cooperation.relays={relays}")]);
        // 5 MB at 5 Mbit/s take 8.4 s with headers.
        let duration_s = run.results.totals.duration_s;
        assert!(duration_s < 12.0, "{relays}: {duration_s}");
    }
}

/// If the join comes later, the source has already fallen back as RFC 8684 section 3.7 demands, and the fault says so.
#[test]
fn a_source_that_fell_back_before_anybody_joined_is_named() {
    let told = "nothing arrived: data were acknowledged over the first relay, relay-1, without MPTCP's options before another path had \
        joined, so the source fell back to plain TCP, which uses only that path (relays[0].swallows causes this from the first packet on)";
    for workload in ["workload={ kind = \"bulk\" }", "workload.size=1 MB"] {
        let run = attacked(FROM_THE_START, &["relays[1].cellular.delay=30 ms", workload]);
        assert_eq!(run.faults, [told], "{workload}");
    }
}

/// The second one turns bad when the case of the first is closed.
#[test]
fn several_bad_relays_are_found_out_one_after_the_other() {
    let bad = ["relays[0].swallows={ from = \"1 s\" }", "relays[1].swallows.from=16 s"];
    let run = survives(SWALLOWING, &[&bad[..], &["workload.size=18 MB", "cooperation.watch.patience=1 s"]].concat());
    assert_eq!(run.attacked.guilty, ["relay-1", "relay-2"]);
    // The honest one needs 48 s for 18 MB.
    assert!(run.results.totals.duration_s < 45.0, "{}", run.results.totals.duration_s);
}

/// Both are excluded in one case, in which only the latest excluded is known to be guilty.
#[test]
fn of_two_bad_relays_at_once_one_is_found_out() {
    let bad = ["relays[0].swallows={ from = \"1 s\" }", "workload.size=9 MB"];
    let run = survives(SWALLOWING, &bad);
    assert!(matches!(&run.attacked.guilty[..], [one] if one != "relay-3"), "{:?}", run.attacked.guilty);
    // 9 MB at 3 Mbit/s take 24 s.
    assert!(run.results.totals.duration_s < 45.0, "{}", run.results.totals.duration_s);
}

#[test]
fn data_that_the_source_believes_to_have_arrived_end_the_connection_with_a_clear_error() {
    for relays in ["ip", "fast-ack"] {
        let forged = "relays[1].swallows.forges_data_acks=true".parse().unwrap();
        let relays: Override = format!("cooperation.relays={relays}").parse().unwrap();
        let run = run(&load("attacks.toml", SWALLOWING, &[forged, relays]).unwrap(), None, &mut |_| {}).unwrap();
        assert!(run.faults.iter().any(|fault| fault.contains("a relay swallowed them")), "{:?}", run.faults);
        assert!(!run.results.totals.completed && run.results.totals.duration_s < 60.0);
        // The application received a prefix of the source's data, up to the hole.
        assert!(run.results.totals.delivered_bytes > 500_000);
    }
}

/// An outage of all links is no relay's fault, and does not end the connection.
#[test]
fn nobody_is_suspected_while_no_link_is_there() {
    const OUTAGE: &str = "
        name = 'outage'
        duration = '20 s'
        workload = { kind = 'bulk' }
        cooperation = { relays = 'fast-ack', watch = {} }
        [[relays]]
        name = 'near'
        cellular = { rate = '3 Mbit/s', delay = '20 ms', outages = [{ from = '2 s', until = '8 s' }] }
        [[relays]]
        name = 'far'
        cellular = { rate = '3 Mbit/s', delay = '30 ms', outages = [{ from = '2 s', until = '8 s' }] }
    ";
    let gone = "relays[1].cellular.outages=[{from=\"1 s\",until=\"20 s\"}]";
    let ip = "cooperation.relays=ip";
    for (changes, bytes) in [(&[][..], 5_000_000), (&[gone], 2_500_000), (&[ip], 5_000_000)] {
        let run = attacked(OUTAGE, changes);
        assert!(run.faults.is_empty() && run.attacked.guilty.is_empty(), "{:?}", run.faults);
        assert!(run.results.totals.delivered_bytes > bytes, "{changes:?}: {}", run.results.totals.delivered_bytes);
    }
}

/// A middlebox that changes data makes the connection fall back: after that, there is no relay to exclude, although the
/// watch has had the time to suspect one.
#[test]
fn a_connection_that_falls_back_is_watched_no_more() {
    const SHIFTED: &str = "
        name = 'shifted'
        duration = '12 s'
        workload = { kind = 'bulk' }
        connection = { checksum = true }
        cooperation = { watch = { patience = '1 s' } }
        [[relays]]
        name = 'only'
        cellular = { rate = '3 Mbit/s', delay = '20 ms', middleboxes = [{ shift_dsn = { by = 1 } }] }
    ";
    let run = attacked(SHIFTED, &[]);
    assert_eq!((run.faults, run.attacked.guilty), (vec![], vec![]));
    // Only a connection that has fallen back to plain TCP gets data past the middlebox. 3 Mbit/s for 12 s are 4.5 MB.
    let delivered_bytes = run.results.totals.delivered_bytes;
    assert!(delivered_bytes > 4_000_000, "{delivered_bytes}");
}

#[test]
fn nobody_is_suspected_who_is_only_slow_or_lossy() {
    let changes = ["relays[1].swallows.from=1 h", "relays[0].cellular.rate=600 kbit/s", "relays[2].wifi.loss=5 %"];
    let run = survives(SWALLOWING, &changes);
    assert_eq!(run.attacked.guilty, [""; 0]);
}

/// The first relay's queue grows to 6 s and more, and the repair of a loss waits for the queue once more: longer than
/// the patience of 3 s. The other relays have nothing to deliver meanwhile.
const SLOW: [&str; 5] = [
    "relays[0].cellular.rate=50 kbit/s",
    "relays[0].cellular.queue=300 packets",
    "relays[0].cellular.loss=2 %",
    "connection.congestion=cubic",
    "workload.size=20 MB",
];

#[test]
fn nobody_is_suspected_whose_queue_takes_longer_than_the_patience() {
    for seed in 1..=5 {
        let run =
            survives(SWALLOWING, &[&SLOW[..], &["relays[1].swallows.from=1 h", &format!("seed={seed}")]].concat());
        assert_eq!(run.attacked.guilty, [""; 0], "{seed}");
    }
}

/// Found within two minutes for two seeds of three (53 to 55 of 80, with four versions of the engine): where the slow
/// relay's repair takes as long, the destination cannot distinguish it from the relay that swallows. At this rate, fewer
/// than 6 of 16 are found by chance less than once in a hundred changes of the engine.
#[test]
fn who_swallows_is_found_out_beside_a_relay_with_a_long_queue() {
    let is_found = |seed: &u32| {
        let run =
            attacked(SWALLOWING, &[&SLOW[..], &["relays[1].swallows.from=10 s", &format!("seed={seed}")]].concat());
        assert!(run.results.totals.intact || !run.results.totals.completed, "{seed}: {:?}", run.faults);
        run.attacked.guilty == ["relay-2"] && run.results.totals.completed
    };
    let found = (1..=16).filter(is_found).count();
    assert!(found >= 6, "{found} of 16");
}

#[test]
fn relay_selection_does_without_relays_that_swallow() {
    let mut were_used = Vec::new();
    for bad in 0..4 {
        let swallows = format!("relays[{bad}].swallows={{ from = \"2 s\" }}");
        let results = survives(EVERYTHING, &["cooperation.watch={}", &swallows]).results;
        let windows = || results.series.time_s.iter().zip(&results.series.relays[bad].carried_bps);
        were_used.push(windows().any(|(ends_s, bps)| *ends_s < 2.0 && *bps > 0.0));
        assert!(
            windows().all(|(ends_s, bps)| *ends_s < 2.5 || *bps == 0.0),
            "{bad}: {:?}",
            windows().collect::<Vec<_>>()
        );
        // 6 MB at 4 Mbit/s take 12 s.
        assert!(results.totals.duration_s < 15.0, "{bad}: {}", results.totals.duration_s);
    }
    assert!(were_used.contains(&true), "none of them had anything to swallow");
}
