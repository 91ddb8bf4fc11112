//! What a relay's own flows want, from what they get.
//!
//! Competition is about demands, but a relay sees rates, and those shrink under the very competition that it is to report. So
//! the highest rate stands for the demand for a while, and then goes halfway to the present rate in every further period.

use std::collections::BTreeMap;

use units::{Duration, Instant, Rate};

/// How long the highest rate stands.
const HOLD: Duration = Duration::from_secs(10);

/// A flow that ends at the relay, by a number that the relay gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Estimates demands from counts of octets.
#[derive(Clone, Debug, Default)]
pub struct DemandEstimator {
    measured_at: Option<Instant>,
    flows: BTreeMap<FlowId, Flow>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    bytes: u64,
    peak: Rate,
    peak_at: Instant,
    reported: bool,
}

impl DemandEstimator {
    /// Takes the octets that each flow has received since it began, at the end of a period; a flow that is left out is over.
    pub fn measure(&mut self, now: Instant, counts: impl IntoIterator<Item = (FlowId, u64)>) {
        let period = self.measured_at.replace(now).map_or(Duration::ZERO, |before| now.saturating_since(before));
        self.flows.values_mut().for_each(|flow| flow.reported = false);
        for (id, bytes) in counts {
            let began = Flow { bytes: 0, peak: Rate::ZERO, peak_at: now, reported: true };
            let flow = self.flows.entry(id).or_insert(began);
            flow.reported = true;
            flow.take(Rate::from_bytes_per(bytes.saturating_sub(flow.bytes), period), now);
            flow.bytes = bytes;
        }
        self.flows.retain(|_, flow| flow.reported);
    }

    /// The demand of each flow that wants anything, as [`super::RelayLoad::demands`].
    pub fn demands(&self) -> Vec<Rate> {
        self.flows.values().map(|flow| flow.peak).filter(|peak| *peak >= LEAST).collect()
    }
}

/// A flow that wants less sleeps, and does not count.
const LEAST: Rate = Rate::from_bps(1000);

impl Flow {
    fn take(&mut self, rate: Rate, now: Instant) {
        if rate >= self.peak {
            (self.peak, self.peak_at) = (rate, now);
        } else if now.saturating_since(self.peak_at) > HOLD {
            self.peak = Rate::from_bps(self.peak.as_bps().midpoint(rate.as_bps()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures flow 1 every 2 s at these rates in kbit/s; gives its demand after each, in kbit/s.
    fn demands(rates_kbps: &[u64]) -> Vec<u64> {
        let mut estimator = DemandEstimator::default();
        let mut bytes = 0;
        estimator.measure(Instant::ZERO, [(FlowId(1), 0)]);
        let after = |(rate_kbps, period): (&u64, u64)| {
            bytes += rate_kbps * 250;
            estimator.measure(Instant::from_secs(2 * period), [(FlowId(1), bytes)]);
            estimator.demands().first().map_or(0, |demand| demand.as_bps() / 1000)
        };
        rates_kbps.iter().zip(1..).map(after).collect()
    }

    #[test]
    fn the_highest_rate_stands_for_ten_seconds() {
        // The peak is at 4 s; up to 14 s it stands, then it goes halfway to 600 each time.
        assert_eq!(
            demands(&[900, 1000, 600, 600, 600, 600, 600, 600, 600]),
            [900, 1000, 1000, 1000, 1000, 1000, 1000, 800, 700]
        );
    }

    #[test]
    fn a_higher_rate_counts_at_once_and_holds_anew() {
        assert_eq!(demands(&[500, 400, 800, 0, 0, 0, 0, 0, 0, 0]), [500, 500, 800, 800, 800, 800, 800, 800, 400, 200]);
    }

    #[test]
    fn flows_that_are_over_or_asleep_do_not_count() {
        let mut estimator = DemandEstimator::default();
        let second = Instant::from_secs;
        estimator.measure(second(0), [(FlowId(1), 0), (FlowId(2), 0), (FlowId(3), 0)]);
        estimator.measure(second(2), [(FlowId(1), 250_000), (FlowId(2), 125_000), (FlowId(3), 0)]);
        assert_eq!(estimator.demands(), [Rate::from_mbps(1), Rate::from_bps(500_000)]);
        estimator.measure(second(4), [(FlowId(2), 250_000)]);
        assert_eq!(estimator.demands(), [Rate::from_bps(500_000)]);
    }

    #[test]
    fn a_count_that_starts_over_is_no_demand() {
        let mut estimator = DemandEstimator::default();
        estimator.measure(Instant::ZERO, [(FlowId(1), 1_000_000)]);
        estimator.measure(Instant::from_secs(2), [(FlowId(1), 10)]);
        assert!(estimator.demands().is_empty());
    }
}
