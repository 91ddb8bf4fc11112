//! Bandwidth sharing at the source: what relays tell of their owners' flows, for controllers that yield to them.

use std::collections::BTreeMap;

use transport::{ConnectionId, Endpoint, Event, SubflowStats};
use units::{Duration, Instant};

use super::{Path, first_end, forget};
use crate::bandwidth_sharing::SharingState;
use crate::channel::to_destination::Load;
use crate::relay_selection::RelayId;

/// The relay of a path: one, since a path is one.
const THE_RELAY: RelayId = RelayId(0);

/// What it knows of the relays of the source's connections.
pub(super) struct Sharing {
    period: Duration,
    next_at: Instant,
    paths: BTreeMap<Path, SharingState>,
}

impl Sharing {
    pub fn new(period: Duration) -> Self {
        Self { period, next_at: first_end(period), paths: BTreeMap::new() }
    }

    /// When what was told may have expired.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The relay of a path told of its owner's flows.
    pub fn hear(&mut self, path: Path, load: &Load, endpoint: &mut Endpoint, now: Instant) {
        let state = self.paths.entry(path).or_insert_with(|| SharingState::new(self.period));
        state.on_signal(now, &load.by(THE_RELAY));
        self.apply(path.0, |subflow| subflow.remote_address_id == path.1, endpoint, now);
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::SubflowEstablished { connection, subflow, .. } => {
                self.apply(*connection, |stats| stats.id == *subflow, endpoint, now);
            }
            Event::Closed { connection, .. } => forget(&mut self.paths, *connection),
            _ => {}
        }
    }

    /// What relays told a while ago may hold no longer.
    pub fn end_period(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = now + self.period;
        let mut connections: Vec<ConnectionId> = self.paths.keys().map(|(connection, _)| *connection).collect();
        connections.dedup();
        for connection in connections {
            self.apply(connection, |_| true, endpoint, now);
        }
    }

    /// Tells the controller what holds now of the subflows that `concerns` names.
    fn apply(
        &self,
        connection: ConnectionId,
        concerns: impl Fn(&SubflowStats) -> bool,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        let Some(stats) = endpoint.stats(connection) else { return };
        for subflow in stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none() && concerns(subflow)) {
            let Some(state) = self.paths.get(&(connection, subflow.remote_address_id)) else { continue };
            // One that has just ended needs to know nothing.
            let _ = endpoint.set_competition(connection, subflow.id, state.current(THE_RELAY, now), now);
        }
    }
}
