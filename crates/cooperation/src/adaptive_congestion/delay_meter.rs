//! Measures the mean delay of each path over a period, from cumulative statistics.

use std::collections::BTreeMap;

use transport::{SubflowId, SubflowStats};
use units::Duration;

use super::PathSample;

/// Computes differences between the statistics of two times.
#[derive(Clone, Debug, Default)]
pub struct DelayMeter {
    latest: BTreeMap<SubflowId, Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    rtt_sum: Duration,
    rtt_samples: u64,
}

impl DelayMeter {
    /// Returns the paths in use that were measured since the previous call: established, not closed, not backup.
    pub fn take<'a>(&mut self, subflows: impl IntoIterator<Item = &'a SubflowStats>) -> Vec<PathSample> {
        let before = core::mem::take(&mut self.latest);
        let mut samples = Vec::new();
        for stats in subflows.into_iter().filter(|stats| stats.closed_at.is_none()) {
            let sums = Sums { rtt_sum: stats.rtt_sum, rtt_samples: stats.rtt_samples };
            self.latest.insert(stats.id, sums);
            let since = before.get(&stats.id).copied().unwrap_or_default();
            samples.extend(sample(stats, since));
        }
        samples
    }
}

fn sample(stats: &SubflowStats, since: Sums) -> Option<PathSample> {
    let count = stats.rtt_samples.checked_sub(since.rtt_samples).filter(|count| *count > 0)?;
    if stats.backup {
        return None;
    }
    Some(PathSample {
        path: stats.id,
        mean_delay: stats.rtt_sum.saturating_sub(since.rtt_sum).mul_div(1, count),
        way: Duration::ZERO,
        srtt: stats.srtt?,
        min_rtt: stats.min_rtt.or(stats.srtt)?,
        cwnd: stats.cwnd_bytes,
        ssthresh: stats.ssthresh_bytes,
        mss: stats.mss_bytes,
        in_recovery: stats.in_recovery || stats.answers_mark,
        established_at: stats.established_at?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use units::Instant;

    use super::*;

    pub(in crate::adaptive_congestion) fn stats(id: u16, rtt_sum_ms: u64, rtt_samples: u64) -> SubflowStats {
        let address = core::net::SocketAddr::from(([10, 0, 0, 1], 80));
        SubflowStats {
            mss_bytes: 1000,
            path_mtu_bytes: 1052,
            cwnd_bytes: 20_000,
            ssthresh_bytes: 10_000,
            srtt: Some(Duration::from_millis(90)),
            rtt_sum: Duration::from_millis(rtt_sum_ms),
            rtt_samples,
            in_recovery: true,
            ..SubflowStats::unheard(SubflowId(id), address, address, Instant::from_millis(30))
        }
    }

    fn delays_ms(samples: &[PathSample]) -> Vec<(u16, u64)> {
        samples.iter().map(|sample| (sample.path.0, sample.mean_delay.as_millis())).collect()
    }

    #[test]
    fn a_mean_is_taken_over_the_samples_of_the_period_only() {
        let mut meter = DelayMeter::default();
        assert_eq!(delays_ms(&meter.take(&[stats(0, 1000, 10), stats(1, 600, 2)])), [(0, 100), (1, 300)]);
        assert_eq!(delays_ms(&meter.take(&[stats(0, 1400, 12), stats(1, 600, 2)])), [(0, 200)]);
        assert_eq!(delays_ms(&meter.take(&[stats(0, 1400, 12), stats(1, 1000, 3)])), [(1, 400)]);
    }

    #[test]
    fn the_rest_is_as_the_subflow_has_it() {
        let expected = PathSample {
            path: SubflowId(3),
            mean_delay: Duration::from_millis(100),
            way: Duration::ZERO,
            srtt: Duration::from_millis(90),
            // The smoothed round-trip time, because no shortest one is known.
            min_rtt: Duration::from_millis(90),
            cwnd: 20_000,
            ssthresh: 10_000,
            mss: 1000,
            in_recovery: true,
            established_at: Instant::from_millis(30),
        };
        assert_eq!(DelayMeter::default().take(&[stats(3, 1000, 10)]), [expected]);
    }

    /// The engine then refuses cuts, so they must not count.
    #[test]
    fn a_path_that_answers_a_mark_is_recovering() {
        let answering = SubflowStats { in_recovery: false, answers_mark: true, ..stats(0, 1000, 10) };
        let open = SubflowStats { in_recovery: false, ..stats(1, 1000, 10) };
        let recovering =
            DelayMeter::default().take(&[answering, open]).iter().map(|sample| sample.in_recovery).collect::<Vec<_>>();
        assert_eq!(recovering, [true, false]);
    }

    #[test]
    fn only_paths_in_use_are_measured() {
        let backup = SubflowStats { backup: true, ..stats(0, 1000, 10) };
        let closed = SubflowStats { closed_at: Some(Instant::ZERO), ..stats(1, 1000, 10) };
        let opening = SubflowStats { established_at: None, ..stats(2, 1000, 10) };
        let mut meter = DelayMeter::default();
        assert_eq!(meter.take(&[backup, closed, opening]), []);
        // A backup that comes into use is measured from then on.
        assert_eq!(delays_ms(&meter.take(&[stats(0, 1050, 11)])), [(0, 50)]);
    }

    /// A subflow that reuses the number of an earlier one is measured afresh.
    #[test]
    fn sums_that_start_over_are_not_taken_for_a_mean() {
        let mut meter = DelayMeter::default();
        meter.take(&[stats(0, 1000, 10)]);
        assert_eq!(meter.take(&[stats(0, 50, 1)]), []);
        assert_eq!(delays_ms(&meter.take(&[stats(0, 110, 2)])), [(0, 60)]);
    }
}
