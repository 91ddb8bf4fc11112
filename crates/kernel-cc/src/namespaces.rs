//! Other network namespaces of the machine.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sysctl;

/// Where iproute2 keeps named namespaces.
const NAMED: &str = "/run/netns";

/// Returns the files that represent other network namespaces than the caller's, if their new connections use the
/// controller that the kernel knows by `name`. Namespaces with neither a name nor a process, or that the caller may not
/// enter, cannot be found.
pub fn that_use(name: &str) -> Vec<String> {
    let mut seen: BTreeSet<(u64, u64)> = identity(Path::new("/proc/thread-self/ns/net")).into_iter().collect();
    let mut found = Vec::new();
    for path in named().into_iter().chain(of_processes()) {
        let is_new = identity(&path).is_some_and(|identity| seen.insert(identity));
        if is_new && default_in(&path).is_some_and(|default| default == name) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn named() -> Vec<PathBuf> {
    entries(NAMED).collect()
}

fn of_processes() -> impl Iterator<Item = PathBuf> {
    let is_process = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
    entries("/proc").filter(is_process).map(|path| path.join("ns/net"))
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Returns the identity of a namespace: all files that represent it have the same.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Returns what new connections use there.
fn default_in(path: &Path) -> Option<String> {
    let namespace = File::open(path).ok()?;
    // In a thread of its own, because the thread stays in the other namespace.
    let ask = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        sysctl::default().ok()
    };
    std::thread::spawn(ask).join().ok()?
}
