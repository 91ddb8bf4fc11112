//! Accepts clients, as many as there are descriptors for.

use std::io;
use std::net::{TcpListener, TcpStream};

use linux::descriptors;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use transport::Endpoint;
use units::{Duration, Instant};

use super::Proxy;
use super::client::Client;
use super::session::Session;

/// Clients that may wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 4096;
/// Clients accepted in one turn.
const BATCH: usize = 64;
/// How long accepting pauses if there is no room, unless a client leaves sooner.
const PAUSE: Duration = Duration::from_secs(1);
/// Descriptors that are not for clients.
const SPARE_DESCRIPTORS: u64 = 64;
/// How long a client may take to say what it wants, and a plain HTTP client to send its next request.
pub(super) const OPENING_MAX: Duration = Duration::from_secs(60);

/// The listening socket.
pub struct Accepting {
    /// `None` once the proxy ends.
    listener: Option<TcpListener>,
    clients_max: usize,
    /// Clients may be waiting, and the kernel will not report them again.
    waiting: bool,
    retry_at: Option<Instant>,
    /// The lack of room has been reported.
    told: bool,
}

impl Accepting {
    /// Accepts from `listener`, and raises the limit of descriptors as far as the operating system allows.
    pub fn new(listener: TcpListener, clients_max: usize) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        descriptors::allow(clients_max as u64 + SPARE_DESCRIPTORS);
        let allowed =
            getrlimit(Resource::Nofile).current.map_or(u64::MAX, |most| most.saturating_sub(SPARE_DESCRIPTORS));
        let clients_max = clients_max.min(usize::try_from(allowed).unwrap_or(usize::MAX)).max(1);
        Ok(Self { listener: Some(listener), clients_max, waiting: false, retry_at: None, told: false })
    }

    /// Stops accepting.
    pub fn end(&mut self) {
        self.listener = None;
        self.retry_at = None;
        self.waiting = false;
    }

    /// Returns when to try again.
    pub fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    fn next(&self) -> io::Result<Option<TcpStream>> {
        let Some(listener) = &self.listener else { return Ok(None) };
        match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the error means that there is no room, rather than that this client is gone.
fn is_full(error: &io::Error) -> bool {
    let full = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::NOSPC];
    error.raw_os_error().is_some_and(|raw| full.contains(&Errno::from_raw_os_error(raw)))
}

impl Proxy {
    /// Accepts waiting clients, a batch at a time.
    pub(super) fn accept(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.accepting.retry_at = None;
        self.accepting.waiting = false;
        for _ in 0..BATCH {
            if self.sessions.len() >= self.accepting.clients_max {
                let why = format!("the limit of {} clients is reached", self.sessions.len());
                return self.pause(&why, now);
            }
            match self.accepting.next().and_then(|stream| stream.map(|stream| self.admit(stream, now)).transpose()) {
                Ok(Some(key)) => self.turn(key, endpoint, now),
                Ok(None) => return,
                Err(error) if is_full(&error) => return self.pause(&error.to_string(), now),
                // Only this client is gone; there may be others.
                Err(_) => {}
            }
        }
        self.accepting.waiting = true;
        self.accepting.retry_at = Some(now);
    }

    /// Creates the session of a new client, and returns its key.
    fn admit(&mut self, stream: TcpStream, now: Instant) -> io::Result<usize> {
        let client = Client::new(stream)?;
        self.next_serial = self.next_serial.wrapping_add(1) & (u32::MAX >> 1);
        let key = self.sessions.vacant_key();
        self.poller.add(client.stream(), u64::from(self.next_serial) << 32 | key as u64)?;
        let room_max_bytes = self.config.connection.receive_buffer_bytes;
        self.sessions.insert(Session::new(self.next_serial, client, room_max_bytes, now));
        self.timers.set(key, Some(now + OPENING_MAX));
        self.totals.accepted += 1;
        if self.sessions.len() < self.accepting.clients_max / 2 {
            self.accepting.told = false;
        }
        Ok(key)
    }

    /// Pauses for lack of room. Waiting clients wait in the kernel.
    fn pause(&mut self, why: &str, now: Instant) {
        self.accepting.waiting = true;
        self.accepting.retry_at = Some(now + PAUSE);
        self.totals.pauses += 1;
        if !core::mem::replace(&mut self.accepting.told, true) {
            (self.say)(&format!(
                "no more clients are accepted for now: {why} (raise the limit: ulimit -n, or LimitNOFILE= in systemd)"
            ));
        }
    }

    /// Resumes accepting: a client has left.
    pub(super) fn made_room(&mut self, now: Instant) {
        if self.accepting.waiting {
            self.accepting.retry_at = Some(now);
        }
    }
}
