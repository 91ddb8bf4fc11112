//! The process that changes this host, and undoes the changes when our process ends in any way.
//!
//! It is a small shell in a session of its own, at the other end of a pipe. It alone makes the changes, one after the
//! other, so none can happen after they were undone. It alone undoes them, so every run exercises that.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};

use super::conntrack::{self, Conntrack};
use super::state::Claim;
use crate::helper::Helper;
use crate::program::shell;
use crate::{Error, Result};

const SCRIPT: &str = include_str!("janitor.sh");

/// Makes requested changes. When it is dropped, or this process ends, it undoes what is recorded in its claim's file.
#[derive(Debug)]
pub(super) struct Janitor {
    shell: Helper,
    /// Opened while this process had its rights, without which the kernel takes no requests.
    conntrack: Conntrack,
}

impl Janitor {
    /// Starts it in the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start(claim: &Claim) -> Result<Self> {
        Self::start_with(claim, Conntrack::open())
    }

    fn start_with(claim: &Claim, conntrack: Conntrack) -> Result<Self> {
        let shell = Helper::start(&mut command(claim, &conntrack)?)?;
        Ok(Self { shell, conntrack })
    }

    /// Returns its exit status if it has ended, which means that it was killed.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.shell.ended()
    }

    /// Replaces a janitor that has ended. The record stays unchanged until the new one ends.
    ///
    /// # Errors
    /// If there is no shell, or if a child process of ours may no longer change this host.
    pub fn replace(&mut self, claim: &Claim) -> Result<()> {
        let mut successor = Self::start_with(claim, self.conntrack.try_clone()?)?;
        if !may_change(successor.shell.process()) {
            // At the end of its input it would fail to undo the changes, and delete the record.
            successor.shell.kill();
            return Err(Error::Unready("this process has given up its rights".into()));
        }
        *self = successor;
        Ok(())
    }

    /// Makes a change; the inner `Err` is the message of `ip`, `nft` or the kernel.
    ///
    /// # Errors
    /// If the janitor is gone.
    pub fn request(&mut self, change: &str) -> Result<Result<(), String>> {
        let answer = self.shell.request(change);
        let answer = answer.map_err(Error::system(format!("reach the janitor for `{change}`")))?;
        Ok(if answer == "ok" { Ok(()) } else { Err(answer) })
    }

    /// Makes the kernel forget the connections from `addresses`; the inner `Err` is the kernel's.
    ///
    /// # Errors
    /// If the janitor is gone.
    pub fn forget(&mut self, addresses: &[IpAddr]) -> Result<Result<(), String>> {
        // Answers that nobody has read, because the janitor was killed, would count for these messages.
        let _ = self.conntrack.outcome(0);
        let said = self.request(&format!("forget {}", conntrack::messages(addresses)))?;
        let outcome = self.conntrack.outcome(addresses.len());
        Ok(said.and(outcome.map_err(|error| error.to_string())))
    }
}

/// Returns whether a process has CAP_NET_ADMIN. A child of a process that has given it up regains it if its user is
/// root and nothing forbids it.
fn may_change(process: u32) -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return false };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & NET_ADMIN != 0)
}

/// Undoes what is recorded in the file of a claim whose process has ended.
///
/// # Errors
/// If there is no shell, or if part of it cannot be undone now: then the record stays.
pub(super) fn undo(claim: &Claim) -> Result<()> {
    if !claim.undo_file().exists() || may_change(std::process::id()) {
        let mut command = command(claim, &Conntrack::open())?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if command.status().map_err(Error::system("start /bin/sh"))?.success() {
            return Ok(());
        }
    }
    let [folder, namespace, device] = claim.names();
    Err(Error::Unready(format!(
        "cannot undo the changes of an earlier process for {device} ({folder}/{namespace}-{device}.undo lists them): \
         check that `ip` and `nft` are installed (apt-get install iproute2 nftables) and that this process may use \
         them (CAP_NET_ADMIN), then run anabranch clean"
    )))
}

