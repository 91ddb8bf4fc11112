//! Decides which subflows the kernel's connections should have: events, uplinks and the time in, commands out.
//!
//! Every connection that begins here gets a subflow over each uplink whose tier is not never. On a connection that a
//! peer has opened, the manager announces the uplinks' addresses to the peer, as far as it can reach them. The manager
//! recreates a subflow that has died, after a pause that doubles with each consecutive failure. It ends a subflow over
//! a lost uplink as soon as another subflow carries the connection, never before, and one over an unwanted uplink once
//! the server has not reset that other subflow. Connections within this host are left alone.
//!
//! The kernel goes on with a handshake for about two minutes, much longer than the manager waits for it. When a path
//! heals, all attempts over it may succeed at once: the manager keeps the first and ends the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use linux::mptcp::{Ends, Event, Socket, State};
use serde::Serialize;
use units::{Duration, Instant};

use super::connection::{Attempt, BIRTH, Connection, Orders, Subflow, Unanswered, uplink_of};
pub use super::connection::{Command, View};
use super::silence::Name;

/// The end of a subflow that lived this long is no failure: the pause starts again from its initial value.
const SUCCESS: Duration = Duration::from_secs(10);
/// Maximum number of peer addresses per connection.
const REMOTES_MAX: usize = 8;
/// Maximum number of managed connections; further ones keep their first subflow.
const CONNECTIONS_MAX: usize = 65_536;
/// Maximum number of known subflows per connection.
const SUBFLOWS_MAX: usize = 64;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Connections with other hosts that were established.
    pub connections: u64,
    /// Subflows that the manager asked for.
    pub created: u64,
    /// Those of `created` that replaced a dead subflow.
    pub remade: u64,
    /// Subflows that the manager asked for and that were not established.
    pub failed: u64,
}

/// All connections, with the subflows that they should have.
#[derive(Debug, Default)]
pub struct Manager {
    uplinks: Vec<View>,
    connections: BTreeMap<u32, Connection>,
    ids: Vec<IpAddr>,
    totals: Totals,
    /// Connections with events since the last call of [`Self::commands`].
    touched: BTreeSet<u32>,
    /// Times at which connections are due. Entries of connections that have ended stay until their time.
    due: BTreeSet<(Instant, u32)>,
    /// Attempts that were not answered in time.
    unanswered: Vec<Unanswered>,
}

impl Manager {
    /// Returns the counters.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether it manages the connection with this token.
    pub fn manages(&self, token: u32) -> bool {
        self.connections.contains_key(&token)
    }

    /// Returns the position of the uplink of a subflow with these ends, bound to this interface if any; `None` if it is
    /// over no uplink.
    pub fn uplink_of(&self, ends: Ends, interface: Option<u32>) -> Option<usize> {
        uplink_of(&self.uplinks, ends.local.ip(), interface).filter(|_| !self.is_within_host(ends))
    }

    /// Returns whether a connection stays within this host, which other addresses of the host would lead out of it.
    fn is_within_host(&self, ends: Ends) -> bool {
        // To any address of its own, the kernel connects from the same one.
        ends.remote.ip() == ends.local.ip() || self.is_own(ends.remote.ip())
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        let has = |uplink: &View| uplink.is_usable && uplink.has(ip);
        ip.is_loopback() || ip.is_unspecified() || self.uplinks.iter().any(has)
    }

    /// Returns whether a further subflow to this address of a peer may reach it over an uplink.
    fn may_reach(&self, ip: IpAddr) -> bool {
        let is_link_local = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        !is_link_local && !self.is_own(ip)
    }

    /// Replaces the state of the uplinks. Dooms the subflows whose uplink is lost or has another interface or address.
    pub fn set_uplinks(&mut self, uplinks: Vec<View>) {
        let before = core::mem::replace(&mut self.uplinks, uplinks);
        for connection in self.connections.values_mut() {
            for subflow in &mut connection.subflows {
                let (ip, interface) = (subflow.ends.local.ip(), subflow.interface);
                let of = uplink_of(&before, ip, interface);
                // A subflow that is bound to no interface may now leave by another one.
                let stays = of.is_some_and(|index| {
                    let stays = self.uplinks.get(index).is_some_and(|now| now.keeps(ip, &before[index]));
                    stays && uplink_of(&self.uplinks, ip, interface) == of
                });
                subflow.is_doomed |= of.is_some() && !stays;
            }
            // Another way may lead to the peer, so a new attempt may succeed.
            for (index, attempt) in connection.attempts.iter_mut().enumerate() {
                let both = before.get(index).zip(self.uplinks.get(index));
                if !both.is_some_and(|(before, now)| now.is_tried_as(before)) {
                    self.totals.failed += u64::from(attempt.pending_until.is_some());
                    let is_same = both.is_some_and(|(before, now)| now.has_ways_of(before));
                    let late = if is_same { attempt.open() } else { 0 };
                    *attempt = Attempt { had_one: attempt.had_one, late, ..Attempt::default() };
                }
            }
        }
        self.touched.extend(self.connections.keys());
    }

