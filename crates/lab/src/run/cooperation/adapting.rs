//! Adaptive congestion control at the source, a layer over whatever controller it has.

use std::collections::BTreeMap;

use cooperation::adaptive_congestion::{Acc, Beyond, Cut, DelayMeter, Mode, Settings};
use transport::congestion::WindowSet;
use transport::{ConnectionId, Endpoint};
use units::{Duration, Instant};

use super::relay_delays::RelayDelays;
use crate::run::RunError;
use crate::scenario::{self, BeyondKind, Scenario};

/// What it knows of the source's connections.
pub(in crate::run) struct Adapting {
    settings: Settings,
    period: Duration,
    relays: Option<RelayDelays>,
    next_at: Instant,
    connections: BTreeMap<ConnectionId, (Acc, DelayMeter)>,
}

impl Adapting {
    /// If the scenario asks for it.
    pub fn new(scenario: &Scenario) -> Result<Option<Self>, RunError> {
        let Some(asked) = &scenario.cooperation.adaptive_congestion else { return Ok(None) };
        let settings = Settings {
            eta_min: asked.eta_min,
            eta_max: asked.eta_max,
            cuts_max: asked.reductions_max,
            beyond: match asked.beyond {
                BeyondKind::Ignore => Beyond::Ignore,
                BeyondKind::Cap => Beyond::Cap,
                BeyondKind::Spread => Beyond::Spread,
            },
            mode: match asked.mode {
                scenario::Mode::Build => Mode::Build,
                scenario::Mode::Paper => Mode::Paper,
            },
            ..Settings::default()
        };
        settings.check().map_err(|error| RunError::Unsupported {
            field: "cooperation.adaptive_congestion",
            problem: error.to_string(),
            remedy: "write other values, or leave them out",
        })?;
        let next_at = Instant::ZERO + asked.period;
        let relays = asked.relay_delays.then(RelayDelays::default);
        Ok(Some(Self { settings, period: asked.period, relays, next_at, connections: BTreeMap::new() }))
    }

    /// When the period ends.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// What relays report of their ways to the destination, if that is asked for.
    pub fn relays(&mut self) -> Option<&mut RelayDelays> {
        self.relays.as_mut()
    }

    /// A period has ended.
    pub fn period(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.next_at = now + self.period;
        let connections: Vec<ConnectionId> = endpoint.connections().collect();
        for connection in connections {
            let Some(stats) = endpoint.stats(connection) else { continue };
            if !self.connections.contains_key(&connection) {
                let Ok(acc) = Acc::new(self.settings) else { continue };
                self.connections.insert(connection, (acc, DelayMeter::default()));
            }
            let Some((acc, meter)) = self.connections.get_mut(&connection) else { continue };
            let mut paths = meter.take(&stats.subflows);
            if let Some(relays) = &self.relays {
                paths.iter_mut().for_each(|path| path.mean_delay += relays.of(path.path, &stats.subflows));
            }
            if let Some(Cut { path, cwnd, ssthresh }) = acc.on_period(now, &paths) {
                // A subflow that has just ended needs no cut.
                let _ = endpoint.cut_window(connection, path, WindowSet { cwnd, ssthresh }, now);
            }
        }
    }
}
