//! Which subflows are regular, and which are backups (MP_PRIO, RFC 8684 section 3.3.8).
//!
//! All further subflows join as backups: should the first one die, they are there. They become regular when there is enough to carry
//! ([`host::uplinks::Bulk`]), or when what waits in front of the first one makes it the longer way. Uplinks that are backups by their tier, or are
//! held back, carry only what nobody else can: of the latter what is under way there is not waited for either.

use std::net::IpAddr;

use host::uplinks::RTT_UNKNOWN;
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowStats};
use units::Instant;

use super::Proxy;
use super::choice::Tier;
use super::session::Server;

impl Proxy {
    /// Connections that lack subflows from an address of ours open them.
    pub(super) fn renew(&mut self, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        if self.choice.has(ip) {
            endpoint.add_local_address(LocalAddress { ip, backup: true }, now);
        }
    }

    /// An uplink is used in another way: all connections follow.
    pub(super) fn settle_all(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.settle(key, None, endpoint, now);
        }
    }

    /// Makes a connection's subflows what they should be now. `stats` are its own, if somebody has just looked.
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
        let open = || stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none());
        let carries = |ip| self.may_carry(ip) && !self.is_late(key, ip);
        let is_any_regular = open().any(|subflow| !subflow.backup && carries(subflow.local.ip()));
        for subflow in open() {
            let backup = self.is_to_wait(key, subflow, is_any_regular, now);
            if backup && !subflow.backup && subflow.received_bytes > 0 && self.is_late(key, subflow.local.ip()) {
                // It stays what it is while nobody else carries.
                if is_any_regular {
                    self.vacate(connection, subflow.local.ip(), endpoint, now);
                }
                continue;
            }
            let Some(server) = &mut self.sessions[key].server else { return };
            let is_news = backup != subflow.backup && server.told.note(subflow, backup, now);
            if is_news || server.bulk.is_heavy() && server.told.again(subflow, now) {
                // One that is closing has no priority to change.
                let _ = endpoint.set_priority(connection, subflow.id, backup, now);
            }
        }
    }

    /// What is under way to a connection on an address's subflow is sent again at once on others. A backup follows it.
    pub(super) fn vacate(&mut self, connection: ConnectionId, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        // It fails only if the connection is over.
        let _ = endpoint.withdraw_address(connection, ip, now);
        self.renew(ip, endpoint, now);
    }

    /// Whether the uplink of an address was late, for all or for this connection.
    fn is_late(&self, key: usize, ip: IpAddr) -> bool {
        let is_late_for_it = |server: &Server| server.held_back.holds(ip);
        self.held_back.holds(ip) || self.sessions[key].server.as_ref().is_some_and(is_late_for_it)
    }

    /// Whether the uplink of an address carries data when others can.
    fn may_carry(&self, ip: IpAddr) -> bool {
        matches!(self.choice.tier(ip), Some(Tier::Primary | Tier::Secondary)) && !self.held_back.holds(ip)
    }

    /// Whether a subflow is to be a backup. One that is regular stays so, unless its uplink may not carry.
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
        // One whose handshake took several attempts has measured nothing, and never will as a backup.
        let rtt = subflow.min_rtt.or(base).unwrap_or(RTT_UNKNOWN);
        let round_trips = (self.choice.round_trip(server.home, now), self.choice.round_trip(ip, now));
        let is_shorter = matches!(round_trips, (Some(first), Some(own)) if first > own.saturating_mul(2));
        !is_shorter && !server.bulk.is_worth(rtt, base.map_or(rtt, |base| base.min(rtt)))
    }
}
