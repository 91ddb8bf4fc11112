//! Looks regularly at connections whose octets move: what uplinks deliver, and which connections are busy. While
//! nothing moves, it does not look.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use host::uplinks::harm;
use transport::{ConnectionStats, Endpoint, SubflowStats};
use units::{Duration, Instant};

use super::Proxy;
use super::choice::{Choice, Weight};
use super::failure::Failure;
use super::meter::Meters;
use super::session::{End, Server, Session, Stage};

/// Interval between looks.
const PERIOD: Duration = Duration::from_millis(500);
/// Interval while the proxy ends.
const ENDING_PERIOD: Duration = Duration::from_millis(20);
/// How long a connection is watched after something has moved, and after the server has acknowledged everything.
const WATCHED_FOR: Duration = Duration::from_secs(2);
/// While the proxy ends, a connection on which nothing has moved for this long is considered idle.
const QUIET_FOR: Duration = Duration::from_millis(100);

impl Proxy {
    /// Notes that octets of a session have moved.
    pub(super) fn note_moved(&mut self, key: usize, now: Instant) {
        self.note_busy(key, now);
        let session = &mut self.sessions[key];
        if !core::mem::replace(&mut session.watched, true) {
            let token = self.token(key);
            self.watched.push(token);
        }
        if self.examine_at.is_none() {
            self.examine_at = Some(now + harm::PERIOD);
        }
        self.watch_soon(now);
    }

    /// Schedules a look, if none is.
    pub(super) fn watch_soon(&mut self, now: Instant) {
        if self.watch_at.is_none() {
            self.watched_at = now;
            self.watch_at = Some(now + PERIOD);
        }
    }

    /// Counts a session's connection for its only uplink, or stops counting it.
    pub(super) fn note_busy(&mut self, key: usize, now: Instant) {
        let counted = self.counts_for(&self.sessions[key], now);
        self.count(key, counted);
        let Some(server) = &mut self.sessions[key].server else { return };
        if !server.was_download && server.bulk.is_download() {
            server.was_download = true;
            self.choice.turned_out(server.remote, Weight::Heavy);
        }
    }

    /// Returns the uplink that counts a session's connection. While it is being opened, that is the first one tried;
    /// afterwards the only one that it uses, unless it is about to end, or waits for the client's next request.
    fn counts_for(&self, session: &Session, now: Instant) -> Option<(IpAddr, Weight)> {
        let expected = |remote| match self.choice.is_plain(remote, now) {
            true => self.choice.weight(remote, now),
            false => Weight::Light,
        };
        if let Stage::Dialing(dial, ..) = &session.stage {
            let (ip, remote) = dial.first();
            return Some((ip, expected(remote)));
        }
        let server = session.server.as_ref().filter(|_| session.is_busy(now))?;
        match (server.plain, server.bulk.is_heavy()) {
            (true, true) => Some((server.home, Weight::Heavy)),
            (true, false) => Some((server.home, expected(server.remote))),
            (false, true) => None,
            (false, false) => Some((server.home, Weight::Light)),
        }
    }

    /// Changes which uplink counts a session's connection, if any. One that is gone counts none.
    pub(super) fn count(&mut self, key: usize, counted: Option<(IpAddr, Weight)>) {
        let counted = counted.filter(|(ip, _)| self.choice.has(*ip));
        let before = core::mem::replace(&mut self.sessions[key].counted, counted);
        if before != counted {
            before.inspect(|(ip, weight)| self.choice.discount(*ip, *weight));
            counted.inspect(|(ip, weight)| self.choice.count(*ip, *weight));
        }
    }

    /// Updates the meters now, for callers between two regular looks.
    pub fn measure(&mut self, endpoint: &Endpoint) {
        for (_, session) in &mut self.sessions {
            let Some(server) = &mut session.server else { continue };
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            for (ip, added) in self.meters.look(&stats, &mut server.seen) {
                *self.unwatched.entry(ip).or_default() += added.bytes();
            }
        }
    }

