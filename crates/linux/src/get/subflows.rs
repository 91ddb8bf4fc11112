//! Decides which subflows of a download carry data: additional ones once they are worth it, none that cost more than
//! they bring, and none that have died.
//!
//! This module carries out the verdicts of [`host::uplinks`] for the one connection. It ends a late or dead subflow by
//! withdrawing its address (REMOVE_ADDR on the other subflows), which makes the peer retransmit its data in flight at
//! once. The subflow that replaces it is a backup, and stays one while its uplink is held back for being late. A slow
//! subflow becomes a backup and brings what it was given.

use std::net::{IpAddr, SocketAddr};

use host::uplinks::harm::{self, PERIOD};
use host::uplinks::{Bulk, Carrier, Finding, Harm, HeldBack, OtherFamily, Pauses, RTT_UNKNOWN, Told};
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowStats};
use units::{Duration, Instant};

/// The subflows of a download.
#[derive(Debug)]
pub struct Subflows {
    connection: ConnectionId,
    bulk: Bulk,
    told: Told,
    harm: Harm,
    pauses: Pauses,
    held_back: HeldBack,
    other_family: OtherFamily,
    /// Addresses of each uplink.
    uplinks: Vec<Vec<IpAddr>>,
    next_at: Option<Instant>,
    /// When they were last looked at, unless they have rested since.
    settled_at: Option<Instant>,
}

impl Subflows {
    /// Takes on the subflows of a connection whose handshake took `rtt`. It looks at them from `now` on: an additional one
    /// may be the shorter path for the answer.
    pub fn new(connection: ConnectionId, rtt: Duration, now: Instant) -> Self {
        Self {
            connection,
            bulk: Bulk::new(rtt, now),
            told: Told::default(),
            harm: Harm::default(),
            pauses: Pauses::default(),
            held_back: HeldBack::default(),
            other_family: OtherFamily::default(),
            uplinks: Vec::new(),
            next_at: Some(now),
            settled_at: None,
        }
    }

    /// Sets the addresses of the uplinks, and the addresses of the server at `connected_to`: one address family may
    /// reach it where the other does not.
    pub fn know(&mut self, uplinks: &[Vec<IpAddr>], connected_to: SocketAddr, remotes: &[SocketAddr]) {
        self.uplinks = uplinks.to_vec();
        self.other_family = OtherFamily::new(connected_to, remotes.iter().copied());
    }

    /// Forgets the uplink at this local address. One that gets the address later inherits nothing.
    pub fn forget(&mut self, ip: IpAddr) {
        self.harm.forget(ip);
        self.held_back.forget(ip);
        self.other_family.forget(ip);
    }

    /// Notes that octets have been received.
    pub fn received(&mut self, bytes: u64, now: Instant) {
        self.bulk.moved(0, bytes, now);
        self.next_at.get_or_insert(now + PERIOD);
    }

    /// Stops looking: octets wait for the application, or all have arrived, so no subflow is late.
    pub fn rest(&mut self) {
        (self.next_at, self.settled_at) = (None, None);
    }

    /// Returns when to call [`Self::look`] next.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Looks at the subflows, and acts.
    pub fn look(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = Some(now + PERIOD);
        // They join again where they have not, and become regular once that is worth it.
        for ip in self.held_back.due(now) {
            endpoint.add_local_address(LocalAddress { ip, backup: true }, now);
        }
        let Some(stats) = endpoint.stats(self.connection).filter(|stats| stats.mptcp) else { return };
        self.bulk.look(&stats, now);
        self.join_by_other_family(&stats, endpoint, now);
        self.settle(&stats, endpoint, now);
        if harm::is_worth_a_look(&stats) {
            self.look_for_harm(&stats, endpoint, now);
        }
    }

    fn join_by_other_family(&mut self, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
        let is_there = |ips: &&Vec<IpAddr>| ips.iter().any(|ip| endpoint.has_local_address(*ip));
        let heard = |id| endpoint.hearing(self.connection, id).map(|hearing| hearing.heard_at);
        let steps = self.other_family.look(self.uplinks.iter().filter(is_there), stats, heard, now);
        steps.into_iter().for_each(|step| step.carry_out(self.connection, endpoint, now));
    }

