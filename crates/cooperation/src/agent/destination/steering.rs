//! Carries out the commands of relay selection in the engine.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use transport::error::ConnectError;
use transport::{ConnectionId, ConnectionStats, Endpoint, Event, SubflowId, SubflowStats};
use units::{Duration, Instant, Rate};

use super::event::Events;
use super::first_path::{FIRST, retire_first};
use super::{DestinationEvent, DestinationSettings, SelectionSettings};
use crate::relay_selection::RelayId;
use crate::relay_selection::manager::RelayManager;
use crate::relay_selection::migration::{Command, PathState};
use crate::relay_selection::monitor::Advert;
use crate::relay_selection::play_out::PlayOut;

/// Playing time that an application buffers before it starts to play.
pub const STARTUP: Duration = Duration::from_secs(2);

/// Patiences of the watch that a subflow must last before its relay has proved itself: as many as the watch waits until
/// it closes a case.
const PATIENCES_TO_PROVE: u64 = 4;

/// Relay selection for the destination's first connection to the source.
pub(super) struct Steering {
    manager: RelayManager,
    period: Duration,
    prompt: bool,
    /// The destination's address on each relay's path, and the source.
    paths: Vec<IpAddr>,
    source: SocketAddr,
    /// Relays that have offered something.
    heard: BTreeSet<RelayId>,
    connection: Option<ConnectionId>,
    /// The relay of the first subflow, which the connection itself opens.
    first: RelayId,
    /// Whether the source forbids further subflows to its address.
    is_barred: bool,
    /// Whether the connection has ended, or goes on without Multipath TCP.
    is_over: bool,
    /// Whether relays splice the subflows that join over them; they only route the first one.
    spliced: bool,
    subflows: BTreeMap<RelayId, SubflowId>,
    arrived: Arrived,
    /// Octets that had arrived over each relay's subflow when the latest period ended.
    carried: BTreeMap<RelayId, (SubflowId, u64)>,
    /// State of the application's playing.
    play: PlayOut,
    /// When the latest period ended, and octets that had arrived by then.
    latest: (Instant, u64),
    /// End of the current period; it starts when the application has begun.
    next_period: Instant,
}

/// Octets that have arrived over all subflows, past and present. The connection's statistics forget the oldest ended
/// ones.
#[derive(Debug, Default)]
struct Arrived {
    bytes: u64,
    known: BTreeMap<SubflowId, u64>,
}

impl Arrived {
    /// Returns the total after adding the new octets in the statistics of subflows.
    fn count(&mut self, subflows: &[SubflowStats]) -> u64 {
        let seen: BTreeMap<_, _> = subflows.iter().map(|subflow| (subflow.id, subflow.received_bytes)).collect();
        let new = seen.iter().map(|(id, bytes)| bytes - self.known.get(id).copied().unwrap_or(0));
        self.bytes += new.sum::<u64>();
        self.known = seen;
        self.bytes
    }
}

impl Steering {
    pub fn new(settings: SelectionSettings, all: &DestinationSettings) -> Self {
        let SelectionSettings { mut manager, period, prompt, plays_at } = settings;
        // The connection itself opens its first subflow.
        manager.hold_attempts();
        Self {
            manager,
            period,
            prompt,
            paths: all.paths(),
            source: all.source,
            heard: BTreeSet::new(),
            connection: None,
            first: all.first.unwrap_or(RelayId(0)),
            is_barred: false,
            is_over: false,
            spliced: all.relays_splice,
            subflows: BTreeMap::new(),
            arrived: Arrived::default(),
            carried: BTreeMap::new(),
            play: PlayOut::new(plays_at, STARTUP),
            latest: (Instant::ZERO, 0),
            next_period: Instant::FAR_FUTURE,
        }
    }

    /// Returns whether every relay has offered something.
    pub fn has_heard_all(&self) -> bool {
        self.heard.len() == self.paths.len()
    }

    /// Handles a new channel to a relay.
    pub fn handle_channel(&mut self, relay: RelayId) {
        self.manager.handle_channel(relay);
    }

    /// Handles a relay's advert.
    pub fn handle_advert(&mut self, advert: Advert, now: Instant) {
        self.heard.insert(advert.relay);
        self.manager.handle_advert(advert, now);
    }

