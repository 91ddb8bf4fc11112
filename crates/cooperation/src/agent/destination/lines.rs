//! The destination's channels to its relays and its source. The destination calls; they answer.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};

use super::DestinationSettings;
use crate::agent::control::{Called, Caller, ControlStats, Seeds};
use crate::channel::PublicKey;
use crate::channel::codec::Frame;
use crate::channel::from_source::FromSource;
use crate::channel::to_destination::ToDestination;
use crate::channel::to_relay::ToRelay;
use crate::channel::to_source::ToSource;
use crate::relay_selection::RelayId;

/// Maximum number of concurrent calls. More would meet at a queue, again with each retransmission, and the queue would
/// drop the same ones each time.
const CALLS_AT_ONCE: usize = 50;
/// Time after which the calls above this number follow.
const CALLS_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Lines {
    seeds: Seeds,
    relays: Vec<Option<Caller<ToRelay, ToDestination>>>,
    source: Option<Caller<ToSource, FromSource>>,
    /// The owner of each connection.
    owners: BTreeMap<ConnectionId, Line>,
    /// Time of the next call.
    next_call: Instant,
}

/// The peer of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Relay(RelayId),
    Source,
}

/// Messages that arrived on a channel.
pub(super) enum Spoken {
    /// From a relay.
    Relay {
        relay: RelayId,
        /// Whether it has just proven its identity.
        opened: bool,
        words: Vec<ToDestination>,
    },
    /// From the source.
    Source {
        /// Whether it has just proven its identity.
        opened: bool,
    },
}

impl Lines {
    pub fn new(settings: &DestinationSettings) -> Self {
        let caller =
            |relay: &super::KnownRelay| relay.control.map(|(address, key)| Caller::new(relay.caller(), address, key));
        let relays: Vec<_> = settings.relays.iter().map(caller).collect();
        let first = settings.first.and_then(|first| settings.path_of(first));
        let any = first.or_else(|| settings.relays.first().map(|relay| relay.path));
        let source = settings.source_agent.zip(any).map(|(source, via)| Caller::new(via, source.address, source.key));
        let (seeds, owners) = (Seeds::new(settings.seed), BTreeMap::new());
        Self { seeds, relays, source, owners, next_call: Instant::ZERO }
    }

    pub fn stats(&self) -> ControlStats {
        let mut stats = self.source.as_ref().map(Caller::stats).unwrap_or_default();
        self.relays.iter().flatten().for_each(|caller| stats += caller.stats());
        stats
    }

    /// Returns whether `connection` carries one of the channels.
    pub fn owns(&self, connection: ConnectionId) -> bool {
        self.owners.contains_key(&connection)
    }

    /// Sends a message to a relay, if its channel is open.
    pub fn tell(&mut self, relay: RelayId, matter: u64, word: ToRelay, endpoint: &mut Endpoint, now: Instant) {
        if let Some(Some(caller)) = self.relays.get_mut(usize::from(relay.0)) {
            caller.say(matter, word, endpoint, now);
        }
    }

    /// Sends a message to the source; returns false if its channel is not open.
    pub fn tell_source(&mut self, matter: u64, word: ToSource, endpoint: &mut Endpoint, now: Instant) -> bool {
        let Some(source) = self.source.as_mut().filter(|source| source.is_open()) else { return false };
        source.say(matter, word, endpoint, now);
        true
    }

