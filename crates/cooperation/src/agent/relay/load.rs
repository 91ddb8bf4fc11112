//! How much a relay's owner's flows compete with what it forwards.

use units::{Duration, Instant, Rate};

use super::Measurement;
use crate::bandwidth_sharing::{Definition, DemandEstimator, FlowId, LinkCount, RelayLoad, Signal};
use crate::channel::to_destination::Load as Word;
use crate::relay_selection::RelayId;

/// One of the owner's flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowUse {
    /// Octets of packets that were asked for so far; `None` if it takes all it can get, or nobody knows.
    pub demanded_bytes: Option<u64>,
    /// Octets of packets that arrived so far.
    pub received_bytes: u64,
}

/// How a relay knows what its owner's flows want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demands {
    /// They tell: [`FlowUse::demanded_bytes`].
    Known,
    /// From the highest rates that were seen lately.
    Estimated,
}

/// How a relay tells of its owner's flows.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// How often (F).
    pub every: Duration,
    /// When for the first time.
    pub from: Instant,
    /// Which rho.
    pub definition: Definition,
    /// How it knows what the flows want.
    pub demands: Demands,
    /// A rho that is given instead of measured.
    pub fixed: Option<f64>,
    /// What its link carries, as long as the modem does not tell.
    pub capacity: Rate,
    /// What its owner's flows gain per round trip, segments (alpha').
    pub increase: f64,
    /// What a loss leaves of their windows (beta').
    pub decrease: f64,
}

pub(super) struct Load {
    settings: LoadSettings,
    next_at: Instant,
    estimator: DemandEstimator,
    /// Octets demanded by each flow until the latest measurement.
    demanded: Vec<Option<u64>>,
    measured_at: Option<Instant>,
}

impl Load {
    pub fn new(settings: LoadSettings) -> Self {
        let (estimator, demanded) = (DemandEstimator::default(), Vec::new());
        Self { next_at: settings.from, settings, estimator, demanded, measured_at: None }
    }

    /// When the next measurement is due.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// What there is to tell, if the demands are known.
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
        // Who it is the channel tells.
        let signal: Signal = RelayLoad { capacity, demands, increase, decrease }.signal(RelayId(0), definition, now);
        Some(Word::of(&signal))
    }

    /// Demands over the latest period; of flows that take all they get, the capacity.
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
