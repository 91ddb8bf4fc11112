//! A kernel that skips programs: it uses garbage as their results, and the next ACK repairs it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use interop::{Protocol, in_three_tries, wait_until};
use libbpf_rs::{MapCore as _, Object, ObjectBuilder};
use tempfile::TempDir;

use super::{Flow, rig, segments, sleep};

const LOSSY: &str = "rate = '50 Mbit/s'\ndelay = '5 ms'\nqueue = '60 packets'\nloss = '0.5 %'";
/// Segments: more than the path and its queue hold, and far less than garbage.
const WINDOW_MAX: u64 = 2000;
const LOOKS: usize = 40;

/// Compiles and loads `bpf/tests/left_out.bpf.c`.
fn object(folder: &Path) -> Object {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/tests/left_out.bpf.c");
    let compiled = folder.join("left_out.bpf.o");
    let mut clang = Command::new(kernel_cc::COMPILER);
    clang.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", source, "-o"]).arg(&compiled);
    assert!(clang.status().unwrap().success(), "{clang:?}");
    ObjectBuilder::default().open_file(&compiled).unwrap().load().unwrap()
}

/// Returns whether at most one sample in ten falls between a loss and the next ACK.
fn is_nearly_always_sound(seen: &[u64]) -> bool {
    seen.iter().filter(|value| **value >= WINDOW_MAX).count() <= seen.len() / 10
}

#[test]
fn a_threshold_that_is_not_ours_is_mended_by_the_next_ack() {
    in_three_tries(is_mended_by_the_next_ack).unwrap();
}

/// Returns the samples if a threshold or a window was not repaired. Once, while other tests ran, 62 of at least 72
/// thresholds were seen, the last ones of one subflow only; the reason was not traced.
fn is_mended_by_the_next_ack() -> Result<(), String> {
    let Some(rig) = rig(&[LOSSY], 2) else { return Ok(()) };
    let folder = TempDir::new().unwrap();
    let mut object = object(folder.path());
    let connections = object.maps().find(|map| map.name() == "connections").unwrap().info().unwrap().info.id;
    let connections = libbpf_rs::MapHandle::from_map_id(connections).unwrap();
    let link = object.maps_mut().find(|map| map.name() == "left_out").unwrap().attach_struct_ops().unwrap();
    let flow = Flow::start(&rig, Protocol::Mptcp, "left_out", 5000);
    wait_until("something was lost on both subflows", || segments(&rig, "ssthresh:").len() == 2);
    let (mut windows, mut thresholds) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        sleep(Duration::from_millis(100));
        windows.extend(segments(&rig, "cwnd:"));
        thresholds.extend(segments(&rig, "ssthresh:"));
    }
    // `ss` does not show thresholds beyond 65,535.
    let is_mended = thresholds.len() >= LOOKS * 2 * 9 / 10;
    let is_sound = is_nearly_always_sound(&thresholds) && is_nearly_always_sound(&windows);
    assert_eq!(connections.keys().count(), 1, "it is told of the connection although nobody has told of its beginning");
    assert!(flow.end() > 2_000_000);
    wait_until("the connection is forgotten", || connections.keys().count() == 0);
    drop(link);
    (is_mended && is_sound).then_some(()).ok_or_else(|| format!("{thresholds:?} {windows:?}"))
}