    /// Chooses the first relays by their adverts. If there are none, the connection begins over some relay, and
    /// selection continues from there.
    pub fn begin(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        self.manager.start(now);
        self.first = self.manager.target().first().copied().unwrap_or(self.first);
        self.latest = (now, 0);
        self.next_period = now + self.period;
        self.follow(endpoint, now, events);
    }

    /// Returns the relay over which the connection begins.
    pub fn first(&self) -> RelayId {
        self.first
    }

    /// Returns whether the source forbids further subflows to its address: then nothing is left to select.
    pub fn is_barred(&self) -> bool {
        self.is_barred
    }

    /// Returns whether the connection has ended, or goes on without Multipath TCP: nothing is left to select.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the wanted relays, with their offers.
    pub fn offers_in_use(&self, now: Instant) -> Vec<(RelayId, Rate)> {
        self.manager.offers_in_use(now)
    }

    /// Evaluates new adverts, if adverts count between ends of periods.
    pub fn review(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        if self.prompt {
            self.observe(endpoint);
            self.manager.review(now);
            self.follow(endpoint, now, events);
        }
    }

    /// Handles the end of a period.
    fn end_period(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        self.next_period = now + self.period;
        let stats = self.observe(endpoint);
        let arrived = self.arrived.count(&stats.subflows);
        let (since, before) = core::mem::replace(&mut self.latest, (now, arrived));
        let span = now.saturating_since(since);
        let throughput = Rate::from_bytes_per(arrived.saturating_sub(before), span);
        self.tell_carried(&stats, span, now);
        self.play.advance(stats.received_bytes, now);
        self.manager.set_level(self.play.level());
        self.manager.handle_period(throughput, now);
        self.follow(endpoint, now, events);
    }

    /// Reports to the manager what each relay carried in the period that ends now.
    fn tell_carried(&mut self, stats: &ConnectionStats, span: Duration, now: Instant) {
        for (relay, id) in &self.subflows {
            let Some(subflow) = stats.subflows.iter().find(|stats| stats.id == *id) else { continue };
            let before = self.carried.insert(*relay, (*id, subflow.received_bytes));
            if let Some((_, before)) = before.filter(|(known, _)| known == id) {
                let delivered = Rate::from_bytes_per(subflow.received_bytes - before, span);
                self.manager.handle_carried(*relay, delivered, now);
            }
        }
    }

    /// Sets the `patience` of the watch over relays: a relay that lasted no longer has not proved itself to it.
    pub fn expect_proof(&mut self, patience: Duration) {
        self.manager.set_proof(patience.saturating_mul(PATIENCES_TO_PROVE));
    }

    /// Updates the state of the paths.
    fn observe(&mut self, endpoint: &Endpoint) -> ConnectionStats {
        let stats = self.connection.and_then(|connection| endpoint.stats(connection)).unwrap_or_default();
        for (relay, id) in &self.subflows {
            let Some(SubflowStats { srtt, received_bytes, .. }) = stats.subflows.iter().find(|stats| stats.id == *id)
            else {
                continue;
            };
            self.manager.observe(*relay, PathState { srtt: *srtt, received_bytes: *received_bytes });
        }
        stats
    }

    /// Carries out the manager's commands and passes on its reports.
    fn follow(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        while let Some(command) = self.manager.poll_command() {
            self.carry_out(command, endpoint, now);
        }
        while let Some(report) = self.manager.poll_report() {
            events.push_back(DestinationEvent::Selection(report));
        }
        events.push_back(DestinationEvent::ActiveSet { at: now, count: self.manager.carrying() as u64 });
    }

    fn carry_out(&mut self, command: Command, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.connection.filter(|_| !self.is_barred) else { return };
        match command {
            Command::Add(relay) => {
                let local = SocketAddr::new(self.paths[usize::from(relay.0)], 0);
                match endpoint.add_subflow(connection, local, self.source, false, now) {
                    Ok(subflow) => {
                        self.subflows.insert(relay, subflow);
                    }
                    // There is no room. The attempt times out, which counts as the relay's failure although it is not
                    // to blame: the connection should have room for old and new subflows.
                    Err(ConnectError::Limit) => {}
                    // Nor is it here, and no other relay would fare better.
                    Err(ConnectError::JoinsForbidden(_)) => self.is_barred = true,
                    Err(ConnectError::UnknownConnection) => self.is_over = true,
                    Err(_) => self.manager.handle_closed(relay, now),
                }
            }
            // If this fails, the connection or subflow is gone, and an event reports it.
            Command::SetBackup { relay, backup } => {
                if let Some(subflow) = self.subflows.get(&relay) {
                    let _ = endpoint.set_priority(connection, *subflow, backup, now);
                }
            }
            Command::Remove { relay, reachable } => self.remove(relay, reachable, connection, endpoint, now),
        }
    }

