//! The engine inside ns-3 (`ns3/`): the module's own tests, and its examples beside the built-in simulator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lab::measure::results::Migration;
use lab::scenario::load;
use network::{Link, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, SERVER, Source, two_hosts};
use transport::ConnectionConfig;
use units::{Duration, Instant, Rate};

use crate::c_program::{run, said, static_library};

#[path = "../../ns3-radio/tests/build/mod.rs"]
mod build;

/// Simulated time of a comparison.
const SECONDS: u64 = 20;

/// Builds the module's tests and examples, once; returns their folder, or `None` where ns-3 is missing.
fn built() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let engine = || format!("ENGINE={}", static_library().display());
    BUILT.get_or_init(|| build::make(&["examples", "tests", &engine()])).as_deref()
}

#[test]
fn the_module_passes_its_own_tests() {
    let Some(out) = built() else { return };
    let output = run(&mut Command::new(out.join("tests"))).expect("it was just built");
    assert!(output.status.success(), "{}", said(&output));
}

/// What the client of `ns3/examples/two-paths.cc` has received every 100 ms.
fn in_ns3(example: &Path, settings: &str, queue_packets: u64) -> String {
    // ns-3 does not count the packet that is being sent.
    let queue = format!("--queue={}p", queue_packets - 1);
    let output =
        run(Command::new(example).args([queue, format!("--settings={settings}"), format!("--seconds={SECONDS}")]));
    let output = output.expect("it was just built");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The same by the built-in simulator.
fn built_in(config: &ConnectionConfig, queue_packets: u64) -> String {
    let link = |mbps, delay_ms| {
        Link::new(Rate::from_mbps(mbps), Duration::from_millis(delay_ms)).queue(Queue::packets(queue_packets))
    };
    let topology = TwoHosts::new(1).path(link(10, 10)).path(link(5, 20)).one_server_address();
    let (mut simulation, _) = two_hosts(topology, 1, |(id, paths), host| {
        let server = (paths[0].server, 80).into();
        if id == SERVER {
            host.app(Transfer::listen(server, config.clone()).sending(Source::pattern(1 << 40)))
        } else {
            host.app(Transfer::connect((paths[0].client, 0).into(), server, config.clone()))
        }
    });
    let mut lines = String::new();
    for step in 1..=10 * SECONDS {
        let now = Instant::from_millis(100 * step);
        simulation.run_until(now);
        let received_bytes = simulation.host(CLIENT).reports()[0].received_bytes;
        lines += &format!("{} {received_bytes}\n", now.as_millis());
    }
    lines
}

/// Link by link and time by time, so the engine meets the same world. Keys, ports and sequence numbers differ.
#[test]
fn a_run_is_the_same_in_ns3_and_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    let default = ConnectionConfig::default;
    let cubic = ConnectionConfig { congestion: "cubic".parse().expect("a controller"), ..default() };
    let plain = ConnectionConfig { mptcp: false, sack: false, ..default() };
    for (settings, config, queue_packets) in [
        ("{}", default(), 60),
        ("{}", default(), 10),
        (r#"{"congestion":"cubic"}"#, cubic, 60),
        (r#"{"mptcp":false,"sack":false}"#, plain, 30),
    ] {
        let theirs = in_ns3(&out.join("examples/two-paths"), settings, queue_packets);
        let ours = built_in(&config, queue_packets);
        assert_eq!(theirs, ours, "{settings} with queues of {queue_packets} packets");
        assert!(theirs.lines().last().is_some_and(|line| line.len() > "20000 9999999".len()), "{theirs}");
    }
}

/// The set-up of `ns3/examples/selection.h`, with the traffic of an owner.
const SELECTION: &str = r#"
name = "selection"
duration = "30 s"
target = { bit_rate = "3 Mbit/s" }
workload = { kind = "bulk" }
[cooperation.selection]
method = "ssrs"
[[relays]]
count = 4
cellular = { rate = "1 Mbit/s", delay = "20 ms", queue = "60 packets" }
wifi = { rate = "20 Mbit/s", delay = "2 ms", queue = "1000 packets" }
"#;

/// Rates of the relays' links.
const RATES: [&str; 4] = ["1Mbps", "1.4Mbps", "2Mbps", "3Mbps"];

/// A change of the set of relays: its cause, the wanted relays, and the sum of their offers.
type Change = (String, Vec<usize>, f64);

/// The changes by the built-in simulator, where an owner receives datagrams.
fn changes_built_in(method: &str, owner: &str) -> Vec<Change> {
    let [relay, rate, from] = owner.split(',').collect::<Vec<_>>()[..] else { panic!("{owner}") };
    let mut overrides = vec![format!("cooperation.selection.method={method}")];
    for (index, rate) in RATES.iter().enumerate() {
        overrides.push(format!("relays[{index}].cellular.rate={rate}"));
    }
    let local = format!(r#"[{{ kind = "udp", rate = "{rate}", datagram = "1000 B", start = "{from} s" }}]"#);
    overrides.push(format!("relays[{relay}].local={local}"));
    let overrides: Vec<_> = overrides.iter().map(|text| text.parse().expect("an override")).collect();
    let scenario = load("selection.toml", SELECTION, &overrides).expect("a scenario");
    let run = lab::run::run(&scenario, None, &mut |_| {}).expect("it runs");
    assert_eq!(run.faults, [""; 0]);
    let number = |name: &String| name.rsplit('-').next().and_then(|n| n.parse::<usize>().ok()).expect("relay-N") - 1;
    let change =
        |migration: Migration| (migration.cause, migration.to.iter().map(number).collect(), migration.offered_bps);
    run.results.selection.expect("relays are selected").migrations.into_iter().map(change).collect()
}

/// The same in ns-3: lines like "12012 ms  offers out of range: 0 1 3  2760800".
fn changes_in_ns3(example: &Path, method: &str, owner: &str) -> Vec<Change> {
    let agents =
        format!(r#"{{"target":{{"bit_rate":"3Mbps"}},"cooperation":{{"selection":{{"method":"{method}"}}}}}}"#);
    let rates = RATES.join(",");
    let options = [
        format!("--rates={rates}"),
        format!("--agents={agents}"),
        format!("--owner={owner}"),
        "--change=none".into(),
        "--seconds=30".into(),
    ];
    let output = run(Command::new(example).args(options)).expect("it was just built");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let change = |line: &str| {
        let (_, what) = line.split_once(" ms  ")?;
        let (cause, rest) = what.split_once(": ")?;
        let (set, offered) = rest.split_once("  ")?;
        let set = set.split(' ').map(|number| number.parse().expect("a number")).collect();
        Some((cause.to_string(), set, offered.parse().expect("a rate")))
    };
    text.lines().filter_map(change).collect()
}

/// The agents are the same, and their worlds are alike: the same offers lead to the same sets for the same reasons.
#[test]
fn the_same_relays_are_selected_in_ns3_and_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    for (method, owner) in [("ssrs", "3,1500kbps,10.5"), ("greedy-thesis", "2,1200kbps,7.3"), ("exact", "3,900kbps,5")]
    {
        let theirs = changes_in_ns3(&out.join("examples/selection"), method, owner);
        let ours = changes_built_in(method, owner);
        assert_eq!(theirs.len(), ours.len(), "{method}: {theirs:?}, and built in {ours:?}");
        assert!(theirs.len() > 1, "{method}: the owner changes nothing: {ours:?}");
        assert_eq!(theirs[0], ours[0], "{method}: idle links offer what they carry");
        for ((cause, set, offered), (own_cause, own_set, own_offered)) in theirs.iter().zip(&ours) {
            assert_eq!((cause, set), (own_cause, own_set), "{method}: {theirs:?}, and built in {ours:?}");
            // Which of the owner's datagrams find room in a full queue depends on microseconds.
            assert!((offered / own_offered - 1.0).abs() < 0.05, "{method}: {theirs:?}, and built in {ours:?}");
        }
    }
}

/// The set-up of `ns3/examples/fast-ack.cc` and `ns3/examples/sharing.cc`.
const COOPERATION: &str = r#"
name = "cooperation"
duration = "30 s"
workload = { kind = "bulk" }
[[relays]]
count = 2
cellular = { rate = "3 Mbit/s", delay = "20 ms", queue = "60 packets", uplink = { rate = "3 Mbit/s" } }
wifi = { rate = "20 Mbit/s", delay = "2 ms", queue = "1000 packets", uplink = { rate = "20 Mbit/s" } }
"#;

/// What the source sees of a download.
#[derive(Debug)]
struct Seen {
    goodput_mbps: f64,
    /// The two subflows that carry most: octets, and the mean of the smoothed round-trip time in ms; in the order of the
    /// latter.
    subflows: Vec<(f64, f64)>,
}

impl Seen {
    fn new(goodput_mbps: f64, mut subflows: Vec<(f64, f64)>) -> Self {
        subflows.sort_by(|left, right| right.0.total_cmp(&left.0));
        subflows.truncate(2);
        subflows.sort_by(|left, right| left.1.total_cmp(&right.1));
        Self { goodput_mbps, subflows }
    }

    /// In the built-in simulator.
    fn built_in(overrides: &[String]) -> Self {
        let overrides: Vec<_> = overrides.iter().map(|text| text.parse().expect("an override")).collect();
        let scenario = load("cooperation.toml", COOPERATION, &overrides).expect("a scenario");
        let run = lab::run::run(&scenario, None, &mut |_| {}).expect("it runs");
        assert_eq!(run.faults, [""; 0]);
        let subflow = |subflow: lab::measure::results::SubflowResults| {
            (subflow.received_bytes as f64, 1e3 * subflow.mean_rtt_s.unwrap_or_default())
        };
        let results = run.results;
        Self::new(results.totals.goodput_in_order_bps * 1e-6, results.subflows.into_iter().map(subflow).collect())
    }

    /// In ns-3: lines like "10.0.1.2:61449  10587192 octets  213.323 ms", and then "5.623 Mbit/s".
    fn in_ns3(example: &Path, options: &[String]) -> Self {
        let output = run(Command::new(example).args(options)).expect("it was just built");
        assert!(output.status.success(), "{}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text} is no number"));
        let subflow = |line: &str| {
            let [_, octets, _, rtt_ms, "ms"] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
            Some((number(octets), number(rtt_ms)))
        };
        let total = text.lines().find_map(|line| line.strip_suffix(" Mbit/s")).unwrap_or_else(|| panic!("{text}"));
        Self::new(number(total), text.lines().filter_map(subflow).collect())
    }

    fn assert_near(&self, ours: &Self, what: &str) {
        let near = |theirs: f64, own: f64, tolerance: f64| (theirs / own - 1.0).abs() < tolerance;
        assert_eq!((self.subflows.len(), ours.subflows.len()), (2, 2), "{what}: in ns-3 {self:?}, built in {ours:?}");
        let pairs = self.subflows.iter().zip(&ours.subflows);
        let mut alike = near(self.goodput_mbps, ours.goodput_mbps, TOLERANCE);
        for (theirs, own) in pairs {
            alike &= near(theirs.0, own.0, TOLERANCE_OF_OCTETS) && near(theirs.1, own.1, TOLERANCE);
        }
        assert!(alike, "{what}: in ns-3 {self:?}, built in {ours:?}");
    }
}

/// A download over relays of `mode`, whose Wi-Fi has a delay in ms and loses a share of the packets, in both.
fn download(out: &Path, mode: &str, delay_ms: u32, loss: f64) -> (Seen, Seen) {
    let options = [format!("--relays={mode}"), format!("--delay={delay_ms}ms"), format!("--loss={loss}")];
    let overrides = [
        format!("cooperation.relays={mode}"),
        format!("relays[*].wifi.delay={delay_ms} ms"),
        format!("relays[*].wifi.loss={} %", 100.0 * loss),
    ];
    (Seen::in_ns3(&out.join("examples/fast-ack"), &options), Seen::built_in(&overrides))
}

/// Share by which numbers may differ where nothing is random: the agents of ns-3 also make offers, about 100 octets in 2 s,
/// which delay what comes after them by some 40 us.
const TOLERANCE: f64 = 0.01;
/// The same of octets of a subflow: the example counts those that were sent, the results those that arrived, and up to 90
/// packets of 4000 or more are under way.
const TOLERANCE_OF_OCTETS: f64 = 0.03;

#[test]
fn relays_acknowledge_at_once_in_ns3_as_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    let (routed, own_routed) = download(out, "ip", 40, 0.0);
    let (spliced, own_spliced) = download(out, "fast-ack", 40, 0.0);
    routed.assert_near(&own_routed, "ip");
    spliced.assert_near(&own_spliced, "fast-ack");
    // The source no longer sees the 80 ms there and back, but more of the queue.
    assert!(spliced.subflows[1].1 < 0.9 * routed.subflows[0].1, "{spliced:?}, {routed:?}");
}

/// Random losses differ. The routed subflows meet about 75 of them in all, and a rate that goes with the inverse root of
/// the loss ratio then has a standard deviation of 0.5 / sqrt(75), 6 %. The tolerance is three times that of the
/// difference of two such rates, 25 %. Where relays acknowledge at once, the source meets none of the losses.
#[test]
fn relays_keep_losses_from_the_source_in_ns3_as_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    let (routed, own_routed) = download(out, "ip", 2, 0.01);
    let (spliced, own_spliced) = download(out, "fast-ack", 2, 0.01);
    let difference = routed.goodput_mbps / own_routed.goodput_mbps - 1.0;
    assert!(difference.abs() < 0.25, "in ns-3 {routed:?}, built in {own_routed:?}");
    spliced.assert_near(&own_spliced, "fast-ack");
    assert!(spliced.goodput_mbps > 1.5 * routed.goodput_mbps, "{spliced:?}, {routed:?}");
}

