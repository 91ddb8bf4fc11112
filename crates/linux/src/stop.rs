//! How a running loop is asked to end: by Ctrl-C, by SIGTERM, by a closed terminal, or by another thread.

use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::{Error, Result};

/// Becomes readable when it is time to end, so that loops can wait for it beside their devices.
#[derive(Debug)]
pub struct Stop {
    read: UnixStream,
    write: UnixStream,
}

/// Ends the loop that waits on the other end.
#[derive(Debug)]
pub struct StopHandle(UnixStream);

/// Ends the loop that waits on the other end when it is dropped, also by a panic: a scope waits for all its threads, and one that
/// nobody ends would keep the process from ending.
#[derive(Debug)]
pub struct StopOnDrop(StopHandle);

impl Stop {
    /// A stop that only its handles trigger.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> Result<Self> {
        let (read, write) = UnixStream::pair().map_err(Error::system("create a socket pair"))?;
        Ok(Self { read, write })
    }

    /// A stop that Ctrl-C, SIGTERM and a closed terminal trigger as well; they no longer kill the process.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn on_signals() -> Result<Self> {
        let stop = Self::new()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let write = stop.write.try_clone().map_err(Error::system("duplicate a socket"))?;
            pipe::register(signal, write).map_err(Error::system("watch for signals"))?;
        }
        Ok(stop)
    }

    /// Whether it has been triggered.
    pub fn is_triggered(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.read.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Waits until it is triggered.
    pub fn wait(&self) {
        let mut octet = [0; 1];
        while recv(&self.read, &mut octet, RecvFlags::PEEK).is_err_and(|errno| errno == Errno::INTR) {}
    }

    /// A handle for another thread.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn handle(&self) -> Result<StopHandle> {
        self.write.try_clone().map(StopHandle).map_err(Error::system("duplicate a socket"))
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl StopHandle {
    /// Asks the loop to end.
    pub fn stop(&self) {
        // It can only fail when the loop has ended already.
        let _ = (&self.0).write_all(&[0]);
    }

    /// Asks it when this is dropped.
    pub const fn on_drop(self) -> StopOnDrop {
        StopOnDrop(self)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
