//! What the relays measure of their links and advertise.

use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::energy::EnergyPrice;
use cooperation::relay_selection::monitor::{
    Advert, CapacityEstimator, Configured, LinkMonitor, LinkUse, MeasuredDelivery, SchedulerShare,
};
use network::cell::Cell;
use network::{MediumId, Network};
use units::text::{Text, TextOr};
use units::{Duration, Instant, Rate};

use crate::run::hop::Hop;
use crate::run::local::header_ratio;
use crate::scenario::{Estimator, LocalTraffic, Relay, Scenario, value_of};

/// The monitors of all relays.
pub(in crate::run) struct Offers {
    monitors: Vec<LinkMonitor>,
    /// How much more each says than is true.
    exaggerations: Vec<f64>,
    period: Duration,
    advert_period: Duration,
}

/// What a relay measures, unless it is gone.
pub(in crate::run) type Measured = Option<LinkUse>;

impl Offers {
    pub fn new(scenario: &Scenario) -> Self {
        let selection = &scenario.cooperation.selection;
        let period = selection.period;
        let advert_period = selection.advert_period.map_or(period, |Text(every)| every.min(period));
        let per_period = (period.as_nanos() / advert_period.as_nanos().max(1)) as usize;
        let monitor = |(index, relay): (usize, &Relay)| {
            let configured = configured(relay);
            let estimator: Box<dyn CapacityEstimator> = match selection.estimator {
                Estimator::Configured => Box::new(Configured(configured)),
                Estimator::SchedulerShare => Box::new(SchedulerShare(configured)),
                Estimator::MeasuredDelivery => Box::new(MeasuredDelivery(configured)),
            };
            let energy = relay.energy_nj_per_bit().and_then(EnergyPrice::new).unwrap_or_default();
            let monitor = LinkMonitor::new(RelayId(index as u16), estimator, expected_local(scenario, relay));
            let monitor = monitor.paying(energy);
            if advert_period < period { monitor.prompt(per_period) } else { monitor }
        };
        let exaggerations = scenario.relays.iter().map(|relay| relay.exaggerates.unwrap_or(1.0)).collect();
        Self {
            exaggerations,
            monitors: scenario.relays.iter().enumerate().map(monitor).collect(),
            period,
            advert_period,
        }
    }

    /// How often relays advertise.
    pub fn advert_period(&self) -> Duration {
        self.advert_period
    }

    pub fn period(&self) -> Duration {
        self.period
    }

    /// The adverts of all that are still there.
    pub fn adverts(&mut self, measured: &[Measured], now: Instant) -> Vec<Advert> {
        let there = self.monitors.iter_mut().zip(measured).zip(&self.exaggerations);
        there.filter_map(|((monitor, measured), times)| Some(said(monitor.advert((*measured)?, now), *times))).collect()
    }
}

/// What a relay says of what it knows: so many times what it has to offer.
fn said(known: Advert, times: f64) -> Advert {
    if times == 1.0 {
        return known;
    }
    let available_bps = (known.available().as_bps() as f64 * times) as u64;
    Advert { capacity: Rate::from_bps(known.local.as_bps().saturating_add(available_bps)), ..known }
}

/// What every relay measures, from its cellular hop and the octets that its owner got; nothing of those that are gone.
pub(in crate::run) fn measure(
    network: &Network,
    cell: Option<MediumId>,
    links: impl Iterator<Item = Option<(Hop, u64)>>,
) -> Vec<Measured> {
    let ues = cell.and_then(|id| network.medium::<Cell>(id)).map(Cell::ues).unwrap_or_default();
    let measure = |(index, link): (usize, Option<(Hop, u64)>)| {
        let (hop, local_bytes) = link?;
        Some(match ues.get(index) {
            Some(ue) => LinkUse {
                local_bytes,
                delivered_bytes: ue.served_bytes,
                backlogged: ue.queue.bytes > 0,
                granted: Some(ue.capacity_estimate),
            },
            None => LinkUse {
                local_bytes,
                delivered_bytes: network.counters(hop.down_out).left.bytes,
                backlogged: network.backlog(hop.down_link).bytes > 0,
                granted: None,
            },
        })
    };
    links.enumerate().map(measure).collect()
}

/// What the scenario says of a relay's link. Of a rate that follows a file it says nothing.
pub(super) fn configured(relay: &Relay) -> Rate {
    let link = relay.cellular.as_ref().and_then(|link| match &link.rate {
        TextOr::Text(rate) => Some(*rate),
        TextOr::Table(model) => model.mean.map(|mean| mean.0),
    });
    let ceiling = relay.bit_rate_max.map(|rate| rate.0);
    link.into_iter().chain(ceiling).min().unwrap_or(Rate::ZERO)
}

/// What a relay expects its owner's traffic to take from the start.
fn expected_local(scenario: &Scenario, relay: &Relay) -> Rate {
    let begins_at_once = |local: &&LocalTraffic| local.start.is_none_or(|start| start.0.is_zero());
    let rate = |local: &LocalTraffic| {
        let bps = local.rate.as_ref().map_or(0.0, |rate| value_of(rate).as_bps() as f64);
        let on = local.on_off.map_or(1.0, |times| times.on.as_secs_f64() / (times.on + times.off).as_secs_f64());
        bps * on * f64::from(local.count) * (1.0 + header_ratio(scenario, local))
    };
    Rate::from_bps(relay.local.iter().filter(begins_at_once).map(rate).sum::<f64>() as u64)
}
