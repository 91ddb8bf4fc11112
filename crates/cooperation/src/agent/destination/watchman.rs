//! The watch over relays: the destination excludes those that swallow data.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use transport::{ConnectionId, ConnectionStats, Endpoint, Event};
use units::{Duration, Instant};

use super::event::Events;
use super::{DestinationEvent, DestinationSettings, WatchmanSettings};
use crate::forwarding::hole_watch::{HoleWatch, StreamView, Verdict};
use crate::relay_selection::RelayId;

/// Watches the destination's first connection.
pub(super) struct Watchman {
    settings: WatchmanSettings,
    /// The destination's address on each relay's path.
    paths: Vec<IpAddr>,
    /// Whether relays that are cleared must be taken back here, because no relay selection does it.
    takes_back: bool,
    watched: Option<(ConnectionId, HoleWatch)>,
}

impl Watchman {
    pub fn new(settings: WatchmanSettings, all: &DestinationSettings, is_steered: bool) -> Self {
        Self { settings, paths: all.paths(), takes_back: !is_steered, watched: None }
    }

    /// Moves paths from address `old` to `new`.
    pub fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        self.paths.iter_mut().filter(|path| **path == old).for_each(|path| *path = new);
    }

    fn look(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        let Some((connection, watch)) = &mut self.watched else { return };
        let connection = *connection;
        let (Some(stats), Some((_, rcv_nxt))) = (endpoint.stats(connection), endpoint.data_sequence(connection)) else {
            // The connection is plain TCP by now: there is one path, and no relay to exclude.
            self.watched = None;
            return;
        };
        let out_of_order_bytes = stats.out_of_order_bytes;
        let awaited = self.settings.never_idle || out_of_order_bytes > 0;
        let stream = StreamView { rcv_nxt, out_of_order_bytes, awaited };
        watch.look(now, stream, arrived(&self.paths, &stats).into_iter());
        self.carry_out_all(connection, endpoint, now, events);
    }

    fn carry_out_all(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        while let Some(verdict) = self.watched.as_mut().and_then(|(_, watch)| watch.poll_verdict()) {
            self.carry_out(verdict, connection, endpoint, now, events);
        }
    }

    fn carry_out(
        &self,
        verdict: Verdict,
        connection: ConnectionId,
        endpoint: &mut Endpoint,
        now: Instant,
        events: &mut Events,
    ) {
        let path = |relay: RelayId| self.paths[usize::from(relay.0)];
        match verdict {
            // Withdrawing fails if the subflow has just ended; then it is excluded already.
            Verdict::Exclude(relay) => drop(endpoint.withdraw_address(connection, path(relay), now)),
            Verdict::Guilty(relay) => events.push_back(DestinationEvent::Guilty(relay)),
            Verdict::Cleared(relay) if self.takes_back => {
                let Some((_, peer)) = endpoint.addresses(connection) else { return };
                // If the join is refused, the connection stays on its subflows.
                let _ = endpoint.add_subflow(connection, SocketAddr::new(path(relay), 0), peer, false, now);
            }
            Verdict::Cleared(_) => {}
            Verdict::GiveUp { missing, silence } => {
                events.push_back(DestinationEvent::GaveUp { missing, silence });
                // The connection is over in any case.
                let _ = endpoint.abort(connection, now);
            }
        }
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        match event {
            Event::FullyEstablished(connection) if self.watched.is_none() => {
                self.watched = Some((*connection, HoleWatch::new(self.settings.watch, now)));
            }
            Event::PeerFinished(connection) => {
                if let Some((_, mut watch)) = self.watched.take_if(|(watched, _)| watched == connection) {
                    watch.finish();
                    // No relay needs to come back to this connection any more.
                    let verdicts = core::iter::from_fn(|| watch.poll_verdict());
                    for verdict in verdicts.filter(|verdict| !matches!(verdict, Verdict::Cleared(_))) {
                        self.carry_out(verdict, *connection, endpoint, now, events);
                    }
                }
            }
            Event::Closed { connection, .. } => drop(self.watched.take_if(|(watched, _)| watched == connection)),
            _ => {}
        }
    }

    pub fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.look(endpoint, now, events);
        }
    }

    /// Returns how long it bears the same hole at present, if it watches a connection.
    pub fn patience(&self) -> Option<Duration> {
        self.watched.as_ref().map(|(_, watch)| watch.patience())
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.watched.as_ref().map(|(_, watch)| watch.next_look())
    }
}

