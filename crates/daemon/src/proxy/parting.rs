//! Clients that have ended their stream and are perhaps gone: nobody else ends what is left of them where the server is silent.
//!
//! Whoever has closed its socket looks the same as who has only said all that it has to say, until it is sent something: then the kernel resets
//! the one, and the other reads. So nothing is to be told while octets move, and a limit is needed where none do.

use transport::Endpoint;
use units::{Duration, Instant};

use super::Proxy;
use super::session::{End, Session, Stage};

/// For how long nothing may move through a tunnel whose client sends no more. Middleboxes forget one of which one side has ended
/// after as long.
const TUNNEL_MAX: Duration = Duration::from_secs(120);
/// The same of a request of plain HTTP. Its clients do not end their streams before the answer, but for a few scripts; other proxies take those that
/// do for gone at once.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);

impl Stage {
    /// For how long it may stand still once the client sends no more; `None` where something else ends it.
    fn parting_max(&self) -> Option<Duration> {
        match self {
            Self::Tunnel => Some(TUNNEL_MAX),
            Self::Exchange(_) => Some(EXCHANGE_MAX),
            _ => None,
        }
    }
}

impl Session {
    /// Until when something must move, if the client sends no more.
    fn parting_until(&self, since: Instant) -> Option<Instant> {
        let span = self.stage.parting_max().filter(|_| self.client.sends_no_more())?;
        Some(since.max(self.moved_at) + span)
    }
}

impl Proxy {
    /// Begins to wait for something to move if a client has ended its stream.
    pub(super) fn part(&mut self, key: usize, endpoint: &Endpoint, now: Instant) {
        let session = &mut self.sessions[key];
        let Some(until) = session.parting_until(now) else { return };
        let Some(server) = session.server.as_mut().filter(|server| server.acked_at_parting.is_none()) else { return };
        server.acked_at_parting = Some(endpoint.acked_bytes(server.connection));
        self.timers.set(key, Some(until));
    }

    /// Ends a client that has ended its stream, if nothing has moved for too long. What the engine keeps for a slow server moves as well, and
    /// a client that does not read what waits for it is there.
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
