//! Who may do what with a file that is to be replaced: the one in its place is to be no wider.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// What a plain file gets: the process's umask applies.
const MODE: u32 = 0o666;
/// Read, write and execute for all. What runs with its owner's rights (setuid) is not to do so with another content.
const PERMISSIONS: u32 = 0o777;
const OWNERS: u32 = 0o700;
const OWNER_WRITES: u32 = 0o600;
const GROUPS: u32 = 0o070;
/// From others' permissions to the group's.
const TO_GROUP: u32 = 3;

/// Mode and owner of the regular file that stands at a path, if one does.
#[derive(Clone, Copy, Debug)]
pub struct Standing(Option<Of>);

#[derive(Clone, Copy, Debug)]
struct Of {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Standing {
    /// That of the file at `path`. A link is none: what it leads to is not replaced.
    pub fn at(path: &Path) -> Self {
        let metadata = fs::symlink_metadata(path).ok().filter(|metadata| metadata.is_file());
        let of = |metadata: fs::Metadata| Of {
            mode: metadata.mode() & PERMISSIONS,
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        Self(metadata.map(of))
    }

    /// The mode with which the file that is to replace it is created: until [`Self::pass_to`] it may be another's.
    pub fn mode_at_first(&self) -> u32 {
        self.0.map_or(MODE, |of| of.mode & OWNERS)
    }

    /// The same, but its owner can go on writing.
    #[must_use]
    pub fn writable(self) -> Self {
        Self(self.0.map(|of| Of { mode: of.mode | OWNER_WRITES, ..of }))
    }

    /// Gives `file` its mode and, where the process may, its owner and group. Where the group stays another one, that may do no more than
    /// all others may.
    pub fn pass_to(&self, file: &File) {
        let Some(Of { mode, uid, gid }) = self.0 else { return };
        let owns_all = fchown(file, Some(uid), Some(gid)).is_ok();
        let has_group = owns_all || fchown(file, None, Some(gid)).is_ok();
        let mode = if has_group { mode } else { for_another_group(mode) };
        // What knows no modes keeps the one it has, which is no wider.
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
}

/// What the group may, if it is another one than before, it may as one of all others.
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
