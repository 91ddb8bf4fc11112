//! Programs of the machine that do what we ask the kernel for: `ip`, `nft`, the shell.

use std::env;
use std::ffi::OsString;
use std::process::Command;

/// Where programs for administrators are. Debian's plain `su` leaves a path without them.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where those are that a script of ours runs besides, whatever path the user has.
const FOLDERS_OF_SCRIPTS: [&str; 2] = ["/usr/bin", "/bin"];

/// A program of this name, which is also looked for where those for administrators are, as are those that it starts.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", with_folders(env::var_os("PATH").unwrap_or_default()));
    command
}

/// A shell for a script of ours.
pub fn shell() -> Command {
    let path = with_folders(env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("/bin/sh");
    command.env("PATH", extended(path, &FOLDERS_OF_SCRIPTS));
    command
}

/// The path, with those of [`FOLDERS`] that it lacks behind it.
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
    // What came out of a path goes into one.
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