/// Returns the octets that arrived over each relay with a subflow in use.
pub(super) fn arrived(paths: &[IpAddr], stats: &ConnectionStats) -> BTreeMap<RelayId, u64> {
    let mut arrived = BTreeMap::new();
    let in_use = |subflow: &&transport::SubflowStats| subflow.closed_at.is_none() && subflow.established_at.is_some();
    for subflow in stats.subflows.iter().filter(in_use) {
        if let Some(path) = paths.iter().position(|path| *path == subflow.local.ip()) {
            *arrived.entry(RelayId(path as u16)).or_default() += subflow.received_bytes;
        }
    }
    arrived
}

#[cfg(test)]
pub(super) mod tests {
    use transport::path_manager::LocalAddress;
    use transport::{ConnectionConfig, EndpointConfig};
    use wire::Payload;

    use super::*;
    use crate::agent::control::ControlSettings;
    use crate::channel::Identity;
    use crate::forwarding::hole_watch::WatchSettings;

    const NOW: Instant = Instant::from_secs(1);

    struct World {
        destination: Endpoint,
        source: Endpoint,
        watchman: Watchman,
        events: Events,
    }

    /// Returns the settings of a destination with two relays that it never calls.
    pub(in super::super) fn settings() -> DestinationSettings {
        let paths: [IpAddr; 2] = ["10.1.0.2", "10.1.1.2"].map(|ip| ip.parse().unwrap());
        let relays = paths.map(|path| super::super::KnownRelay { path, control: None, calls_from: None });
        DestinationSettings {
            identity: Identity::from_secret([1; 32]),
            seed: [1; 32],
            control: ControlSettings::new(1500),
            relays: relays.into(),
            source: "10.0.0.1:80".parse().unwrap(),
            source_agent: None,
            first: Some(RelayId(0)),
            relays_splice: false,
            selection: None,
            ranges: None,
            watch: None,
        }
    }

    impl World {
        fn new() -> Self {
            let (all, watch) = (settings(), WatchmanSettings { watch: WatchSettings::default(), never_idle: true });
            let local_addresses = all.paths().into_iter().map(|ip| LocalAddress { ip, backup: false }).collect();
            let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
            let destination = Endpoint::with_seed(config, 1);
            let mut source = Endpoint::with_seed(EndpointConfig::default(), 2);
            source.listen(all.source, Self::tcp()).unwrap();
            Self { destination, source, watchman: Watchman::new(watch, &all, false), events: Events::default() }
        }

        fn tcp() -> ConnectionConfig {
            ConnectionConfig { path_manager: "manual".into(), ..ConnectionConfig::default() }
        }

        /// Carries all segments across until none are left; the watchman handles what they cause.
        fn exchange(&mut self) {
            loop {
                let mut any = false;
                while let Some(segment) = self.destination.poll_transmit(NOW) {
                    self.source.handle_segment(segment, NOW);
                    any = true;
                }
                while let Some(segment) = self.source.poll_transmit(NOW) {
                    self.destination.handle_segment(segment, NOW);
                    any = true;
                }
                while let Some(event) = self.destination.poll_event() {
                    self.watchman.handle_event(&event, &mut self.destination, NOW, &mut self.events);
                }
                if !any {
                    return;
                }
            }
        }

        /// Opens a connection over the first relay and sends a request; returns the destination's and the source's id.
        fn connect(&mut self) -> [ConnectionId; 2] {
            let local = SocketAddr::new(self.watchman.paths[0], 0);
            let connection = self.destination.connect(local, settings().source, Self::tcp(), NOW).unwrap();
            self.exchange();
            self.destination.send(connection, Payload::from(vec![0; 100]), NOW).unwrap();
            self.exchange();
            let accepted = loop {
                if let Event::Incoming(listener) = self.source.poll_event().unwrap() {
                    break self.source.accept(listener).unwrap();
                }
            };
            [connection, accepted]
        }
    }

    #[test]
    fn a_cleared_relay_comes_back_also_after_the_first_stream_has_ended() {
        let mut world = World::new();
        let [first, accepted] = world.connect();
        assert_eq!(world.watchman.watched.as_ref().map(|(watched, _)| *watched), Some(first));
        world.source.shutdown(accepted, NOW).unwrap();
        world.exchange();
        assert!(world.watchman.watched.is_none());
        let [second, _] = world.connect();
        assert_eq!(world.watchman.watched.as_ref().map(|(watched, _)| *watched), Some(second));
        let World { watchman, destination, events, .. } = &mut world;
        watchman.carry_out(Verdict::Cleared(RelayId(1)), second, destination, NOW, events);
        world.exchange();
        let subflows = world.destination.stats(second).unwrap().subflows;
        assert_eq!(subflows.iter().filter(|subflow| subflow.established_at.is_some()).count(), 2);
    }
}
