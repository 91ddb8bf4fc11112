//! Bandwidth sharing at the source: passes relays' reports on their owners' flows to controllers that yield to them.

use std::collections::BTreeMap;

use transport::{ConnectionId, Endpoint, Event, SubflowStats};
use units::{Duration, Instant};

use super::{Path, first_end, forget};
use crate::bandwidth_sharing::SharingState;
use crate::channel::to_destination::Load;
use crate::relay_selection::RelayId;

/// The relay of a path: each path has only one.
const THE_RELAY: RelayId = RelayId(0);

/// Knowledge of the relays of the source's connections.
pub(super) struct Sharing {
    period: Duration,
    next_at: Instant,
    paths: BTreeMap<Path, SharingState>,
}

impl Sharing {
    pub fn new(period: Duration) -> Self {
        Self { period, next_at: first_end(period), paths: BTreeMap::new() }
    }

    /// Returns when reports may have expired.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Handles a report of a path's relay on its owner's flows.
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

    /// Updates the controllers, because older reports may have expired.
    pub fn end_period(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = now + self.period;
        let mut connections: Vec<ConnectionId> = self.paths.keys().map(|(connection, _)| *connection).collect();
        connections.dedup();
        for connection in connections {
            self.apply(connection, |_| true, endpoint, now);
        }
    }

    /// Passes the current competition of the subflows that `concerns` selects to the controller.
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
            // Fails if the subflow has just ended; then nothing is needed.
            let _ = endpoint.set_competition(connection, subflow.id, state.current(THE_RELAY, now), now);
        }
    }
}
