//! The same scenarios in the simulator, and in namespaces on the real clock. Their results are close to each other.

use interop::{available_unless, available_with, in_three_tries, make_way, one_at_a_time};
use kernel_cc::Controller;
use lab::measure::results::Results;
use lab::run::{Recordings, Run};
use lab::scenario::{Override, Scenario};
use testbed::Ends;

/// As stated in `docs/backends.md`.
const THROUGHPUT_TOLERANCE: f64 = 0.10;
const GOODPUT_TOLERANCE: f64 = 0.15;

/// Two relays with links of their own.
const LINKS: &str = "
name = 'links'
duration = '60 s'
workload = { kind = 'generated', size = '3 MB' }
connection = { congestion = 'cubic' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '20 ms', queue = '60 packets' }
[[relays]]
cellular = { rate = '2 Mbit/s', delay = '40 ms', queue = '60 packets', loss = '0.2 %' }
";

/// Six relays of a cell and a channel, whose owners have traffic.
const CELL: &str = "
name = 'cell'
duration = '8 s'
target = { bit_rate = '3 Mbit/s', tolerance = '10 %' }
workload = { kind = 'bulk' }
connection = { congestion = 'lia' }
metrics = { period = '2 s' }
wlan = { rate = '54 Mbit/s' }
[cell]
scheduler = 'blind-equal-throughput'
queue = '100 kB'
[[relays]]
count = 6
place = { distance_m = [800.0, 1000.0] }
bit_rate_max = '2 Mbit/s'
[[relays.local]]
kind = 'udp'
rate = { uniform = ['0.4 Mbit/s', '1.4 Mbit/s'] }
";

fn scenario(text: &str, changes: &[&str]) -> Scenario {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    lab::scenario::load("test.toml", text, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Runs a scenario in both; `None` if this machine cannot.
fn both(scenario: &Scenario, ends: Ends) -> Option<[Run; 2]> {
    if !available_with(&[("ss", "iproute2")]) {
        return None;
    }
    let simulated = without_faults(lab::run::run(scenario, None, &mut |_| {}).unwrap());
    Some([simulated, on_linux(scenario, ends)])
}

fn on_linux(scenario: &Scenario, ends: Ends) -> Run {
    without_faults(testbed::run(scenario, ends, Recordings::default(), &mut |_| {}).unwrap())
}

fn without_faults(run: Run) -> Run {
    assert_eq!(run.faults, [""; 0], "{}", run.results.manifest.backend);
    run
}

/// Runs a scenario in both, and checks that they carry about the same, and what else `further` wants of both.
fn both_alike(scenario: &Scenario, ends: Ends, further: fn(&[Run; 2]) -> Result<(), String>) -> Option<[Run; 2]> {
    let mut runs = both(scenario, ends)?;
    let alike = in_three_tries(|| {
        let alike = compare(&runs).and_then(|()| further(&runs));
        if alike.is_err() {
            runs[1] = on_linux(scenario, ends);
        }
        alike
    });
    alike.unwrap();
    Some(runs)
}

fn compare(runs: &[Run; 2]) -> Result<(), String> {
    let near = |name: &str, value: fn(&Results) -> f64, tolerance: f64| {
        let [simulated, real] = [value(&runs[0].results), value(&runs[1].results)];
        let apart = real / simulated - 1.0;
        let wrong = || format!("{name}: {simulated:.0} simulated, {real:.0} on Linux, {apart:+.3}");
        (apart.abs() <= tolerance).then_some(()).ok_or_else(wrong)
    };
    near("throughput", |results| results.totals.aggregate_throughput_bps, THROUGHPUT_TOLERANCE)?;
    near("goodput", |results| results.totals.goodput_in_order_bps, GOODPUT_TOLERANCE)
}

/// Checks that both have the same of something.
fn same<T: PartialEq + core::fmt::Debug>(what: &str, of: [T; 2]) -> Result<(), String> {
    (of[0] == of[1]).then_some(()).ok_or_else(|| format!("{what}, simulated and on Linux: {of:?}"))
}

fn first_active_set(run: &Run) -> Vec<String> {
    let selection = run.results.selection.as_ref().expect("relays are selected");
    let mut names = selection.migrations[0].to.clone();
    names.sort();
    names
}

#[test]
fn the_kernel_sends_over_two_relays_that_route() {
    let Some(runs) = both_alike(&scenario(LINKS, &[]), Ends::KERNEL_TO_ENGINE, |_| Ok(())) else { return };
    let [_, real] = &runs;
    assert_eq!(real.results.manifest.backend, "linux");
    let carried: Vec<u64> = real.results.subflows.iter().map(|subflow| subflow.received_bytes).collect();
    assert!(carried.len() == 2 && carried.iter().all(|bytes| *bytes > 300_000), "{carried:?}");
    assert!(real.results.subflows.iter().all(|subflow| subflow.min_rtt_s.is_some()), "the kernel tells");
    let path_mtus: Vec<_> = real.results.subflows.iter().map(|subflow| subflow.path_mtu_bytes).collect();
    assert_eq!(path_mtus, [Some(1500), Some(1500)], "timestamps count");
}

#[test]
fn the_kernel_sends_plain_tcp() {
    let changes = ["connection.mptcp=false", "workload.size=1 MB"];
    let Some(runs) = both_alike(&scenario(LINKS, &changes), Ends::KERNEL_TO_ENGINE, |_| Ok(())) else { return };
    assert_eq!(runs[1].results.subflows.len(), 1);
}

/// Relays that splice and hold data, the whole control plane, and selection.
#[test]
fn relays_with_agents_are_chosen_as_in_the_simulator() {
    let changes = [
        "cooperation.selection.method=ssrs",
        "cooperation.relays=fast-ack",
        "cooperation.forwarding={}",
        "cooperation.adaptive_congestion={}",
    ];
    let same_relays = |runs: &[Run; 2]| same("relays", runs.each_ref().map(first_active_set));
    let Some(runs) = both_alike(&scenario(CELL, &changes), Ends::ENGINES, same_relays) else { return };
    let control = runs[1].results.totals.control.expect("relays and destination talk");
    assert!(control.channels_opened >= 12 && control.channels_refused == 0, "{control:?}");
}

/// A stream that the kernel's source generates while sending, in packets below the minimum MTU of IPv6.
#[test]
fn the_kernel_sends_a_video() {
    let changes = ["workload={ kind = 'video', rate = '2 Mbit/s' }", "duration=8 s", "connection.mtu=608 B"];
    let same_stalls = |runs: &[Run; 2]| {
        same("stalls", runs.each_ref().map(|run| run.results.totals.video.expect("somebody watches").stalls))
    };
    both_alike(&scenario(LINKS, &changes), Ends::KERNEL_TO_ENGINE, same_stalls);
}

/// Scenarios that Linux cannot run are refused before anything is set up.
#[test]
fn what_the_kernel_cannot_do_is_refused() {
    let refused = testbed::run(
        &scenario(LINKS, &["connection.congestion=coupled"]),
        Ends::KERNEL_TO_ENGINE,
        Recordings::default(),
        &mut |_| {},
    );
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("connection.congestion") && message.contains("--source engine"), "{message}");
}

/// Two relays whose owners' TCP flows want the whole capacity of their links.
const OWNERS: &str = "
name = 'owners'
duration = '30 s'
workload = { kind = 'bulk' }
connection = { congestion = 'mcc-coop' }
metrics = { period = '2 s', analysis = { from = '10 s', to = '30 s' } }
[[relays]]
cellular = { rate = '2 Mbit/s', delay = '20 ms', queue = '20 packets' }
[[relays.local]]
kind = 'tcp'
[[relays]]
cellular = { rate = '2 Mbit/s', delay = '20 ms', queue = '20 packets' }
[[relays.local]]
kind = 'tcp'
";

fn owners_bytes(run: &Run) -> u64 {
    run.results.relays.iter().map(|relay| relay.local_received_bytes).sum()
}

/// The kernel under MCC-Coop learns about its relays' owners over the control plane, and leaves them more.
#[test]
fn the_kernel_as_the_source_hears_of_owners() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    make_way(&Controller::named("mcc-coop").unwrap());
    let told = "cooperation.bandwidth_sharing.fixed=[8.0, 8.0]";
    in_three_tries(|| {
        let Some([_, untold]) = both(&scenario(OWNERS, &[]), Ends::KERNEL_TO_ENGINE) else { return Ok(()) };
        let Some([simulated, told]) = both(&scenario(OWNERS, &[told]), Ends::KERNEL_TO_ENGINE) else { return Ok(()) };
        let control = told.results.totals.control.expect("the destination talks to relays and source");
        assert!(control.channels_opened >= 6 && control.channels_refused == 0, "{control:?}");
        let bytes = [&simulated, &told, &untold].map(owners_bytes);
        let is_more = bytes[1] * 10 > bytes[2] * 12;
        is_more.then_some(()).ok_or_else(|| format!("owners' octets in the simulator, told and untold: {bytes:?}"))
    })
    .unwrap();
}

