//! A scenario with the kernel at both ends, with a controller of `bpf/`.

use interop::{available_unless, make_way, one_at_a_time};
use kernel_cc::{Controller, connections, counters, is_loaded};
use lab::run::{Progress, Recordings, Run};
use lab::scenario::Scenario;
use testbed::Ends;

/// Two downloads over two links that lose packets, as on the paper's test bed.
const LINKS: &str = "
name = 'links'
duration = '60 s'
workload = { kind = 'generated', size = '700 kB', connections = 2 }
cooperation = { relays = 'multi-homed' }
metrics = { window = '500 ms' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '20 ms', queue = '60 packets', loss = '1 %' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '30 ms', queue = '60 packets', loss = '1 %' }
";

/// The controller's own maps during the run.
#[derive(Debug, Default)]
struct Seen {
    subflows_max: usize,
    added: u64,
}

fn run(controller: &str) -> (Run, Seen) {
    let change = format!("connection.congestion={controller}").parse().unwrap();
    let scenario: Scenario = lab::scenario::load("test.toml", LINKS, &[change]).unwrap();
    let mut seen = Seen::default();
    let ours = Controller::named(controller).ok();
    let mut look = |_: Progress<'_>| {
        let Some(ours) = &ours else { return };
        let subflows = connections(ours).unwrap().iter().map(|connection| connection.subflows.len()).sum();
        seen.subflows_max = seen.subflows_max.max(subflows);
        seen.added = counters(ours).unwrap().added;
    };
    let run = testbed::run(&scenario, Ends::KERNELS, Recordings::default(), &mut look).unwrap();
    (run, seen)
}

fn assert_carried(run: &Run) {
    assert_eq!(run.faults, [""; 0]);
    let results = &run.results;
    assert!(results.totals.completed && results.totals.intact, "{} octets", results.totals.delivered_bytes);
    let carried: Vec<u64> = results.subflows.iter().map(|subflow| subflow.received_bytes).collect();
    assert!(carried.len() == 4 && carried.iter().all(|bytes| *bytes > 50_000), "{carried:?}");
    assert!(results.subflows.iter().all(|subflow| subflow.min_rtt_s.is_some()), "the source tells");
    let goodputs = &results.metrics.as_ref().unwrap().connections;
    assert!(goodputs.len() == 2 && goodputs.iter().all(|one| one.goodput_bps > 200e3), "{goodputs:?}");
}

/// The kernel's own view (`ss`) names the controller, otherwise the run would have a fault. The controller's maps knew
/// all four subflows. Afterwards it is gone.
#[test]
fn the_kernel_downloads_under_a_controller_of_ours() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    let mveno = Controller::named("mveno").unwrap();
    make_way(&mveno);
    let (run, seen) = run("mveno");
    assert_carried(&run);
    assert_eq!((seen.subflows_max, seen.added), (4, 4), "{seen:?}");
    assert!(!is_loaded(&mveno));
}

#[test]
fn the_kernel_downloads_under_a_controller_of_its_own() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    let (run, _) = run("newreno");
    assert_carried(&run);
}
