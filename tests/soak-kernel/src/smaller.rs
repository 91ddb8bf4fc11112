//! Leaves out parts that a failing case does not need.
//!
//! A run takes seconds. The simplifications are therefore listed by hand, the largest first, instead of halving every
//! number.

use soak::outcome::Fault;
use soak::transport::case::{Ending, Settings};
use transport::ConnectionConfig;

use crate::case::{Case, Way};
use crate::trial::fails_within;

/// A failing case from which nothing more can be left out.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// The case.
    pub case: Case,
    /// Its fault.
    pub fault: Fault,
    /// Number of simpler cases that were tried.
    pub tried: u32,
}

/// Makes a case smaller while it fails in the same way, at least once in `tries` runs, and `goes_on` returns true.
pub fn smallest(case: Case, fault: Fault, tries: u32, goes_on: &dyn Fn() -> bool) -> Smallest {
    let mut smallest = Smallest { case, fault, tried: 0 };
    while let Some((case, fault)) = next(&mut smallest, tries, goes_on) {
        (smallest.case, smallest.fault) = (case, fault);
    }
    smallest
}

/// Returns the first simpler case that still fails.
fn next(smallest: &mut Smallest, tries: u32, goes_on: &dyn Fn() -> bool) -> Option<(Case, Fault)> {
    for candidate in simpler(&smallest.case) {
        if !goes_on() {
            return None;
        }
        smallest.tried += 1;
        if let Some(fault) = fails_within(&candidate, &smallest.fault, tries) {
            return Some((candidate, fault));
        }
    }
    None
}

/// Returns cases that are simpler than `case`, those with the most left out first.
fn simpler(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut candidate = case.clone();
        change(&mut candidate);
        if candidate != *case {
            all.push(candidate);
        }
    };
    of_kernel(case, &mut add);
    add(&|case| case.actions.clear());
    of_paths(case, &mut add);
    of_talks(case, &mut add);
    of_engine(&mut add);
    for index in 0..case.actions.len() {
        add(&|case| _ = case.actions.remove(index));
    }
    add(&|case| case.ipv6 = false);
    all
}

type Add<'a> = dyn FnMut(&dyn Fn(&mut Case)) + 'a;

fn of_kernel(case: &Case, add: &mut Add<'_>) {
    let names: Vec<_> = case.kernel.settings.keys().cloned().collect();
    add(&|case| case.kernel.settings.clear());
    if names.len() > 1 {
        for half in names.chunks(names.len().div_ceil(2)) {
            add(&|case| case.kernel.settings.retain(|name, _| !half.contains(name)));
        }
    }
    add(&|case| case.kernel.endpoints.clear());
    add(&|case| (case.kernel.send_buffer_bytes, case.kernel.receive_buffer_bytes) = (None, None));
    if names.len() <= 12 {
        for name in &names {
            add(&|case| drop(case.kernel.settings.remove(name)));
        }
    }
    for index in 0..case.kernel.endpoints.len() {
        add(&|case| _ = case.kernel.endpoints.remove(index));
    }
}

fn of_paths(case: &Case, add: &mut Add<'_>) {
    for index in (1..case.paths.len()).rev() {
        add(&|case| drop(case.paths.remove(index)));
    }
    let flawless = |way: &mut Way| {
        let Way { rate_kbps, delay_ms, .. } = *way;
        *way = Way { rate_kbps, delay_ms, queue_packets: 100, burst_packets: 1.0, reorder_ms: 1, ..Way::default() };
    };
    for index in 0..case.paths.len() {
        add(&|case| case.paths[index].boxes.clear());
        add(&|case| case.paths[index].outages_ms.clear());
        add(&|case| flawless(&mut case.paths[index].up));
        add(&|case| flawless(&mut case.paths[index].down));
        add(&|case| case.paths[index].mtu = 1500);
        add(&|case| case.paths[index].down = case.paths[index].up);
    }
}

fn of_talks(case: &Case, add: &mut Add<'_>) {
    for index in 0..case.talks.len() {
        if case.talks.len() > 1 {
            add(&|case| _ = case.talks.remove(index));
        }
        add(&|case| case.talks[index].connections = 1);
        for of_client in [true, false] {
            let mut change = |change: &dyn Fn(&mut soak::transport::case::Speaker)| {
                add(&|case| {
                    change(if of_client { &mut case.talks[index].client } else { &mut case.talks[index].server })
                });
            };
            change(&|speaker| speaker.bytes = 0);
            change(&|speaker| speaker.bytes /= 4);
            change(&|speaker| {
                (speaker.piece_bytes, speaker.pause_ms, speaker.idle_ms, speaker.after_peer) = (1 << 20, 0, 0, false);
            });
            change(&|speaker| (speaker.read_bytes, speaker.read_pause_ms, speaker.read_after_ms) = (1 << 20, 0, 0));
            change(&|speaker| speaker.ending = Ending::Shutdown);
        }
    }
}

fn of_engine(add: &mut Add<'_>) {
    let usual = ConnectionConfig::default();
    add(&|case| {
        let engine: &mut Settings = &mut case.engine;
        engine.congestion = "newreno".into();
        engine.scheduler.clone_from(&usual.scheduler);
        (engine.receiver_centric, engine.checksum, engine.initial_window_segments) = (false, false, 10);
        (engine.hystart, engine.timestamps, engine.sack, engine.ecn, engine.nagle) = (true, true, true, false, true);
        (engine.delayed_ack_ms, engine.rto_min_ms, engine.keep_alive_s, engine.mtu) = (40, 200, None, 1500);
    });
    add(&|case| case.engine.path_manager = "manual".into());
    add(&|case| case.engine.offload_max_bytes = 0);
    add(&|case| (case.engine.send_buffer_bytes, case.engine.receive_buffer_bytes) = (4 << 20, 4 << 20));
    add(&|case| case.engine.congestion = "newreno".into());
    add(&|case| case.engine.scheduler.clone_from(&usual.scheduler));
    add(&|case| case.engine.checksum = false);
}
