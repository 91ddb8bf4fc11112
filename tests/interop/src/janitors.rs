//! The processes that undo the plumbing of killed daemons: found, and killed together with those they watch.

use std::fs;
use std::path::Path;

use linux::netns::Namespace;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Running, wait_until};

/// Returns the process numbers of the janitors of a device in a namespace.
///
/// # Panics
/// If the namespace cannot be entered.
pub fn janitors_of(namespace: &Namespace, device: &str) -> Vec<String> {
    let namespace =
        namespace.run(|| fs::read_link("/proc/thread-self/ns/net").expect("procfs")).expect("the namespace");
    let number = namespace.to_string_lossy().trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    processes(&["anabranch-janitor", &number, device])
}

/// Kills a program and the janitors of its device, none of which gets to do its work, and waits until they have ended.
///
/// # Panics
/// If there is no such program or janitor.
pub fn kill_with_janitors(program: Running, namespace: &Namespace, device: &str) {
    // A program that runs would start another janitor at once.
    kill_process(Pid::from_child(&program.0), Signal::STOP).expect("a program that runs");
    let janitors = janitors_of(namespace, device);
    assert!(!janitors.is_empty(), "{device} has no janitor");
    for janitor in &janitors {
        let number = janitor.parse().ok().and_then(Pid::from_raw).expect("a process number");
        kill_process(number, Signal::KILL).expect("a janitor that runs");
    }
    drop(program);
    // Until then they hold the claim on the device.
    wait_until("the janitors have ended", || janitors_of(namespace, device).is_empty());
}

/// Returns the numbers of the processes whose arguments contain these.
fn processes(arguments: &[&str]) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("procfs").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let all = all.filter(|name| name.bytes().all(|c| c.is_ascii_digit()));
    let matching = all.filter(|pid| {
        let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        words.len() > arguments.len() && arguments.iter().all(|argument| words.contains(argument))
    });
    matching.collect()
}
