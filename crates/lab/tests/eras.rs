//! Era switches in scenarios: their notation, their effects, and combinations that are refused.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Binding, Era, Layer, Override, QUEUE_PROFILES, Queue, Scenario, load, load_layers};
use units::ByteCount;

/// Two unequal paths with losses, one of which is down for some time.
const PATHS: &str = "name = \"x\"\nduration = \"20 s\"\nworkload = { kind = \"bulk\" }\n\
    [[relays]]\ncellular = { rate = \"5 Mbit/s\", delay = \"10 ms\", loss = \"1 %\", queue = \"shallow\" }\n\
    [[relays]]\ncellular = { rate = \"5 Mbit/s\", delay = \"150 ms\", loss = \"1 %\", queue = \"shallow\",\n\
    outages = [{ from = \"5 s\", until = \"8 s\" }] }\n";
/// Two relays before a shared channel.
const CHANNEL: &str = "name = \"x\"\nduration = \"10 s\"\nworkload = { kind = \"bulk\" }\n[wlan]\n\
    [[relays]]\ncount = 2\ncellular = { rate = \"2 Mbit/s\", delay = \"10 ms\", queue = \"4 packets\" }\n";
const MODERN: &str = include_str!("../../../scenarios/base/modern.toml");
const LINUX: &str = include_str!("../../../scenarios/base/linux.toml");
const NS3_2013: &str = include_str!("../../../scenarios/base/ns3-2013.toml");

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", text, &overrides).map_err(|error| error.to_string())
}

fn results_of(scenario: &Scenario) -> Results {
    let run = run(scenario, None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.intact);
    run.results
}

fn run_text(text: &str, overrides: &[&str]) -> Results {
    results_of(&read(text, overrides).unwrap())
}

/// Applies a profile to `PATHS`.
fn under(profile: &'static str) -> Scenario {
    layered("", profile).unwrap()
}

/// Applies a profile to `PATHS`, and another one over it.
fn layered(first: &'static str, second: &'static str) -> Result<Scenario, String> {
    let find = |_: &Layer, name: &str| {
        let texts = [("paths.toml", PATHS), ("first.toml", first), ("second.toml", second)];
        let text = texts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap();
        Ok(Layer { name: name.into(), text: text.into(), ships: false })
    };
    let text = "extends = [\"paths.toml\", \"first.toml\", \"second.toml\"]".into();
    load_layers(Layer { name: "top.toml".into(), text, ships: false }, &find, &[]).map_err(|error| error.to_string())
}

#[test]
fn the_modern_profile_is_what_is_there_anyway() {
    assert_eq!(under(MODERN).connection, read(PATHS, &[]).unwrap().connection);
}

#[test]
fn the_modern_profile_undoes_that_of_linux() {
    let plain = read(PATHS, &[]).unwrap().connection;
    let mut over_linux = layered(LINUX, MODERN).unwrap().connection;
    assert_eq!(over_linux.scheduler, "linux", "no matter of an era");
    over_linux.scheduler.clone_from(&plain.scheduler);
    assert_eq!(over_linux, plain);
    let over_2013 = layered(NS3_2013, MODERN).unwrap_err();
    assert!(over_2013.contains("connection.era.subflow_send_buffer"), "it has no value for none: {over_2013}");
}

#[test]
fn the_profile_of_2013_sets_every_switch() {
    let scenario = under(NS3_2013);
    let (connection, today) = (&scenario.connection, Era::default());
    let era = connection.era;
    assert!(era.binding == Binding::Early && !era.reinjection && !era.limited_transmit && !era.rack);
    assert!(!era.tail_loss_probe && era.rto_floor != today.rto_floor && era.partial_acks != today.partial_acks);
    assert!(era.subflow_window.is_some() && era.initial_ssthresh.is_some() && era.subflow_send_buffer.is_some());
    assert!(!connection.sack && !connection.timestamps && !connection.hystart);
    assert_eq!(connection.initial_window_segments, 1);
    let [old, new] = [scenario, read(PATHS, &[]).unwrap()].map(|scenario| results_of(&scenario).totals);
    assert!(old.delivered_bytes < new.delivered_bytes, "{} {}", old.delivered_bytes, new.delivered_bytes);
}

/// A window of two segments beside a large one: bursts wait there, and other subflows lack the data that they block.
#[test]
fn a_sender_like_linux_pays_for_bursts_where_windows_are_small() {
    let linux = under(LINUX);
    let era = linux.connection.era;
    assert_eq!(
        (linux.connection.scheduler.as_str(), era.binding, era.reinjection_timeouts, era.idle_reinjection),
        ("linux", Binding::Autotuned, 5, true)
    );
    let set = |overrides: &[&str]| {
        let lossy = ["relays[1].cellular.loss=8 %", "connection.congestion=newreno"];
        run_text(PATHS, &[&lossy[..], overrides].concat()).totals.delivered_bytes
    };
    let ours = set(&[]);
    let linux = set(&[
        "connection.scheduler=linux",
        "connection.era.binding=autotuned",
        "connection.era.reinjection_timeouts=5",
    ]);
    assert!(linux < ours * 9 / 10, "{linux} {ours}");
    // The buffer causes this, not the choice: with late binding, nothing waits at the slow subflow.
    let late = set(&["connection.scheduler=linux", "connection.era.reinjection_timeouts=5"]);
    assert!(late > linux, "{late} {linux}");
}

