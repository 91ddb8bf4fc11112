//! The folder of the running daemons' sockets, locks and records of changes.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// On a file system in memory: after a power failure its content is gone, like the daemons and their changes.
pub const RUN_FOLDER: &str = "/run/anabranch";
/// Members of a control group find the sockets there; each file in it has its own mode.
const MODE: u32 = 0o755;

/// Creates the folder if it is missing, open to all readers whatever the umask. An existing one stays as it is.
///
/// # Errors
/// If it cannot be created.
pub fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(MODE).create(folder)?;
    // The umask was applied to the mode (mkdir(2)).
    fs::set_permissions(folder, Permissions::from_mode(MODE))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::fs::Mode;
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;

    #[test]
    fn the_umask_changes_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        thread::scope(|scope| {
            scope.spawn(|| {
                // A umask of the thread's own: other tests make files meanwhile.
                // SAFETY: the table of file descriptors stays shared.
                unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
                rustix::process::umask(Mode::from_raw_mode(0o077));
                make(&folder).unwrap();
                assert_eq!(mode(), 0o755);
                fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
                make(&folder).unwrap();
                assert_eq!(mode(), 0o750, "the owner of the host has decided otherwise");
            });
        });
    }
}