/// The controller reacts to what relays report: to given numbers, and to the traffic of an owner.
#[test]
fn a_source_reacts_in_ns3_as_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    let sharing = |options: &[&str], own: &str| {
        let common = ["connection.congestion=mcc-coop", "cooperation.bandwidth_sharing.demands=estimated", own];
        let theirs = Seen::in_ns3(
            &out.join("examples/sharing"),
            &options.iter().map(|option| String::from(*option)).collect::<Vec<_>>(),
        );
        (theirs, Seen::built_in(&common.map(String::from)))
    };
    let (given, own_given) = sharing(&["--owner=none", "--rho=5,2"], "cooperation.bandwidth_sharing.fixed=[5.0, 2.0]");
    given.assert_near(&own_given, "given");
    let owner = r#"relays[0].local=[{ kind = "udp", rate = "1500 kbit/s", datagram = "1000 B", start = "5.5 s" }]"#;
    let (measured, own_measured) = sharing(&["--owner=0,1500kbps,5.5"], owner);
    measured.assert_near(&own_measured, "measured");
}

#[test]
fn relays_hold_data_in_ns3_as_in_the_built_in_simulator() {
    let Some(out) = built() else { return };
    for mode in ["ip", "fast-ack"] {
        let options =
            [format!("--relays={mode}"), "--range=100".into(), "--rates=1Mbps,3Mbps".into(), "--delay=2ms".into()];
        let overrides = [
            format!("cooperation.relays={mode}"),
            "cooperation.forwarding.range_packets=100".into(),
            "relays[0].cellular.rate=1 Mbit/s".into(),
            "relays[0].cellular.uplink.rate=1 Mbit/s".into(),
        ];
        let theirs = Seen::in_ns3(&out.join("examples/fast-ack"), &options);
        theirs.assert_near(&Seen::built_in(&overrides), mode);
    }
}
