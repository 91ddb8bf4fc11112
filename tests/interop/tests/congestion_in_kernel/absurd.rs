//! Values in the maps of controllers that no controller writes: only root can write there, or there is another fault.
//! Data arrive intact, the kernel is unharmed, and windows recover.

use std::time::Duration;

use interop::{Protocol, Rig, wait_until};
use kernel_cc::{CONTROLLERS, Controller, layout};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use units::Prng;

use super::kernel_log::KernelLog;
use super::{Flow, Loaded, WIDE, now, rig, segments, sleep};

/// Time during which values of one kind are written.
const SPOILT: Duration = Duration::from_millis(80);

/// Maximum window in segments, many times what the path and its queue hold. Above it, a window has grown faster than in
/// slow start, and the repair of the losses takes seconds.
const WINDOW_MAX: u64 = 2000;

#[derive(Clone, Copy, Debug)]
enum Fill {
    Zeros,
    Ones,
    Random,
}

/// The part of the state that stays intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Every subflow finds that it has lost its place, and takes another one if one appears free.
    Nothing,
    /// The owner of each place: subflows continue with the rest, beside siblings that do not exist.
    Owners,
    /// The places in use as well.
    Places,
}

fn value(fill: Fill, len: usize, random: &mut Prng) -> Vec<u8> {
    match fill {
        Fill::Zeros => vec![0; len],
        Fill::Ones => vec![0xff; len],
        Fill::Random => (0..len).map(|_| random.below(256) as u8).collect(),
    }
}

/// Returns the offsets of the words that stay.
fn words(kept: Kept) -> Vec<usize> {
    let owners = (0..layout::PLACES).map(|place| layout::PLACES_AT + place * layout::PLACE_OCTETS);
    // `used` is the first word, `taken` is the one before the places.
    let bits = [0, layout::PLACES_AT - 8];
    match kept {
        Kept::Nothing => Vec::new(),
        Kept::Owners => owners.collect(),
        Kept::Places => owners.chain(bits).collect(),
    }
}

/// Overwrites the state of every connection once.
fn spoil(map: &MapHandle, fill: Fill, kept: Kept, random: &mut Prng) {
    for key in map.keys() {
        let Ok(Some(before)) = map.lookup(&key, MapFlags::ANY) else { continue };
        let mut after = value(fill, before.len(), random);
        for at in words(kept) {
            after[at..at + 8].copy_from_slice(&before[at..at + 8]);
        }
        // The entry may be gone.
        let _ = map.update(&key, &after, MapFlags::EXIST);
    }
}

fn spoil_for_a_while(map: &MapHandle, fill: Fill, kept: Kept, random: &mut Prng) {
    let until = now() + SPOILT;
    let mut writes = 0;
    while now() < until || writes < 10 {
        spoil(map, fill, kept, random);
        writes += 1;
        sleep(Duration::from_millis(1));
    }
}

fn carries(flow: &Flow, bytes: u64, what: &str) {
    let before = flow.received();
    wait_until(&format!("it carries on: {what}"), || flow.received() > before + bytes);
}

/// Returns the windows of the subflows, in segments.
fn windows(rig: &Rig) -> Vec<u64> {
    segments(rig, "cwnd:")
}

fn are_open(windows: &[u64]) -> bool {
    windows.len() == 2 && windows.iter().all(|window| *window >= 5)
}

/// Makes every subflow take a new place.
fn forget(map: &MapHandle, loaded: &Loaded) {
    for key in map.keys() {
        // The entry may be gone.
        let _ = map.delete(&key);
    }
    wait_until("both subflows have their places", || loaded.subflows() == [2]);
}

fn bears(rig: &Rig, controller: &Controller, log: &mut KernelLog) {
    let name = controller.name;
    let loaded = Loaded::new(name, 1024);
    let map = MapHandle::from_pinned_path(controller.folder().join("connections")).unwrap();
    let mut random = Prng::fork(31, name);
    let flow = Flow::start(rig, Protocol::Mptcp, controller.kernel_name, 5000);
    wait_until("both subflows have their places", || loaded.subflows() == [2]);
    for kept in [Kept::Places, Kept::Owners, Kept::Nothing] {
        for fill in [Fill::Zeros, Fill::Ones, Fill::Random] {
            let what = format!("{name} {fill:?} {kept:?}");
            spoil_for_a_while(&map, fill, kept, &mut random);
            let spoilt = windows(rig);
            assert!(spoilt.iter().all(|window| *window < WINDOW_MAX), "{what}: {spoilt:?}");
            // The last written values remain until something changes them.
            carries(&flow, 100_000, &what);
            if kept == Kept::Places {
                wait_until(&format!("windows are back: {what}"), || are_open(&windows(rig)));
            }
            log.assert_calm();
        }
        forget(&map, &loaded);
    }
    wait_until(&format!("windows are back: {name}"), || are_open(&windows(rig)));
    carries(&flow, 500_000, name);
    flow.end();
    wait_until("places are given back", || loaded.subflows().is_empty());
    log.assert_calm();
}

fn all_bear(controllers: &[Controller]) {
    let Some(rig) = rig(&[WIDE], 2) else { return };
    // Data that wait in the kernel at the end must leave first.
    rig.host(1).set("ipv4/tcp_wmem", "4096 100000 500000").unwrap();
    let mut log = KernelLog::start();
    for controller in controllers {
        bears(&rig, controller, &mut log);
    }
}

#[test]
fn the_first_third_of_controllers_bears_absurd_values() {
    all_bear(&CONTROLLERS[..CONTROLLERS.len() / 3]);
}

#[test]
fn the_second_third_of_controllers_bears_absurd_values() {
    all_bear(&CONTROLLERS[CONTROLLERS.len() / 3..CONTROLLERS.len() * 2 / 3]);
}

#[test]
fn the_last_third_of_controllers_bears_absurd_values() {
    all_bear(&CONTROLLERS[CONTROLLERS.len() * 2 / 3..]);
}
