//! The process that changes this host, and takes the changes back when we end in whatever way.
//!
//! It is a small shell in a session of its own, at the other end of a pipe. As it alone makes the changes, one after the other,
//! none can happen after they were taken back; as it alone takes them back, that is exercised in every run.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};

use super::state::Claim;
use crate::{Error, Result};

const SCRIPT: &str = include_str!("janitor.sh");

/// Does what it is asked to. When it is dropped, or this process ends, it undoes what is written down in its claim's file.
#[derive(Debug)]
pub(super) struct Janitor {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Janitor {
    /// Starts it in the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn start(claim: &Claim) -> Result<Self> {
        let mut command = command(claim)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::system("start /bin/sh"))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, requests, answers })
    }

    /// Makes a change; `Err` is what `ip`, `nft` or the kernel said against it.
    ///
    /// # Errors
    /// If it is gone.
    pub fn request(&mut self, change: &str) -> Result<Result<(), String>> {
        let gone = || Error::system(format!("reach the janitor, which is to do `{change}`"));
        let requests = self.requests.as_mut().expect("open until drop");
        writeln!(requests, "{change}").map_err(gone())?;
        let mut answer = String::new();
        let len = self.answers.read_line(&mut answer).map_err(gone())?;
        match answer.trim() {
            _ if len == 0 => Err(gone()(std::io::Error::from(std::io::ErrorKind::BrokenPipe))),
            "ok" => Ok(Ok(())),
            message => Ok(Err(message.into())),
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.requests.take());
        // Everything is undone when the caller goes on; without a janitor there is nothing to wait for.
        let _ = self.child.wait();
    }
}

/// Undoes what is written down in the file of a claim whose process has ended.
///
/// # Errors
/// If there is no shell.
pub(super) fn undo(claim: &Claim) -> Result<()> {
    let mut command = command(claim)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.status().map_err(Error::system("start /bin/sh"))?;
    Ok(())
}

/// A janitor that keeps the claim for as long as it lives.
fn command(claim: &Claim) -> Result<Command> {
    let alive: File = claim.alive()?;
    let [folder, namespace, device] = claim.names();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "anabranch-janitor"]).arg(folder).arg(namespace).arg(device).stderr(Stdio::null());
    let prepare = move || {
        rustix::process::setsid()?;
        fcntl_setfd(&alive, FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: between fork and exec there are two system calls, which allocate nothing and take no lock.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}
