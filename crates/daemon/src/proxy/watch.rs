//! Looking now and then at connections whose octets move: what uplinks deliver, and who is busy. Nobody looks while nothing moves.

use std::collections::BTreeMap;
use std::net::IpAddr;

use transport::{ConnectionStats, Endpoint};
use units::{Duration, Instant};

use super::Proxy;
use super::choice::Choice;
use super::failure::Failure;
use super::harm;
use super::meter::Meters;
use super::session::{End, Server, Stage};

/// How often.
const PERIOD: Duration = Duration::from_millis(500);
/// How often while the proxy ends.
const ENDING_PERIOD: Duration = Duration::from_millis(20);
/// A connection on which nothing has moved for so long is not busy, though it may be held up.
const BUSY_FOR: Duration = Duration::from_millis(500);
/// For how long a connection is looked at after something has moved.
const WATCHED_FOR: Duration = Duration::from_secs(2);
/// While the proxy ends, a connection on which nothing has moved for so long has nothing under way.
const QUIET_FOR: Duration = Duration::from_millis(100);

impl Proxy {
    /// Octets of a session have moved.
    pub(super) fn note_moved(&mut self, key: usize, now: Instant) {
        self.note_busy(key, now);
        let session = &mut self.sessions[key];
        if !core::mem::replace(&mut session.watched, true) {
            let token = self.token(key);
            self.watched.push(token);
        }
        if self.guard_at.is_none() {
            self.guard_at = Some(now + harm::PERIOD);
        }
        if self.watch_at.is_none() {
            self.watched_at = now;
            self.watch_at = Some(now + PERIOD);
        }
    }

    /// Whether a session's connection counts among the busy ones of its only uplink: not if it is about to end, or waits for the
    /// client's next request.
    pub(super) fn note_busy(&mut self, key: usize, now: Instant) {
        let session = &mut self.sessions[key];
        let is_busy = session.is_at_work() && now.saturating_since(session.moved_at) < BUSY_FOR;
        let Some(server) = session.server.as_mut().filter(|server| server.counts != is_busy) else { return };
        if let Some(ip) = server.plain_on {
            server.counts = is_busy;
            self.choice.set_busy(ip, is_busy);
        }
    }

    /// Looks at what uplinks have carried until now, for whoever asks between two looks of its own.
    pub fn measure(&mut self, endpoint: &Endpoint) {
        for (_, session) in &mut self.sessions {
            let Some(server) = &mut session.server else { continue };
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            for (ip, added) in self.meters.look(&stats, &mut server.seen) {
                *self.unwatched.entry(ip).or_default() += added.bytes();
            }
        }
    }

    /// Looks at all that are watched.
    pub(super) fn watch(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut delivered = core::mem::take(&mut self.unwatched);
        let tokens = core::mem::take(&mut self.watched);
        for token in tokens {
            let Some(key) = self.key_of(token) else { continue };
            let session = &mut self.sessions[key];
            if let Some(server) = &mut session.server {
                if let Some(stats) = endpoint.stats(server.connection) {
                    measure(server, &stats, (&mut self.choice, &mut self.meters), &mut delivered, now);
                }
            }
            session.watched = now.saturating_since(session.moved_at) < WATCHED_FOR;
            if session.watched {
                self.watched.push(token);
            }
            self.note_busy(key, now);
        }
        let span = now.saturating_since(self.watched_at);
        for view in self.choice.view(now) {
            let ip = view.uplink.ip;
            self.choice.delivered(ip, delivered.get(&ip).copied().unwrap_or(0), span);
        }
        self.watched_at = now;
        self.watch_at = (!self.watched.is_empty()).then_some(now + PERIOD);
        self.watch_ending(endpoint, now);
    }

    /// Once the proxy ends: those with nothing under way go, and all when their time is up.
    fn watch_ending(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(until) = self.ending else { return };
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            let Some(session) = self.sessions.get(key) else { continue };
            let quiet = now.saturating_since(session.moved_at) >= QUIET_FOR;
            match session.stage {
                Stage::Opening => self.finish(key, End::Finished, endpoint, now),
                Stage::Resolving(..) => self.fail(key, &Failure::Ending, endpoint, now),
                Stage::Dialing(..) => {
                    self.give_up_all(key, endpoint, now);
                    self.fail(key, &Failure::Ending, endpoint, now);
                }
                Stage::Tunnel if quiet && session.is_quiet(endpoint) => {
                    self.finish(key, End::ServerGone, endpoint, now)
                }
                _ if now >= until => self.finish(key, End::ServerGone, endpoint, now),
                _ => {}
            }
        }
        self.watch_at = (!self.sessions.is_empty()).then_some(now + ENDING_PERIOD);
    }
}

/// What a connection's subflows have measured since it was last looked at.
fn measure(
    server: &mut Server,
    stats: &ConnectionStats,
    (choice, meters): (&mut Choice, &mut Meters),
    delivered: &mut BTreeMap<IpAddr, u64>,
    now: Instant,
) {
    for subflow in &stats.subflows {
        let lives = subflow.established_at.is_some() && subflow.closed_at.is_none();
        if let (true, Some(srtt), Some(least)) = (lives, subflow.srtt, subflow.min_rtt) {
            choice.measured(subflow.local.ip(), srtt, least, now);
        }
    }
    for (ip, added) in meters.look(stats, &mut server.seen) {
        *delivered.entry(ip).or_default() += added.bytes();
    }
}
