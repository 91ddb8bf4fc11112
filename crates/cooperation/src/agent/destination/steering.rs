//! Relay selection's hand on the engine: what it wants, the engine does.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// What an application that plays at the target bit rate waits for before it begins.
pub const STARTUP: Duration = Duration::from_secs(2);

/// Relay selection for the destination's first connection.
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
    /// Whether subflows can be added.
    ready: bool,
    /// The relay of the first subflow, which the connection itself opens.
    first: RelayId,
    /// Relays splice the subflows that join them; the first they only route.
    spliced: bool,
    subflows: BTreeMap<RelayId, SubflowId>,
    arrived: Arrived,
    /// Octets that had arrived over each relay's subflow when the latest period ended.
    carried: BTreeMap<RelayId, (SubflowId, u64)>,
    /// What the application has left to play.
    play: PlayOut,
    /// What waits until subflows can be added.
    waiting: VecDeque<Command>,
    /// When the latest period ended, and what had arrived until then.
    latest: (Instant, u64),
    /// When the period ends; not before the application has begun.
    next_period: Instant,
}

/// Octets that have arrived over all subflows there ever were. The connection's statistics forget the oldest that have ended.
#[derive(Debug, Default)]
struct Arrived {
    bytes: u64,
    known: BTreeMap<SubflowId, u64>,
}

impl Arrived {
    /// All, with what is new in the statistics of subflows.
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
        let SelectionSettings { manager, period, prompt, plays_at } = settings;
        Self {
            manager,
            period,
            prompt,
            paths: all.paths(),
            source: all.source,
            heard: BTreeSet::new(),
            connection: None,
            ready: false,
            first: all.first.unwrap_or(RelayId(0)),
            spliced: all.relays_splice,
            subflows: BTreeMap::new(),
            arrived: Arrived::default(),
            carried: BTreeMap::new(),
            play: PlayOut::new(plays_at, STARTUP),
            waiting: VecDeque::new(),
            latest: (Instant::ZERO, 0),
            next_period: Instant::FAR_FUTURE,
        }
    }

    /// Whether every relay has offered something.
    pub fn has_heard_all(&self) -> bool {
        self.heard.len() == self.paths.len()
    }

    /// A new channel leads to a relay.
    pub fn handle_channel(&mut self, relay: RelayId) {
        self.manager.handle_channel(relay);
    }

    /// A relay advertised.
    pub fn handle_advert(&mut self, advert: Advert, now: Instant) {
        self.heard.insert(advert.relay);
        self.manager.handle_advert(advert, now);
    }

    /// Chooses the first relays by what they have advertised. With nothing to choose from the connection begins somewhere, and
    /// selection goes on from there.
    pub fn begin(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        self.manager.start(now);
        self.first = self.manager.target().first().copied().unwrap_or(self.first);
        // Its first subflow is the connection's own.
        let begins = Command::Add(self.first);
        while let Some(command) = self.manager.poll_command() {
            if self.spliced || command != begins {
                self.waiting.push_back(command);
            }
        }
        self.latest = (now, 0);
        self.next_period = now + self.period;
        self.follow(endpoint, now, events);
    }

    /// The relay over which the connection begins.
    pub fn first(&self) -> RelayId {
        self.first
    }

    /// The relays that are wanted, with what they offer.
    pub fn offers_in_use(&self, now: Instant) -> Vec<(RelayId, Rate)> {
        self.manager.offers_in_use(now)
    }

    /// Relays advertised. Between ends of periods that counts only where they are expected to.
    pub fn review(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        if self.prompt {
            self.observe(endpoint);
            self.manager.review(now);
            self.follow(endpoint, now, events);
        }
    }

    /// A period has ended.
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

    /// What each relay carried in the period that ends now.
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

    /// Looks at the paths.
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

    /// Does what the manager wants and passes on what it tells.
    fn follow(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        while let Some(command) = self.manager.poll_command() {
            match self.ready {
                true => self.carry_out(command, endpoint, now),
                false => self.waiting.push_back(command),
            }
        }
        while let Some(report) = self.manager.poll_report() {
            events.push_back(DestinationEvent::Selection(report));
        }
        events.push_back(DestinationEvent::ActiveSet { at: now, count: self.manager.carrying() as u64 });
    }

    fn carry_out(&mut self, command: Command, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.connection else { return };
        match command {
            Command::Add(relay) => {
                let local = SocketAddr::new(self.paths[usize::from(relay.0)], 0);
                match endpoint.add_subflow(connection, local, self.source, false, now) {
                    Ok(subflow) => {
                        self.subflows.insert(relay, subflow);
                    }
                    // The relay is not to blame. Its attempt times out, and is made again if it is still wanted then.
                    Err(ConnectError::Limit) => {}
                    Err(_) => self.manager.handle_closed(relay, now),
                }
            }
            // What cannot be done any more need not be: the connection or the subflow is gone, and an event tells.
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
            // A FIN would get nowhere; REMOVE_ADDR goes over another subflow.
            let _ = endpoint.withdraw_address(connection, path, now);
        } else if reachable || others.next().is_some() {
            let _ = endpoint.remove_subflow(connection, subflow, now);
        }
        // Without another subflow an unreachable relay is still better than none.
    }

    /// Paths that begin at `old` begin at `new`: their subflows begin anew, and relay selection need not hear of it unless one cannot.
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
            Event::SubflowEstablished { connection, subflow, local, .. } => {
                if *self.connection.get_or_insert(*connection) != *connection {
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
                self.ready = true;
                for command in core::mem::take(&mut self.waiting) {
                    self.carry_out(command, endpoint, now);
                }
            }
            // Subflows of all connections are numbered from zero, those of channels that are gone as well.
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

    /// Takes note of the time; true if a period ended.
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
