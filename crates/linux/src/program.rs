//! The programs that ask the kernel on our behalf: `ip`, `nft`, the shell.

use std::env;
use std::ffi::OsString;
use std::process::Command;

/// Folders of programs for administrators. Debian's plain `su` leaves a path without them.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Folders of the other programs that our scripts run, whatever the user's path is.
const FOLDERS_OF_SCRIPTS: [&str; 2] = ["/usr/bin", "/bin"];

/// Returns a command for the program of this name. It, and the programs it starts, are also looked for in the folders
/// for administrators.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", with_folders(env::var_os("PATH").unwrap_or_default()));
    command
}

/// Returns a shell for one of our scripts.
pub fn shell() -> Command {
    let path = with_folders(env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("/bin/sh");
    command.env("PATH", extended(path, &FOLDERS_OF_SCRIPTS));
    command
}

/// Returns the path, extended by those of [`FOLDERS`] that it lacks.
pub(crate) fn with_folders(path: OsString) -> OsString {
    extended(path, &FOLDERS)
}

fn extended(path: OsString, more: &[&str]) -> OsString {
    let mut folders: Vec<_> = env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty()).collect();
    for folder in more {
        if !folders.iter().any(|known| known == std::path::Path::new(folder)) {
            folders.push(folder.into());
        }
    }
    // Joining cannot fail: the folders come from a path.
    env::join_paths(folders).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_administrators_are_found_on_every_path() {
        assert_eq!(with_folders("/usr/bin:/bin".into()), "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
        assert_eq!(with_folders("/sbin:/bin".into()), "/sbin:/bin:/usr/local/sbin:/usr/sbin");
        assert_eq!(extended("/none".into(), &FOLDERS_OF_SCRIPTS), "/none:/usr/bin:/bin");
        assert_eq!(with_folders(OsString::new()), "/usr/local/sbin:/usr/sbin:/sbin");
    }
}
