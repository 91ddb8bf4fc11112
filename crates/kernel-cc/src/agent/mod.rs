//! The source's agent when the kernel sends: destinations call it over the kernel's own TCP, and it passes their
//! reports to a controller.
//!
//! ```text
//! callers   the callers, and the messages from them
//! paths     what is known of paths, and for how long it is valid
//! ```
//!
//! It corresponds to the engine's source agent ([`cooperation::agent::source`]), with the same settings and the same
//! messages. What that agent does at the end of a period, the programs in the kernel do by themselves
//! ([`crate::adapt`]). Reports that are not renewed expire there.

mod callers;
mod paths;

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cooperation::agent::control::ControlStats;
use cooperation::agent::source::SourceSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::{Duration, Instant};

use crate::clock::{now, wall};
use crate::{Controller, Error, PathId, Told, tell};
use callers::Callers;
use paths::Paths;

/// Pause before accepting callers again after that has failed, for example for want of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// An agent at work in a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Agent {
    known: Arc<Mutex<Known>>,
    /// Dropping it wakes the thread for the last time.
    stop: Option<UnixStream>,
    working: Option<JoinHandle<()>>,
}

/// State that other threads may read.
#[derive(Debug, Default)]
struct Known {
    control: ControlStats,
    fault: Option<String>,
}

impl Agent {
    /// Accepts callers at `listener` and passes their reports to `controller`, according to `settings`. The address in
    /// the settings is not used here: the listener is already bound.
    ///
    /// # Errors
    /// If the system provides no socket or thread.
    pub fn start(listener: TcpListener, controller: Controller, settings: SourceSettings) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let known = Arc::new(Mutex::new(Known::default()));
        let paths = Paths::new(&settings, controller.shares());
        let callers = Callers::new(settings.control);
        let mut work = Work { controller, callers, paths, known: Arc::clone(&known) };
        let working =
            std::thread::Builder::new().name("agent".into()).spawn(move || work.go_on(&listener, &stopped))?;
        Ok(Self { known, stop: Some(stop), working: Some(working) })
    }

    /// Returns the statistics of the control plane.
    pub fn control_stats(&self) -> ControlStats {
        lock(&self.known).control
    }

    /// Returns the first fault of this agent that no caller has caused.
    pub fn fault(&self) -> Option<String> {
        lock(&self.known).fault.clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(working) = self.working.take() {
            let _ = working.join();
        }
    }
}

/// State of the thread.
struct Work {
    controller: Controller,
    callers: Callers,
    paths: Paths,
    known: Arc<Mutex<Known>>,
}

impl Work {
    fn go_on(&mut self, listener: &TcpListener, stopped: &UnixStream) {
        let mut paused_until = Instant::ZERO;
        loop {
            let is_paused = paused_until > now();
            let pause = is_paused.then_some(paused_until);
            let deadline = [pause, self.callers.poll_timeout(), self.paths.next_expiry()].into_iter().flatten().min();
            let ready = match self.wait(listener, stopped, is_paused, deadline) {
                Ok(ready) => ready,
                Err(error) => return self.note(format!("wait for callers: {error}")),
            };
            if ready.ended {
                return;
            }
            for (peer, word) in self.callers.hear(&ready.callers) {
                if let Some((path, what)) = self.paths.hear(peer, &word, now()) {
                    self.tell(path, what);
                }
            }
            while let Some((path, what)) = self.paths.expire(now()) {
                self.tell(path, what);
            }
            if ready.is_called {
                if let Err(error) = self.callers.admit(listener, now()) {
                    paused_until = now() + PAUSE;
                    self.note(format!("accept a caller: {error}"));
                }
            }
            self.callers.handle_timeout(now());
            lock(&self.known).control = self.callers.stats();
        }
    }

    fn tell(&mut self, path: PathId, what: Told) {
        match tell(&self.controller, path, what, wall(self.paths.holds())) {
            Ok(()) => {}
            // The connection has ended meanwhile, or is under another controller.
            Err(Error::NoConnection { .. }) => self.paths.forget(path),
            Err(error) => self.note(error.to_string()),
        }
    }

    fn note(&self, fault: String) {
        lock(&self.known).fault.get_or_insert(fault);
    }

    /// Waits until there is something to do.
    fn wait(
        &self,
        listener: &TcpListener,
        stopped: &UnixStream,
        is_paused: bool,
        deadline: Option<Instant>,
    ) -> io::Result<Ready> {
        let incoming = if is_paused { PollFlags::empty() } else { PollFlags::IN };
        let mut waiting = vec![
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), incoming),
        ];
        waiting.extend(self.callers.sockets().map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        let patience = deadline.map(|deadline| timespec(deadline.saturating_since(now())));
        match poll(&mut waiting, patience.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready: Vec<bool> = waiting.iter().map(|one| !one.revents().is_empty()).collect();
        Ok(Ready { ended: is_ready[0], is_called: is_ready[1] && !is_paused, callers: is_ready[2..].to_vec() })
    }
}

/// What is ready.
struct Ready {
    ended: bool,
    is_called: bool,
    /// In the order of the callers.
    callers: Vec<bool>,
}

fn timespec(time: Duration) -> Timespec {
    let nanos = time.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
