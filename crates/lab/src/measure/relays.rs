//! Samples every relay at the end of every window.

use units::Instant;

use super::bps;
use crate::measure::results::{RelayResults, RelaySeries};

/// A relay at one moment; counts start with the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RelaySample {
    /// Payload octets that arrived at the destination over this relay, duplicates included.
    pub carried_bytes: u64,
    /// Rate that the cell would grant it; `None` without a cell.
    pub capacity_bps: Option<f64>,
    /// Octets of packets, in bits, that its cellular link could have carried so far; `None` in a cell.
    pub could_carry_bits: Option<f64>,
    /// Octets that wait before the cellular hop.
    pub cellular_queue_bytes: u64,
    /// Octets that wait before the Wi-Fi hop.
    pub wifi_queue_bytes: u64,
    /// Octets in its hold queue; `None` without differentiated forwarding.
    pub hold_queue_bytes: Option<u64>,
    /// Demand of its own traffic, payload octets; `None` if a flow takes all it can get.
    pub local_demand_bytes: Option<u64>,
    /// Payload octets that its own traffic received.
    pub local_received_bytes: u64,
    /// Octets of packets that its own traffic demanded, or received where it takes all it can get.
    pub local_taken_bytes: u64,
    /// Rate of packets that it may lend; `None` without a limit.
    pub lends_bps: Option<f64>,
}

impl RelaySample {
    /// Mean capacity of its link in the `span_s` since `before`; `None` in a cell, and for no time.
    fn mean_capacity_bps(&self, before: &Self, span_s: f64) -> Option<f64> {
        let could_carry_bits = self.could_carry_bits? - before.could_carry_bits.unwrap_or(0.0);
        (span_s > 0.0).then(|| could_carry_bits / span_s)
    }
}

/// Records windows of relays.
#[derive(Clone, Debug, Default)]
pub struct RelayRecorder {
    series: Vec<RelaySeries>,
    before: Vec<RelaySample>,
    last_at: Instant,
    /// Lengths of the windows, seconds.
    spans_s: Vec<f64>,
}

impl RelayRecorder {
    /// Records relays with these names.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let series: Vec<_> = names.into_iter().map(|name| RelaySeries { name, ..RelaySeries::default() }).collect();
        let before = vec![RelaySample::default(); series.len()];
        Self { series, before, last_at: Instant::ZERO, spans_s: Vec::new() }
    }

    /// The series so far.
    pub fn series(&self) -> &[RelaySeries] {
        &self.series
    }

    /// Closes the window that ends `now`; takes one sample per relay, in order.
    pub fn sample(&mut self, now: Instant, samples: impl IntoIterator<Item = RelaySample>) {
        let span_s = now.saturating_since(self.last_at).as_secs_f64();
        if span_s == 0.0 {
            return;
        }
        self.last_at = now;
        self.spans_s.push(span_s);
        for ((series, before), sample) in self.series.iter_mut().zip(&mut self.before).zip(samples) {
            let rate = |count: fn(&RelaySample) -> u64| bps(count(&sample).saturating_sub(count(before)), span_s);
            series.carried_bps.push(rate(|sample| sample.carried_bytes));
            let demand = sample.local_demand_bytes.map(|_| rate(|sample| sample.local_demand_bytes.unwrap_or(0)));
            series.local_demand_bps.push(demand);
            series.local_goodput_bps.push(rate(|sample| sample.local_received_bytes));
            let capacity_bps = sample.capacity_bps.or_else(|| sample.mean_capacity_bps(before, span_s));
            series.capacity_bps.push(capacity_bps.map(f64::round));
            series.cellular_queue_bytes.push(sample.cellular_queue_bytes);
            series.wifi_queue_bytes.push(sample.wifi_queue_bytes);
            series.hold_queue_bytes.extend(sample.hold_queue_bytes);
            let taken_bps = rate(|sample| sample.local_taken_bytes);
            let lends_bps = sample.lends_bps.unwrap_or(f64::INFINITY);
            let available_bps = |capacity: f64| (capacity - taken_bps).max(0.0).min(lends_bps).round();
            series.available_bps.push(capacity_bps.map(available_bps));
            *before = sample;
        }
    }

    /// Returns the series and the results of every relay. `chosen` and `distances_m` are in the relays' order.
    pub fn finish(self, chosen: &[bool], distances_m: &[Option<f64>]) -> (Vec<RelaySeries>, Vec<RelayResults>) {
        let total_bytes: u64 = self.before.iter().map(|last| last.carried_bytes).sum();
        let results = self.series.iter().zip(&self.before).enumerate().map(|(index, (series, last))| RelayResults {
            name: series.name.clone(),
            chosen: chosen.get(index).copied().unwrap_or_default(),
            distance_m: distances_m.get(index).copied().flatten(),
            carried_bytes: last.carried_bytes,
            share_ratio: last.carried_bytes as f64 / total_bytes.max(1) as f64,
            capacity_bps: last
                .mean_capacity_bps(&RelaySample::default(), self.last_at.as_secs_f64())
                .map_or_else(|| mean_over_time(&series.capacity_bps, &self.spans_s), |bps| Some(bps.round())),
            local_demand_bytes: last.local_demand_bytes,
            local_received_bytes: last.local_received_bytes,
            ..RelayResults::default()
        });
        let results = results.collect();
        (self.series, results)
    }
}

