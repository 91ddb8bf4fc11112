//! The metrics of one window of analysis.

use serde::{Deserialize, Serialize};

use super::{Analysis, Outages, Settings, SubflowCount, Variation, WindowValues, variation_percent};
use crate::measure::statistics::standard_deviation;

/// The monitor points in a window of analysis. Means are over the points that have a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Monitor points.
    pub points: u64,
    /// Mean aggregate throughput.
    pub aggregate_throughput_bps: Option<f64>,
    /// Sample standard deviation of the aggregate throughput.
    #[serde(default)]
    pub aggregate_throughput_standard_deviation_bps: Option<f64>,
    /// Mean distance of the throughput from TBR.
    pub variation_mean_percent: Option<f64>,
    /// Largest distance of the throughput from TBR.
    pub variation_max_percent: Option<f64>,
    /// Outages.
    pub outages: u64,
    /// Outages over points.
    pub outage_fraction: Option<f64>,
    /// Length of the windows that ended in an outage.
    pub outage_time_s: f64,
    /// Monitor points that were outages.
    pub outages_at_s: Vec<f64>,
    /// Mean size of the active set.
    pub subflows_mean: Option<f64>,
    /// Sample standard deviation of the size of the active set.
    pub subflows_standard_deviation: Option<f64>,
    /// G1.
    pub unit_goodput_bps: Option<f64>,
    /// G1 with units as large as the blocks of G2.
    pub block_unit_goodput_bps: Option<f64>,
    /// G2.
    pub block_goodput_bps: Option<f64>,
    /// G3.
    pub in_order_goodput_bps: Option<f64>,
    /// Largest number of octets stored.
    pub receive_buffer_bytes: u64,
    /// O3-DSN: largest absolute value.
    pub reordering_peak_bytes: u64,
    /// Mean of the windows' mean delays.
    pub delay_s: Option<f64>,
    /// Mean of the windows' jitter.
    pub jitter_s: Option<f64>,
    /// Largest eta.
    pub delay_ratio_max: Option<f64>,
}

impl Summary {
    /// Summarises the `values` whose monitor points belong to `analysis`.
    pub fn of(values: &[WindowValues], analysis: Analysis, settings: &Settings) -> Self {
        let points = || values.iter().filter(|point| analysis.has_point(point.at));
        let mean = |value: fn(&WindowValues) -> Option<f64>| mean(points().filter_map(value));
        let throughput_bps: Vec<f64> = points().map(|point| point.aggregate_throughput_bps).collect();
        let mut summary = Self {
            points: points().count() as u64,
            aggregate_throughput_bps: mean(|point| Some(point.aggregate_throughput_bps)),
            aggregate_throughput_standard_deviation_bps: standard_deviation(&throughput_bps),
            unit_goodput_bps: mean(|point| point.unit_goodput_bps),
            block_unit_goodput_bps: mean(|point| point.block_unit_goodput_bps),
            block_goodput_bps: mean(|point| point.block_goodput_bps),
            in_order_goodput_bps: mean(|point| Some(point.in_order_goodput_bps)),
            receive_buffer_bytes: points().map(|point| point.receive_buffer_bytes).max().unwrap_or(0),
            reordering_peak_bytes: points().map(|point| point.reordering_bytes.unsigned_abs()).max().unwrap_or(0),
            delay_s: mean(|point| point.delay_s),
            jitter_s: mean(|point| point.jitter_s),
            delay_ratio_max: points().filter_map(|point| point.delay_ratio).reduce(f64::max),
            ..Self::default()
        };
        summary.add_range(points(), settings);
        summary.add_subflows(points());
        summary
    }

    fn add_range<'a>(&mut self, points: impl Iterator<Item = &'a WindowValues>, settings: &Settings) {
        let tbr_bps = settings.tbr.as_bps() as f64;
        // Without a target there are no outages.
        if tbr_bps == 0.0 {
            return;
        }
        let (mut outages, mut variation) = (Outages::new(tbr_bps, settings.theta), Variation::default());
        for point in points {
            outages.point(point.at, settings.window, point.aggregate_throughput_bps);
            variation_percent(point.aggregate_throughput_bps, tbr_bps).into_iter().for_each(|x| variation.point(x));
        }
        self.variation_mean_percent = variation.mean_percent();
        self.variation_max_percent = variation.max_percent();
        self.outages = outages.list().len() as u64;
        self.outage_fraction = outages.fraction();
        self.outage_time_s = outages.time().as_secs_f64();
        self.outages_at_s = outages.list().iter().map(|outage| outage.at.as_secs_f64()).collect();
    }

    fn add_subflows<'a>(&mut self, points: impl Iterator<Item = &'a WindowValues>) {
        let mut subflows = SubflowCount::default();
        for point in points {
            subflows.active(point.subflows);
            subflows.point();
        }
        self.subflows_mean = subflows.mean();
        self.subflows_standard_deviation = subflows.standard_deviation();
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use units::{Duration, Instant, Rate};

    use super::*;
    use crate::measure::metrics::{ActiveSet, Arrival, Collector};

    /// Windows of 2 s with 3, 2, 3 and 4 Mbit/s and 3, 2, 3 and 4 subflows; the first lies before the analysis.
    #[test]
    fn only_points_within_count() {
        let mut collector = Collector::new(Settings::papers(Duration::from_secs(2), Rate::from_mbps(3), 1000));
        for (second, mbps) in [(1, 3), (3, 2), (5, 3), (7, 4)] {
            let at = Instant::from_secs(second);
            collector.active_set(&ActiveSet { at, count: mbps });
            collector.arrival(&Arrival { at, subflow: 0, dsn: second << 32, len: mbps as u32 * 250_000 });
        }
        collector.close_until(Instant::from_secs(8));
        let analysis = Analysis { from: Instant::from_secs(2), to: Instant::from_secs(8) };
        let summary = Summary::of(collector.values(), analysis, collector.settings());
        assert_eq!((summary.points, summary.aggregate_throughput_bps), (3, Some(3e6)));
        // 2, 3 and 4 Mbit/s: 1 Mbit/s around their mean.
        assert_eq!(summary.aggregate_throughput_standard_deviation_bps, Some(1e6));
        assert_eq!((summary.outages, &summary.outages_at_s[..], summary.outage_time_s), (2, &[4.0, 8.0][..], 4.0));
        assert_eq!((summary.subflows_mean, summary.subflows_standard_deviation), (Some(3.0), Some(1.0)));
        let third = 100.0 / 3.0;
        assert_eq!(summary.variation_max_percent, Some(third));
        assert!((summary.variation_mean_percent.unwrap() - 2.0 * third / 3.0).abs() < 1e-9);
        assert_eq!(summary.in_order_goodput_bps, Some(0.0));
        let nothing = Summary::of(&[], Analysis::WHOLE, collector.settings());
        assert_eq!((nothing.points, nothing.outage_fraction), (0, None));
    }
}
