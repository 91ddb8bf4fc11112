//! The engine inside ns-3 (`ns3/`): the module's own tests, and its examples beside the built-in simulator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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