/// Returns the mean of a value per window; windows count by their length, because the last may be shorter.
fn mean_over_time(values: &[Option<f64>], spans_s: &[f64]) -> Option<f64> {
    // As a share of the first, the length of a usual window is exactly 1.
    let usual_s = spans_s.first()?;
    let known = values.iter().zip(spans_s).filter_map(|(value, span_s)| Some((value.as_ref()?, span_s / usual_s)));
    let (weights, sum) = known.fold((0.0, 0.0), |(all, sum), (value, weight)| (all + weight, sum + value * weight));
    (weights > 0.0).then(|| (sum / weights).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_rates_and_totals_hold_counts() {
        let mut recorder = RelayRecorder::new(["a".into(), "b".into()]);
        let first = RelaySample {
            carried_bytes: 1000,
            capacity_bps: Some(2e6),
            local_demand_bytes: Some(500),
            local_received_bytes: 250,
            local_taken_bytes: 60_000,
            ..RelaySample::default()
        };
        recorder.sample(Instant::from_millis(500), [first, RelaySample::default()]);
        recorder.sample(Instant::from_millis(500), [first, first]);
        let second = RelaySample { carried_bytes: 3000, capacity_bps: Some(1e6), ..first };
        recorder.sample(Instant::from_millis(1500), [second, RelaySample { carried_bytes: 1000, ..first }]);
        let (series, relays) = recorder.finish(&[true, false], &[Some(900.0), None]);
        assert_eq!(series[0].carried_bps, [16_000.0, 16_000.0]);
        assert_eq!(series[0].local_goodput_bps, [4000.0, 0.0]);
        assert_eq!(series[0].local_demand_bps, [Some(8000.0), Some(0.0)]);
        // 60000 octets in 0.5 s are 0.96 of 2 Mbit/s; in the next second there are no more.
        assert_eq!(series[0].available_bps, [Some(1_040_000.0), Some(1e6)]);
        // A relay whose traffic takes all it can get has no number as its demand.
        assert_eq!(series[1].local_demand_bps[0], None);
        assert_eq!(series[1].carried_bps, [0.0, 8000.0]);
        assert_eq!(relays[0].share_ratio, 0.75);
        // 2 Mbit/s for half a second, then 1 Mbit/s for a whole one.
        assert_eq!(relays[0].capacity_bps, Some(1_333_333.0));
        assert_eq!((relays[0].chosen, relays[1].chosen, relays[0].distance_m), (true, false, Some(900.0)));
        assert_eq!(relays[0].local_ratio(), Some(0.5));
        assert_eq!(RelayResults::default().local_ratio(), None);
    }

    /// Three windows of 2, 2 and 0.02 s.
    #[test]
    fn the_capacity_in_a_cell_is_a_mean_over_time() {
        let mut recorder = RelayRecorder::new(["a".into()]);
        for (at_ms, capacity_bps) in [(2000, 3e6), (4000, 3e6), (4020, 0.0)] {
            let sample = RelaySample { capacity_bps: Some(capacity_bps), ..RelaySample::default() };
            recorder.sample(Instant::from_millis(at_ms), [sample]);
        }
        let (_, relays) = recorder.finish(&[true], &[None]);
        assert_eq!(relays[0].capacity_bps, Some(2_985_075.0));
    }

    #[test]
    fn the_capacity_of_a_link_is_a_mean_over_time() {
        let mut recorder = RelayRecorder::new(["a".into()]);
        let after = |could_carry_bits| RelaySample { could_carry_bits: Some(could_carry_bits), ..Default::default() };
        recorder.sample(Instant::from_secs(2), [after(2e6)]);
        recorder.sample(Instant::from_secs(3), [RelaySample { local_taken_bytes: 50_000, ..after(3.6e6) }]);
        let (series, relays) = recorder.finish(&[true], &[None]);
        assert_eq!(series[0].capacity_bps, [Some(1e6), Some(1.6e6)]);
        assert_eq!(series[0].available_bps, [Some(1e6), Some(1.2e6)]);
        // Windows count by their length.
        assert_eq!(relays[0].capacity_bps, Some(1.2e6));
    }
}
