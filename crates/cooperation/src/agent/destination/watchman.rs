//! The watch over relays: the destination excludes those that swallow data.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use transport::{ConnectionId, ConnectionStats, Endpoint, Event};
use units::Instant;

use super::event::Events;
use super::{DestinationEvent, DestinationSettings, WatchmanSettings};
use crate::forwarding::hole_watch::{HoleWatch, StreamView, Verdict};
use crate::relay_selection::RelayId;

/// Watches the destination's first connection.
pub(super) struct Watchman {
    settings: WatchmanSettings,
    /// The destination's address on each relay's path, and the source.
    paths: Vec<IpAddr>,
    source: SocketAddr,
    /// Whether relays that are cleared must be taken back here, because no relay selection does it.
    takes_back: bool,
    watched: Option<(ConnectionId, HoleWatch)>,
}

impl Watchman {
    pub fn new(settings: WatchmanSettings, all: &DestinationSettings, is_steered: bool) -> Self {
        Self { settings, paths: all.paths(), source: all.source, takes_back: !is_steered, watched: None }
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
                // If the join is refused, the connection stays on its subflows.
                let _ = endpoint.add_subflow(connection, SocketAddr::new(path(relay), 0), self.source, false, now);
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
                if let Some((_, watch)) = self.watched.as_mut().filter(|(watched, _)| watched == connection) {
                    watch.finish();
                    // No relay needs to come back any more.
                    self.takes_back = false;
                    self.carry_out_all(*connection, endpoint, now, events);
                    self.watched = None;
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