    /// Handles an event of the kernel.
    pub fn handle(&mut self, event: Event, now: Instant) {
        self.touched.extend(token_of(event));
        match event {
            // `adopt` found this connection before its event arrived.
            Event::Established { token, .. } if self.connections.contains_key(&token) => {}
            Event::Established { ends, .. } if self.is_within_host(ends) => {}
            Event::Established { token, ends, is_server, no_join } => {
                self.totals.connections += 1;
                let subflow = Subflow {
                    ends,
                    interface: None,
                    backup: Some(false),
                    since: now,
                    is_refused: false,
                    is_doomed: false,
                    is_doubted: false,
                };
                self.add(token, subflow, is_server, no_join);
            }
            Event::Closed { token } => {
                let closed = self.connections.remove(&token);
                self.totals.failed += closed.map_or(0, |connection| connection.pending());
            }
            Event::Announced { token, id, ip, port } => {
                let may_reach = self.may_reach(ip);
                let Some(connection) = self.connections.get_mut(&token) else { return };
                let place = SocketAddr::new(ip, port.unwrap_or(connection.port));
                connection.remotes.retain(|(known, _)| *known != id);
                if may_reach && connection.remotes.len() < REMOTES_MAX {
                    connection.remotes.push((id, place));
                }
            }
            Event::Removed { token, id } => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.remotes.retain(|(known, _)| *known != id);
                }
            }
            Event::SubflowEstablished { token, ends, interface, backup } => {
                let index = self.uplink_of(ends, interface);
                let Some(connection) = self.connections.get_mut(&token) else { return };
                connection.subflows.retain(|subflow| subflow.ends != ends);
                if connection.subflows.len() < SUBFLOWS_MAX {
                    let backup = Some(backup);
                    connection.subflows.push(Subflow {
                        ends,
                        interface,
                        backup,
                        since: now,
                        is_refused: false,
                        is_doomed: false,
                        is_doubted: false,
                    });
                }
                if let Some(index) = index {
                    connection.attempt(index).succeed();
                }
            }
            Event::SubflowClosed { token, ends } => self.closed(token, ends, now),
            // The owner then calls `adopt`.
            Event::Lost => {}
        }
    }

    /// Handles that nothing is heard over subflows although their connections get on: others are to take their places. A
    /// server leaves that to its client. Returns those for which it is tried.
    pub fn doubt(&mut self, quiet: &[Name], now: Instant) -> BTreeSet<Name> {
        let mut of: BTreeMap<u32, Vec<Ends>> = BTreeMap::new();
        quiet.iter().for_each(|(token, ends)| of.entry(*token).or_default().push(*ends));
        let mut tried = BTreeSet::new();
        for (token, ends) in of {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            if !connection.is_server && !connection.is_found {
                tried.extend(connection.doubt(&ends, &self.uplinks, now).into_iter().map(|ends| (token, ends)));
                self.touched.insert(token);
            }
        }
        tried
    }

    /// Returns the local addresses of the subflows that are over no uplink, or that their uplink is not known to have.
    pub fn strange_addresses(&self) -> BTreeSet<IpAddr> {
        let subflows = self.connections.values().flat_map(|connection| &connection.subflows);
        let is_strange = |subflow: &&Subflow| match subflow.uplink(&self.uplinks) {
            Some(index) => !self.uplinks[index].has(subflow.ends.local.ip()),
            None => subflow.interface.is_none(),
        };
        subflows.filter(is_strange).map(|subflow| subflow.ends.local.ip()).collect()
    }

    /// Returns whether any connection lacks a subflow over an uplink, so that attempts will show when it is heard.
    pub fn lacks_any(&self, uplink: usize) -> bool {
        self.connections.values().any(|connection| connection.lacks(uplink, &self.uplinks))
    }

    /// Handles that something is heard again over a subflow that may be in doubt.
    pub fn believe(&mut self, token: u32, ends: Ends) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.subflows.iter_mut().filter(|subflow| subflow.ends == ends).for_each(|it| it.is_doubted = false);
        self.touched.insert(token);
    }

    /// Returns the attempts that were not answered since the last call.
    pub fn take_unanswered(&mut self) -> Vec<Unanswered> {
        core::mem::take(&mut self.unanswered)
    }

    fn add(&mut self, token: u32, subflow: Subflow, is_server: bool, no_join: bool) {
        if self.connections.len() >= CONNECTIONS_MAX {
            return;
        }
        let remote = subflow.ends.remote;
        let remotes = if no_join || !self.may_reach(remote.ip()) { Vec::new() } else { vec![(0, remote)] };
        let (subflows, attempts, port) = (vec![subflow], Vec::new(), remote.port());
        let connection = Connection {
            remotes,
            port,
            is_server,
            is_found: false,
            subflows,
            attempts,
            announced: Vec::new(),
            orders: Orders::default(),
            due: None,
        };
        self.connections.insert(token, connection);
    }

    fn closed(&mut self, token: u32, ends: Ends, now: Instant) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let found = connection.subflows.iter().position(|subflow| subflow.ends == ends);
        let subflow = found.map(|at| connection.subflows.swap_remove(at));
        let interface = subflow.and_then(|subflow| subflow.interface);
        let Some(index) = uplink_of(&self.uplinks, ends.local.ip(), interface) else { return };
        match subflow {
            // The manager ends it or was about to, or another one is on its way.
            Some(subflow) if subflow.is_doomed || subflow.is_doubted => connection.attempt(index).had_one = true,
            Some(subflow) => {
                let (attempt, lived) = (connection.attempt(index), now.saturating_since(subflow.since));
                if lived >= BIRTH {
                    attempt.had_one = true;
                } else {
                    self.totals.failed += 1;
                    attempt.unanswered += 1;
                }
                if lived >= SUCCESS {
                    attempt.failures = 0;
                }
                attempt.fail(now);
                // It was answered, although the server has no room for it: the uplink lives.
                connection.believe(index, &self.uplinks);
            }
            // Of those without an answer, the oldest end first.
            None if connection.attempt(index).late > 0 => connection.attempt(index).late -= 1,
            // The handshake was refused or got no answer.
            None if connection.attempt(index).pending_until.is_some() => {
                self.totals.failed += 1;
                connection.attempt(index).unanswered += 1;
                connection.attempt(index).fail(now);
                // Whoever refuses this one may still carry the one in doubt.
                connection.believe(index, &self.uplinks);
            }
            None => {}
        }
    }

    /// Handles the kernel's refusal of a command: the state that was wanted is not reached, and is due after a pause.
    pub fn refused(&mut self, command: Command, why: ErrorKind, now: Instant) {
        match command {
            Command::Create { token, uplink, .. } => self.refused_subflow(token, uplink, why, now),
            // The subflow has ended, which an event reports.
            Command::Destroy { .. } => {}
            Command::Announce { token, .. } if self.leave(token, why) => {}
            Command::Announce { token, ip, .. } => {
                self.refused_order(token, now, |connection| connection.announced.retain(|(known, _)| *known != ip));
            }
            Command::Withdraw { token, ip, id } => {
                self.refused_order(token, now, |connection| connection.announced.push((ip, id)));
            }
            Command::SetBackup { token, ends, .. } if self.was_refused(token, ends) && self.leave(token, why) => {}
            Command::SetBackup { token, ends, .. } => self.refused_order(token, now, |connection| {
                let subflows = connection.subflows.iter_mut().filter(|subflow| subflow.ends == ends);
                subflows.for_each(|subflow| (subflow.backup, subflow.is_refused) = (None, true));
            }),
        }
    }

    /// Gives up a connection that began before the daemon, if the kernel says that its own path manager has it. Returns
    /// whether it is one.
    fn leave(&mut self, token: u32, why: ErrorKind) -> bool {
        let is_found = self.connections.get(&token).is_some_and(|connection| connection.is_found);
        let is_one = is_found && why == ErrorKind::InvalidInput;
        if is_one {
            self.connections.remove(&token);
        }
        is_one
    }

    /// Returns whether the priority of a subflow was refused before. The kernel refuses it in the same way if the subflow
    /// has ended; by the next time, an event has reported that.
    fn was_refused(&self, token: u32, ends: Ends) -> bool {
        let connection = self.connections.get(&token).filter(|connection| connection.orders.was_refused());
        connection.and_then(|connection| connection.subflow(ends)).is_some_and(|subflow| subflow.is_refused)
    }

    fn refused_order(&mut self, token: u32, now: Instant, undo: impl FnOnce(&mut Connection)) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        undo(connection);
        connection.orders.fail(now);
        self.schedule(token);
    }

    fn refused_subflow(&mut self, token: u32, uplink: usize, why: ErrorKind, now: Instant) {
        if self.leave(token, why) {
            // This attempt does not count.
            self.totals.created = self.totals.created.saturating_sub(1);
            return;
        }
        // Other errors (not yet fully established, no route now) are temporary: a later attempt may succeed.
        let Some(connection) = self.connections.get_mut(&token) else { return };
        self.totals.failed += 1;
        connection.attempt(uplink).fail(now);
        self.touched.insert(token);
    }

    /// Takes over all existing connections as they are, at the start or after events were lost.
    pub fn adopt(&mut self, sockets: &[Socket], now: Instant) {
        let listens = |port: u16| {
            let mut listeners = sockets.iter().filter(|socket| socket.state == State::Listens);
            listeners.any(|socket| socket.ends.local.port() == port)
        };
        let mut living: BTreeMap<u32, Vec<Subflow>> = BTreeMap::new();
        for socket in sockets {
            let State::Subflow { token, .. } = socket.state else { continue };
            let (ends, interface) = (socket.ends, socket.interface);
            if self.is_within_host(ends) {
                continue;
            }
            let known = self.connections.get(&token).and_then(|connection| connection.subflow(ends)).copied();
            let known = known.map(|known| Subflow { interface: known.interface.or(interface), ..known });
            let found = Subflow {
                ends,
                interface,
                backup: None,
                since: now,
                is_refused: false,
                is_doomed: false,
                is_doubted: false,
            };
            living.entry(token).or_default().push(known.unwrap_or(found));
        }
        let closed = self.connections.iter().filter(|(token, _)| !living.contains_key(token));
        self.totals.failed += closed.map(|(_, connection)| connection.pending()).sum::<u64>();
        self.connections.retain(|token, _| living.contains_key(token));
        for (token, subflows) in living {
            let is_found = self.connections.get(&token).is_none_or(|known| known.is_found);
            if !self.connections.contains_key(&token) {
                let is_server = subflows.first().is_some_and(|subflow| listens(subflow.ends.local.port()));
                self.add(token, subflows[0], is_server, false);
            }
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.is_found = is_found;
                connection.subflows = subflows;
                connection.forget_answers(&self.uplinks);
            }
        }
        self.touched.extend(self.connections.keys());
    }

    /// Notes the interfaces that subflows are bound to: with the event of the first subflow of a connection, the kernel does
    /// not tell whether its program has bound it.
    pub fn note_interfaces(&mut self, sockets: &[Socket]) {
        for socket in sockets.iter().filter(|socket| socket.interface.is_some()) {
            let State::Subflow { token, .. } = socket.state else { continue };
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let is_it = |subflow: &&mut Subflow| subflow.ends == socket.ends && subflow.interface.is_none();
            if let Some(subflow) = connection.subflows.iter_mut().find(is_it) {
                subflow.interface = socket.interface;
                self.touched.insert(token);
            }
        }
    }

    /// Returns the commands for the kernel that are due now.
    pub fn commands(&mut self, now: Instant) -> Vec<Command> {
        while let Some((due, token)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, token));
            self.touched.insert(token);
        }
        let mut commands = Vec::new();
        for token in core::mem::take(&mut self.touched) {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            let before = commands.len();
            let unanswered = connection.expire(&self.uplinks, now);
            self.totals.failed += unanswered.len() as u64;
            self.unanswered.extend(unanswered);
            // Whether a connection that began before is a server's is a guess.
            if !connection.is_server && !connection.is_found {
                connection.doom_surplus(&self.uplinks, now);
            }
            connection.prune(token, &self.uplinks, now, &mut commands);
            // A server only announces addresses. A connection whose local port has no listener is a client's.
            if connection.is_server {
                connection.announce(token, &self.uplinks, &mut self.ids, &mut commands);
            } else {
                connection.extend(token, &self.uplinks, &mut self.ids, &mut self.totals, now, &mut commands);
            }
            connection.orders.begin(commands[before..].iter().any(Command::is_order), now);
            self.schedule(token);
        }
        commands
    }

    /// Notes when a connection is due.
    fn schedule(&mut self, token: u32) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let due = connection.deadline(&self.uplinks);
        if let Some(before) = core::mem::replace(&mut connection.due, due) {
            self.due.remove(&(before, token));
        }
        self.due.extend(due.map(|due| (due, token)));
    }

    /// Returns the time of the next call of [`Self::commands`], if no event comes before.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.touched.is_empty() {
            return Some(Instant::ZERO);
        }
        self.due.first().map(|(due, _)| *due)
    }
}

/// Returns the connection that an event is about.
fn token_of(event: Event) -> Option<u32> {
    match event {
        Event::Established { token, .. }
        | Event::Closed { token }
        | Event::Announced { token, .. }
        | Event::Removed { token, .. }
        | Event::SubflowEstablished { token, .. }
        | Event::SubflowClosed { token, .. } => Some(token),
        Event::Lost => None,
    }
}
