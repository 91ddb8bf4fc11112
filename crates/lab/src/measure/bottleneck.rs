//! Samples the link that all paths share at the end of every window.

use units::Instant;

use super::PathCounters;
use crate::measure::results::{BottleneckResults, BottleneckSeries};

/// The shared link at one moment, towards the destination; counts start with the run.
#[derive(Clone, Debug, Default)]
pub struct BottleneckSample {
    /// Octets that it sent, those of packets included that were then lost at random.
    pub carried_bytes: u64,
    /// Bits that it could have sent.
    pub could_carry_bits: f64,
    /// Octets that wait or are being sent.
    pub queue_bytes: u64,
    /// Packets that entered and were dropped.
    pub counters: PathCounters,
}

/// Records windows of the shared link.
#[derive(Clone, Debug, Default)]
pub struct BottleneckRecorder {
    series: BottleneckSeries,
    last: BottleneckSample,
    last_at: Instant,
}

impl BottleneckRecorder {
    /// Closes the window that ends `now`.
    pub fn sample(&mut self, now: Instant, sample: BottleneckSample) {
        let span_s = now.saturating_since(self.last_at).as_secs_f64();
        if span_s == 0.0 {
            return;
        }
        let carried_bits = 8.0 * (sample.carried_bytes - self.last.carried_bytes) as f64;
        let could_carry_bits = sample.could_carry_bits - self.last.could_carry_bits;
        self.series.carried_bps.push((carried_bits / span_s).round());
        self.series.capacity_bps.push((could_carry_bits / span_s).round());
        self.series.queue_bytes.push(sample.queue_bytes);
        (self.last, self.last_at) = (sample, now);
    }

    /// Returns the series and the results; `None` for no time.
    pub fn finish(self) -> Option<(BottleneckSeries, BottleneckResults)> {
        let Self { series, last, last_at } = self;
        let lasted_s = Some(last_at.as_secs_f64()).filter(|lasted_s| *lasted_s > 0.0)?;
        let carried_bits = 8.0 * last.carried_bytes as f64;
        let results = BottleneckResults {
            capacity_bps: (last.could_carry_bits / lasted_s).round(),
            carried_bps: (carried_bits / lasted_s).round(),
            utilisation_ratio: (last.could_carry_bits > 0.0).then(|| carried_bits / last.could_carry_bits),
            entered_packets: last.counters.elements.first().map_or(0, |element| element.entered),
            lost_packets: last.counters.lost(),
            queue_drop_packets: last.counters.queue_drops(),
            loss_ratio: last.counters.loss_ratio(),
            queue_mean_bytes: series.queue_bytes.iter().sum::<u64>() as f64 / series.queue_bytes.len().max(1) as f64,
            queue_max_bytes: series.queue_bytes.iter().copied().max().unwrap_or_default(),
        };
        Some((series, results))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ElementCounters;

    #[test]
    fn windows_have_rates_and_the_run_has_a_share() {
        let mut recorder = BottleneckRecorder::default();
        let counters = |entered, lost| PathCounters {
            elements: vec![ElementCounters { entered, lost, queue_drops: lost }, ElementCounters::default()],
        };
        let first = BottleneckSample {
            carried_bytes: 125_000,
            could_carry_bits: 1e6,
            queue_bytes: 3000,
            counters: counters(90, 0),
        };
        recorder.sample(Instant::from_secs(1), first);
        let second = BottleneckSample {
            carried_bytes: 187_500,
            could_carry_bits: 3e6,
            queue_bytes: 0,
            counters: counters(200, 5),
        };
        recorder.sample(Instant::from_secs(3), second.clone());
        recorder.sample(Instant::from_secs(3), second);
        let (series, results) = recorder.finish().unwrap();
        assert_eq!(series.carried_bps, [1e6, 250e3]);
        assert_eq!(series.capacity_bps, [1e6, 1e6]);
        assert_eq!((results.utilisation_ratio, results.carried_bps), (Some(0.5), 500e3));
        assert_eq!((results.queue_mean_bytes, results.queue_max_bytes), (1500.0, 3000));
        assert_eq!((results.entered_packets, results.lost_packets, results.queue_drop_packets), (200, 5, 5));
        assert_eq!(results.loss_ratio, 0.025);
        assert!(BottleneckRecorder::default().finish().is_none());
    }
}
