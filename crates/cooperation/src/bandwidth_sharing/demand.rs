//! Estimates the demands of a relay's own flows from their rates.
//!
//! Competition compares demands, but a relay only sees rates, and the competition that it reports lowers those rates.
//!
//! ```text
//! rate >= demand                                    demand = rate
//! link full and rate >= 3/4 B / (K + 1)             demand stays: the flow may be squeezed
//! otherwise, for 10 s after the demand was reached  demand stays: flows pause
//! after that, every period                          demand = (demand + rate) / 2
//! ```
//!
//! On a link that is not full, every flow gets its demand. On a full link, a flow with a larger demand gets about an
//! even share, unless its competitors are stronger than TCP. A flow far below an even share therefore gets its demand.

use std::collections::BTreeMap;

use units::{Duration, Instant, Rate};

/// Time for which the highest rate stays the demand.
const HOLD: Duration = Duration::from_secs(10);
/// Share of its capacity above which a link counts as full: TCP that fills a link leaves gaps after losses.
const FULL_SHARE: f64 = 0.8;
/// Share of an even share of the link below which a flow is not squeezed.
const SQUEEZED_SHARE: f64 = 0.75;
/// Smallest demand that counts; below it, a flow is idle.
const LEAST: Rate = Rate::from_bps(1000);

/// A flow that ends at the relay, by a number that the relay assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Counts of the relay's link at the end of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCount {
    /// Rate that the link could carry in the period (B).
    pub capacity: Rate,
    /// Octets of packets that the link has carried since the run began, including forwarded ones.
    pub carried_bytes: u64,
}

/// Estimates demands from octet counts.
#[derive(Clone, Debug, Default)]
pub struct DemandEstimator {
    measured_at: Option<Instant>,
    carried_bytes: u64,
    flows: BTreeMap<FlowId, Flow>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    bytes: u64,
    demand: Rate,
    /// Time at which the rate last reached the demand.
    reached_at: Instant,
    is_reported: bool,
}

impl DemandEstimator {
    /// Records, at the end of a period, the octets of packets that each flow has received since it began. A flow
    /// missing from `counts` has ended.
    pub fn measure(&mut self, now: Instant, link: LinkCount, counts: impl IntoIterator<Item = (FlowId, u64)>) {
        let period = self.measured_at.replace(now).map_or(Duration::ZERO, |before| now.saturating_since(before));
        let squeezed_from = self.squeezed_from(link, period);
        self.flows.values_mut().for_each(|flow| flow.is_reported = false);
        for (id, bytes) in counts {
            let began = Flow { bytes: 0, demand: Rate::ZERO, reached_at: now, is_reported: true };
            let flow = self.flows.entry(id).or_insert(began);
            flow.is_reported = true;
            let rate = Rate::from_bytes_per(bytes.saturating_sub(flow.bytes), period);
            flow.take(rate, squeezed_from.is_some_and(|least_bps| rate.as_bps() as f64 >= least_bps), now);
            flow.bytes = bytes;
        }
        self.flows.retain(|_, flow| flow.is_reported);
    }

    /// Returns the rate, in bit/s, from which flows may be squeezed; `None` if the link was not full.
    fn squeezed_from(&mut self, link: LinkCount, period: Duration) -> Option<f64> {
        let carried =
            link.carried_bytes.saturating_sub(core::mem::replace(&mut self.carried_bytes, link.carried_bytes));
        let capacity_bps = link.capacity.as_bps() as f64;
        let is_full = Rate::from_bytes_per(carried, period).as_bps() as f64 >= FULL_SHARE * capacity_bps;
        let even_share_bps = capacity_bps / (self.awake().count() + 1) as f64;
        is_full.then_some(SQUEEZED_SHARE * even_share_bps)
    }

    fn awake(&self) -> impl Iterator<Item = Rate> {
        self.flows.values().map(|flow| flow.demand).filter(|demand| *demand >= LEAST)
    }

    /// Returns the demand of each flow that is not idle, as [`super::RelayLoad::demands`].
    pub fn demands(&self) -> Vec<Rate> {
        self.awake().collect()
    }
}