/// Returns the command of a janitor that holds the claim while it lives.
fn command(claim: &Claim, conntrack: &Conntrack) -> Result<Command> {
    let alive: File = claim.alive()?;
    let [folder, namespace, device] = claim.names();
    let mut command = shell();
    command
        .args(["-c", SCRIPT, "anabranch-janitor"])
        .arg(folder)
        .arg(namespace)
        .arg(device)
        .stderr(conntrack.passed_on()?);
    let prepare = move || {
        rustix::process::setsid()?;
        fcntl_setfd(&alive, FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: between fork and exec there are two system calls, which allocate nothing and take no lock.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Returns the exit status of a janitor that has to undo `change`, and whether the record of it remains.
    fn undone(change: &str, path: &str) -> (Option<i32>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("1-dev.undo");
        fs::write(&file, format!("{change}\n")).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "anabranch-janitor"]).arg(folder.path()).args(["1", "dev"]).env("PATH", path);
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        (status.code(), file.exists())
    }

    #[test]
    fn a_program_that_is_not_found_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for (program, change) in [("nft", "nft add table inet x"), ("ip", "ip link")] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT, "anabranch-janitor"]).arg(folder.path()).args(["1", "dev"]);
            command.env("PATH", "/no-such-folder").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            writeln!(child.stdin.take().unwrap(), "{change}").unwrap();
            let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            assert!(said.contains(&format!("{program}: not found")) && said.lines().count() == 1, "{said:?}");
        }
    }

    /// Returns what a janitor writes to connection tracking, in pieces as they are written: once as requested, and once
    /// at its end.
    fn written(shell: &str, messages: &str) -> Vec<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1-dev.undo"), format!("forget {messages}\n")).unwrap();
        let (kernel, theirs) = UnixDatagram::pair().unwrap();
        let mut command = Command::new(shell);
        command.args(["-c", SCRIPT, "anabranch-janitor"]).arg(folder.path()).args(["1", "dev"]);
        command.stderr(Stdio::from(OwnedFd::from(theirs)));
        let mut janitor = Helper::start(&mut command).unwrap();
        assert_eq!(janitor.request(&format!("forget {messages}")).unwrap(), "ok");
        drop(janitor);
        kernel.set_nonblocking(true).unwrap();
        let mut octets = [0; 4096];
        std::iter::from_fn(|| kernel.recv(&mut octets).ok().map(|len| octets[..len].to_vec())).collect()
    }

    #[test]
    fn messages_are_written_at_once_whatever_the_shell_is() {
        // They contain the octet 10, the end of a line.
        let addresses: Vec<IpAddr> = (8..16).map(|host| [10, 99, 98, host].into()).collect();
        let messages = conntrack::messages(&addresses);
        for shell in ["/bin/sh", "bash"] {
            let pieces = written(shell, &messages);
            let escaped = |piece: &Vec<u8>| piece.iter().map(|octet| format!("\\{octet:03o}")).collect::<String>();
            let pieces: Vec<String> = pieces.iter().map(escaped).collect();
            assert_eq!(pieces, [messages.as_str(); 2], "{shell}");
        }
    }

    #[test]
    fn the_lock_is_open_to_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "anabranch-janitor"]).arg(folder.path()).args(["1", "dev"]);
        assert!(command.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        let mode = fs::metadata(folder.path().join("lock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_undone_stays_written_down() {
        for change in ["filter dev", "rule 4 10.99.0.2 990000 100", "table 4 990000"] {
            assert_eq!(undone(change, "/no-such-folder"), (Some(3), true), "{change}");
        }
        // Without the right to change tables, nor to list them.
        let folder = tempfile::tempdir().unwrap();
        let nft = folder.path().join("nft");
        fs::write(&nft, "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(&nft, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap() + ":/usr/sbin";
        let without_rights = format!("{}:{path}", folder.path().display());
        assert_eq!(undone("filter dev", &without_rights), (Some(3), true));
        // It is already gone.
        assert_eq!(undone("sysctl ipv4/conf/no-such-device/forwarding 1 0", &path), (Some(0), false));
    }
}
