//! Location of pinned objects.

use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

const FOLDER: &str = "sys/fs/bpf";
/// `BPF_FS_MAGIC` of the kernel.
const MAGIC: i64 = 0xcafe_4a11;

/// Returns the machine's BPF file system. `ip netns exec` gives a program a /sys of its own, which vanishes with it:
/// objects pinned there would be lost, and those of other processes are not there. If the process has no BPF file
/// system, that of an ancestor is used.
pub(crate) fn file_system() -> PathBuf {
    let own = Path::new("/").join(FOLDER);
    if is_mounted(&own) {
        return own;
    }
    let ancestors = iter::successors(parent_of("self"), |process| parent_of(process));
    let mut theirs = ancestors.map(|process| Path::new("/proc").join(process).join("root").join(FOLDER));
    theirs.find(|folder| is_mounted(folder)).unwrap_or(own)
}

/// Returns whether a BPF file system is mounted there.
pub(crate) fn is_mounted(folder: &Path) -> bool {
    #[expect(clippy::useless_conversion, reason = "its type differs between platforms")]
    rustix::fs::statfs(folder).is_ok_and(|found| i64::from(found.f_type) == MAGIC)
}

fn parent_of(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    (parent != "0").then(|| parent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_where_everybody_looks_for_it() {
        let found = file_system();
        assert!(found.ends_with(FOLDER), "{}", found.display());
        assert_eq!(found.starts_with("/proc"), is_mounted(&found) && !is_mounted(Path::new("/sys/fs/bpf")));
        assert_eq!(parent_of("self"), Some(std::os::unix::process::parent_id().to_string()));
        assert_eq!(parent_of("1"), None);
    }
}
