//! Controllers that another process loads, and unloads at bad moments or with too little room: one clear error, and
//! nothing hangs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use interop::{Protocol, available_unless, connect, listen, one_at_a_time, wait_until};
use kernel_cc::{Controller, Error};
use lab::run::{Progress, Recordings, Run, RunError};
use lab::scenario::Scenario;
use linux::netns::Namespace;
use testbed::Ends;

use super::{Loaded, WIDE, now, remote, rig, sleep};

const LINKS: &str = "
name = 'links'
duration = '60 s'
workload = { kind = 'generated', size = '300 kB' }
connection = { congestion = 'mveno' }
cooperation = { relays = 'multi-homed' }
metrics = { window = '200 ms' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '10 ms', queue = '60 packets' }
[[relays]]
cellular = { rate = '4 Mbit/s', delay = '10 ms', queue = '60 packets' }
";

/// Maximum time of each step here; on an idle machine it is less than a second.
const SOON: Duration = Duration::from_secs(20);

/// Changes a namespace's default until the test ends.
struct Default<'a>(&'a Namespace);

impl<'a> Default<'a> {
    fn set(namespace: &'a Namespace, name: &str) -> Self {
        namespace.set("ipv4/tcp_congestion_control", name).unwrap();
        Self(namespace)
    }
}

impl Drop for Default<'_> {
    fn drop(&mut self) {
        let _ = self.0.set("ipv4/tcp_congestion_control", "reno");
    }
}

fn unload_in(namespace: &Namespace, controller: Controller) -> Result<(), Error> {
    namespace.run(move || kernel_cc::unload(&controller)).unwrap()
}

#[test]
fn the_default_of_a_namespace_stays_loaded() {
    let Some(rig) = rig(&[WIDE], 1) else { return };
    let lia = Loaded::new("lia", 1024);
    let before = now();
    {
        let _default = Default::set(rig.host(1), "lia");
        let error = unload_in(rig.host(1), lia.0).unwrap_err();
        assert!(matches!(error, Error::IsDefault { name: "lia" }), "{error}");
        // From another namespace the error names this one, and how to enter it.
        for error in [unload_in(rig.host(0), lia.0).unwrap_err(), kernel_cc::unload(&lia.0).unwrap_err()] {
            let said = error.to_string();
            let path = format!("/run/netns/{}", rig.host(1).name());
            assert!(said.contains(&path) && said.contains("nsenter") && !said.contains('\n'), "{said}");
            assert!(said.matches("netns").count() == 2, "the others do not use it: {said}");
        }
        assert!(kernel_cc::is_loaded(&lia.0));
        // The default is restored: a connection without a choice gets it, and is visible.
        let listener = listen(rig.host(0), Protocol::Mptcp, remote(5000)).unwrap();
        let stream = connect(rig.host(1), Protocol::Mptcp, None, remote(5000)).unwrap();
        wait_until("it is controlled", || lia.subflows() == [1]);
        drop((stream, listener));
        wait_until("places are given back", || lia.subflows().is_empty());
    }
    kernel_cc::unload(&lia.0).unwrap();
    assert!(now() - before < SOON, "{:?}", now() - before);
    kernel_cc::load(&lia.0, 1024).unwrap();
}

fn scenario() -> Scenario {
    lab::scenario::load("test.toml", LINKS, &[]).unwrap()
}

/// Returns whether a namespace of a run of this process exists.
fn has_begun() -> bool {
    let beginning = format!("anabranch-{}-", std::process::id());
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&beginning))
}

/// Runs a scenario and unloads the controller as soon as there is a host: the run has found it loaded, and has not used
/// it yet.
fn run_without(controller: Controller) -> Result<Run, RunError> {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !has_begun() && !has_ended.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
            kernel_cc::unload(&controller).unwrap();
        });
        let run = testbed::run(&scenario(), Ends::KERNELS, Recordings::default(), &mut |_| {});
        has_ended.store(true, Ordering::Relaxed);
        run
    })
}

fn assert_intact(run: &Run) {
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.completed && run.results.totals.intact, "{:?}", run.results.totals);
}

/// A run finds the controller loaded, and it is gone when the run wants to use it.
#[test]
fn a_run_whose_controller_goes_before_its_use_says_so() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    // If the run was faster, it continues with the controller.
    for _ in 0..5 {
        let mveno = Loaded::new("mveno", 1024);
        let before = now();
        let run = run_without(mveno.0);
        assert!(!kernel_cc::is_loaded(&mveno.0));
        match run {
            Ok(run) => assert_intact(&run),
            Err(error) => {
                let said = error.to_string();
                println!("{said}");
                assert!(said.contains("unloaded") && said.contains("`mveno`") && !said.contains('\n'), "{said}");
                assert!(now() - before < SOON, "{:?}", now() - before);
                return;
            }
        }
    }
    panic!("five runs were faster than an unload");
}

#[test]
fn a_run_whose_controller_goes_meanwhile_goes_on() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    let mveno = Loaded::new("mveno", 1024);
    let controller = mveno.0;
    let mut unloading = |_: Progress<'_>| {
        if kernel_cc::is_loaded(&controller) {
            kernel_cc::unload(&controller).unwrap();
        }
    };
    let run = testbed::run(&scenario(), Ends::KERNELS, Recordings::default(), &mut unloading).unwrap();
    assert_intact(&run);
    assert!(!kernel_cc::is_loaded(&controller));
}

/// Some connections are controlled as single paths, which is not what the scenario specifies.
#[test]
fn a_run_whose_controller_has_too_little_room_says_so() {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return;
    }
    let _turn = one_at_a_time();
    let _mveno = Loaded::new("mveno", 1);
    let several = "workload.connections=3".parse().unwrap();
    let scenario = lab::scenario::load("test.toml", LINKS, &[several]).unwrap();
    let faults = testbed::run(&scenario, Ends::KERNELS, Recordings::default(), &mut |_| {}).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.contains("`mveno` had no room")), "{faults:?}");
}
