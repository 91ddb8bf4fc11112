//! Ends clients that have ended their stream and may be gone: if the server is silent, nothing else would.
//!
//! A client that has closed its socket looks the same as one that has only finished sending, until the proxy sends it
//! something: then the kernel either resets the connection, or the client reads. While octets move, this answers the
//! question by itself; if none move, a time limit is needed.

use transport::Endpoint;
use units::{Duration, Instant};

use super::Proxy;
use super::session::{End, Session, Stage};

/// How long nothing may move through a tunnel whose client sends no more. Middleboxes forget a half-closed connection
/// after the same time.
const TUNNEL_MAX: Duration = Duration::from_secs(120);
/// The same for a plain HTTP request. Except for a few scripts, its clients do not end their stream before the answer;
/// other proxies immediately assume that such a client is gone.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);

impl Stage {
    /// Returns how long it may stand still once the client sends no more. `None` if something else ends it.
    fn parting_max(&self) -> Option<Duration> {
        match self {
            Self::Tunnel => Some(TUNNEL_MAX),
            Self::Exchange(_) => Some(EXCHANGE_MAX),
            _ => None,
        }
    }
}

impl Session {
    /// Returns until when something must move, if the client sends no more.
    fn parting_until(&self, since: Instant) -> Option<Instant> {
        let span = self.stage.parting_max().filter(|_| self.client.sends_no_more())?;
        Some(since.max(self.moved_at) + span)
    }
}

impl Proxy {
    /// Starts the time limit if a client has ended its stream.
    pub(super) fn part(&mut self, key: usize, endpoint: &Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let Some(until) = session.parting_until(now) else { return };
        let Some(server) = session.server.as_mut().filter(|server| server.acked_at_parting.is_none()) else { return };
        server.acked_at_parting = Some(endpoint.acked_bytes(server.connection));
        self.timers.set(key, Some(until));
    }

    /// Ends a client that has ended its stream if nothing has moved for too long. Acknowledgements of a slow server
    /// count as movement. A client that has not read all that waits for it is still there.
    pub(super) fn part_at_last(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let Some(server) = session.server.as_mut().filter(|_| session.client.sends_no_more()) else { return };
        let acked_bytes = endpoint.acked_bytes(server.connection);
        let was_acked = server.acked_at_parting.replace(acked_bytes).is_some_and(|before| before != acked_bytes);
        let since = if was_acked || !session.to_client.is_empty() { now } else { Instant::ZERO };
        match session.parting_until(since) {
            Some(until) if until > now => self.timers.set(key, Some(until)),
            Some(_) => self.finish(key, End::ClientGone, endpoint, now),
            None => {}
        }
    }
}
