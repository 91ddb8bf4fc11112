//! Decides which subflows the kernel's connections should have: events, uplinks and the time in, commands out.
//!
//! Every connection that begins here gets a subflow over each uplink whose tier is not never. On a connection that a
//! peer has opened, the manager announces the uplinks' addresses to the peer, as far as it can reach them. The manager
//! recreates a subflow that has died, after a pause that doubles with each consecutive failure. It ends a subflow over
//! a lost or unwanted uplink as soon as another subflow carries the connection, never before.
//!
//! The kernel goes on with a handshake for about two minutes, much longer than the manager waits for it. When a path
//! heals, all attempts over it may succeed at once: the manager keeps the first and ends the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use linux::mptcp::{Ends, Event, Origin, Socket, State};
use serde::Serialize;
use units::{Duration, Instant};

use crate::proxy::choice::Tier;

/// Pause after a failure: initial and maximum.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A subflow with a shorter life does not count as established. A server at its limit of subflows answers the handshake
/// and then resets.
const BIRTH: Duration = Duration::from_millis(250);
/// The end of a subflow that lived this long is no failure: the pause starts again from its initial value.
const SUCCESS: Duration = Duration::from_secs(10);
/// Time limit for a handshake before the attempt counts as failed: two repetitions of a SYN.
const PATIENCE: Duration = Duration::from_secs(8);
/// Maximum number of peer addresses per connection.
const REMOTES_MAX: usize = 8;
/// Maximum number of managed connections; further ones keep their first subflow.
const CONNECTIONS_MAX: usize = 65_536;
/// Maximum number of known subflows per connection.
const SUBFLOWS_MAX: usize = 64;

/// A command for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a subflow of the connection `token` over the uplink at position `uplink`.
    Create {
        /// The connection.
        token: u32,
        /// The uplink's position.
        uplink: usize,
        /// The local end.
        from: Origin,
        /// The remote end.
        to: SocketAddr,
    },
    /// Ends a subflow.
    Destroy {
        /// The connection.
        token: u32,
        /// The subflow.
        ends: Ends,
    },
    /// Announces a local address to the peer.
    Announce {
        /// The connection.
        token: u32,
        /// The address.
        ip: IpAddr,
        /// Its identifier.
        id: u8,
    },
    /// Withdraws a local address.
    Withdraw {
        /// The connection.
        token: u32,
        /// The address.
        ip: IpAddr,
        /// Its identifier.
        id: u8,
    },
    /// Makes a subflow a backup or regular.
    SetBackup {
        /// The connection.
        token: u32,
        /// The subflow.
        ends: Ends,
        /// True for backup.
        backup: bool,
    },
}

/// The current state of an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its interface index.
    pub interface: u32,
    /// Its addresses, at most one per family.
    pub addresses: Vec<IpAddr>,
    /// Its tier.
    pub tier: Tier,
    /// Whether it can be used now.
    pub is_usable: bool,
    /// Whether connections without a bound interface begin here.
    pub is_default: bool,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Connections that were established.
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
}

#[derive(Debug)]
struct Connection {
    /// Destinations of further subflows, with the peer's address identifiers.
    remotes: Vec<(u8, SocketAddr)>,
    /// Remote port of the first subflow.
    port: u16,
    is_server: bool,
    /// [`Manager::adopt`] found it; the kernel's own path manager may be in charge of it.
    is_found: bool,
    subflows: Vec<Subflow>,
    attempts: Vec<Attempt>,
    /// Local addresses that the peer knows, with their identifiers.
    announced: Vec<(IpAddr, u8)>,
    orders: Orders,
    /// Its time in [`Manager::due`].
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Subflow {
    ends: Ends,
    interface: Option<u32>,
    /// `None` if unknown, because the kernel has refused to set it, or because the subflow was found.
    backup: Option<bool>,
    since: Instant,
    /// Whether the kernel has refused to set its priority.
    is_refused: bool,
    /// Its uplink was lost, or it is being ended. It may still look alive for a long time.
    is_doomed: bool,
}

/// Attempts over one uplink.
#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    failures: u32,
    /// Number of attempts at which the peer's address failed. A subflow that has lived says nothing against its address.
    unanswered: u32,
    not_before: Instant,
    pending_until: Option<Instant>,
    /// Whether there has been a subflow before.
    had_one: bool,
    /// Attempts that count as failed because they took too long, while the kernel still waits for an answer.
    late: u32,
}

