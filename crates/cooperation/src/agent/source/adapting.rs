//! Adaptive congestion control at the source, a layer over any controller.

use std::collections::BTreeMap;

use transport::congestion::WindowSet;
use transport::{ConnectionId, Endpoint, SubflowStats};
use units::{Duration, Instant};

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
    /// Delays that relays reported for their paths to the destination, and when the source received them. What has
    /// expired stays, because a repetition of it is not news.
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

    /// Lifts the limits of what subflows hold: nobody would raise them any more.
    pub fn lift_limits(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for (connection, adapted) in &self.connections {
            for subflow in adapted.waiting.limited() {
                // Fails if the subflow has just ended; then it has no limit.
                let _ = endpoint.limit_held(*connection, subflow, None, now);
            }
        }
    }

    /// Forgets what was reported on a connection.
    pub fn forget_reports(&mut self, connection: ConnectionId) {
        forget(&mut self.ways, connection);
    }

    /// Forgets a connection that is over.
    pub fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        forget(&mut self.ways, connection);
    }

    /// Handles the end of a period.
    pub fn end_period(&mut self, is_control: impl Fn(ConnectionId) -> bool, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = now + self.settings.period;
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
            path.way = way(&self.ways, at(connection, subflow), period, now);
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

/// Returns the delay from a path's relay to the destination; zero if it is unknown. A relay that stands still sends no
/// report, and neither does one that is gone.
fn way(ways: &BTreeMap<Path, (Delay, Instant)>, path: Path, period: Duration, now: Instant) -> Duration {
    let lasts = period.saturating_mul(PERIODS_TO_FORGET);
    let fresh = ways.get(&path).filter(|(_, heard_at)| now.saturating_since(*heard_at) <= lasts);
    fresh.map(|(way, _)| way.delay).unwrap_or_default()
}

fn at(connection: ConnectionId, subflow: Option<&SubflowStats>) -> Path {
    (connection, subflow.map_or(0, |subflow| subflow.remote_address_id))
}

#[cfg(test)]
mod tests {
    use transport::{ConnectionConfig, EndpointConfig};

    use super::*;
    use crate::adaptive_congestion::Settings;

    #[test]
    fn a_report_that_has_expired_is_no_news_when_it_is_repeated() {
        let period = Duration::from_secs(2);
        let mut adapting = Adapting::new(AdaptingSettings { acc: Settings::default(), period });
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let [local, remote] = ["10.0.0.1:80", "10.0.0.2:80"].map(|address| address.parse().expect("an address"));
        let connection = endpoint.connect(local, remote, ConnectionConfig::default(), Instant::ZERO);
        let path = (connection.expect("it may begin"), 3);
        let report = |at_s| Delay { at: Instant::from_secs(at_s), delay: Duration::from_millis(400) };
        let mut delays = Vec::new();
        for (now_s, reported_s) in [(10, 10), (16, 10), (18, 10), (20, 10), (22, 21)] {
            let now = Instant::from_secs(now_s);
            adapting.end_period(|_| true, &mut endpoint, now);
            adapting.hear(path, report(reported_s), now);
            delays.push(way(&adapting.ways, path, period, now).as_millis());
        }
        assert_eq!(delays, [400, 400, 0, 0, 400]);
    }
}
