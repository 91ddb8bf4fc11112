//! Load: how much the flows of a relay's owner compete with forwarded traffic.

use units::{Duration, Instant, Rate};

use super::Measurement;
use crate::bandwidth_sharing::{Definition, DemandEstimator, FlowId, LinkCount, RelayLoad, Signal};
use crate::channel::to_destination::Load as Word;
use crate::relay_selection::RelayId;

/// One of the owner's flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowUse {
    /// Octets of packets demanded so far; `None` if the flow takes all it can get, or its demand is unknown.
    pub demanded_bytes: Option<u64>,
    /// Octets of packets received so far.
    pub received_bytes: u64,
}

/// How a relay learns the demands of its owner's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demands {
    /// The flows state them: [`FlowUse::demanded_bytes`].
    Known,
    /// The relay estimates them from the highest recent rates.
    Estimated,
}

/// Settings for the reports on the owner's flows.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// Interval of the reports (F).
    pub every: Duration,
    /// Time of the first report.
    pub from: Instant,
    /// Definition of rho.
    pub definition: Definition,
    /// How the relay learns the demands.
    pub demands: Demands,
    /// Fixed rho that replaces measurements.
    pub fixed: Option<f64>,
    /// Capacity of its link while the modem does not report it.
    pub capacity: Rate,
    /// Segments that the owner's flows gain per round trip (alpha').
    pub increase: f64,
    /// Part of their windows that remains after a loss (beta').
    pub decrease: f64,
}

pub(super) struct Load {
    settings: LoadSettings,
    next_at: Instant,
    estimator: DemandEstimator,
    /// Octets demanded by each flow up to the latest measurement.
    demanded: Vec<Option<u64>>,
    measured_at: Option<Instant>,
}

impl Load {
    pub fn new(settings: LoadSettings) -> Self {
        let (estimator, demanded) = (DemandEstimator::default(), Vec::new());
        Self { next_at: settings.from, settings, estimator, demanded, measured_at: None }
    }

    /// Returns when the next measurement is due.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Returns the report, if the demands are known.
    pub fn measured(&mut self, measured: &Measurement, now: Instant) -> Option<Word> {
        self.next_at = now + self.settings.every;
        let LoadSettings { increase, decrease, definition, .. } = self.settings;
        if let Some(ratio) = self.settings.fixed {
            return Some(Word { ratio, increase, decrease, at: now });
        }
        let capacity = measured.link.granted.unwrap_or(self.settings.capacity);
        let demands = match self.settings.demands {
            Demands::Known => self.known(&measured.flows, capacity, now)?,
            Demands::Estimated => {
                let link = LinkCount { capacity, carried_bytes: measured.link.delivered_bytes };
                self.estimated(&measured.flows, link, now)
            }
        };
        // The channel identifies the relay.
        let signal: Signal = RelayLoad { capacity, demands, increase, decrease }.signal(RelayId(0), definition, now);
        Some(Word::of(&signal))
    }

    /// Returns the demands over the latest period; for a flow that takes all it can get, the capacity.
    fn known(&mut self, flows: &[FlowUse], capacity: Rate, now: Instant) -> Option<Vec<Rate>> {
        let demanded = flows.iter().map(|flow| flow.demanded_bytes).collect();
        let before = core::mem::replace(&mut self.demanded, demanded);
        let since = self.measured_at.replace(now)?;
        let rate = |(now_bytes, before_bytes): (&Option<u64>, Option<u64>)| match (now_bytes, before_bytes) {
            (Some(bytes), Some(before)) => {
                Rate::from_bytes_per(bytes.saturating_sub(before), now.saturating_since(since))
            }
            _ => capacity,
        };
        Some(self.demanded.iter().zip(before).map(rate).filter(|rate| *rate > Rate::ZERO).collect())
    }

    fn estimated(&mut self, flows: &[FlowUse], link: LinkCount, now: Instant) -> Vec<Rate> {
        let counts = flows.iter().zip((0..).map(FlowId)).map(|(flow, id)| (id, flow.received_bytes));
        self.estimator.measure(now, link, counts);
        self.estimator.demands()
    }
}
