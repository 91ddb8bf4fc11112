//! Which subflows are regular, and which are backups (MP_PRIO, RFC 8684 section 3.3.8).
//!
//! All further subflows join as backups, ready in case the first one dies. They become regular when there is enough to
//! carry ([`host::uplinks::Bulk`]), or when the queue in front of the first one makes it the longer path. Uplinks that
//! are backups by their tier, or are held back, carry only what no other uplink can; on those held back, even data in
//! flight are not waited for.

use std::net::IpAddr;

use host::uplinks::RTT_UNKNOWN;
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowStats};
use units::Instant;

use super::Proxy;
use super::choice::Tier;
use super::session::Server;

impl Proxy {
    /// Makes connections open the subflows that they lack from one of the engine's addresses.
    pub(super) fn renew(&mut self, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        if self.choice.has(ip) {
            endpoint.add_local_address(LocalAddress { ip, backup: true }, now);
        }
    }

    /// Adapts all connections after an uplink's use has changed.
    pub(super) fn settle_all(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.settle(key, None, endpoint, now);
        }
    }

    /// Gives a connection's subflows the priorities that they should have now. `stats` are the connection's, if the
    /// caller has them.
    pub(super) fn settle(
        &mut self,
        key: usize,
        stats: Option<&ConnectionStats>,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(connection) = self.sessions[key].server.as_ref().map(|server| server.connection) else { return };
        let own = if stats.is_none() { endpoint.stats(connection) } else { None };
        let Some(stats) = stats.or(own.as_ref()).filter(|stats| stats.mptcp) else { return };
        if let Some(server) = &mut self.sessions[key].server {
            server.told.keep(&stats.subflows);
        }
        let open = || stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none());
        let carries = |ip| self.may_carry(ip) && !self.is_late(key, ip);
        let is_any_regular = open().any(|subflow| !subflow.backup && carries(subflow.local.ip()));
        for subflow in open() {
            let backup = self.is_to_wait(key, subflow, is_any_regular, now);
            if backup && !subflow.backup && subflow.received_bytes > 0 && self.is_late(key, subflow.local.ip()) {
                // It stays regular while no other subflow carries data.
                if is_any_regular {
                    self.vacate(connection, subflow.local.ip(), endpoint, now);
                }
                continue;
            }
            let Some(server) = &mut self.sessions[key].server else { return };
            let is_news = backup != subflow.backup && server.told.note(subflow, backup, now);
            if is_news || server.bulk.is_heavy() && server.told.again(subflow, now) {
                // An error means that the subflow is closing and has no priority to change.
                let _ = endpoint.set_priority(connection, subflow.id, backup, now);
            }
        }
    }

    /// Makes the peer send what is in flight on an address's subflow again on others, at once. A backup replaces the
    /// subflow.
    pub(super) fn vacate(&mut self, connection: ConnectionId, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        // An error means that the connection is over.
        let _ = endpoint.withdraw_address(connection, ip, now);
        self.renew(ip, endpoint, now);
    }

    /// Whether the uplink of an address was late, for all connections or for this one.
    fn is_late(&self, key: usize, ip: IpAddr) -> bool {
        let is_late_for_it = |server: &Server| server.held_back.holds(ip);
        self.held_back.holds(ip) || self.sessions[key].server.as_ref().is_some_and(is_late_for_it)
    }

    /// Whether the uplink of an address may carry data when others can.
    fn may_carry(&self, ip: IpAddr) -> bool {
        matches!(self.choice.tier(ip), Some(Tier::Primary | Tier::Secondary)) && !self.held_back.holds(ip)
    }

    /// Whether a subflow should be a backup. A regular one stays regular, unless its uplink may not carry data.
    fn is_to_wait(&self, key: usize, subflow: &SubflowStats, is_any_regular: bool, now: Instant) -> bool {
        let ip = subflow.local.ip();
        if !self.may_carry(ip) || self.is_late(key, ip) {
            return true;
        }
        let Some(server) = self.sessions[key].server.as_ref().filter(|_| subflow.backup && is_any_regular) else {
            return false;
        };
        if subflow.established_at.is_none() {
            return true;
        }
        let base = self.choice.base(ip, now);
        // A subflow whose handshake took several attempts has measured nothing, and never does as a backup.
        let rtt = subflow.min_rtt.or(base).unwrap_or(RTT_UNKNOWN);
        let round_trips = (self.choice.round_trip(server.home, now), self.choice.round_trip(ip, now));
        let is_shorter = matches!(round_trips, (Some(first), Some(own)) if first > own.saturating_mul(2));
        !is_shorter && !server.bulk.is_worth(rtt, base.map_or(rtt, |base| base.min(rtt)))
    }
}
