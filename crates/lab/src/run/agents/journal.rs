//! What observers hear of the destination, as results.

use cooperation::agent::destination::DestinationEvent;
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::manager::{Cause, Report};
use cooperation::relay_selection::trigger::Outage;

use crate::measure::metrics::{ActiveSet, Shared};
use crate::measure::results::{Migration, SelectionPoint, SelectionResults};

/// Takes note of what the destination's agent tells.
pub(in crate::run) struct Journal {
    names: Vec<String>,
    selects: bool,
    told: SelectionResults,
    collector: Option<Shared>,
    /// Relays that swallowed data, as far as the destination found out.
    pub guilty: Vec<usize>,
}

impl Journal {
    /// Of a destination whose relays have these names, and which `selects` among them.
    pub fn new(names: Vec<String>, selects: bool) -> Self {
        Self { names, selects, told: SelectionResults::default(), collector: None, guilty: Vec::new() }
    }

    /// Whether the destination selects among its relays.
    pub fn selects(&self) -> bool {
        self.selects
    }

    /// `collector` hears of the size of the active set.
    pub fn tell(&mut self, collector: Shared) {
        self.collector = Some(collector).filter(|_| self.selects);
    }

    /// What relay selection did, if there is any.
    pub fn selection(&self) -> Option<SelectionResults> {
        self.selects.then(|| self.told.clone())
    }

    /// Takes note; why the connection was given up, in words, if it was.
    pub fn note(&mut self, event: DestinationEvent) -> Option<String> {
        match event {
            DestinationEvent::Selection(report) => self.note_selection(report),
            DestinationEvent::ActiveSet { at, count } => {
                if let Some(collector) = &self.collector {
                    collector.borrow_mut().active_set(&ActiveSet { at, count });
                }
            }
            DestinationEvent::Guilty(relay) => self.guilty.push(usize::from(relay.0)),
            DestinationEvent::GaveUp { missing, silence: true } => {
                return Some(format!(
                    "octets from data sequence number {} on never arrived, and for five times its patience nothing came over any relay, so the \
                     destination gave up: either a relay swallowed them, and the source has them no longer, or no relay has a link \
                     (a longer cooperation.watch.patience outlasts longer outages)",
                    missing.0
                ));
            }
            DestinationEvent::GaveUp { missing, silence: false } => {
                return Some(format!(
                    "octets from data sequence number {} on were acknowledged and never arrived: a relay swallowed \
                     them, and the source has them no longer",
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
