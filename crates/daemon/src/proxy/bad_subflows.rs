//! Acts on subflows that cost more than they bring, and on those that have died: makes the peer do without them, and
//! joins again at the priority that they deserve. [`host::uplinks::harm`] finds these subflows.
//!
//! If an address is withdrawn (REMOVE_ADDR on the other subflows), the peer at once sends again what was in flight
//! there. No change of priority has this effect. If the uplink was late ([`host::uplinks::HeldBack`]), the next subflow
//! is a backup, as are those of all other connections; it is one for this connection only, if other simultaneous
//! downloads made the uplink late. A slow subflow is not withdrawn: it becomes a backup and brings what it was given.

use std::net::IpAddr;

use host::uplinks::harm::{self, LAG_MIN, PERIOD};
use host::uplinks::{Carrier, Finding, HEAVY_BYTES};
use tracing::debug;
use transport::{ConnectionStats, Endpoint};
use units::{Duration, Instant};

use super::Proxy;
use super::session::{Server, Session};
use super::watch::lives;

/// Maximum number of clients that are examined in one round; more than that take turns.
const LOOKS_MAX: usize = 16;
/// Maximum number of rounds in the time of one, if clients take turns.
const ROUNDS_MAX: usize = 4;
/// If a busy connection has no subflow over an uplink for this long, it begins the join again, and then after twice as
/// long: the attempts within a join become rarer and rarer, and an unstable uplink may be away at each of them.
const JOIN_PATIENCE: Duration = Duration::from_secs(3);
const JOIN_DOUBLINGS_MAX: u32 = 5;
/// How long the queues of several simultaneous downloads outlast them.
const CROWDED_FOR: Duration = Duration::from_secs(2);

/// An uplink over which a connection has no subflow.
#[derive(Clone, Copy, Debug)]
pub struct Lack {
    ip: IpAddr,
    /// Since when, or when the join last began again.
    since: Instant,
    times: u32,
}

impl Lack {
    /// Returns whether it is the uplink with this address.
    pub fn is_over(&self, ip: IpAddr) -> bool {
        self.ip == ip
    }

    fn is_due(&self, now: Instant) -> bool {
        let patience = JOIN_PATIENCE.saturating_mul(1 << self.times.min(JOIN_DOUBLINGS_MAX));
        now.saturating_since(self.since) >= patience
    }
}

impl Proxy {
    /// Examines connections whose octets move.
    pub(super) fn examine_watched(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for ip in self.held_back.due(now) {
            self.renew(ip, endpoint, now);
        }
        self.pauses.note_strays(endpoint);
        self.leave_losers(endpoint, now);
        let (mut looks, mut next_at) = (0, now + PERIOD);
        for token in self.in_turn() {
            let Some(key) = self.key_of(token).filter(|_| looks < LOOKS_MAX) else { continue };
            if !self.look(key, endpoint, now) {
                continue;
            }
            looks += 1;
            self.examined = Some(token);
            let wanted_at = self.sessions[key].server.as_ref().and_then(|server| server.harm.next_at());
            next_at = wanted_at.filter(|at| *at > now).map_or(next_at, |at| next_at.min(at));
        }
        if looks == LOOKS_MAX {
            // Whoever waits for the next round is looked at as often as the others, or nearly: a late look judges nobody.
            let rounds = self.watched.len().div_ceil(LOOKS_MAX).min(ROUNDS_MAX) as u64;
            next_at = next_at.min(now + Duration::from_nanos(PERIOD.as_nanos() / rounds));
        }
        let is_idle = self.watched.is_empty() && self.losers.is_empty();
        self.examine_at = (!is_idle).then_some(next_at);
    }

    /// Returns the watched clients, beginning behind the one that was examined last.
    fn in_turn(&self) -> Vec<u64> {
        let mut tokens = self.watched.clone();
        let last = self.examined.and_then(|last| tokens.iter().position(|token| *token == last));
        tokens.rotate_left(last.map_or(0, |place| place + 1));
        tokens
    }

