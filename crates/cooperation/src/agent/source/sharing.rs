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

    /// Returns what is known of the relay of a path.
    #[cfg(test)]
    pub fn reports_on(&self, path: Path) -> Option<&SharingState> {
        self.paths.get(&path)
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

    /// Forgets all reports, and what follows from them: nobody would tell when it holds no more.
    pub fn forget_all(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.paths.values_mut().for_each(|state| state.forget(THE_RELAY));
        self.end_period(endpoint, now);
    }

    /// Forgets the reports on one connection, likewise.
    pub fn forget_reports(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let of_it = self.paths.iter_mut().filter(|((known, _), _)| *known == connection);
        of_it.for_each(|(_, state)| state.forget(THE_RELAY));
        self.apply(connection, |_| true, endpoint, now);
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

#[cfg(test)]
mod tests {
    use transport::{ConnectionConfig, EndpointConfig};

    use super::*;

    #[test]
    fn nothing_stays_of_reports_that_are_forgotten() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let [local, remote] = ["10.0.0.1:80", "10.0.0.2:80"].map(|address| address.parse().expect("an address"));
        let connection = endpoint.connect(local, remote, ConnectionConfig::default(), Instant::ZERO);
        let path = (connection.expect("it may begin"), 3);
        let mut sharing = Sharing::new(Duration::from_secs(2));
        let now = Instant::from_secs(1);
        sharing.hear(path, &Load { ratio: 2.0, increase: 1.0, decrease: 0.5, at: now }, &mut endpoint, now);
        assert!(sharing.paths[&path].current(THE_RELAY, now).is_some());
        sharing.forget_all(&mut endpoint, now);
        assert!(sharing.paths[&path].current(THE_RELAY, now).is_none());
    }
}
