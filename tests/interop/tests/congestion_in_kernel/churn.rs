//! A thousand connections that start and end while their controller is loaded and unloaded.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use interop::{
    Digest, Protocol, Rig, accept, connect_with, counter, listen, mptcp_info, receive_rest, send_pattern,
    send_pattern_from, wait_until,
};
use kernel_cc::{Controller, layout};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use socket2::Socket;

use super::kernel_log::KernelLog;
use super::{Loaded, remote, rig, sleep};

const FAST: &str = "rate = '100 Mbit/s'\ndelay = '1 ms'\nqueue = '500 packets'";
/// Number of simultaneous connections, and number of successive ones.
const LANES: u16 = 25;
const EACH: u64 = 40;

/// Octets of each connection before it has a second subflow, and maximum number of checks for that subflow.
const BEGINNING: usize = 3000;
const LOOKS_MAX: u32 = 20;

/// Reads the data of one connection. Answers when it has two subflows, checks the pattern, and at the end answers with
/// its length.
fn answer(listener: &Socket) {
    let mut stream = accept(listener).unwrap();
    let mut beginning = [0; BEGINNING];
    stream.read_exact(&mut beginning).unwrap();
    let has_two = || mptcp_info(&stream).is_ok_and(|info| info.subflows > 0);
    for _ in (0..LOOKS_MAX).take_while(|_| !has_two()) {
        sleep(Duration::from_millis(3));
    }
    stream.write_all(b"!").unwrap();
    let mut digest = Digest::default();
    digest.add(&beginning);
    let digest = receive_rest(&mut stream, digest).unwrap();
    assert_eq!(digest, Digest::of_pattern(digest.bytes), "what arrived is what was sent");
    stream.write_all(&digest.bytes.to_le_bytes()).unwrap();
}

/// Connects while the controller is loaded; at other times the kernel has none of that name.
fn connect(rig: &Rig, controller: &str, port: u16, refused: &AtomicU32) -> TcpStream {
    for _ in 0..1500 {
        match connect_with(rig.host(1), Protocol::Mptcp, controller, remote(port)) {
            Ok(stream) => return stream,
            Err(error) if is_missing(&error) => refused.fetch_add(1, Ordering::Relaxed),
            Err(error) => panic!("{error}"),
        };
        sleep(Duration::from_millis(20));
    }
    panic!("{controller} stays away");
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EBUSY))
}

/// Runs one connection after the other, each with another length.
fn lane(rig: &Rig, controller: &str, number: u16, refused: &AtomicU32) {
    let port = 6000 + number;
    let listener = listen(rig.host(0), Protocol::Mptcp, remote(port)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (0..EACH).for_each(|_| answer(&listener)));
        for turn in 0..EACH {
            let bytes = 20_000 + turn * 500 + u64::from(number);
            let mut stream = connect(rig, controller, port, refused);
            send_pattern(&mut stream, BEGINNING as u64).unwrap();
            // Once it starts to close, the kernel opens no further subflow.
            stream.read_exact(&mut [0]).unwrap();
            send_pattern_from(&mut stream, BEGINNING as u64, bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut arrived = [0; 8];
            stream.read_exact(&mut arrived).unwrap();
            assert_eq!(u64::from_le_bytes(arrived), bytes, "all of it arrived");
        }
    });
}

/// Returns the kernel's numbers of a controller's programs, of all its generations.
fn programs(controller: &Controller) -> BTreeSet<u32> {
    let beginning = format!("{}_", controller.kernel_name);
    let is_its = |name: &OsStr| name.to_string_lossy().starts_with(&beginning);
    ProgInfoIter::default().filter(|program| is_its(&program.name)).map(|program| program.id).collect()
}

/// The maps of one load, which remain while any process has them open.
struct Generation {
    connections: MapHandle,
    counters: MapHandle,
}

impl Generation {
    fn of(loaded: &Loaded) -> Self {
        let open = |name| MapHandle::from_pinned_path(loaded.0.folder().join(name)).unwrap();
        Self { connections: open("connections"), counters: open("counters") }
    }

    /// Returns the numbers of added and removed subflows, and of failures to find a place.
    fn counters(&self) -> [u64; 3] {
        [0_u32, 1, 2].map(|which| {
            let value = self.counters.lookup(&which.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
            layout::word(&value, 0)
        })
    }

    fn is_empty(&self) -> bool {
        self.connections.keys().next().is_none()
    }
}

/// Loads and unloads the controller while a lane works.
fn reload(lanes: &[ScopedJoinHandle<'_, ()>], first: Loaded) -> (Loaded, Vec<Generation>) {
    let name = first.0.name;
    let mut generations = vec![Generation::of(&first)];
    let mut loaded = Some(first);
    while lanes.iter().any(|lane| !lane.is_finished()) {
        sleep(Duration::from_millis(100));
        drop(loaded.take());
        let next = Loaded::new(name, 1024);
        generations.push(Generation::of(&next));
        loaded = Some(next);
    }
    (loaded.unwrap(), generations)
}

#[test]
fn a_thousand_connections_outlive_reloads_of_their_controller() {
    let Some(rig) = rig(&[FAST], 2) else { return };
    let mut log = KernelLog::start();
    let lia = Controller::named("lia").unwrap();
    // A connection of another test that could not end keeps its programs for minutes.
    let before = programs(&lia);
    let first = Loaded::new("lia", 1024);
    let refused = AtomicU32::new(0);
    let (loaded, generations) = thread::scope(|scope| {
        let (rig, refused) = (&rig, &refused);
        let lane = |number| scope.spawn(move || lane(rig, lia.kernel_name, number, refused));
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        reload(&lanes, first)
    });
    let joins = counter(rig.host(0), "MPJoinAckRx");
    wait_until("no place is taken, in the maps of no load", || generations.iter().all(Generation::is_empty));
    let counters: Vec<[u64; 3]> = generations.iter().map(Generation::counters).collect();
    let added: u64 = counters.iter().map(|[added, ..]| added).sum();
    let (loads, refused) = (generations.len(), refused.into_inner());
    println!("{loads} loads, {refused} connects refused in between, {joins} second subflows, {added} under control");
    assert!(loads >= 5 && joins >= 300 && added >= 1000, "{counters:?}");
    assert!(counters.iter().all(|[added, removed, without]| added == removed && *without == 0), "{counters:?}");
    drop((loaded, generations));
    wait_until("no program of any load is left", || programs(&lia).is_subset(&before));
    assert!(!kernel_cc::available().unwrap().iter().any(|name| name == lia.kernel_name));
    assert!(!lia.folder().exists());
    log.assert_calm();
}