    /// Looks at all watched connections.
    pub(super) fn watch(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut delivered = core::mem::take(&mut self.unwatched);
        let mut round_trips = BTreeMap::new();
        let (mut filled, mut downloads) = (BTreeSet::new(), 0);
        // After a delay of this program, answers may still be unread: silence then proves nothing.
        let is_punctual = now.saturating_since(self.watched_at) < PERIOD.saturating_mul(2);
        let tokens = core::mem::take(&mut self.watched);
        for token in tokens {
            let Some(key) = self.key_of(token) else { continue };
            let session = &mut self.sessions[key];
            let (mut is_busy, mut owes) = (session.is_busy(now), false);
            if let Some(server) = &mut session.server {
                if let Some(stats) = endpoint.stats(server.connection) {
                    measure(server, &stats, (&mut self.choice, &mut self.meters), &mut delivered, now);
                    is_busy |= server.bulk.held_up_at() == Some(now);
                    note_round_trips(server, &stats, &mut self.choice, &mut round_trips, now);
                    if is_busy && server.bulk.is_heavy() {
                        downloads += 1;
                        note_filled(&stats, &mut filled);
                    }
                    owes = stats.written_bytes > stats.acked_bytes;
                    self.settle(key, Some(&stats), endpoint, now);
                    if is_punctual {
                        self.leave_forgotten(key, &stats, endpoint, now);
                    }
                    self.join_by_other_family(key, &stats, endpoint, now);
                    if is_busy {
                        self.join_again(key, &stats, endpoint, now);
                    }
                }
            }
            let session = &mut self.sessions[key];
            session.watched = owes || now.saturating_since(session.stirred_at()) < WATCHED_FOR;
            if session.watched {
                self.watched.push(token);
            }
            self.note_busy(key, now);
        }
        self.watch_joining(endpoint, now);
        for (ip, (mean, samples)) in round_trips {
            self.choice.measured_of_late(ip, mean, samples, now);
        }
        let span = now.saturating_since(self.watched_at);
        for ip in self.choice.ips() {
            self.choice.delivered(ip, delivered.get(&ip).copied().unwrap_or(0), span, filled.contains(&ip), now);
        }
        for ip in filled {
            self.held_back.carried(ip, span);
        }
        self.shares.note(&delivered);
        self.note_downloads(downloads, now);
        self.watched_at = now;
        self.watch_at = (!self.watched.is_empty() || !self.joining.is_empty()).then_some(now + PERIOD);
        self.watch_ending(endpoint, now);
    }

    /// While the proxy ends: ends idle sessions, and all sessions when the time is up.
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

/// Takes what a connection's subflows have measured since the last look.
fn measure(
    server: &mut Server,
    stats: &ConnectionStats,
    (choice, meters): (&mut Choice, &mut Meters),
    delivered: &mut BTreeMap<IpAddr, u64>,
    now: Instant,
) {
    for subflow in &stats.subflows {
        if lives(subflow) && stats.mptcp && !stats.fell_back {
            choice.joined(subflow.local.ip(), subflow.remote, now);
        }
    }
    server.bulk.look(stats, now);
    for (ip, added) in meters.look(stats, &mut server.seen) {
        *delivered.entry(ip).or_default() += added.bytes();
    }
}

/// Adds the uplinks that a connection fills.
fn note_filled(stats: &ConnectionStats, filled: &mut BTreeSet<IpAddr>) {
    filled.extend(stats.subflows.iter().filter(|it| lives(it) && !it.backup).map(|it| it.local.ip()));
}

/// Whether a subflow is established and not closed.
pub(super) fn lives(subflow: &SubflowStats) -> bool {
    subflow.established_at.is_some() && subflow.closed_at.is_none()
}

/// Takes the round-trip times that each of a connection's subflows has measured since the last look: their mean and
/// number, and the subflow's minimum. A subflow without a new one says nothing: it may be idle, and its uplink dead.
/// Keeps the least mean over connections, since some servers delay their acknowledgements.
fn note_round_trips(
    server: &mut Server,
    stats: &ConnectionStats,
    choice: &mut Choice,
    least: &mut BTreeMap<IpAddr, (Duration, u64)>,
    now: Instant,
) {
    for subflow in &stats.subflows {
        let before = server.rtts_seen.iter().find(|(id, ..)| *id == subflow.id);
        let (sum, count) = before.map_or((Duration::ZERO, 0), |(_, sum, count)| (*sum, *count));
        let samples = subflow.rtt_samples.saturating_sub(count);
        if samples > 0 {
            let mean = subflow.rtt_sum.saturating_sub(sum) / samples;
            let known = least.entry(subflow.local.ip()).or_insert((mean, samples));
            *known = (*known).min((mean, samples));
            if let Some(min) = subflow.min_rtt.filter(|_| lives(subflow)) {
                choice.measured(subflow.local.ip(), min, now);
            }
        }
    }
    server.rtts_seen = stats.subflows.iter().map(|it| (it.id, it.rtt_sum, it.rtt_samples)).collect();
}
