//! Which subflows are regular, and which are backups (MP_PRIO, RFC 8684 section 3.3.8).
//!
//! All further subflows join as backups: should the first one die, they are there. They become regular when there is enough to carry
//! ([`super::bulk`]), or when what waits in front of the first one makes it the longer way. Uplinks that are backups by their tier, or are
//! held back, carry only what nobody else can.
//!
//! A peer is told by an option on an ACK, which may be lost, and nothing answers it. So it is told again while a subflow that is regular
//! brings nothing of a download: after 1 s, 2 s, ... 64 s.

use std::net::IpAddr;

use transport::path_manager::LocalAddress;
use transport::{ConnectionStats, Endpoint, SubflowId, SubflowStats};
use units::{Duration, Instant};

use super::Proxy;
use super::choice::Tier;
use super::guard::RTT_UNKNOWN;

/// A peer that sends nothing on a subflow that is regular is told again after so long, and then after twice that, so often.
const TOLD_AGAIN: Duration = Duration::from_secs(1);
const TOLD_DOUBLINGS_MAX: u32 = 6;

/// What a peer was told of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    subflow: SubflowId,
    backup: bool,
    at: Instant,
    times: u32,
    /// Octets that it had brought by then.
    received_bytes: u64,
}

impl Told {
    fn new(subflow: &SubflowStats, backup: bool, now: Instant) -> Self {
        Self { subflow: subflow.id, backup, at: now, times: 0, received_bytes: subflow.received_bytes }
    }

    /// Whether the peer seems not to have heard that the subflow is regular: that is told again then.
    fn tell_again(&mut self, received_bytes: u64, now: Instant) -> bool {
        let patience = TOLD_AGAIN.saturating_mul(1 << self.times.min(TOLD_DOUBLINGS_MAX));
        let is_unheard = !self.backup && received_bytes <= self.received_bytes;
        let is_due = is_unheard && now.saturating_since(self.at) >= patience;
        if is_due {
            (self.at, self.times) = (now, self.times + 1);
        }
        is_due
    }
}

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
        let is_any_regular = open().any(|subflow| !subflow.backup && self.may_carry(subflow.local.ip()));
        for subflow in open() {
            let backup = self.is_to_wait(key, subflow, is_any_regular, now);
            let is_news = backup != subflow.backup && self.note_priority(key, subflow, backup, now);
            if is_news || self.is_told_in_vain(key, subflow, now) {
                // One that is closing has no priority to change.
                let _ = endpoint.set_priority(connection, subflow.id, backup, now);
            }
        }
    }

    /// Whether the uplink of an address carries data when others can.
    fn may_carry(&self, ip: IpAddr) -> bool {
        matches!(self.choice.tier(ip), Some(Tier::Primary | Tier::Secondary)) && !self.held_back.holds(ip)
    }

    /// Whether a subflow is to be a backup. One that is regular stays so, unless its uplink may not carry.
    fn is_to_wait(&self, key: usize, subflow: &SubflowStats, is_any_regular: bool, now: Instant) -> bool {
        let ip = subflow.local.ip();
        if !self.may_carry(ip) {
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

    /// Whether a subflow's priority is news to the peer. Once is enough: if it is a backup still, that is the peer's wish.
    fn note_priority(&mut self, key: usize, subflow: &SubflowStats, backup: bool, now: Instant) -> bool {
        let Some(server) = &mut self.sessions[key].server else { return false };
        let told = Told::new(subflow, backup, now);
        match server.priorities.iter_mut().find(|known| known.subflow == subflow.id) {
            Some(known) if known.backup == backup => return false,
            Some(known) => *known = told,
            None => server.priorities.push(told),
        }
        true
    }

    /// Whether the peer is to be told again of a subflow that is regular, while there is something to carry.
    fn is_told_in_vain(&mut self, key: usize, subflow: &SubflowStats, now: Instant) -> bool {
        let Some(server) = self.sessions[key].server.as_mut().filter(|server| server.bulk.is_heavy()) else {
            return false;
        };
        let told = server.priorities.iter_mut().find(|known| known.subflow == subflow.id);
        !subflow.backup && told.is_some_and(|told| told.tell_again(subflow.received_bytes, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// When a peer is told again, of the first 20 s, if it sends so many octets after 5 s.
    fn told_again_at(backup: bool, received_bytes: u64) -> Vec<u64> {
        let place = "192.0.2.1:80".parse().unwrap();
        let subflow = SubflowStats { backup, ..SubflowStats::unheard(SubflowId(1), place, place, at(0)) };
        let mut told = Told::new(&subflow, backup, at(0));
        let received = |millis: u64| if millis < 5000 { 0 } else { received_bytes };
        (0..20_000).step_by(100).filter(|millis| told.tell_again(received(*millis), at(*millis))).collect()
    }

    #[test]
    fn a_peer_that_does_not_use_a_regular_subflow_is_told_again_ever_more_seldom() {
        assert_eq!(told_again_at(false, 0), [1000, 3000, 7000, 15_000]);
        assert_eq!(told_again_at(false, 1), [1000, 3000]);
        assert!(told_again_at(true, 0).is_empty());
    }
}
