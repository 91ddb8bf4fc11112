//! Adaptive congestion control at the source, a layer over any controller.

use std::collections::BTreeMap;

use transport::congestion::WindowSet;
use transport::{ConnectionId, Endpoint, SubflowStats};
use units::Instant;

use super::settings::AdaptingSettings;
use super::{Path, first_end, forget};
use crate::adaptive_congestion::{Acc, ActsOn, Cut, DelayMeter, Waiting};
use crate::channel::to_destination::Delay;

/// Periods after which a relay's report expires.
const PERIODS_TO_FORGET: u64 = 3;

/// The state of one connection.
struct Adapted {
    acc: Acc,
    meter: DelayMeter,
    waiting: Waiting,
}

/// The state of the source's connections.
pub(super) struct Adapting {
    settings: AdaptingSettings,
    next_at: Instant,
    connections: BTreeMap<ConnectionId, Adapted>,
    /// Delays that relays reported for their paths to the destination, and when the source received them.
    ways: BTreeMap<Path, (Delay, Instant)>,
}

impl Adapting {
    pub fn new(settings: AdaptingSettings) -> Self {
        let next_at = first_end(settings.period);
        Self { settings, next_at, connections: BTreeMap::new(), ways: BTreeMap::new() }
    }

    /// Returns when the period ends.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Records the delay to the destination that a relay that acknowledges at once reported. Ignores reports that are
    /// not newer.
    pub fn hear(&mut self, path: Path, delay: Delay, now: Instant) {
        let known = self.ways.entry(path).or_insert((delay, now));
        if delay.at > known.0.at {
            *known = (delay, now);
        }
    }

    /// Forgets a connection that is over.
    pub fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        forget(&mut self.ways, connection);
    }

    /// Handles the end of a period.
    pub fn end_period(&mut self, is_control: impl Fn(ConnectionId) -> bool, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = now + self.settings.period;
        // A relay that stands still sends no report, and neither does one that is gone.
        let lasts = self.settings.period.saturating_mul(PERIODS_TO_FORGET);
        self.ways.retain(|_, (_, heard_at)| now.saturating_since(*heard_at) <= lasts);
        let connections: Vec<ConnectionId> = endpoint.connections().filter(|id| !is_control(*id)).collect();
        for connection in connections {
            let Some(stats) = endpoint.stats(connection).filter(|stats| stats.closed_at.is_none()) else { continue };
            if !self.connections.contains_key(&connection) {
                let Ok(acc) = Acc::new(self.settings.acc) else { continue };
                let (meter, waiting) = (DelayMeter::default(), Waiting::default());
                self.connections.insert(connection, Adapted { acc, meter, waiting });
            }
            self.adapt(connection, &stats.subflows, endpoint, now);
        }
    }

    /// Handles the end of a period for one connection.
    fn adapt(&mut self, connection: ConnectionId, subflows: &[SubflowStats], endpoint: &mut Endpoint, now: Instant) {
        let AdaptingSettings { acc: settings, period } = self.settings;
        let Some(Adapted { acc, meter, waiting }) = self.connections.get_mut(&connection) else { return };
        let mut paths = meter.take(subflows);
        for path in &mut paths {
            let subflow = subflows.iter().find(|subflow| subflow.id == path.path);
            path.mean_delay += self.ways.get(&at(connection, subflow)).map(|(way, _)| way.delay).unwrap_or_default();
        }
        if settings.acts_on == ActsOn::Waiting {
            waiting.lengthen(&mut paths, subflows, period);
        }
        let cut = acc.on_period(now, &paths);
        // Fails if the subflow has just ended; then it needs neither cut nor limit.
        match (settings.acts_on, cut) {
            (ActsOn::Waiting, cut) => {
                for (path, held_max_bytes) in waiting.limit(cut, &paths, subflows) {
                    let _ = endpoint.limit_held(connection, path, held_max_bytes, now);
                }
            }
            (ActsOn::Window, Some(Cut { path, cwnd, ssthresh })) => {
                let _ = endpoint.cut_window(connection, path, WindowSet { cwnd, ssthresh }, now);
            }
            (ActsOn::Window, None) => {}
        }
    }
}

fn at(connection: ConnectionId, subflow: Option<&SubflowStats>) -> Path {
    (connection, subflow.map_or(0, |subflow| subflow.remote_address_id))
}
