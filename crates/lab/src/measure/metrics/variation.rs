//! TBR variation: distance of the aggregate throughput from its target.

/// `abs(throughput - TBR) / TBR` in percent; `None` without a target.
pub fn variation_percent(throughput_bps: f64, tbr_bps: f64) -> Option<f64> {
    (tbr_bps > 0.0).then(|| (throughput_bps - tbr_bps).abs() * 100.0 / tbr_bps)
}

/// The variation over monitor points.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variation {
    points: u64,
    sum_percent: f64,
    max_percent: f64,
}

impl Variation {
    /// Adds a monitor point.
    pub fn point(&mut self, percent: f64) {
        self.points += 1;
        self.sum_percent += percent;
        self.max_percent = self.max_percent.max(percent);
    }

    /// Mean; `None` without points.
    pub fn mean_percent(&self) -> Option<f64> {
        (self.points > 0).then(|| self.sum_percent / self.points as f64)
    }

    /// Maximum; `None` without points.
    pub fn max_percent(&self) -> Option<f64> {
        (self.points > 0).then_some(self.max_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3.75 of 3 Mbit/s is 25 % above, 2.625 is 12.5 % below.
    #[test]
    fn above_and_below_count_alike() {
        let mut variation = Variation::default();
        assert_eq!((variation.mean_percent(), variation.max_percent()), (None, None));
        for (throughput_bps, percent) in [(3.75e6, 25.0), (2.625e6, 12.5), (3e6, 0.0)] {
            assert_eq!(variation_percent(throughput_bps, 3e6), Some(percent));
            variation.point(percent);
        }
        assert_eq!((variation.mean_percent(), variation.max_percent()), (Some(12.5), Some(25.0)));
        assert_eq!(variation_percent(1.0, 0.0), None);
    }
}