/// Announcements, withdrawals and priorities of a connection that the kernel has refused: they stay due.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    failures: u32,
    again_at: Option<Instant>,
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

    /// Returns the position of the uplink of a subflow with this local address, bound to this interface if any.
    pub fn uplink_of(&self, local: IpAddr, interface: Option<u32>) -> Option<usize> {
        uplink_of(&self.uplinks, local, interface)
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
                    let is_same = |now: &View| now.addresses.contains(&ip) && now.interface == before[index].interface;
                    let stays = self.uplinks.get(index).is_some_and(|now| now.is_usable && is_same(now));
                    stays && uplink_of(&self.uplinks, ip, interface) == of
                });
                subflow.is_doomed |= of.is_some() && !stays;
            }
            // The uplink has changed, so a new attempt may succeed.
            for (index, attempt) in connection.attempts.iter_mut().enumerate() {
                let (before, now) = (before.get(index), self.uplinks.get(index));
                if before != now {
                    self.totals.failed += u64::from(attempt.pending_until.is_some());
                    let is_same = before.zip(now).is_some_and(|(before, now)| before.has_ways_of(now));
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
            Event::Established { token, ends, is_server, no_join } => {
                self.totals.connections += 1;
                let subflow = Subflow {
                    ends,
                    interface: None,
                    backup: Some(false),
                    since: now,
                    is_refused: false,
                    is_doomed: false,
                };
                self.add(token, subflow, is_server, no_join);
            }
            Event::Closed { token } => {
                let closed = self.connections.remove(&token);
                self.totals.failed += closed.map_or(0, |connection| connection.pending());
            }
            Event::Announced { token, id, ip, port } => {
                let Some(connection) = self.connections.get_mut(&token) else { return };
                let place = SocketAddr::new(ip, port.unwrap_or(connection.port));
                connection.remotes.retain(|(known, _)| *known != id);
                if connection.remotes.len() < REMOTES_MAX {
                    connection.remotes.push((id, place));
                }
            }
            Event::Removed { token, id } => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.remotes.retain(|(known, _)| *known != id);
                }
            }
            Event::SubflowEstablished { token, ends, interface, backup } => {
                let index = self.uplink_of(ends.local.ip(), interface);
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

    fn add(&mut self, token: u32, subflow: Subflow, is_server: bool, no_join: bool) {
        if self.connections.len() >= CONNECTIONS_MAX {
            return;
        }
        let remote = subflow.ends.remote;
        let remotes = if no_join { Vec::new() } else { vec![(0, remote)] };
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
            // The manager ends it or was about to.
            Some(subflow) if subflow.is_doomed => connection.attempt(index).had_one = true,
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
            }
            // Of those without an answer, the oldest end first.
            None if connection.attempt(index).late > 0 => connection.attempt(index).late -= 1,
            // The handshake was refused or got no answer.
            None if connection.attempt(index).pending_until.is_some() => {
                self.totals.failed += 1;
                connection.attempt(index).unanswered += 1;
                connection.attempt(index).fail(now);
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
            let known = self.connections.get(&token).and_then(|connection| connection.subflow(ends)).copied();
            let found = Subflow { ends, interface, backup: None, since: now, is_refused: false, is_doomed: false };
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
                // The events of their ends were lost.
                connection.attempts.iter_mut().for_each(|attempt| attempt.late = 0);
            }
        }
        self.touched.extend(self.connections.keys());
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
            // Whether a connection that began before is a server's is a guess.
            if !connection.is_server && !connection.is_found {
                connection.doom_surplus(&self.uplinks);
            }
            connection.prune(token, &self.uplinks, &mut commands);
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

impl Command {
    /// Returns whether it is one of those that [`Orders`] are about.
    fn is_order(&self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Withdraw { .. } | Self::SetBackup { .. })
    }
}

impl Orders {
    /// Notes whether any is given now.
    fn begin(&mut self, is_any: bool, now: Instant) {
        match is_any {
            true => self.again_at = self.again_at.filter(|at| *at > now),
            false => *self = Self::default(),
        }
    }

    /// Returns whether they were refused at an earlier time.
    fn was_refused(&self) -> bool {
        self.failures > 0 && self.again_at.is_none()
    }

    /// Notes a refusal. Several at the same time count once.
    fn fail(&mut self, now: Instant) {
        if self.again_at.is_none() {
            self.again_at = Some(now + pause_after(self.failures));
            self.failures = self.failures.saturating_add(1);
        }
    }
}

/// Returns the pause after a failure that follows so many others.
fn pause_after(failures: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}

impl View {
    fn is_wanted(&self) -> bool {
        self.is_usable && self.tier != Tier::Never
    }