/// A path with a short queue, and a slower one with a long queue.
const DEEP: &str = "
name = 'deep'
duration = '20 s'
workload = { kind = 'bulk' }
connection = { congestion = 'lia' }
metrics = { period = '2 s' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '20 ms', queue = '20 packets' }
[[relays]]
cellular = { rate = '1 Mbit/s', delay = '20 ms', queue = '60 packets' }
";

/// The layer over the kernel's LIA keeps the longer delay low, and ends with the run.
#[test]
fn adaptive_congestion_control_is_laid_over_the_kernels_controller() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    let lia = Controller::named("lia").unwrap();
    make_way(&lia);
    let adapt = "cooperation.adaptive_congestion={ beyond = 'cap', period = '1 s' }";
    let mean_rtts_s = |changes: &[&str]| {
        let runs = both(&scenario(DEEP, changes), Ends::KERNEL_TO_ENGINE)?;
        Some(runs.map(|run| run.results.subflows[1].mean_rtt_s.expect("the source tells")))
    };
    in_three_tries(|| {
        let Some((plain, adapted)) = mean_rtts_s(&[]).zip(mean_rtts_s(&[adapt])) else { return Ok(()) };
        let is_lower = (0..2).all(|world| adapted[world] < 0.7 * plain[world]);
        let wrong =
            || format!("mean round-trip times in the simulator and on Linux: {plain:?} s, {adapted:?} s with it");
        is_lower.then_some(()).ok_or_else(wrong)
    })
    .unwrap();
    // Another run may hold the controller at this time, but not the layer.
    assert_eq!(kernel_cc::adapting(&lia).ok().flatten(), None);
}
