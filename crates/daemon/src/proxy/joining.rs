//! Joins by the other family of a server, over uplinks by which a connection has no subflow
//! ([`host::uplinks::OtherFamily`]).
//!
//! Connections whose octets move are looked at anyway. Idle ones are looked at when they begin, and when an uplink
//! appears: if their only uplink dies, the others are there.

use transport::{ConnectionStats, Endpoint};
use units::Instant;

use super::Proxy;
use super::session::Session;

impl Proxy {
    /// Notes a new connection. It is looked at until its uplinks have joined, if some may need the other family.
    pub(super) fn note_joining(&mut self, key: usize, now: Instant) {
        if has_other_family(&self.sessions[key]) {
            let token = self.token(key);
            self.joining.push(token);
            self.watch_soon(now);
        }
    }

    /// Notes all connections, because an uplink is new.
    pub(super) fn note_all_joining(&mut self, now: Instant) {
        let keys = self.sessions.iter().filter(|(_, session)| has_other_family(session)).map(|(key, _)| key);
        let tokens: Vec<u64> = keys.map(|key| self.token(key)).collect();
        self.joining = tokens;
        if !self.joining.is_empty() {
            self.watch_soon(now);
        }
    }

    /// Looks at connections that are new, or that can use a new uplink.
    pub(super) fn watch_joining(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for token in core::mem::take(&mut self.joining) {
            let Some(key) = self.key_of(token) else { continue };
            let Some(server) = self.sessions[key].server.as_ref() else { continue };
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            self.join_by_other_family(key, &stats, endpoint, now);
        }
    }

    /// Makes a connection's uplinks join by the other family of its server. Keeps looking at the connection while more
    /// steps are due soon.
    pub(super) fn join_by_other_family(
        &mut self,
        key: usize,
        stats: &ConnectionStats,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(server) = self.sessions[key].server.as_mut().filter(|it| stats.mptcp && it.other_family.is_known())
        else {
            return;
        };
        let connection = server.connection;
        let heard = |id| endpoint.hearing(connection, id).map(|hearing| hearing.heard_at);
        let steps = server.other_family.look(self.choice.links(), stats, heard, now);
        steps.into_iter().for_each(|step| step.carry_out(connection, endpoint, now));
        if server.other_family.is_waiting() {
            let token = self.token(key);
            if !self.joining.contains(&token) {
                self.joining.push(token);
                self.watch_soon(now);
            }
        }
    }
}

fn has_other_family(session: &Session) -> bool {
    session.server.as_ref().is_some_and(|server| server.other_family.is_known())
}