    /// Drops what made an uplink late, or kept subflows from joining over it: the owner of a relay's link no longer
    /// uses it.
    pub fn reconsider(&mut self, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        let mut is_let_go = self.held_back.release(ip, now);
        for server in self.sessions.iter_mut().filter_map(|(_, session)| session.server.as_mut()) {
            is_let_go |= server.held_back.release(ip, now);
            for lack in server.lacks.iter_mut().filter(|lack| lack.ip == ip) {
                *lack = Lack { ip, since: now.saturating_sub(JOIN_PATIENCE), times: 0 };
            }
        }
        if is_let_go {
            self.renew(ip, endpoint, now);
            self.settle_all(endpoint, now);
        }
    }

    /// Examines a client. Returns whether there was anything to examine.
    fn look(&mut self, key: usize, endpoint: &mut Endpoint, now: Instant) -> bool {
        let session = &mut self.sessions[key];
        let moved_bytes = session.down_bytes.max(session.up_bytes);
        let Some(server) = session.server.as_mut().filter(|server| !server.plain) else { return false };
        if moved_bytes < HEAVY_BYTES && !server.bulk.may_grow() {
            return false;
        }
        let connection = server.connection;
        let Some(stats) = endpoint.stats(connection) else { return false };
        server.bulk.look(&stats, now);
        server.held_back.due(now);
        self.join_by_other_family(key, &stats, endpoint, now);
        self.settle(key, Some(&stats), endpoint, now);
        if harm::is_worth_a_look(&stats) {
            self.look_for_harm(key, &stats, endpoint, now);
        }
        true
    }

    fn look_for_harm(&mut self, key: usize, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
        let Some(server) = self.sessions[key].server.as_mut() else { return };
        let (choice, heard) = (&self.choice, &self.heard);
        let round_trip = |ip| choice.round_trip(ip, now);
        let carriers = Carrier::all(server.connection, stats, endpoint, round_trip, |ip| heard.get(&ip).copied());
        for carrier in &carriers {
            self.heard.insert(carrier.ip(), carrier.uplink_heard_at);
        }
        let findings = server.harm.look(&carriers, &mut self.pauses, now);
        for finding in findings {
            self.act(finding, key, &carriers, endpoint, now);
        }
    }

    /// Begins joins of a busy connection again if they take too long.
    pub(super) fn join_again(&mut self, key: usize, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
        let Some(server) = self.sessions[key].server.as_mut().filter(|server| stats.mptcp && server.bulk.is_heavy())
        else {
            return;
        };
        let links = self.choice.links();
        let lives = |ip: IpAddr| {
            let link = links.iter().find(|ips| ips.contains(&ip));
            let mut open = stats.subflows.iter().filter(|it| it.established_at.is_some() && it.closed_at.is_none());
            open.any(|subflow| link.is_some_and(|ips| ips.contains(&subflow.local.ip())))
        };
        let mut due = Vec::new();
        for ip in self.choice.ips().into_iter().filter(|ip| ip.is_ipv4() == server.remote.is_ipv4()) {
            let known = server.lacks.iter().position(|lack| lack.ip == ip);
            match known {
                Some(place) if lives(ip) => drop(server.lacks.swap_remove(place)),
                None if !lives(ip) => server.lacks.push(Lack { ip, since: now, times: 0 }),
                Some(place) if server.lacks[place].is_due(now) => {
                    let Lack { times, .. } = server.lacks[place];
                    server.lacks[place] = Lack { ip, since: now, times: times + 1 };
                    due.push(ip);
                }
                _ => {}
            }
        }
        let connection = server.connection;
        for ip in due {
            // An error means that no join was under way.
            let _ = endpoint.withdraw_address(connection, ip, now);
            self.renew(ip, endpoint, now);
        }
    }