    /// Makes subflows regular or backup.
    fn settle(&mut self, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
        self.told.keep(&stats.subflows);
        let span = self.settled_at.replace(now).map_or(Duration::ZERO, |at| now.saturating_since(at));
        let open = || stats.subflows.iter().filter(|it| it.closed_at.is_none());
        let first = open().find(|it| !it.backup && !self.held_back.holds(it.local.ip()));
        for subflow in open() {
            if !subflow.backup && subflow.established_at.is_some() {
                self.held_back.carried(subflow.local.ip(), span);
            }
            let backup = self.is_to_wait(subflow, first);
            let is_news = backup != subflow.backup && self.told.note(subflow, backup, now);
            if is_news || self.bulk.is_heavy() && self.told.again(subflow, now) {
                // This fails for a subflow that is closing, whose priority no longer matters.
                let _ = endpoint.set_priority(self.connection, subflow.id, backup, now);
            }
        }
    }

    /// Returns whether a subflow should be a backup of the `first` one. A regular one stays regular, unless its uplink
    /// was late.
    fn is_to_wait(&self, subflow: &SubflowStats, first: Option<&SubflowStats>) -> bool {
        if self.held_back.holds(subflow.local.ip()) {
            return true;
        }
        let Some(first) = first.filter(|_| subflow.backup) else { return false };
        if subflow.established_at.is_none() {
            return true;
        }
        // A subflow whose handshake took several attempts has no RTT sample, and as a backup gets none.
        let rtt = subflow.min_rtt.unwrap_or(RTT_UNKNOWN);
        let is_shorter = first.srtt.is_some_and(|srtt| srtt > rtt.saturating_mul(2));
        !is_shorter && !self.bulk.is_worth(rtt, rtt)
    }

    fn look_for_harm(&mut self, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
        self.pauses.note_strays(endpoint);
        let carriers = Carrier::all(self.connection, stats, endpoint, |_| None, |_| None);
        for finding in self.harm.look(&carriers, &mut self.pauses, now) {
            self.act(finding, &carriers, endpoint, now);
        }
        self.next_at = self.harm.next_at().filter(|at| *at > now).or(self.next_at);
    }

    fn act(&mut self, finding: Finding, carriers: &[Carrier], endpoint: &mut Endpoint, now: Instant) {
        let id = finding.subflow();
        let Some(ip) = carriers.iter().find(|carrier| carrier.id == id).map(Carrier::ip) else { return };
        match finding {
            Finding::Doubtful(id) => {
                // A subflow that is gone needs no probe.
                let _ = endpoint.probe_subflow(self.connection, id, now);
                return;
            }
            Finding::Silent(_) => {}
            Finding::Late(_) => self.held_back.note(ip, now),
            // The next look makes it a backup.
            Finding::Slow(_) => return self.held_back.note(ip, now),
        }
        // This fails only if the connection is over.
        let _ = endpoint.withdraw_address(self.connection, ip, now);
        endpoint.add_local_address(LocalAddress { ip, backup: true }, now);
    }
}

#[cfg(test)]
mod tests {
    use transport::{ConnectionConfig, EndpointConfig};

    use super::*;
    use crate::back_to_back::{CLIENT, SERVER};

    #[test]
    fn an_uplink_that_is_gone_is_not_used_when_its_hold_would_have_ended() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let (local, remote) = ((CLIENT, 0).into(), (SERVER, 80).into());
        let connection = endpoint.connect(local, remote, ConnectionConfig::default(), Instant::ZERO).unwrap();
        let mut subflows = Subflows::new(connection, RTT_UNKNOWN, Instant::ZERO);
        subflows.held_back.note(CLIENT, Instant::ZERO);
        subflows.forget(CLIENT);
        assert!(!subflows.held_back.holds(CLIENT), "one that gets this address was not late");
        subflows.look(&mut endpoint, Instant::from_secs(20));
        assert!(!endpoint.has_local_address(CLIENT));
    }
}