    /// Handles an event of a channel; returns `None` if the event belongs to no channel.
    pub fn handle_event(
        &mut self,
        event: &Event,
        settings: &DestinationSettings,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> Option<Spoken> {
        let connection = connection_of(event)?;
        let line = *self.owners.get(&connection)?;
        let (spoken, next_call) = match line {
            Line::Relay(relay) => {
                let caller = self.relays.get_mut(usize::from(relay.0))?.as_mut()?;
                let (opened, words) = match caller.handle_event(event, &settings.control, endpoint, now) {
                    Called::Nothing => (false, Vec::new()),
                    Called::Opened(words) => (true, words),
                    Called::Said(words) | Called::Gone(words) => (false, words),
                };
                (Spoken::Relay { relay, opened, words }, caller.next_call())
            }
            Line::Source => {
                let source = self.source.as_mut()?;
                let called = source.handle_event(event, &settings.control, endpoint, now);
                if matches!(called, Called::Gone(_)) {
                    source.move_to(way_to_source(settings, endpoint, source.local()));
                }
                (Spoken::Source { opened: matches!(called, Called::Opened(_)) }, source.next_call())
            }
        };
        if next_call < Instant::FAR_FUTURE {
            self.owners.remove(&connection);
        }
        self.next_call = self.next_call.min(next_call);
        Some(spoken)
    }

    /// Makes the calls that are due.
    pub fn handle_timeout(&mut self, settings: &DestinationSettings, endpoint: &mut Endpoint, now: Instant) {
        if self.next_call > now {
            return;
        }
        self.next_call = Instant::FAR_FUTURE;
        let DestinationSettings { identity, control, .. } = settings;
        let Self { seeds, relays, source, owners, next_call } = self;
        let mut calls = 0;
        for (relay, caller) in (0..).map(RelayId).zip(relays) {
            let Some(caller) = caller else { continue };
            if caller.next_call() <= now {
                calls += 1;
                if calls > CALLS_AT_ONCE {
                    *next_call = (*next_call).min(now + CALLS_PAUSE);
                    continue;
                }
                let connection = caller.call(identity, seeds, control, endpoint, now);
                owners.extend(connection.map(|connection| (connection, Line::Relay(relay))));
            }
            *next_call = (*next_call).min(caller.next_call());
        }
        if let Some(source) = source {
            if source.next_call() <= now {
                let connection = source.call(identity, seeds, control, endpoint, now);
                owners.extend(connection.map(|connection| (connection, Line::Source)));
            }
            *next_call = (*next_call).min(source.next_call());
        }
    }

    /// Sets a relay's new address or key, and calls it.
    pub fn turn_to(
        &mut self,
        relay: RelayId,
        (address, key): (SocketAddr, PublicKey),
        settings: &DestinationSettings,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(slot) = self.relays.get_mut(usize::from(relay.0)) else { return };
        let Some(known) = settings.relays.get(usize::from(relay.0)) else { return };
        let caller = slot.get_or_insert_with(|| Caller::new(known.caller(), address, key));
        caller.turn_to(address, key);
        call_anew(caller, &mut self.owners, settings, endpoint, now);
        self.next_call = now;
    }

    /// Repeats all calls from address `old` from `new`, at once.
    pub fn move_to(
        &mut self,
        old: IpAddr,
        new: IpAddr,
        settings: &DestinationSettings,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        for caller in self.relays.iter_mut().flatten().filter(|caller| caller.local() == old) {
            caller.move_to(new);
            call_anew(caller, &mut self.owners, settings, endpoint, now);
        }
        if let Some(caller) = self.source.as_mut().filter(|caller| caller.local() == old) {
            caller.move_to(new);
            call_anew(caller, &mut self.owners, settings, endpoint, now);
        }
        self.next_call = now;
    }

    /// Closes all channels, and makes no more calls.
    pub fn retire(&mut self, settings: &DestinationSettings, endpoint: &mut Endpoint, now: Instant) {
        self.relays.iter_mut().flatten().for_each(|caller| caller.retire(&settings.control, endpoint, now));
        self.source.iter_mut().for_each(|caller| caller.retire(&settings.control, endpoint, now));
        self.owners.clear();
        self.next_call = Instant::FAR_FUTURE;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_call).filter(|at| *at < Instant::FAR_FUTURE)
    }
}

fn call_anew<Out: Frame, In: Frame>(
    caller: &mut Caller<Out, In>,
    owners: &mut BTreeMap<ConnectionId, Line>,
    settings: &DestinationSettings,
    endpoint: &mut Endpoint,
    now: Instant,
) {
    if let Some(connection) = caller.connection() {
        owners.remove(&connection);
    }
    caller.call_anew(&settings.control, endpoint, now);
}

/// Returns the address of the next path for a call to the source: one that carries data, if another one does.
fn way_to_source(settings: &DestinationSettings, endpoint: &Endpoint, failed: IpAddr) -> IpAddr {
    let stats = endpoint.connections().filter_map(|connection| endpoint.stats(connection));
    let subflows = stats.flat_map(|stats| stats.subflows);
    let alive = subflows.filter(|subflow| subflow.established_at.is_some() && subflow.closed_at.is_none());
    let carrying: Vec<IpAddr> = alive.map(|subflow| subflow.local.ip()).collect();
    next_path(&settings.paths(), failed, |path| carrying.contains(&path))
}

/// Returns the path that comes after `failed` in the order of `paths`, of those that carry if another one does, so that
/// each has its turn.
fn next_path(paths: &[IpAddr], failed: IpAddr, carries: impl Fn(IpAddr) -> bool) -> IpAddr {
    let after = paths.iter().position(|path| *path == failed).map_or(0, |place| place + 1);
    let (before, after) = paths.split_at(after);
    let others = || after.iter().chain(before).copied().filter(|path| *path != failed);
    others().find(|path| carries(*path)).or_else(|| others().next()).unwrap_or(failed)
}

/// Returns the connection of an event that channels can have.
const fn connection_of(event: &Event) -> Option<ConnectionId> {
    match event {
        Event::Connected { connection, .. }
        | Event::SubflowEstablished { connection, .. }
        | Event::SubflowClosed { connection, .. }
        | Event::Closed { connection, .. }
        | Event::Readable(connection)
        | Event::Writable(connection)
        | Event::AllAcknowledged(connection)
        | Event::PeerFinished(connection) => Some(*connection),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_to_the_source_has_its_turn() {
        let path = |host: u8| IpAddr::from([10, 0, 0, host]);
        let turns = |paths: &[u8], carrying: &[u8]| {
            let paths: Vec<IpAddr> = paths.iter().map(|host| path(*host)).collect();
            let mut failed = path(1);
            let next = |_| {
                failed = next_path(&paths, failed, |it| carrying.iter().any(|host| it == path(*host)));
                failed
            };
            (0..4).map(next).collect::<Vec<_>>()
        };
        assert_eq!(turns(&[1, 2, 3], &[1, 2, 3]), [2, 3, 1, 2].map(path));
        assert_eq!(turns(&[1, 2, 3], &[]), [2, 3, 1, 2].map(path));
        assert_eq!(turns(&[1, 2, 3], &[1, 3]), [3, 1, 3, 1].map(path), "those that carry");
        assert_eq!(turns(&[1, 2, 3], &[3]), [3, 1, 3, 1].map(path), "the others follow in vain, and it comes again");
        assert_eq!(turns(&[2, 3], &[]), [2, 3, 2, 3].map(path), "its own is gone");
        assert_eq!(turns(&[1], &[1]), [1, 1, 1, 1].map(path));
    }
}
