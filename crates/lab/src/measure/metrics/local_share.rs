//! Share of a relay's own traffic in a window of analysis.

use super::Analysis;
use units::{Duration, Instant};

/// Demand and goodput of the flows of one relay, summed over the windows that belong to an [`Analysis`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LocalShare {
    /// Length of these windows.
    pub span_s: f64,
    /// Demand of the flows, bits; `None` if one takes all it can get.
    pub demand_bits: Option<f64>,
    /// Bits that the flows received.
    pub received_bits: f64,
}

impl LocalShare {
    /// Sums the windows that end at `ends_s`; both lists of rates have one entry per window.
    pub fn over(ends_s: &[f64], demand_bps: &[Option<f64>], goodput_bps: &[f64], analysis: Analysis) -> Self {
        let mut share = Self { demand_bits: Some(0.0), ..Self::default() };
        let mut from_s = 0.0;
        for ((end_s, demand_bps), goodput_bps) in ends_s.iter().zip(demand_bps).zip(goodput_bps) {
            let span_s = end_s - core::mem::replace(&mut from_s, *end_s);
            if !analysis.has_point(instant(*end_s)) {
                continue;
            }
            share.span_s += span_s;
            share.received_bits += goodput_bps * span_s;
            share.demand_bits = share.demand_bits.zip(*demand_bps).map(|(bits, bps)| bits + bps * span_s);
        }
        share
    }

    /// Bits received over bits demanded; `None` if the flows demand nothing, or all they can get.
    pub fn ratio(&self) -> Option<f64> {
        self.demand_bits.filter(|bits| *bits > 0.0).map(|bits| self.received_bits / bits)
    }

    /// Rate at which the flows received data; `None` for no time.
    pub fn goodput_bps(&self) -> Option<f64> {
        (self.span_s > 0.0).then(|| self.received_bits / self.span_s)
    }
}

fn instant(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 2 s, the last of 1 s; 2 s to 7 s contain the last three: 1 * 2 + 3 * 2 + 2 * 1 = 10 of 4 * 5 = 20
    /// bits.
    #[test]
    fn only_windows_within_the_analysis_count() {
        let ends_s = [2.0, 4.0, 6.0, 7.0];
        let analysis = Analysis { from: Instant::from_secs(2), to: Instant::from_secs(7) };
        let share = LocalShare::over(&ends_s, &[Some(4.0); 4], &[9.0, 1.0, 3.0, 2.0], analysis);
        assert_eq!((share.ratio(), share.goodput_bps()), (Some(0.5), Some(2.0)));
        let greedy = LocalShare::over(&ends_s, &[Some(4.0), None, None, None], &[9.0, 1.0, 3.0, 2.0], analysis);
        assert_eq!((greedy.ratio(), greedy.goodput_bps()), (None, Some(2.0)));
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let share = LocalShare::over(&[2.0], &[Some(0.0)], &[0.0], Analysis::WHOLE);
        assert_eq!((share.ratio(), share.goodput_bps()), (None, Some(0.0)));
        assert_eq!(LocalShare::over(&[], &[], &[], Analysis::WHOLE).goodput_bps(), None);
    }
}
