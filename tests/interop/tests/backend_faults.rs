//! Faults of cooperation in namespaces: relays that leave, swallow and stall, modified messages, and an interrupted
//! run. All data arrive, and no rule is broken.

use interop::{available_with, in_three_tries};
use lab::run::{Recordings, Run};
use lab::scenario::{Override, Scenario};
use rustix::process::{Signal, getpid, kill_process};
use testbed::Ends;

/// All modules on one Wi-Fi channel, over links that reorder packets.
const MODULES: &str = "
name = 'modules'
duration = '60 s'
target = { bit_rate = '4 Mbit/s' }
workload = { kind = 'generated', size = '3 MB' }
connection = { mtu = '608 B', congestion = 'mcc-coop' }
metrics = { period = '1 s' }
wlan = { rate = '54 Mbit/s' }
[cooperation]
relays = 'fast-ack'
adaptive_congestion = {}
bandwidth_sharing = { period = '1 s' }
selection = { method = 'ssrs', period = '1 s' }
forwarding = { range_packets = 100, threshold = '90 %' }
[[relays]]
count = 4
cellular.rate = '2 Mbit/s'
cellular.delay = '20 ms'
cellular.reorder = { probability = '1 %', delay = '10 ms' }
cellular.duplicate = '1 %'
";

/// Three relays, all of which the kernel uses as the source.
const KERNEL: &str = "
name = 'kernel'
duration = '60 s'
workload = { kind = 'generated', size = '4 MB' }
connection = { congestion = 'cubic' }
[cooperation]
relays = 'fast-ack'
watch = {}
[[relays]]
count = 3
cellular = { rate = '3 Mbit/s', delay = '20 ms', queue = '50 packets' }
";

