//! Carries out a case's actions on subflows and addresses.

use std::net::{IpAddr, SocketAddr};

use simulator::HostId;
use transport::congestion::WindowSet;
use transport::path_manager::LocalAddress;
use transport::{ConnectionId, Endpoint, SubflowId, SubflowStats};
use units::{Duration, Instant};

use super::case::{Action, Case, Deed, Side};
use super::goals::is_sound;
use super::wiring::{PORT_FIRST, Stage};

/// How long a lost address stays away.
const ADDRESS_GONE: Duration = Duration::from_secs(1);
/// First port on which nobody listens.
const DEAF_PORT: u16 = 4000;

/// Actions that are still due.
pub struct Actions {
    /// In reverse order: the last element is next.
    waiting: Vec<Action>,
    /// Addresses that will come back: time and side.
    returning: Vec<(Instant, Side, IpAddr)>,
}

/// What an action needs to know.
struct Scene<'a> {
    side: Side,
    connection: ConnectionId,
    /// This side's addresses and the peer's, by path.
    own: Vec<IpAddr>,
    peers: Vec<IpAddr>,
    sound: Vec<bool>,
    endpoint: &'a mut Endpoint,
    now: Instant,
}

impl Actions {
    /// Creates the actions of a case.
    pub fn new(case: &Case) -> Self {
        let mut waiting = case.actions.clone();
        waiting.sort_by_key(|action| core::cmp::Reverse(action.at_ms));
        Self { waiting, returning: Vec::new() }
    }

    /// Returns the time of the next action.
    pub fn next_at(&self) -> Option<Instant> {
        let action = self.waiting.last().map(|action| Instant::from_millis(action.at_ms));
        self.returning.iter().map(|(at, ..)| *at).chain(action).min()
    }

    /// Carries out the due actions.
    pub fn act(&mut self, stage: &mut Stage, case: &Case) {
        let now = stage.simulation.now();
        self.returning.retain(|(at, side, ip)| {
            if *at <= now {
                let address = LocalAddress { ip: *ip, backup: false };
                let host = HostId(side.index() as u32);
                stage.simulation.with_host(host, |host, now| host.endpoint.add_local_address(address, now));
            }
            *at > now
        });
        let is_due = |action: &Action| Instant::from_millis(action.at_ms) <= now;
        while let Some(action) = self.waiting.last().copied().filter(is_due) {
            self.waiting.pop();
            let gone = perform(action, stage, case);
            self.returning.extend(gone.map(|ip| (now + ADDRESS_GONE, action.side, ip)));
        }
    }
}

/// Carries out an action; returns an address that was lost.
fn perform(action: Action, stage: &mut Stage, case: &Case) -> Option<IpAddr> {
    let clients = stage.paths.iter().map(|path| path.client).collect();
    let servers = stage.paths.iter().map(|path| path.server).collect();
    let (own, peers) = match action.side {
        Side::Client => (clients, servers),
        Side::Server => (servers, clients),
    };
    let sound = case.paths.iter().map(is_sound).collect();
    stage.simulation.with_host(HostId(action.side.index() as u32), |host, now| {
        let endpoint = &mut host.endpoint;
        let connections: Vec<_> = endpoint.connections().collect();
        let connection = *connections.get(action.connection % connections.len().max(1))?;
        Scene { side: action.side, connection, own, peers, sound, endpoint, now }.perform(action.deed)
    })
}

impl Scene<'_> {
    /// The engine may refuse a deed: there may be no such subflow, or no MPTCP.
    fn perform(&mut self, deed: Deed) -> Option<IpAddr> {
        let (connection, now) = (self.connection, self.now);
        match deed {
            Deed::AddSubflow { from, to, backup } => self.add_subflow(from, to, backup),
            Deed::RemoveSubflow { subflow } => {
                let id = self.subflow(subflow)?;
                if self.another_stands(connection, |other| other.id == id) {
                    let _ = self.endpoint.remove_subflow(connection, id, now);
                }
            }
            Deed::SetPriority { subflow, backup } => {
                let id = self.subflow(subflow)?;
                let _ = self.endpoint.set_priority(connection, id, backup, now);
            }
            Deed::Announce { path, port } => {
                let ip = self.own[path % self.own.len()];
                let _ = self.endpoint.announce_address(connection, ip, port.then_some(DEAF_PORT), now);
            }
            Deed::Withdraw { path } => {
                let ip = self.own[path % self.own.len()];
                if self.another_stands(connection, |other| other.local.ip() == ip) {
                    let _ = self.endpoint.withdraw_address(connection, ip, now);
                }
            }
            Deed::LoseAddress { path } => return self.lose_address(self.own[path % self.own.len()]),
            Deed::CutWindow { subflow, cwnd_bytes } => {
                let id = self.subflow(subflow)?;
                let cut = WindowSet { cwnd: cwnd_bytes, ssthresh: cwnd_bytes };
                let _ = self.endpoint.cut_window(connection, id, cut, now);
            }
        }
        None
    }

    fn add_subflow(&mut self, from: usize, to: usize, backup: bool) {
        let local = SocketAddr::new(self.own[from % self.own.len()], 0);
        let ip = self.peers[to % self.peers.len()];
        let stats = self.endpoint.stats(self.connection);
        let first = stats.and_then(|stats| stats.subflows.first().map(|subflow| subflow.remote.port()));
        let port = match self.side {
            Side::Client => first.unwrap_or(PORT_FIRST),
            // The client has no listener. A join needs none: the token identifies the connection.
            Side::Server => DEAF_PORT + to as u16,
        };
        let remote = SocketAddr::new(ip, port);
        let _ = self.endpoint.add_subflow(self.connection, local, remote, backup, self.now);
    }

    fn lose_address(&mut self, ip: IpAddr) -> Option<IpAddr> {
        let connections: Vec<_> = self.endpoint.connections().collect();
        let all_stand = connections.into_iter().all(|id| self.another_stands(id, |other| other.local.ip() == ip));
        if !all_stand {
            return None;
        }
        self.endpoint.remove_local_address(ip, self.now);
        Some(ip)
    }

    fn live(&self, connection: ConnectionId) -> Vec<SubflowStats> {
        let subflows = self.endpoint.stats(connection).map(|stats| stats.subflows).unwrap_or_default();
        subflows.into_iter().filter(|subflow| subflow.state == "ESTABLISHED").collect()
    }

    fn subflow(&self, number: usize) -> Option<SubflowId> {
        let live = self.live(self.connection);
        Some(live.get(number % live.len().max(1))?.id)
    }

    /// Returns whether a subflow on a sound path remains besides those that `goes` selects.
    fn another_stands(&self, connection: ConnectionId, goes: impl Fn(&SubflowStats) -> bool) -> bool {
        let is_sound = |subflow: &SubflowStats| {
            let clients_side = if self.side == Side::Client { subflow.local } else { subflow.remote };
            let addresses = if self.side == Side::Client { &self.own } else { &self.peers };
            let path = addresses.iter().position(|ip| *ip == clients_side.ip());
            path.is_some_and(|path| self.sound[path])
        };
        self.live(connection).iter().any(|subflow| !goes(subflow) && is_sound(subflow))
    }
}
