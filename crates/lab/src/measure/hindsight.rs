//! Relay selection, judged in hindsight: which outages could another choice of relays have avoided?

use cooperation::relay_selection::{Exact, Goal, Offer, RelayId, RelaySelector};
use units::{Instant, Prng, Rate};

use crate::measure::metrics::Analysis;
use crate::measure::results::{Hindsight, PaperMetrics, Series};

/// An oracle that learns after the run what every relay offered in every period.
pub struct Oracle {
    /// The application's goal.
    pub goal: Goal,
    /// Payload as a share of packets' octets.
    pub payload_ratio: f64,
    /// The window of analysis; only its monitor points count.
    pub analysis: Analysis,
}

impl Oracle {
    /// Judges a run. Returns `None` where it is not known what the relays could have carried. Exact for up to 24
    /// relays; of more, only the 24 with the largest offers are tried.
    pub fn judge(&self, series: &Series, metrics: &PaperMetrics) -> Option<Hindsight> {
        let range = self.goal.range();
        let mut hindsight = Hindsight::default();
        let points = metrics.points.time_s.iter().zip(&metrics.points.aggregate_throughput_bps);
        for (at_s, throughput_bps) in points {
            let offers = self.offers(series, at_s - metrics.period_s, *at_s)?;
            // The exact selection draws nothing.
            let attainable = Exact.select(&offers, &self.goal, &[], &mut Prng::new(0)).feasible;
            hindsight.attainable.push(attainable);
            if !self.analysis.has_point(Instant::from_nanos((at_s * 1e9).round() as u64)) {
                continue;
            }
            hindsight.attainable_points += u64::from(attainable);
            if attainable && !range.contains(*throughput_bps as u64) {
                hindsight.avoidable_outages += 1;
                hindsight.avoidable_at_s.push(*at_s);
            }
        }
        Some(hindsight)
    }

    /// Payload that every relay could have carried for the destination, on average over a period.
    fn offers(&self, series: &Series, from_s: f64, to_s: f64) -> Option<Vec<Offer>> {
        // The margin of half a window at both ends keeps rounding from moving a window into another period.
        let margin_s = series.window_s / 2.0;
        let inside = |end_s: &f64| from_s + margin_s < *end_s && *end_s < to_s + margin_s;
        let windows: Vec<usize> = (0..series.time_s.len()).filter(|index| inside(&series.time_s[*index])).collect();
        let mean = |available_bps: &[Option<f64>]| {
            let sum: Option<f64> = windows.iter().map(|window| available_bps.get(*window).copied().flatten()).sum();
            Some(sum? / windows.len().max(1) as f64 * self.payload_ratio)
        };
        let offer = |(index, available_bps): (usize, &[Option<f64>])| {
            let available = Rate::from_bps(mean(available_bps)? as u64);
            Some(Offer { relay: RelayId(index as u16), available })
        };
        series.relays.iter().map(|relay| relay.available_bps.as_slice()).enumerate().map(offer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::results::{Points, RelaySeries};

    /// Two relays with windows of 1 s and periods of 2 s; one rate per window, kbit/s.
    fn series(kbps: [[u32; 6]; 2]) -> Series {
        let relay = |kbps: [u32; 6]| RelaySeries {
            available_bps: kbps.iter().map(|kbps| Some(f64::from(*kbps) * 1e3)).collect(),
            ..RelaySeries::default()
        };
        let time_s = (1..=6).map(f64::from).collect();
        Series { window_s: 1.0, time_s, relays: kbps.into_iter().map(relay).collect(), ..Series::default() }
    }

    fn metrics(throughput_mbps: [f64; 3]) -> PaperMetrics {
        let aggregate_throughput_bps = throughput_mbps.map(|mbps| mbps * 1e6).to_vec();
        let points = Points { time_s: vec![2.0, 4.0, 6.0], aggregate_throughput_bps, ..Points::default() };
        PaperMetrics { period_s: 2.0, points, ..PaperMetrics::default() }
    }

    fn oracle(analysis: Analysis) -> Oracle {
        Oracle { goal: Goal { target: Rate::from_mbps(1), tolerance: 0.1 }, payload_ratio: 0.5, analysis }
    }

    #[test]
    fn an_outage_was_avoidable_if_some_relays_were_in_range() {
        // Half of each rate is payload. First 0.5 alone or 1.0 together: within 0.9 to 1.1. Then 0.4 and 0.3: never.
        // Last 1.0 alone.
        let series = series([[1000, 1000, 700, 900, 1600, 2400], [1000, 1000, 600, 600, 100, 100]]);
        let judge = |throughput, analysis| oracle(analysis).judge(&series, &metrics(throughput)).unwrap();
        let seen = judge([0.5, 0.7, 1.2], Analysis::WHOLE);
        assert_eq!(seen.attainable, [true, false, true]);
        assert_eq!((seen.attainable_points, seen.avoidable_outages), (2, 2));
        assert_eq!(seen.avoidable_at_s, [2.0, 6.0]);
        assert_eq!(judge([0.9, 0.7, 1.1], Analysis::WHOLE).avoidable_outages, 0);
        let late = Analysis { from: Instant::from_secs(2), to: Instant::from_secs(6) };
        assert_eq!(judge([0.5, 0.7, 1.2], late).avoidable_at_s, [6.0]);
    }

    #[test]
    fn without_a_cell_nobody_knows() {
        let mut series = series([[1000; 6], [1000; 6]]);
        series.relays[1].available_bps[3] = None;
        assert_eq!(oracle(Analysis::WHOLE).judge(&series, &metrics([1.0; 3])), None);
    }
}