    fn act(&mut self, finding: Finding, key: usize, carriers: &[Carrier], endpoint: &mut Endpoint, now: Instant) {
        let id = finding.subflow();
        let Some(carrier) = carriers.iter().find(|carrier| carrier.id == id) else { return };
        let ip = carrier.ip();
        let Some(connection) = self.sessions[key].server.as_ref().map(|server| server.connection) else { return };
        match finding {
            Finding::Doubtful(id) => {
                // A subflow that is gone needs no probe.
                let _ = endpoint.probe_subflow(connection, id, now);
                return;
            }
            Finding::Silent(_) => {
                debug!(%ip, "silent: the subflow is given up, and joins again");
                self.choice.failed(ip, now);
            }
            Finding::Late(_) => {
                debug!(%ip, "late: the uplink is held back");
                self.hold_back(ip, key, now);
            }
            Finding::Slow(_) => {
                debug!(%ip, "slow: the uplink is held back, and brings what it was given");
                self.hold_back(ip, key, now);
                // Before the subflows are settled: a regular one on a late uplink would be withdrawn.
                self.make_backup(key, carrier, endpoint, now);
                return self.settle_all(endpoint, now);
            }
        }
        self.vacate(connection, ip, endpoint, now);
        if matches!(finding, Finding::Late(_)) {
            self.settle_all(endpoint, now);
        }
    }

    /// Makes a subflow a backup, which still brings what it was given.
    fn make_backup(&mut self, key: usize, carrier: &Carrier, endpoint: &mut Endpoint, now: Instant) {
        let Some(server) = self.sessions[key].server.as_mut() else { return };
        if server.told.note_of(carrier.id, carrier.received_bytes, true, now) {
            // An error means that the subflow is closing and has no priority to change.
            let _ = endpoint.set_priority(server.connection, carrier.id, true, now);
        }
    }

    /// Holds back an uplink that was late for a connection: for this one only, if other downloads are the cause.
    fn hold_back(&mut self, ip: IpAddr, key: usize, now: Instant) {
        let is_crowded = self.is_crowded(ip, now);
        match self.sessions[key].server.as_mut().filter(|_| is_crowded) {
            Some(server) => server.held_back.note(ip, now),
            None => self.held_back.note(ip, now),
        }
    }

    /// Whether other downloads make a connection late on an uplink: several clients download, the uplink delivers its
    /// part of all octets, and its path is longer than the shortest one by less than what makes a stream late.
    pub(super) fn is_crowded(&self, ip: IpAddr, now: Instant) -> bool {
        let shortest = self.choice.ips().into_iter().filter_map(|ip| self.choice.base(ip, now)).min();
        let is_near = shortest.zip(self.choice.base(ip, now)).is_some_and(|(shortest, own)| own < shortest + LAG_MIN);
        let were_several = self.crowded_at.is_some_and(|at| now.saturating_since(at) < CROWDED_FOR);
        is_near && self.shares.is_worth(ip) && (were_several || self.downloads(now).take(2).count() == 2)
    }

    /// Returns whether an uplink with these addresses is a backup for a while for all that is under way: one of them is
    /// held back, for all connections or for one, and no download or upload has a subflow over it that is not.
    pub fn is_held_back_for_all(&self, ips: &[IpAddr], endpoint: &Endpoint, now: Instant) -> bool {
        let holds = |session: &Session, ip| {
            let is_late_for_it = |server: &Server| server.held_back.is_held(ip, now);
            self.is_held_back(ip, now) || session.server.as_ref().is_some_and(is_late_for_it)
        };
        let is_held = |ip| self.is_held_back(ip, now) || self.downloads(now).any(|session| holds(session, ip));
        let uses = |session: &Session| {
            let stats = session.server.as_ref().and_then(|server| endpoint.stats(server.connection));
            let mut subflows = stats.into_iter().flat_map(|stats| stats.subflows).filter(lives);
            subflows.any(|it| ips.contains(&it.local.ip()) && !holds(session, it.local.ip()))
        };
        ips.iter().any(|ip| is_held(*ip)) && !self.downloads(now).any(uses)
    }

    /// Returns the clients with downloads or uploads under way.
    fn downloads(&self, now: Instant) -> impl Iterator<Item = &Session> {
        let is_heavy = |session: &Session| session.server.as_ref().is_some_and(|server| server.bulk.is_heavy());
        self.sessions
            .iter()
            .map(|(_, session)| session)
            .filter(move |session| session.is_busy(now) && is_heavy(session))
    }

    /// Notes whether several clients download; `downloads` is their current number.
    pub(super) fn note_downloads(&mut self, downloads: usize, now: Instant) {
        if downloads >= 2 {
            self.crowded_at = Some(now);
        }
    }
}