    fn has_ways_of(&self, other: &Self) -> bool {
        self.interface == other.interface && self.addresses == other.addresses
    }
}

impl Attempt {
    /// Returns the number of attempts for whose answer the kernel waits.
    fn open(&self) -> u32 {
        self.late.saturating_add(u32::from(self.pending_until.is_some()))
    }

    /// Notes that one has succeeded, the present one or a late one.
    fn succeed(&mut self) {
        (self.pending_until, self.late) = (None, self.open().saturating_sub(1));
    }

    /// Notes that the present one takes too long.
    fn time_out(&mut self, now: Instant) {
        self.late = self.open();
        self.unanswered = self.unanswered.saturating_add(1);
        self.fail(now);
    }

    fn fail(&mut self, now: Instant) {
        *self = Self {
            failures: self.failures.saturating_add(1),
            not_before: now + pause_after(self.failures),
            pending_until: None,
            ..*self
        };
    }
}

impl Connection {
    fn attempt(&mut self, uplink: usize) -> &mut Attempt {
        if self.attempts.len() <= uplink {
            self.attempts.resize(uplink + 1, Attempt::default());
        }
        &mut self.attempts[uplink]
    }

    /// Returns the number of subflows that the manager asked for and that have not been answered.
    fn pending(&self) -> u64 {
        self.attempts.iter().filter(|attempt| attempt.pending_until.is_some()).count() as u64
    }

    fn subflow(&self, ends: Ends) -> Option<&Subflow> {
        self.subflows.iter().find(|subflow| subflow.ends == ends)
    }

    /// Returns when the next attempt is due or a pending one times out, or refused orders are due.
    fn deadline(&self, uplinks: &[View]) -> Option<Instant> {
        let attempts = if self.is_server { None } else { self.attempts_deadline(uplinks) };
        attempts.into_iter().chain(self.orders.again_at).min()
    }

    fn attempts_deadline(&self, uplinks: &[View]) -> Option<Instant> {
        let wanted = uplinks.iter().enumerate().filter(|(index, uplink)| {
            uplink.is_wanted() && self.ends_over(uplink, 0).is_some() && !self.carried_by(*index, uplinks)
        });
        let due = wanted.filter_map(|(index, _)| {
            let attempt = self.attempts.get(index)?;
            attempt.pending_until.or((attempt.failures > 0).then_some(attempt.not_before))
        });
        due.min()
    }

    fn carried_by(&self, uplink: usize, uplinks: &[View]) -> bool {
        self.subflows.iter().any(|subflow| !subflow.is_doomed && subflow.uplink(uplinks) == Some(uplink))
    }

    /// Dooms all subflows from an address of an uplink but the oldest. A server leaves their number to its client.
    fn doom_surplus(&mut self, uplinks: &[View]) {
        let place = |subflow: &Subflow| (subflow.uplink(uplinks), subflow.ends.local.ip());
        for at in 0..self.subflows.len() {
            let own = self.subflows[at];
            let is_older = |(other_at, other): (usize, &Subflow)| {
                !other.is_doomed && place(other) == place(&own) && (other.since, other_at) < (own.since, at)
            };
            let has_older = own.uplink(uplinks).is_some() && self.subflows.iter().enumerate().any(is_older);
            self.subflows[at].is_doomed |= has_older;
        }
    }

    /// Adjusts priorities to the tiers, and ends unwanted subflows if another subflow stays.
    fn prune(&mut self, token: u32, uplinks: &[View], commands: &mut Vec<Command>) {
        let is_unwanted = |subflow: &Subflow| {
            let uplink = subflow.uplink(uplinks).map(|index| &uplinks[index]);
            subflow.is_doomed || uplink.is_some_and(|uplink| !uplink.is_wanted())
        };
        let something_stays = self.subflows.iter().any(|subflow| !is_unwanted(subflow));
        for subflow in &mut self.subflows {
            let ends = subflow.ends;
            if is_unwanted(subflow) {
                if something_stays {
                    // So the event of its end does not count as a failure.
                    subflow.is_doomed = true;
                    commands.push(Command::Destroy { token, ends });
                }
                continue;
            }
            let Some(uplink) = subflow.uplink(uplinks).map(|index| &uplinks[index]) else { continue };
            let backup = uplink.tier == Tier::Backup;
            if subflow.backup != Some(backup) {
                subflow.backup = Some(backup);
                commands.push(Command::SetBackup { token, ends, backup });
            }
        }
    }

