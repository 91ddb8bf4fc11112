//! The destination excludes relays that swallow data.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::rc::Rc;

use cooperation::forwarding::hole_watch::{HoleWatch, StreamView, Verdict, WatchSettings};
use cooperation::relay_selection::RelayId;
use simulator::{App, Report};
use transport::{ConnectionId, ConnectionStats, Endpoint, Event};
use units::Instant;

use crate::run::sink::Delivered;
use crate::scenario::{Addresses, Scenario, WorkloadKind};

/// Watches the first connection of the destination.
pub(in crate::run) struct Watchman {
    settings: WatchSettings,
    /// The destination's address on each relay's path, and the source.
    paths: Vec<IpAddr>,
    source: SocketAddr,
    /// Data are always awaited until the stream ends.
    never_idle: bool,
    /// Relay selection does not choose other relays: what is cleared has to be taken back here.
    takes_back: bool,
    watched: Option<(ConnectionId, HoleWatch)>,
    delivered: Rc<RefCell<Delivered>>,
    guilty: Rc<RefCell<Vec<usize>>>,
}

impl Watchman {
    /// If the scenario asks for it. What it finds is told in `guilty`.
    pub fn new(
        scenario: &Scenario,
        addresses: &Addresses,
        source: SocketAddr,
        delivered: Rc<RefCell<Delivered>>,
        guilty: Rc<RefCell<Vec<usize>>>,
    ) -> Option<Self> {
        let watch = scenario.cooperation.watch.as_ref()?;
        let kind = scenario.workload.kind;
        Some(Self {
            settings: WatchSettings { patience: watch.patience },
            paths: addresses.paths.clone(),
            source,
            never_idle: matches!(kind, WorkloadKind::File | WorkloadKind::Generated | WorkloadKind::Bulk),
            takes_back: !scenario.cooperation.selection.method.steers(),
            watched: None,
            delivered,
            guilty,
        })
    }

    fn look(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some((connection, watch)) = &mut self.watched else { return };
        let connection = *connection;
        let (Some(stats), Some((_, rcv_nxt))) = (endpoint.stats(connection), endpoint.data_sequence(connection)) else {
            return;
        };
        let out_of_order_bytes = stats.out_of_order_bytes;
        let stream = StreamView { rcv_nxt, out_of_order_bytes, awaited: self.never_idle || out_of_order_bytes > 0 };
        watch.look(now, stream, arrived(&self.paths, &stats).into_iter());
        self.carry_out_all(connection, endpoint, now);
    }

    fn carry_out_all(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while let Some(verdict) = self.watched.as_mut().and_then(|(_, watch)| watch.poll_verdict()) {
            self.carry_out(verdict, connection, endpoint, now);
        }
    }

    fn carry_out(&mut self, verdict: Verdict, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let path = |relay: RelayId| self.paths[usize::from(relay.0)];
        match verdict {
            // A subflow that has just ended is excluded already.
            Verdict::Exclude(relay) => drop(endpoint.withdraw_address(connection, path(relay), now)),
            Verdict::Guilty(relay) => self.guilty.borrow_mut().push(usize::from(relay.0)),
            Verdict::Cleared(relay) if self.takes_back => {
                // A refusal leaves the connection on the subflows that it has.
                let _ = endpoint.add_subflow(connection, SocketAddr::new(path(relay), 0), self.source, false, now);
            }
            Verdict::Cleared(_) => {}
            Verdict::GiveUp { missing } => {
                let failure = format!(
                    "octets from data sequence number {} on were acknowledged and never arrived: a relay swallowed them, \
                     and the source has them no longer",
                    missing.0
                );
                self.delivered.borrow_mut().failure.get_or_insert(failure);
                // It is over in any case.
                let _ = endpoint.abort(connection, now);
            }
        }
    }
}

/// Octets that came over each relay with a subflow in use.
fn arrived(paths: &[IpAddr], stats: &ConnectionStats) -> BTreeMap<RelayId, u64> {
    let mut arrived = BTreeMap::new();
    for subflow in
        stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none() && subflow.established_at.is_some())
    {
        if let Some(path) = paths.iter().position(|path| *path == subflow.local.ip()) {
            *arrived.entry(RelayId(path as u16)).or_default() += subflow.received_bytes;
        }
    }
    arrived
}

impl App for Watchman {
    fn start(&mut self, _endpoint: &mut Endpoint, _now: Instant) {}

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::FullyEstablished(connection) if self.watched.is_none() => {
                self.watched = Some((*connection, HoleWatch::new(self.settings, now)));
            }
            Event::PeerFinished(connection) => {
                if let Some((_, watch)) = self.watched.as_mut().filter(|(watched, _)| watched == connection) {
                    watch.finish();
                    // Nobody has to come back any more.
                    self.takes_back = false;
                    self.carry_out_all(*connection, endpoint, now);
                    self.watched = None;
                }
            }
            Event::Closed { connection, .. } => drop(self.watched.take_if(|(watched, _)| watched == connection)),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.look(endpoint, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.watched.as_ref().map(|(_, watch)| watch.next_look())
    }

    fn report(&self) -> Report {
        Report::default()
    }
}