/// Each switch alone changes the run of some seed, and nothing breaks.
#[test]
fn every_switch_changes_a_run() {
    // With a single seed, a switch may change nothing, or change a run but not the amount it delivers.
    let delivered = |overrides: &[&str]| {
        [1, 2, 3]
            .map(|seed| run_text(PATHS, &[&[&format!("seed={seed}")[..]], overrides].concat()).totals.delivered_bytes)
    };
    let plain = delivered(&[]);
    for switch in [
        "binding=early",
        "binding=autotuned",
        "subflow_window=9 kB",
        "initial_ssthresh=9 kB",
        "reinjection=false",
        "reinjection_timeouts=3",
        "rack=false",
        "tail_loss_probe=false",
        "rto_floor=whole",
        "ack_delay=adaptive",
        "repair_timer=on-ack",
        "repair_timer=on-sack",
        "recovery_end=threshold",
    ] {
        assert_ne!(delivered(&[&format!("connection.era.{switch}")]), plain, "{switch}");
    }
    let no_sack = delivered(&["connection.sack=false"]);
    assert_ne!(delivered(&["connection.sack=false", "connection.era.limited_transmit=false"]), no_sack);
}

/// A repair that takes long without SACK: a first slow start that overshoots a queue of 0.8 s.
#[test]
fn the_timer_of_a_long_repair_changes_a_run() {
    let overshoots = ["connection.sack=false", "connection.hystart=false", "relays[*].cellular.queue=100 kB"];
    let slow = ["relays[*].cellular.rate=1 Mbit/s", "relays[*].cellular.loss=0 %", "connection.congestion=newreno"];
    let delivered = |switch: &str| {
        let overrides = [&overshoots[..], &slow[..], &[switch]].concat();
        run_text(PATHS, &overrides).totals.delivered_bytes
    };
    let [first, every] = ["first", "every"].map(|which| delivered(&format!("connection.era.partial_acks={which}")));
    assert_ne!(first, every);
}

/// 30 ms to the channel and back add 60 ms to the round trip of one relay, and nothing to the other's.
#[test]
fn a_relay_may_be_far_from_the_channel() {
    let min_rtt = |overrides: &[&str]| {
        let results = run_text(CHANNEL, overrides);
        [0, 1].map(|path| results.subflows[path].min_rtt_s.unwrap())
    };
    let (near, far) = (min_rtt(&[]), min_rtt(&["relays[1].wlan_delay=30 ms"]));
    assert!((far[1] - near[1] - 0.060).abs() < 0.003, "{near:?} {far:?}");
    assert!((far[0] - near[0]).abs() < 0.003, "{near:?} {far:?}");
}

#[test]
fn queues_have_names() {
    for (name, bytes) in QUEUE_PROFILES {
        assert_eq!(name.parse::<Queue>(), Ok(Queue::Bytes(bytes)));
    }
    let scenario = read(PATHS, &[]).unwrap();
    assert_eq!(scenario.relays[0].cellular.as_ref().unwrap().queue, Queue::Bytes(ByteCount(50_000)));
}

#[test]
fn what_does_not_go_together_is_refused_in_one_sentence() {
    for (overrides, words) in [
        (&["connection.era.limited_transmit=false"][..], "connection.era.limited_transmit: with SACK"),
        (&["connection.era.subflow_send_buffer=64 KiB"], "connection.era.subflow_send_buffer: with late binding"),
        (
            &["connection.era.binding=autotuned", "connection.era.subflow_send_buffer=64 KiB"],
            "connection.era.subflow_send_buffer: the size of an autotuned buffer",
        ),
        (&["connection.era.reinjection_timeouts=0"], "connection.era.reinjection_timeouts: data are reinjected"),
        (
            &["connection.era.reinjection_timeouts=2", "connection.era.reinjection=false"],
            "connection.era.reinjection_timeouts: has no effect",
        ),
        (
            &["connection.era.idle_reinjection=true", "connection.era.reinjection=false"],
            "connection.era.idle_reinjection: has no effect",
        ),
        (
            &["connection.era.ack_delay=adaptive", "connection.delayed_ack=0 s"],
            "connection.era.ack_delay: ACKs are not delayed",
        ),
        (&["connection.era.subflow_window=7 B"], "connection.era.subflow_window: 7 B is out of range"),
        (&["connection.era.initial_ssthresh=2 GiB"], "connection.era.initial_ssthresh: 2 GiB is out of range"),
        (&["connection.era.binding=soon"], "connection.era.binding: unknown value"),
        (
            &["connection.era.reinjection=false", "connection.scheduler=penalizing"],
            "connection.era.reinjection: the scheduler \"penalizing\" needs it",
        ),
        (&["connection.era.binding=early", "connection.receiver_centric={}"], "connection.era.binding: MPTCP-rec says"),
        (
            &["connection.era.binding=autotuned", "connection.receiver_centric={}"],
            "connection.era.binding: MPTCP-rec says",
        ),
        (&["relays[0].wlan_delay=5 ms"], "relays[0].wlan_delay: has no effect"),
    ] {
        let refusal = read(PATHS, overrides).unwrap_err();
        assert!(refusal.contains(words), "{overrides:?}: {refusal}");
    }
    let refusal = read(CHANNEL, &["relays[0].wlan_delay=11 s"]).unwrap_err();
    assert!(refusal.contains("relays[0].wlan_delay: 11 s is too long"), "{refusal}");
}