    /// Announces the addresses that the peer can reach, and withdraws all others.
    fn announce(&mut self, token: u32, uplinks: &[View], ids: &mut Vec<IpAddr>, commands: &mut Vec<Command>) {
        let Some(peer) = self.subflows.first().map(|subflow| subflow.ends.remote.ip()) else { return };
        let usable = uplinks.iter().filter(|uplink| uplink.is_wanted()).flat_map(|uplink| &uplink.addresses);
        let wanted: Vec<IpAddr> = usable.filter(|ip| may_reach(peer, **ip)).copied().collect();
        self.announced.retain(|(ip, id)| {
            let stays = wanted.contains(ip);
            if !stays {
                commands.push(Command::Withdraw { token, ip: *ip, id: *id });
            }
            stays
        });
        for ip in wanted {
            let is_known = self.announced.iter().any(|(known, _)| *known == ip);
            if !is_known && self.subflows.iter().all(|subflow| subflow.ends.local.ip() != ip) {
                let id = id_of(ip, ids);
                self.announced.push((ip, id));
                commands.push(Command::Announce { token, ip, id });
            }
        }
    }

    /// Creates the subflows that are missing.
    fn extend(
        &mut self,
        token: u32,
        uplinks: &[View],
        ids: &mut Vec<IpAddr>,
        totals: &mut Totals,
        now: Instant,
        commands: &mut Vec<Command>,
    ) {
        for (index, uplink) in uplinks.iter().enumerate().filter(|(_, uplink)| uplink.is_wanted()) {
            if self.carried_by(index, uplinks) {
                continue;
            }
            let attempt = self.attempt(index);
            if attempt.pending_until.is_some_and(|until| until <= now) {
                totals.failed += 1;
                attempt.time_out(now);
            }
            if attempt.pending_until.is_some() || attempt.not_before > now {
                continue;
            }
            let unanswered = attempt.unanswered;
            let Some((ip, to)) = self.ends_over(uplink, unanswered) else { continue };
            let attempt = self.attempt(index);
            attempt.pending_until = Some(now + PATIENCE);
            totals.created += 1;
            totals.remade += u64::from(attempt.had_one);
            let from =
                Origin { ip, id: id_of(ip, ids), interface: uplink.interface, backup: uplink.tier == Tier::Backup };
            commands.push(Command::Create { token, uplink: index, from, to });
        }
    }

    /// Returns an address of the uplink and one of the peer, of the same family: after each attempt without a subflow, the
    /// peer's next.
    fn ends_over(&self, uplink: &View, unanswered: u32) -> Option<(IpAddr, SocketAddr)> {
        let ends = || {
            self.remotes.iter().filter_map(|(_, remote)| {
                let own = uplink.addresses.iter().find(|ip| ip.is_ipv4() == remote.is_ipv4())?;
                Some((*own, *remote))
            })
        };
        ends().nth((unanswered as usize).checked_rem(ends().count())?)
    }
}

impl Subflow {
    fn uplink(&self, uplinks: &[View]) -> Option<usize> {
        uplink_of(uplinks, self.ends.local.ip(), self.interface)
    }
}

fn uplink_of(uplinks: &[View], local: IpAddr, interface: Option<u32>) -> Option<usize> {
    match interface {
        Some(number) => uplinks.iter().position(|uplink| uplink.interface == number),
        None => {
            let has = |uplink: &View| uplink.addresses.contains(&local);
            let default = uplinks.iter().position(|uplink| has(uplink) && uplink.is_default);
            default.or_else(|| uplinks.iter().position(has))
        }
    }
}

/// Returns whether a peer can use an address: private addresses are only announced to peers in private networks.
fn may_reach(peer: IpAddr, own: IpAddr) -> bool {
    let is_private = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            // 100.64.0.0/10 lies between carriers and their customers (RFC 6598).
            ip.is_private() || ip.is_link_local() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(ip) => ip.segments()[0] & 0xfe00 == 0xfc00,
    };
    peer.is_ipv4() == own.is_ipv4() && (is_private(peer) || !is_private(own))
}

/// Returns the identifier of a local address. The kernel knows an address by one identifier for a connection's whole
/// life, so an address has the same identifier in all connections.
fn id_of(ip: IpAddr, ids: &mut Vec<IpAddr>) -> u8 {
    let position = ids.iter().position(|known| *known == ip).unwrap_or_else(|| {
        // After 254 addresses numbering restarts; the kernel refuses commands for connections with the old numbers.
        if ids.len() >= 254 {
            ids.clear();
        }
        ids.push(ip);
        ids.len() - 1
    });
    // 0 belongs to the first subflow.
    u8::try_from(position + 1).unwrap_or(u8::MAX)
}
