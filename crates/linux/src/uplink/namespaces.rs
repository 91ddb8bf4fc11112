//! Lists the network namespaces: those that a thread is in, that a descriptor holds open, and that are mounted.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns their numbers, as far as this process may see them: root sees all of its PID namespace.
pub(super) fn all() -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut mounts_seen = BTreeSet::new();
    for process in entries(Path::new("/proc")).filter(is_number) {
        let process = process.path();
        for thread in entries(&process.join("task")) {
            found.extend(fs::metadata(thread.path().join("ns/net")).map(|own| own.ino()));
        }
        let held = entries(&process.join("fd")).filter_map(|file| fs::read_link(file.path()).ok());
        found.extend(held.filter_map(|target| number(target.to_str()?)));
        // Most processes have the same mounts.
        let is_new = fs::metadata(process.join("ns/mnt")).is_ok_and(|own| mounts_seen.insert(own.ino()));
        let mounts =
            if is_new { fs::read_to_string(process.join("mountinfo")).unwrap_or_default() } else { String::new() };
        // The fourth field is the root of the mount (`proc_pid_mountinfo(5)`).
        found.extend(mounts.lines().filter_map(|line| number(line.split(' ').nth(3)?)));
    }
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok)
}

fn is_number(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

/// Parses a name like `net:[4026531840]`.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_one_is_there() {
        let own = fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
        let all = all();
        assert!(all.contains(&own) && !all.contains(&1), "{all:?}");
    }

    #[test]
    fn names_have_numbers() {
        assert_eq!(number("net:[4026531840]"), Some(4_026_531_840));
        assert_eq!([number("/"), number("mnt:[4026531841]"), number("net:[x]")], [None; 3]);
    }
}
