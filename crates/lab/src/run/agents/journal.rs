//! Collects the reports of the destination's agent as results.

use cooperation::agent::destination::DestinationEvent;
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::manager::{Cause, Report};
use cooperation::relay_selection::trigger::Outage;

use crate::measure::metrics::{ActiveSet, Shared};
use crate::measure::results::{Migration, SelectionPoint, SelectionResults};

/// Records the events of the destination's agent.
pub(in crate::run) struct Journal {
    names: Vec<String>,
    selects: bool,
    told: SelectionResults,
    collector: Option<Shared>,
    /// Relays that the destination found to swallow data.
    pub guilty: Vec<usize>,
}

impl Journal {
    /// Creates the journal of a destination with relays of these names; `selects` tells whether it selects among them.
    pub fn new(names: Vec<String>, selects: bool) -> Self {
        Self { names, selects, told: SelectionResults::default(), collector: None, guilty: Vec::new() }
    }

    /// Returns whether the destination selects among its relays.
    pub fn selects(&self) -> bool {
        self.selects
    }

    /// Reports the size of the active set to `collector` from now on.
    pub fn tell(&mut self, collector: Shared) {
        self.collector = Some(collector).filter(|_| self.selects);
    }

    /// Results of relay selection, if there is any.
    pub fn selection(&self) -> Option<SelectionResults> {
        self.selects.then(|| self.told.clone())
    }

    /// Records an event. If the agent gave up the connection, returns why, in words.
    pub fn note(&mut self, event: DestinationEvent) -> Option<String> {
        match event {
            DestinationEvent::Selection(report) => self.note_selection(report),
            DestinationEvent::ActiveSet { at, count } => {
                if let Some(collector) = &self.collector {
                    collector.borrow_mut().active_set(&ActiveSet { at, count });
                }
            }
            // The manager's reports have the sums.
            DestinationEvent::Offered { .. } => {}
            // No source of a scenario does.
            DestinationEvent::JoinsForbidden => {}
            DestinationEvent::Guilty(relay) => self.guilty.push(usize::from(relay.0)),
            DestinationEvent::GaveUp { missing, silence: true } => {
                return Some(format!(
                    "octets from data sequence number {} on never arrived, and for five times the patience no relay delivered anything, so the \
                     destination gave up: either a relay swallowed them, and the source no longer has them, or no relay has a link \
                     (to outlast longer outages, increase cooperation.watch.patience)",
                    missing.0
                ));
            }
            DestinationEvent::GaveUp { missing, silence: false } => {
                return Some(format!(
                    "octets from data sequence number {} on were acknowledged but never arrived: a relay swallowed \
                     them, and the source no longer has them",
                    missing.0
                ));
            }
        }
        None
    }

    fn note_selection(&mut self, report: Report) {
        let names = |relays: &[RelayId]| -> Vec<String> {
            relays.iter().map(|relay| self.names[usize::from(relay.0)].clone()).collect()
        };
        match report {
            Report::Migration { at, cause, from, to, feasible } => self.told.migrations.push(Migration {
                at_s: at.as_secs_f64(),
                settled_s: None,
                cause: words(cause).into(),
                from: names(&from),
                to: names(&to.relays),
                offered_bps: to.sum_bps as f64,
                feasible,
            }),
            Report::Settled { at } => {
                if let Some(latest) = self.told.migrations.last_mut() {
                    latest.settled_s = Some(at.as_secs_f64());
                }
            }
            Report::Monitored { at, offered, backup } => self.told.points.push(SelectionPoint {
                time_s: at.as_secs_f64(),
                offered_bps: offered.as_bps() as f64,
                backup_bps: backup.map(|rate| rate.as_bps() as f64),
            }),
        }
    }
}

fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Start => "start",
        Cause::Outage(Outage::Throughput) => "throughput out of range",
        Cause::Outage(Outage::Advert) => "offers out of range",
        Cause::Loss(_) => "relay lost",
        Cause::Goal => "new target",
    }
}