fn scenario(text: &str, changes: &[&str]) -> Scenario {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    lab::scenario::load("test.toml", text, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Runs the scenario; `None` if this machine cannot.
fn survives(text: &str, changes: &[&str], ends: Ends) -> Option<Run> {
    if !available_with(&[("ss", "iproute2")]) {
        return None;
    }
    let run = testbed::run(&scenario(text, changes), ends, Recordings::default(), &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    let totals = &run.results.totals;
    assert!(totals.completed && totals.intact, "{} octets", totals.delivered_bytes);
    Some(run)
}

/// Octets that relay `index` carried in the windows that lie within this span of seconds.
fn carried_bytes(run: &Run, index: usize, span_s: core::ops::Range<f64>) -> f64 {
    let series = &run.results.series;
    let windows = series.time_s.iter().zip(&series.relays[index].carried_bps);
    let is_within = |ends_s: f64| span_s.start <= ends_s - series.window_s && ends_s <= span_s.end;
    windows.filter(|(ends_s, _)| is_within(**ends_s)).map(|(_, bps)| bps * series.window_s / 8.0).sum()
}

/// The target takes all four relays. One relay leaves with data that it has acknowledged, another stalls for two seconds, and every tenth packet of the
/// control plane is damaged, withheld or replaced.
#[test]
fn relays_leave_and_stall_while_messages_are_touched() {
    let changes = [
        "attack.messages=10 %",
        "target.bit_rate=7 Mbit/s",
        "relays[1].leaves=2 s",
        "relays[2].cellular.outages=[{ from = \"2 s\", until = \"4 s\" }]",
    ];
    let mut found = None;
    in_three_tries(|| {
        found = survives(MODULES, &changes, Ends::ENGINES);
        let Some(run) = &found else { return Ok(()) };
        // Both carry data until then. In the simulator one of them carries nothing with 12 seeds of 60.
        let carried = [1, 2].map(|relay| carried_bytes(run, relay, 0.0..2.0));
        carried.iter().all(|bytes| *bytes > 100_000.0).then_some(()).ok_or_else(|| format!("{carried:?} octets"))
    })
    .unwrap();
    let Some(run) = found else { return };
    assert!(run.attacked.messages > 10 && run.attacked.channels > 0, "{:?}", run.attacked);
    let after = carried_bytes(&run, 1, 2.5..60.0);
    assert!(after == 0.0, "{after} octets of a relay that has left");
    // The stalled relay passes on what it still has; in the simulator 8 seeds of 60 show some 0.6 to 1.6 s later.
    let starts_s = (20..30).map(|tenths| f64::from(tenths) / 10.0);
    let is_silent = starts_s.map(|from_s| carried_bytes(&run, 2, from_s..from_s + 1.01)).any(|bytes| bytes == 0.0);
    assert!(is_silent, "the stalled relay carries on: {:?} bit/s", run.results.series.relays[2].carried_bps);
}

#[test]
fn the_kernel_gets_its_data_through_though_a_relay_dies_with_some() {
    let Some(run) = survives(KERNEL, &["relays[0].leaves=1 s", "workload.size=2 MB"], Ends::KERNEL_TO_ENGINE) else {
        return;
    };
    let (before, after) = (carried_bytes(&run, 0, 0.0..1.0), carried_bytes(&run, 0, 1.5..60.0));
    assert!(before > 50_000.0 && after == 0.0, "{before} octets, then {after}");
}

/// The relay acknowledges data in the destination's name and drops them. The kernel, which keeps all data until the
/// DATA_ACK, needs the destination to close that subflow.
#[test]
fn a_relay_that_swallows_what_the_kernel_sent_is_found_out() {
    let Some(run) = survives(KERNEL, &["relays[1].swallows={ from = \"1 s\" }"], Ends::KERNEL_TO_ENGINE) else {
        return;
    };
    assert_eq!(run.attacked.guilty, ["relay-2"]);
}

/// SIGTERM, like Ctrl-C: everything measured so far is shown.
#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    if !available_with(&[("ss", "iproute2")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let recordings = Recordings { pcap: Some(folder.path()), qlog: Some(folder.path()) };
    let mut sent_at_s = None;
    let mut interrupt = |progress: lab::run::Progress<'_>| {
        let now_s = progress.now.as_secs_f64();
        if now_s >= 1.0 && sent_at_s.is_none() {
            sent_at_s = Some(now_s);
            kill_process(getpid(), Signal::TERM).unwrap();
        }
    };
    let scenario = scenario(KERNEL, &[]);
    let run = testbed::run(&scenario, Ends::KERNEL_TO_ENGINE, recordings, &mut interrupt).unwrap();
    let results = &run.results;
    let (sent_at_s, lasted_s) = (sent_at_s.unwrap(), results.totals.duration_s);
    assert!(run.faults[0].starts_with(&format!("interrupted after {lasted_s:.1} s")), "{:?}", run.faults);
    assert!((sent_at_s..sent_at_s + 1.0).contains(&lasted_s), "{lasted_s} s, the signal after {sent_at_s} s");
    assert!(results.totals.delivered_bytes > 50_000);
    assert!(results.totals.interrupted && !results.totals.completed);
    assert!(results.series.time_s.len() >= 10 && run.recordings.iter().all(|file| file.exists()));
    let names: Vec<_> = run.recordings.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    // The relays of this scenario splice subflows.
    let relays = (1..=scenario.relays.len()).map(|relay| format!("relay-{relay}.sqlog"));
    let expected = ["source.pcapng", "destination.pcapng", "destination.sqlog"].map(String::from);
    assert_eq!(names, expected.into_iter().chain(relays).collect::<Vec<_>>());
    assert!(run.notes.iter().any(|note| note.contains("source.sqlog is not written")), "{:?}", run.notes);
}

/// On a machine that pauses for a while nothing arrives sooner than it can, and the run reports how late it was.
#[test]
fn a_machine_that_stands_still_adds_delay_and_says_so() {
    if !available_with(&[("ss", "iproute2")]) {
        return;
    }
    // At an arbitrary point of its work.
    let pid = getpid().as_raw_nonzero();
    let stops = format!("for i in 1 2 3 4; do kill -STOP {pid}; sleep 0.4; kill -CONT {pid}; sleep 0.3; done");
    let mut stopper = None;
    let mut stand_still = |progress: lab::run::Progress<'_>| {
        if progress.now.as_secs_f64() >= 1.0 && stopper.is_none() {
            stopper = Some(std::process::Command::new("sh").args(["-c", &stops]).spawn().unwrap());
        }
    };
    let run =
        testbed::run(&scenario(KERNEL, &[]), Ends::KERNEL_TO_ENGINE, Recordings::default(), &mut stand_still).unwrap();
    assert!(stopper.unwrap().wait().unwrap().success());
    let totals = &run.results.totals;
    assert!(totals.completed && totals.intact, "{:?}", run.faults);
    let lateness = totals.lateness.unwrap();
    assert!(lateness.max_s > 0.38 && lateness.behind_ratio > 0.05, "{lateness:?}");
    let rtts_s: Vec<f64> = run.results.subflows.iter().filter_map(|subflow| subflow.min_rtt_s).collect();
    assert!(rtts_s.len() >= 3 && rtts_s.iter().all(|rtt_s| *rtt_s >= 0.04), "{rtts_s:?}");
}