    fn remove(
        &mut self,
        relay: RelayId,
        reachable: bool,
        connection: ConnectionId,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(subflow) = self.subflows.remove(&relay) else { return };
        let path = self.paths[usize::from(relay.0)];
        let stats = endpoint.stats(connection).unwrap_or_default();
        let is_up = |other: &&SubflowStats| other.established_at.is_some() && other.closed_at.is_none();
        let mut others = stats.subflows.iter().filter(is_up).filter(|other| other.id != subflow);
        if !reachable && others.clone().any(|other| other.local.ip() != path) {
            // A FIN would not get through; REMOVE_ADDR travels over another subflow.
            let _ = endpoint.withdraw_address(connection, path, now);
        } else if reachable || others.next().is_some() {
            let _ = endpoint.remove_subflow(connection, subflow, now);
        }
        // Without another subflow, an unreachable relay is still better than none.
    }

    /// Moves paths from address `old` to `new`: their subflows start again, and relay selection learns of it only if
    /// one cannot.
    pub fn move_to(&mut self, old: IpAddr, new: IpAddr, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        let moved = (0..).map(RelayId).zip(&mut self.paths).filter(|(_, path)| **path == old);
        let moved: Vec<RelayId> = moved.map(|(relay, path)| (*path = new, relay).1).collect();
        let Some(connection) = self.connection else { return };
        let stats = self.observe(endpoint);
        for relay in moved {
            let Some(subflow) = self.subflows.remove(&relay) else { continue };
            let backup = stats.subflows.iter().any(|stats| stats.id == subflow && stats.backup);
            match endpoint.add_subflow(connection, SocketAddr::new(new, 0), self.source, backup, now) {
                Ok(subflow) => drop(self.subflows.insert(relay, subflow)),
                Err(_) => self.manager.handle_closed(relay, now),
            }
        }
        self.follow(endpoint, now, events);
    }

    fn relay_at(&self, address: IpAddr) -> Option<RelayId> {
        self.paths.iter().position(|path| *path == address).map(|index| RelayId(index as u16))
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        match event {
            Event::Closed { connection, .. } | Event::FellBack(connection) if Some(*connection) == self.connection => {
                self.is_over = true;
                return;
            }
            Event::SubflowEstablished { connection, subflow, local, remote } => {
                // A connection to another host knows nothing of the source, nor does one that another host opened.
                self.connection = self.connection.or_else(|| (*remote == self.source).then_some(*connection));
                if self.connection != Some(*connection) {
                    return;
                }
                if self.spliced && *subflow == FIRST {
                    return;
                }
                if self.spliced {
                    retire_first(endpoint, *connection, now);
                }
                let Some(relay) = self.relay_at(local.ip()) else { return };
                if *self.subflows.entry(relay).or_insert(*subflow) == *subflow {
                    self.observe(endpoint);
                    self.manager.handle_established(relay, now);
                }
            }
            Event::FullyEstablished(connection) if Some(*connection) == self.connection => {
                self.manager.release_attempts(now);
            }
            // All connections number their subflows from zero, including those of closed channels.
            Event::SubflowClosed { connection, subflow, .. } if Some(*connection) == self.connection => {
                let relay = self.subflows.iter().find(|(_, known)| *known == subflow).map(|(relay, _)| *relay);
                if let Some(relay) = relay {
                    self.subflows.remove(&relay);
                    self.manager.handle_closed(relay, now);
                }
            }
            _ => return,
        }
        self.follow(endpoint, now, events);
    }

    /// Handles the passing of time; returns true if a period ended.
    pub fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) -> bool {
        let ends = self.next_period <= now;
        if ends {
            self.end_period(endpoint, now, events);
        }
        if self.manager.poll_timeout().is_some_and(|at| at <= now) {
            self.observe(endpoint);
            self.manager.handle_timeout(now);
            self.follow(endpoint, now, events);
        }
        ends
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let period = Some(self.next_period).filter(|at| *at < Instant::FAR_FUTURE);
        [self.manager.poll_timeout(), period].into_iter().flatten().min()
    }
}
