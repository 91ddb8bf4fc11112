//! Mode and owner of a file that replaces another: the new file must not give anybody more rights.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// Mode of a plain file, before the umask of the process.
const MODE: u32 = 0o666;
/// Read, write and execute for all. The setuid bit is left out: a new content must not run with the owner's rights.
const PERMISSIONS: u32 = 0o777;
const OWNERS: u32 = 0o700;
const OWNER_WRITES: u32 = 0o600;
const GROUPS: u32 = 0o070;
/// Shift from the permissions of others to those of the group.
const TO_GROUP: u32 = 3;

/// Mode and owner of the regular file at a path, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Standing(Option<Of>);

#[derive(Clone, Copy, Debug)]
struct Of {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Standing {
    /// Reads those of the file at `path`. A link counts as absent, because its target is not replaced.
    pub fn at(path: &Path) -> Self {
        let metadata = fs::symlink_metadata(path).ok().filter(|metadata| metadata.is_file());
        let of = |metadata: fs::Metadata| Of {
            mode: metadata.mode() & PERMISSIONS,
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        Self(metadata.map(of))
    }

    /// Returns the mode with which the replacing file is created. Until [`Self::pass_to`] its owner may differ.
    pub fn mode_at_first(&self) -> u32 {
        self.0.map_or(MODE, |of| of.mode & OWNERS)
    }

    /// Returns the same, but writable by its owner.
    #[must_use]
    pub fn writable(self) -> Self {
        Self(self.0.map(|of| Of { mode: of.mode | OWNER_WRITES, ..of }))
    }

    /// Gives `file` the mode and, where the process may, the owner and group. If the group remains a different one, it
    /// gets no more permissions than others have.
    pub fn pass_to(&self, file: &File) {
        let Some(Of { mode, uid, gid }) = self.0 else { return };
        let owns_all = fchown(file, Some(uid), Some(gid)).is_ok();
        let has_group = owns_all || fchown(file, None, Some(gid)).is_ok();
        let mode = if has_group { mode } else { for_another_group(mode) };
        // A file system without modes keeps its own, which gives no more rights.
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
}

/// Reduces the permissions of a different group to those of others.
fn for_another_group(mode: u32) -> u32 {
    (mode & !GROUPS) | (mode & GROUPS & (mode << TO_GROUP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_group_gets_no_more_than_others() {
        assert_eq!([0o640, 0o664, 0o644, 0o750].map(for_another_group), [0o600, 0o644, 0o644, 0o700]);
    }
}
