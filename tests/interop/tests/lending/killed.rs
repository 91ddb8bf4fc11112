//! Relays and destinations that are killed at any moment: nothing is left behind, and transfers continue.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use daemon::control::{self, Request};
use daemon::join::{JoinOptions, Wanted, join};
use daemon::proxy::ProxyConfig;
use daemon::relay::{Limit, Mode, Period, RelayOptions, relay};
use interop::{Ended, Files, Running, ask, carried, kill_at, wait_for, wait_until};
use linux::EngineOptions;
use linux::netns::Namespace;
use linux::stop::Stop;
use rustix::process::{Pid, Signal, kill_process};

use super::{BYTES, Bed, DEVICE, NAMES, sleep, state_of};

/// Runs as a child of tests in this file, which kill it.
#[test]
#[ignore = "the child of tests here, which kill it"]
fn lend_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    let phone = Namespace::open(&name).unwrap();
    let options = RelayOptions {
        share: "path0".into(),
        name: NAMES[0].parse().unwrap(),
        state: PathBuf::from(std::env::var_os("INTEROP_STATE").unwrap()),
        mode: Mode::Route,
        rate: None,
        volume: Some(Limit { bytes: 1_000_000_000, period: Period::Day }),
        battery_min: None,
        control_group: None,
        pair: false,
    };
    phone.run(|| relay(options, &Stop::new()?, |_| (), |_| ())).unwrap().unwrap();
}

/// The same as [`lend_until_killed`].
#[test]
#[ignore = "the child of tests here, which kill it"]
fn join_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    let laptop = Namespace::open(&name).unwrap();
    let state = PathBuf::from(std::env::var_os("INTEROP_STATE").unwrap());
    let options = JoinOptions {
        uplinks: Wanted { interfaces: Vec::new(), relays: Vec::new(), state },
        target: None,
        prices: Vec::new(),
        proxy: ProxyConfig::new("127.0.0.1:0".parse().unwrap()),
        names_over_uplinks: true,
        control_group: None,
        engine: EngineOptions::default(),
    };
    laptop.run(|| join(options, &Stop::new()?, |_| ())).unwrap().unwrap();
}

pub(super) fn child(name: &str, namespace: &Namespace, state: &Path) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("lending::killed::{name}"), "--ignored", "--nocapture"]);
    command.env("INTEROP_NAMESPACE", namespace.name()).env("INTEROP_STATE", state);
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Returns moments spread over `span`, in no order.
fn moments(rounds: u64, span: Duration) -> impl Iterator<Item = Duration> {
    (0..rounds).map(move |round| Duration::from_millis(round * 7919 % span.as_millis() as u64))
}

fn kill_relays(rounds: u64) {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    // A connection that begins over the relay ends with it if it dies before the first DATA_ACK: few begin.
    let files = Files::new(4 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let (phone, state) = (bed.net.phone(0), bed.state("anna"));
    let joined = bed.join();
    // For a while, the destination takes a relay that was killed for alive, so the relay is asked as well.
    let idle = state_of(phone);
    let carries = || {
        let lends = phone.run(control::running).unwrap().unwrap().len() == 1 && state_of(phone) != idle;
        let status = bed.status();
        lends && status["uplinks"][1]["lost"].is_null() && carried(&status, 1) > 100_000
    };
    // One download after another, for as long as the kills take: a single one might be over before them.
    let over = AtomicBool::new(false);
    let downloads = thread::scope(|scope| {
        let downloading = scope.spawn(|| download_until(&bed, &files, &joined.ready, &over));
        let ended = Ended(&over);
        kill_at(
            moments(rounds, Duration::from_millis(2500)),
            || child("lend_until_killed", phone, &state),
            carries,
            || state_of(phone),
        );
        drop(ended);
        downloading.join().unwrap()
    });
    println!("{downloads} downloads meanwhile");
    let relay = bed.lend(0);
    wait_until("the relay is used again", || bed.status()["uplinks"][1]["lost"].is_null());
    drop(relay);
}

/// Downloads the file again and again, the last time when it is `over`. Returns how often; each copy must be whole.
fn download_until(bed: &Bed, files: &Files, proxy: &str, over: &AtomicBool) -> usize {
    let mut downloads = 0;
    while !over.load(Ordering::Relaxed) {
        wait_for(bed.curl(files, proxy));
        assert!(files.arrived(), "download {downloads}");
        fs::remove_file(files.copy()).unwrap();
        downloads += 1;
    }
    downloads
}

fn kill_destinations(rounds: u64) {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let _relay = bed.lend(0);
    let (laptop, state) = (&bed.net.laptop, bed.state("laptop"));
    kill_at(
        moments(rounds, Duration::from_millis(1200)),
        || child("join_until_killed", laptop, &state),
        || ask(&bed.net, DEVICE, &Request::Status).is_ok_and(|status| status["uplinks"][1]["lost"].is_null()),
        || bed.net.state(),
    );
    let _joined = bed.join();
    assert!(bed.status()["uplinks"][1]["lost"].is_null());
}

#[test]
fn a_relay_that_was_killed_and_is_back_at_once_carries_again() {
    let Some(bed) = Bed::new() else { return };
    let files = Files::new(4 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let (phone, state) = (bed.net.phone(0), bed.state("anna"));
    let first = child("lend_until_killed", phone, &state);
    wait_until("it lends", || phone.run(control::running).unwrap().unwrap().len() == 1);
    let joined = bed.join();
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("it carries", || carried(&bed.status(), 0) > 1_000_000);
    drop(first);
    // The phone has forgotten its translations, and tells the server that there is no such connection.
    sleep(Duration::from_millis(500));
    let _second = child("lend_until_killed", phone, &state);
    wait_for(transfer);
    assert!(files.arrived());
}

#[test]
fn a_relay_that_stands_still_is_used_again_when_it_goes_on() {
    let Some(bed) = Bed::new() else { return };
    let files = Files::new(4 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let relay = child("lend_until_killed", bed.net.phone(0), &bed.state("anna"));
    wait_until("it lends", || bed.net.phone(0).run(control::running).unwrap().unwrap().len() == 1);
    let joined = bed.join();
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("it carries", || carried(&bed.status(), 0) > 1_000_000);
    let process = Pid::from_child(&relay.0);
    kill_process(process, Signal::STOP).unwrap();
    wait_until("it is lost", || bed.status()["uplinks"][0]["lost"].is_string());
    kill_process(process, Signal::CONT).unwrap();
    wait_for(transfer);
    assert!(files.arrived());
    assert!(bed.status()["uplinks"][0]["lost"].is_null());
}

#[test]
fn a_relay_killed_at_any_moment_leaves_nothing_and_ends_no_transfer() {
    kill_relays(8);
}

#[test]
fn a_destination_killed_at_any_moment_leaves_nothing() {
    kill_destinations(8);
}

#[test]
#[ignore = "minutes: each daemon killed at 100 moments"]
fn daemons_killed_at_two_hundred_moments_leave_nothing() {
    kill_relays(100);
    kill_destinations(100);
}
