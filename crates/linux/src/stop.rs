//! Asks a running loop to end: by Ctrl-C, by SIGTERM, by a closed terminal, or from another thread.
//!
//! A signal that was ignored when the program started stays ignored: `nohup` and a shell's `trap '' TERM` ask for that,
//! and scripts start programs in the background (`&`) without SIGINT.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use signal_hook::{SigId, flag};

use crate::{Error, Result};

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Becomes readable when the loop should end, so a loop can wait for it beside its devices.
#[derive(Debug)]
pub struct Stop {
    read: UnixStream,
    write: UnixStream,
    listening: Option<Listening>,
}

/// Handles signals while it exists; holds the registered actions.
#[derive(Debug, Default)]
struct Listening {
    actions: Vec<SigId>,
}

/// Number of [`Listening`] values. When it falls to 0, signals kill the process again, as by default.
static LISTENERS: Mutex<usize> = Mutex::new(0);

/// Ends the loop that waits on the other end.
#[derive(Debug)]
pub struct StopHandle(UnixStream);

/// Ends the loop that waits on the other end when dropped, also by a panic: a scope waits for all its threads, and a
/// loop that never ends would keep the process alive.
#[derive(Debug)]
pub struct StopOnDrop(StopHandle);

impl Stop {
    /// Creates a stop that only its handles trigger.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> Result<Self> {
        let (read, write) = UnixStream::pair().map_err(Error::system("create a socket pair"))?;
        Ok(Self { read, write, listening: None })
    }

    /// Creates a stop that Ctrl-C, SIGTERM and a closed terminal trigger as well, unless the process ignores them.
    /// While one exists, these do not kill the process.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn on_signals() -> Result<Self> {
        let mut stop = Self::new()?;
        stop.listening = Some(Listening::begin(&stop.write)?);
        Ok(stop)
    }

    /// Returns whether it has been triggered.
    pub fn is_triggered(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.read.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Waits until it is triggered.
    pub fn wait(&self) {
        let mut octet = [0; 1];
        while recv(&self.read, &mut octet, RecvFlags::PEEK).is_err_and(|errno| errno == Errno::INTR) {}
    }

    /// Returns a handle for another thread.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn handle(&self) -> Result<StopHandle> {
        self.write.try_clone().map(StopHandle).map_err(Error::system("duplicate a socket"))
    }
}

impl Listening {
    fn begin(write: &UnixStream) -> Result<Self> {
        let is_alone = kill_when_alone()?;
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        *listeners += 1;
        is_alone.store(false, Ordering::SeqCst);
        drop(listeners);
        let mut listening = Self::default();
        for signal in heeded() {
            let write = write.try_clone().map_err(Error::system("duplicate a socket"))?;
            listening.actions.push(pipe::register(signal, write).map_err(Error::system("watch for signals"))?);
        }
        Ok(listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.actions.drain(..).for_each(|action| {
            let _ = unregister(action);
        });
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        *listeners -= 1;
        if let Ok(is_alone) = kill_when_alone() {
            is_alone.store(*listeners == 0, Ordering::SeqCst);
        }
    }
}

/// Returns the signals that the process does not ignore. Without `/proc`, it heeds all.
fn heeded() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // proc_pid_status(5): the lowest bit is signal 1.
    SIGNALS.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0)
}

/// Returns the flag that says whether signals kill the process. Without it, signals would be swallowed after the last
/// listener has gone.
fn kill_when_alone() -> Result<Arc<AtomicBool>> {
    static IS_ALONE: OnceLock<std::result::Result<Arc<AtomicBool>, i32>> = OnceLock::new();
    let register = || {
        let is_alone = Arc::new(AtomicBool::new(false));
        for signal in heeded() {
            flag::register_conditional_default(signal, Arc::clone(&is_alone))
                .map_err(|error| error.raw_os_error().unwrap_or(0))?;
        }
        Ok(is_alone)
    };
    let known = IS_ALONE.get_or_init(register).clone();
    known.map_err(|errno| Error::system("watch for signals")(std::io::Error::from_raw_os_error(errno)))
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl StopHandle {
    /// Asks the loop to end.
    pub fn stop(&self) {
        // This can only fail when the loop has already ended.
        let _ = (&self.0).write_all(&[0]);
    }

    /// Returns a guard that asks the loop to end when it is dropped.
    pub const fn on_drop(self) -> StopOnDrop {
        StopOnDrop(self)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// Set in a process of its own in which a test runs again.
    const CHILD: &str = "ANABRANCH_TEST_STOP_CHILD";

    /// Returns a command that runs a test again, in a process that ignores the signals `ignored`.
    fn again(test: &str, ignored: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("trap '' {ignored}; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("stop::tests::{test}")]).env(CHILD, "1").stdout(Stdio::null());
        command
    }

    fn send(signal: Signal) {
        kill_process(getpid(), signal).unwrap();
    }

    /// Returns whether `stop` is triggered soon.
    fn ends(stop: &Stop) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 200_000_000 })).unwrap() > 0
    }

    #[test]
    fn signals_that_were_ignored_at_the_start_stay_ignored() {
        if std::env::var_os(CHILD).is_some() {
            let stop = Stop::on_signals().unwrap();
            [Signal::HUP, Signal::INT].into_iter().for_each(send);
            assert!(!ends(&stop));
            drop(stop);
            [Signal::HUP, Signal::INT].into_iter().for_each(send);
            let again = Stop::on_signals().unwrap();
            assert!(!ends(&again));
            send(Signal::TERM);
            return again.wait();
        }
        let status = again("signals_that_were_ignored_at_the_start_stay_ignored", "HUP INT").status().unwrap();
        assert!(status.success(), "{status:?}");
    }

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn who_no_longer_listens_keeps_nothing() {
        drop(Stop::on_signals().unwrap());
        let before = descriptors();
        (0..50).for_each(|_| drop(Stop::on_signals().unwrap()));
        // Other tests of this process may open some at the same time.
        assert!(descriptors() < before + 50, "{before} {}", descriptors());
    }

    /// Runs this test again in a process of its own, which a signal is expected to kill.
    #[test]
    fn where_nobody_listens_any_more_signals_kill() {
        if std::env::var_os(CHILD).is_some() {
            let stop = Stop::on_signals().unwrap();
            send(Signal::TERM);
            stop.wait();
            drop(stop);
            send(Signal::TERM);
            unreachable!("nobody took note of it, and it did not kill");
        }
        let status = again("where_nobody_listens_any_more_signals_kill", "HUP").status().unwrap();
        assert_eq!(status.signal(), Some(SIGTERM), "{status:?}");
    }
}
