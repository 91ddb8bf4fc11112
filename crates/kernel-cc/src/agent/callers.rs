//! The callers, and the messages from them.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

use bytes::Bytes;
use cooperation::agent::control::{AnswererSettings, ControlStats, Seeds};
use cooperation::channel::to_source::ToSource;
use cooperation::channel::{PublicKey, SourceEnd};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
use units::Instant;

/// Maximum octets read from a socket at once.
const TAKE_BYTES: usize = 4096;
/// Callers that are accepted at once: more may call without end, and the agent has other work.
const ADMITTED_MAX: usize = 64;
/// Keep-alive probes, a second apart, before a caller counts as gone.
const QUESTIONS: u32 = 5;

/// Callers whose keys are known, and those that may still prove theirs.
pub(super) struct Callers {
    settings: AnswererSettings,
    seeds: Seeds,
    callers: Vec<Caller>,
    past: ControlStats,
}

struct Caller {
    stream: TcpStream,
    end: SourceEnd,
    /// When its time to prove its identity ends.
    greets_by: Instant,
    stats: ControlStats,
}

impl Callers {
    pub fn new(settings: AnswererSettings) -> Self {
        let seeds = Seeds::new(settings.seed);
        Self { settings, seeds, callers: Vec::new(), past: ControlStats::default() }
    }

    /// Returns their sockets, in order.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.callers.iter().map(|caller| caller.stream.as_fd())
    }

    /// Returns the statistics of all channels.
    pub fn stats(&self) -> ControlStats {
        let mut stats = self.past;
        self.callers.iter().for_each(|caller| stats += caller.stats);
        stats
    }

    /// Returns when to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.callers.iter().filter(|caller| caller.end.peer().is_none()).map(|caller| caller.greets_by).min()
    }

    /// Hangs up on callers that have not identified themselves in time.
    pub fn handle_timeout(&mut self, now: Instant) {
        let late = |caller: &Caller| caller.end.peer().is_none() && caller.greets_by <= now;
        while let Some(index) = self.callers.iter().position(late) {
            self.hang_up(index);
        }
    }

    /// Accepts waiting callers, a limited number at once. If there are as many as there may be, a new one replaces one
    /// that has not identified itself either, never a known caller.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn admit(&mut self, listener: &TcpListener, now: Instant) -> io::Result<()> {
        for _ in 0..ADMITTED_MAX {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The caller has already hung up.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if self.callers.len() >= self.settings.connections.channels_max {
                match self.callers.iter().position(|caller| caller.end.peer().is_none()) {
                    Some(oldest) => self.hang_up(oldest),
                    None => continue,
                }
            }
            let greets_by = now + self.settings.connections.greeting_max;
            let end = SourceEnd::responder(&self.settings.identity, self.seeds.draw());
            let mut caller = Caller { stream, end, greets_by, stats: ControlStats::default() };
            if caller.prepare().and_then(|()| caller.say()).is_ok() {
                self.callers.push(caller);
            }
        }
        Ok(())
    }

    /// Returns the messages of the callers that are ready, as far as their keys are known, each with the key.
    pub fn hear(&mut self, ready: &[bool]) -> Vec<(PublicKey, ToSource)> {
        let mut words = Vec::new();
        let mut gone = Vec::new();
        for index in (0..self.callers.len()).filter(|index| ready.get(*index).is_some_and(|ready| *ready)) {
            let caller = &mut self.callers[index];
            let (was_open, goes_on) = (caller.end.peer(), caller.hear(&self.settings.serves, &mut words).is_ok());
            let peer = self.callers[index].end.peer();
            if !goes_on {
                gone.push(index);
            } else if was_open.is_none() && peer.is_some() {
                // A peer that calls again has lost the earlier channel, even if our end seems intact.
                let stale = |other: &usize| *other != index && self.callers[*other].end.peer() == peer;
                gone.extend((0..self.callers.len()).filter(stale));
            }
        }
        gone.sort_unstable();
        gone.dedup();
        gone.into_iter().rev().for_each(|index| self.hang_up(index));
        words
    }

    fn hang_up(&mut self, index: usize) {
        self.past += self.callers.remove(index).stats;
    }
}

impl Caller {
    fn prepare(&self) -> io::Result<()> {
        self.stream.set_nonblocking(true)?;
        self.stream.set_nodelay(true)?;
        set_socket_keepalive(&self.stream, true)?;
        set_tcp_keepidle(&self.stream, std::time::Duration::from_secs(10))?;
        set_tcp_keepintvl(&self.stream, std::time::Duration::from_secs(1))?;
        set_tcp_keepcnt(&self.stream, QUESTIONS)?;
        Ok(())
    }

    /// Sends pending octets: the answer to a greeting, which fits into any socket's buffer.
    fn say(&mut self) -> io::Result<()> {
        let octets = self.end.take_octets();
        self.stats.sent_bytes += octets.len() as u64;
        self.stream.write_all(&octets)
    }

    /// Adds its messages to `words`, from one read, so a caller that sends without end does not delay others.
    ///
    /// # Errors
    /// If it has hung up, is not one of `known`, or sends something invalid.
    fn hear(&mut self, known: &[PublicKey], words: &mut Vec<(PublicKey, ToSource)>) -> io::Result<()> {
        let mut room = [0; TAKE_BYTES];
        let taken = match self.stream.read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        self.stats.received_bytes += taken as u64;
        let mut octets = Bytes::copy_from_slice(&room[..taken]);
        let heard = self.understand(&mut octets, known, words);
        // Also after a fault: the caller may learn our version from the answer.
        self.say()?;
        heard
    }

    fn understand(
        &mut self,
        octets: &mut Bytes,
        known: &[PublicKey],
        words: &mut Vec<(PublicKey, ToSource)>,
    ) -> io::Result<()> {
        loop {
            let was_open = self.end.peer().is_some();
            let received = self.end.receive(octets);
            let peer = self.end.peer();
            self.stats.opened += u64::from(!was_open && peer.is_some());
            let is_strange = peer.is_some_and(|peer| !known.contains(&peer));
            match received {
                _ if is_strange => {
                    self.stats.refused += 1;
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                Ok(Some(word)) => words.extend(peer.map(|peer| (peer, word))),
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.stats.refused += 1;
                    return Err(io::Error::other(error));
                }
            }
        }
    }
}
