//! Whether other users of this host can read or replace the key.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing::warn;

use crate::lock;

/// Any permission of group or others on the key.
const OTHERS: u32 = 0o077;
/// The permission of group or others to create, rename and remove files of a folder.
const OTHERS_WRITE: u32 = 0o022;
/// Everybody may create files in such a folder, but not rename or remove those of others.
const STICKY: u32 = 0o1000;

/// Warns once about a key that others on this host may read or replace. The key is used nevertheless, as WireGuard's
/// tools do.
pub fn warn_if_exposed(path: &Path) {
    static TOLD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let Some(exposure) = exposure(path) else { return };
    let mut told = lock(&TOLD);
    if !told.iter().any(|known| known == path) {
        warn!("{exposure}");
        told.push(path.into());
    }
}

/// Returns what exposes the key at `path`, with the remedy.
fn exposure(path: &Path) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let is_other = |uid: u32| uid != 0 && uid != user;
    let key = fs::metadata(path).ok()?;
    let name = path.display();
    if is_other(key.uid()) {
        let owner = key.uid();
        return Some(format!(
            "{name} belongs to another user (ID {owner}), who can read it, and so impersonate this device: chown \
             {user} {name}"
        ));
    }
    if key.mode() & OTHERS != 0 {
        return Some(format!("other users can read {name}, and so impersonate this device: chmod 600 {name}"));
    }
    // Whoever may rename a folder above may put another one in its place.
    let folder = fs::canonicalize(path.parent()?).ok()?;
    folder.ancestors().find_map(|above| {
        let metadata = fs::metadata(above).ok()?;
        let shown = above.display();
        if is_other(metadata.uid()) {
            let owner = metadata.uid();
            return Some(format!(
                "{shown} belongs to another user (ID {owner}), who can put another key in the place of {name}: chown \
                 {user} {shown}, or name another folder with --state"
            ));
        }
        let may_share = above != folder && metadata.mode() & STICKY != 0;
        (metadata.mode() & OTHERS_WRITE != 0 && !may_share).then(|| {
            format!(
                "other users can write to {shown}, and so put another key in the place of {name}: chmod go-w {shown}, \
                 or name another folder with --state"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    fn key() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/identity");
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::write(&path, "").unwrap();
        set(&path, 0o600);
        (folder, path)
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_that_others_may_read_is_exposed() {
        let (_folder, path) = key();
        for (mode, exposed) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o620, true)] {
            set(&path, mode);
            assert_eq!(exposure(&path).is_some_and(|why| why.contains("chmod 600 ")), exposed, "{mode:o}");
        }
    }

    #[test]
    fn a_key_that_others_may_replace_is_exposed() {
        let (folder, path) = key();
        let state = path.parent().unwrap();
        for mode in [0o777, 0o1777, 0o775, 0o702] {
            set(state, mode);
            let why = exposure(&path).unwrap();
            assert!(why.contains(&format!("chmod go-w {}", state.display())), "{mode:o}: {why}");
        }
        set(state, 0o755);
        set(folder.path(), 0o777);
        assert!(exposure(&path).unwrap().contains(&format!("write to {},", folder.path().display())));
        // As in /tmp.
        set(folder.path(), 0o1777);
        assert_eq!(exposure(&path), None);
    }

    #[test]
    fn a_key_that_belongs_to_another_user_is_exposed() {
        if !left_out::is_root("a key of another user") {
            return;
        }
        let (_folder, path) = key();
        let state = path.parent().unwrap();
        chown(state, Some(1234), None).unwrap();
        assert!(exposure(&path).unwrap().contains(&format!("chown 0 {}, or", state.display())));
        chown(&path, Some(1234), None).unwrap();
        assert!(exposure(&path).unwrap().ends_with(&format!("chown 0 {}", path.display())));
        chown(state, Some(0), None).unwrap();
        assert!(exposure(&path).unwrap().contains("belongs to another user (ID 1234)"));
    }
}
