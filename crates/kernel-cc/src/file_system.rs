//! Where what is loaded is pinned.

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "sys/fs/bpf";

/// The machine's BPF file system. `ip netns exec` gives a program a /sys of its own, which goes with it: what was pinned there would be
/// nowhere, and what others have pinned is not there. So it is that of the outermost ancestor that can be seen.
pub(crate) fn file_system() -> PathBuf {
    let (own, mut outermost) = (mounts_of("self"), "self".to_owned());
    while let Some(parent) = parent_of(&outermost).filter(|parent| mounts_of(parent).is_some()) {
        outermost = parent;
    }
    match mounts_of(&outermost) == own {
        true => Path::new("/").join(FOLDER),
        false => Path::new("/proc").join(outermost).join("root").join(FOLDER),
    }
}

/// What tells one mount namespace from another, where one may look.
fn mounts_of(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

fn parent_of(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    (parent != "0").then(|| parent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nobody has moved this test into mounts of its own.
    #[test]
    fn it_is_the_machines() {
        assert_eq!(file_system(), Path::new("/sys/fs/bpf"));
        assert_eq!(parent_of("self"), Some(std::os::unix::process::parent_id().to_string()));
    }
}