impl Flow {
    fn take(&mut self, rate: Rate, may_be_squeezed: bool, now: Instant) {
        if rate >= self.demand {
            (self.demand, self.reached_at) = (rate, now);
        } else if !may_be_squeezed && now.saturating_since(self.reached_at) > HOLD {
            self.demand = Rate::from_bps(self.demand.as_bps().midpoint(rate.as_bps()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Rate = Rate::from_bps(1_200_000);

    /// Measures flow 1 on a link of 1.2 Mbit/s every 2 s, at rates of the flow and of the whole link in kbit/s. Returns
    /// its demand after each measurement, in kbit/s.
    fn demands(rates_kbps: &[(u64, u64)]) -> Vec<u64> {
        let mut estimator = DemandEstimator::default();
        let (mut bytes, mut carried_bytes) = (0, 0);
        estimator.measure(Instant::ZERO, LinkCount { capacity: CAPACITY, carried_bytes }, [(FlowId(1), 0)]);
        let after = |((rate_kbps, link_kbps), period): (&(u64, u64), u64)| {
            bytes += rate_kbps * 250;
            carried_bytes += link_kbps * 250;
            let link = LinkCount { capacity: CAPACITY, carried_bytes };
            estimator.measure(Instant::from_secs(2 * period), link, [(FlowId(1), bytes)]);
            estimator.demands().first().map_or(0, |demand| demand.as_bps() / 1000)
        };
        rates_kbps.iter().zip(1..).map(after).collect()
    }

    /// As `demands`, with the flow alone on its link.
    fn demands_alone(rates_kbps: &[u64]) -> Vec<u64> {
        demands(&rates_kbps.iter().map(|rate| (*rate, *rate)).collect::<Vec<_>>())
    }

    #[test]
    fn the_highest_rate_stands_for_ten_seconds() {
        // The peak is at 4 s. It stands until 14 s; then the demand halves its distance to 600 in each period.
        assert_eq!(
            demands_alone(&[900, 1000, 600, 600, 600, 600, 600, 600, 600]),
            [900, 1000, 1000, 1000, 1000, 1000, 1000, 800, 700]
        );
    }

    #[test]
    fn a_higher_rate_counts_at_once_and_holds_anew() {
        assert_eq!(
            demands_alone(&[500, 400, 800, 0, 0, 0, 0, 0, 0, 0]),
            [500, 500, 800, 800, 800, 800, 800, 800, 400, 200]
        );
    }

    /// An even share is 600, three quarters of it 450; the link is full from 960 on.
    #[test]
    fn on_a_full_link_the_demand_stands_as_long_as_the_flow_gets_an_even_share() {
        let squeezed = [(1000, 1000); 7].map(|_| (450, 960));
        let mut rates = vec![(1000, 1000)];
        rates.extend(squeezed);
        assert_eq!(demands(&rates), [1000; 8]);
        // The link is not full any more, so the flow could have had its demand.
        rates.push((450, 950));
        assert_eq!(demands(&rates).last(), Some(&725));
    }

    #[test]
    fn a_flow_far_below_an_even_share_wants_no_more() {
        let mut rates = vec![(1000, 1000)];
        rates.extend([(440, 1200); 7]);
        assert_eq!(demands(&rates), [1000, 1000, 1000, 1000, 1000, 1000, 720, 580]);
    }

    fn measure(estimator: &mut DemandEstimator, now_s: u64, counts: &[(u32, u64)]) {
        let link = LinkCount { capacity: CAPACITY, carried_bytes: 0 };
        estimator.measure(Instant::from_secs(now_s), link, counts.iter().map(|(id, bytes)| (FlowId(*id), *bytes)));
    }

    #[test]
    fn flows_that_are_over_or_asleep_do_not_count() {
        let mut estimator = DemandEstimator::default();
        measure(&mut estimator, 0, &[(1, 0), (2, 0), (3, 0)]);
        measure(&mut estimator, 2, &[(1, 250_000), (2, 125_000), (3, 0)]);
        assert_eq!(estimator.demands(), [Rate::from_mbps(1), Rate::from_bps(500_000)]);
        measure(&mut estimator, 4, &[(2, 250_000)]);
        assert_eq!(estimator.demands(), [Rate::from_bps(500_000)]);
    }

    #[test]
    fn a_count_that_starts_over_is_no_demand() {
        let mut estimator = DemandEstimator::default();
        measure(&mut estimator, 0, &[(1, 1_000_000)]);
        measure(&mut estimator, 2, &[(1, 10)]);
        assert!(estimator.demands().is_empty());
    }
}
