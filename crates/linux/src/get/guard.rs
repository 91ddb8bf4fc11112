//! Which subflows of a download carry: further ones once it is worth it, none that cost more than they bring, and none that have died.
//!
//! What [`host::uplinks`] judges is carried out here for the one connection. A subflow that is late or dead is ended by withdrawing its
//! address (REMOVE_ADDR on the other subflows): so the peer sends again at once what was under way there. The one that follows it is a
//! backup, and stays so if its uplink was late.

use std::net::{IpAddr, SocketAddr};

use host::uplinks::harm::{self, PERIOD};
use host::uplinks::{Bulk, Carrier, Finding, Harm, HeldBack, OtherFamily, Pauses, RTT_UNKNOWN, Told};
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowStats};
use units::{Duration, Instant};

/// What is known of a download's subflows.
#[derive(Debug)]
pub struct Guard {
    connection: ConnectionId,
    bulk: Bulk,
    told: Told,
    harm: Harm,
    pauses: Pauses,
    held_back: HeldBack,
    other_family: OtherFamily,
    /// The addresses of each uplink.
    uplinks: Vec<Vec<IpAddr>>,
    next_at: Option<Instant>,
    /// When it last looked, unless there was nothing to look at since.
    settled_at: Option<Instant>,
}

impl Guard {
    /// Of a connection whose handshake took so long. It looks from now on: a further subflow may be the shorter way for the answer.
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

    /// Uplinks have these addresses, and the server that is `connected_to` has these: what one family does not reach the other may.
    pub fn know(&mut self, uplinks: &[Vec<IpAddr>], connected_to: SocketAddr, remotes: &[SocketAddr]) {
        self.uplinks = uplinks.to_vec();
        self.other_family = OtherFamily::new(connected_to, remotes.iter().copied());
    }

    /// So many octets have come.
    pub fn received(&mut self, bytes: u64, now: Instant) {
        self.bulk.moved(0, bytes, now);
        self.next_at.get_or_insert(now + PERIOD);
    }

    /// Octets wait for us, or all are here: nothing that a subflow does is late.
    pub fn rest(&mut self) {
        (self.next_at, self.settled_at) = (None, None);
    }

    /// When [`Self::look`] is to be called next.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Looks at the subflows.
    pub fn look(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = Some(now + PERIOD);
        // They join anew where they have not, and are regular once that is worth it.
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

    /// Makes subflows regular, or backups.
    fn settle(&mut self, stats: &ConnectionStats, endpoint: &mut Endpoint, now: Instant) {
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
                // One that is closing has no priority to change.
                let _ = endpoint.set_priority(self.connection, subflow.id, backup, now);
            }
        }
    }

    /// Whether a subflow is to be a backup of the `first` one. One that is regular stays so, unless its uplink was late.
    fn is_to_wait(&self, subflow: &SubflowStats, first: Option<&SubflowStats>) -> bool {
        if self.held_back.holds(subflow.local.ip()) {
            return true;
        }
        let Some(first) = first.filter(|_| subflow.backup) else { return false };
        if subflow.established_at.is_none() {
            return true;
        }
        // One whose handshake took several attempts has measured nothing, and never will as a backup.
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
        let (Finding::Doubtful(id) | Finding::Silent(id) | Finding::Late(id)) = finding;
        let Some(ip) = carriers.iter().find(|carrier| carrier.id == id).map(Carrier::ip) else { return };
        match finding {
            Finding::Doubtful(id) => {
                // One that is gone needs no probe.
                let _ = endpoint.probe_subflow(self.connection, id, now);
                return;
            }
            Finding::Silent(_) => {}
            Finding::Late(_) => self.held_back.note(ip, now),
        }
        // It fails only if the connection is over.
        let _ = endpoint.withdraw_address(self.connection, ip, now);
        endpoint.add_local_address(LocalAddress { ip, backup: true }, now);
    }
}
