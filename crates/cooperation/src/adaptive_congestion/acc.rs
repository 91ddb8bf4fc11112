//! Algorithm 3 of the thesis.

use std::collections::BTreeMap;

use transport::SubflowId;
use units::{Duration, Instant};

use super::{Beyond, Cut, Mode, PathSample, Settings, SettingsError};

/// Minimum window after a cut, in segments: the thesis prints no floor, RFC 5681 has this one for thresholds.
const CWND_MIN_SEGMENTS: u64 = 2;

/// Adaptive congestion control of one connection.
#[derive(Clone, Debug)]
pub struct Acc {
    settings: Settings,
    /// Consecutive cuts (count_r): of every path in paper mode, only of the slowest path in build mode.
    counts: BTreeMap<SubflowId, u32>,
}

impl Acc {
    /// Creates the algorithm with these settings.
    ///
    /// # Errors
    /// Returns an error if the settings make no sense.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        Ok(Self { settings, counts: BTreeMap::new() })
    }

    /// Handles the end of a period (F); returns the window to cut, if any. `paths` are the paths in use that were
    /// measured in the period. O(paths).
    pub fn on_period(&mut self, now: Instant, paths: &[PathSample]) -> Option<Cut> {
        let slowest =
            paths.iter().reduce(|slowest, path| if path.delay() > slowest.delay() { path } else { slowest })?;
        let fastest =
            paths.iter().reduce(|fastest, path| if path.delay() < fastest.delay() { path } else { fastest })?;
        if paths.len() < 2 || fastest.delay().is_zero() {
            return None;
        }
        let eta = slowest.delay().as_nanos() as f64 / fastest.delay().as_nanos() as f64;
        let gamma = paths.iter().map(|path| path.srtt).max()?.saturating_mul(self.settings.age_rtts);
        match self.settings.mode {
            Mode::Build => self.by_meaning(now, slowest, fastest, eta, gamma),
            Mode::Paper => self.by_letter(now, slowest, fastest, eta, gamma),
        }
    }

    /// Returns the window that remains to the slowest path, if the delay ratio is in range. Ratios of delays are
    /// computed in integers, because a kernel has nothing else (`bpf/rules/acc.h`).
    fn left(&self, eta: f64, slowest: &PathSample, fastest: &PathSample) -> Option<u64> {
        let of = |part: Duration, whole: Duration| {
            let product = u128::from(slowest.cwnd) * u128::from(part.as_nanos());
            u64::try_from(product / u128::from(whole.as_nanos().max(1))).unwrap_or(u64::MAX)
        };
        let Settings { eta_min, beyond, mode, .. } = self.settings;
        let eta_max = if beyond == Beyond::Spread { spread(slowest) } else { self.settings.eta_max };
        let is_above = if mode == Mode::Paper { eta >= eta_min } else { eta > eta_min };
        match (is_above, eta <= eta_max, beyond) {
            (true, true, _) => Some(of(fastest.delay(), slowest.delay())),
            (true, false, Beyond::Cap) => Some((slowest.cwnd as f64 / eta_max) as u64),
            (true, false, Beyond::Spread) if eta_max > eta_min => {
                Some(of(slowest.min_rtt.max(Duration::from_nanos(1)), slowest.mean_delay))
            }
            _ => None,
        }
    }

    /// Build mode: counts consecutive cuts, so anything else that happens to the path restarts the count.
    fn by_meaning(
        &mut self,
        now: Instant,
        slowest: &PathSample,
        fastest: &PathSample,
        eta: f64,
        gamma: Duration,
    ) -> Option<Cut> {
        self.counts.retain(|path, _| *path == slowest.path);
        let count = self.counts.entry(slowest.path).or_default();
        let made = core::mem::take(count);
        let left = self.left(eta, slowest, fastest)?;
        if made >= self.settings.cuts_max {
            return None;
        }
        let is_settled = now.saturating_since(slowest.established_at) > gamma;
        let cut = cut(slowest, left).filter(|_| is_settled && is_avoiding_congestion(slowest));
        // A period in which the path could not be cut neither counts nor restarts the count.
        self.counts.insert(slowest.path, made + u32::from(cut.is_some()));
        cut
    }

    /// Paper mode: line by line, with the age of the path that line 4 finds. Only a period without a cut after m cuts
    /// restarts the count.
    fn by_letter(
        &mut self,
        now: Instant,
        slowest: &PathSample,
        fastest: &PathSample,
        eta: f64,
        gamma: Duration,
    ) -> Option<Cut> {
        let left = self.left(eta, slowest, fastest)?;
        let count = self.counts.entry(slowest.path).or_default();
        if *count >= self.settings.cuts_max {
            *count = 0;
            return None;
        }
        if now.saturating_since(fastest.established_at) <= gamma {
            return None;
        }
        *count += 1;
        cut(slowest, left)
    }
}

/// Returns the ratio of the path's delay to its delay without a queue, in the part that its window changes.
fn spread(path: &PathSample) -> f64 {
    path.mean_delay.as_nanos() as f64 / path.min_rtt.as_nanos().max(1) as f64
}

/// Returns whether the path is out of slow start, and neither repairs a loss nor answers a mark.
fn is_avoiding_congestion(path: &PathSample) -> bool {
    path.cwnd >= path.ssthresh && !path.in_recovery
}

/// Returns the cut that lowers the window of `path` to `left`, if that makes it smaller.
fn cut(path: &PathSample, left: u64) -> Option<Cut> {
    let cwnd = left.max(CWND_MIN_SEGMENTS * u64::from(path.mss));
    (cwnd < path.cwnd).then(|| Cut { path: path.path, cwnd, ssthresh: path.ssthresh.min(cwnd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a path established at time zero, out of slow start, with a smoothed round-trip time of 100 ms and an MSS
    /// of 1000 octets.
    fn path(id: u16, mean_delay_ms: u64, segments: u64) -> PathSample {
        PathSample {
            path: SubflowId(id),
            mean_delay: Duration::from_millis(mean_delay_ms),
            way: Duration::ZERO,
            srtt: Duration::from_millis(100),
            min_rtt: Duration::from_millis(50),
            cwnd: segments * 1000,
            ssthresh: segments * 1000 / 2,
            mss: 1000,
            in_recovery: false,
            established_at: Instant::ZERO,
        }
    }

    fn acc(settings: Settings) -> Acc {
        Acc::new(settings).unwrap()
    }

    fn build() -> Acc {
        acc(Settings::default())
    }

    fn paper() -> Acc {
        acc(Settings { mode: Mode::Paper, ..Settings::default() })
    }

    /// Returns the cuts of path 1 (window of 20 segments, twice the delay of path 0) in periods that end at these
    /// seconds.
    fn cuts(acc: &mut Acc, periods: &[&[PathSample; 2]]) -> Vec<Option<u64>> {
        let end = |(paths, period): (&&[PathSample; 2], u64)| {
            acc.on_period(Instant::from_secs(2 * period), *paths).map(|cut| cut.cwnd)
        };
        periods.iter().zip(1..).map(end).collect()
    }

    #[test]
    fn the_slowest_path_is_divided_by_the_ratio_to_the_fastest() {
        let paths = [path(0, 100, 10), path(1, 250, 20), path(2, 150, 30)];
        let cut = build().on_period(Instant::from_secs(2), &paths);
        assert_eq!(cut, Some(Cut { path: SubflowId(1), cwnd: 8_000, ssthresh: 8_000 }));
    }

    #[test]
    fn a_threshold_below_the_new_window_stays() {
        let slow = PathSample { ssthresh: 5_000, ..path(1, 200, 20) };
        let cut = build().on_period(Instant::from_secs(2), &[path(0, 100, 10), slow]);
        assert_eq!(cut, Some(Cut { path: SubflowId(1), cwnd: 10_000, ssthresh: 5_000 }));
    }

    #[test]
    fn two_segments_stay_and_nothing_is_raised() {
        let cut_of = |segments| build().on_period(Instant::from_secs(2), &[path(0, 100, 10), path(1, 300, segments)]);
        assert_eq!(cut_of(5), Some(Cut { path: SubflowId(1), cwnd: 2_000, ssthresh: 2_000 }));
        assert_eq!(cut_of(2), None);
        assert_eq!(cut_of(1), None);
    }

    #[test]
    fn only_ratios_in_range_are_answered() {
        let cut_at = |settings: Settings, delay_ms| {
            acc(settings)
                .on_period(Instant::from_secs(2), &[path(0, 100, 10), path(1, delay_ms, 21)])
                .map(|cut| cut.cwnd)
        };
        let default = Settings::default();
        assert_eq!([100, 105, 300, 301].map(|delay| cut_at(default, delay)), [None, Some(20_000), Some(7_000), None]);
        let dead_band = Settings { eta_min: 1.1, ..default };
        assert_eq!([105, 110, 150].map(|delay| cut_at(dead_band, delay)), [None, None, Some(14_000)]);
        let capped = Settings { beyond: Beyond::Cap, ..default };
        assert_eq!([150, 301, 900].map(|delay| cut_at(capped, delay)), [Some(14_000), Some(7_000), Some(7_000)]);
    }

    /// The fast path has 100 ms. A path with 50 ms of its own and 250 ms in all would need only a fifth of its window,
    /// so it is cut by the whole ratio of 2.5; one with 200 ms of its own, by no more than 1.25.
    #[test]
    fn each_path_has_a_limit_of_its_own() {
        let spread = Settings { beyond: Beyond::Spread, ..Settings::default() };
        let cut_of = |delay_ms, min_rtt_ms| {
            let slow = PathSample { min_rtt: Duration::from_millis(min_rtt_ms), ..path(1, delay_ms, 20) };
            acc(spread).on_period(Instant::from_secs(2), &[path(0, 100, 10), slow]).map(|cut| cut.cwnd)
        };
        assert_eq!([cut_of(250, 50), cut_of(250, 200), cut_of(250, 250)], [Some(8_000), Some(16_000), None]);
        // Above the common limit of 3 too, if the queue is deep enough.
        assert_eq!([cut_of(500, 50), cut_of(500, 125), cut_of(500, 500)], [Some(4_000), Some(5_000), None]);
    }

    /// 100 ms of round trip, of which the queue is half, and 400 ms behind the relay: five times the delay of the fast
    /// path, but half of the window empties the queue. With 60 ms behind the relay the ratio is 1.6, within the limit.
    #[test]
    fn what_a_relay_adds_limits_no_cut() {
        let spread = Settings { beyond: Beyond::Spread, ..Settings::default() };
        let cut_of = |way_ms, min_rtt_ms| {
            let (way, min_rtt) = (Duration::from_millis(way_ms), Duration::from_millis(min_rtt_ms));
            let slow = PathSample { way, min_rtt, ..path(1, 100, 20) };
            acc(spread).on_period(Instant::from_secs(2), &[path(0, 100, 10), slow]).map(|cut| cut.cwnd)
        };
        assert_eq!([cut_of(400, 50), cut_of(60, 50), cut_of(400, 100)], [Some(10_000), Some(12_500), None]);
    }

    #[test]
    fn a_lone_path_or_one_without_delay_is_left_alone() {
        assert_eq!(build().on_period(Instant::from_secs(2), &[]), None);
        assert_eq!(build().on_period(Instant::from_secs(2), &[path(0, 100, 10)]), None);
        assert_eq!(build().on_period(Instant::from_secs(2), &[path(0, 0, 10), path(1, 100, 10)]), None);
    }

    #[test]
    fn slow_start_and_recovery_are_left_alone() {
        let starting = PathSample { ssthresh: u64::MAX, ..path(1, 200, 20) };
        let recovering = PathSample { in_recovery: true, ..path(1, 200, 20) };
        for slow in [starting, recovering] {
            assert_eq!(build().on_period(Instant::from_secs(2), &[path(0, 100, 10), slow]), None);
        }
    }

    /// Gamma is 4 * 300 ms, from the longest round-trip time, which need not be that of the path with the longest mean
    /// delay.
    #[test]
    fn a_young_subflow_is_left_alone() {
        let cut_at = |slow: PathSample, now_ms| {
            let fast = PathSample { srtt: Duration::from_millis(300), ..path(0, 100, 10) };
            build().on_period(Instant::from_millis(now_ms), &[fast, slow]).is_some()
        };
        let slow = PathSample { established_at: Instant::from_secs(10), ..path(1, 200, 20) };
        assert_eq!([11_200, 11_201].map(|now_ms| cut_at(slow, now_ms)), [false, true]);
    }

    #[test]
    fn after_three_cuts_in_a_row_one_period_goes_without() {
        let paths = [path(0, 100, 10), path(1, 200, 20)];
        let (yes, no) = (Some(10_000), None);
        assert_eq!(cuts(&mut build(), &[&paths; 9]), [yes, yes, yes, no, yes, yes, yes, no, yes]);
        assert_eq!(cuts(&mut paper(), &[&paths; 9]), [yes, yes, yes, no, yes, yes, yes, no, yes]);
        let once = Settings { cuts_max: 1, ..Settings::default() };
        assert_eq!(cuts(&mut acc(once), &[&paths; 4]), [yes, no, yes, no]);
    }

    /// Two cuts, then path 0 is the slowest or the delays are alike, and three more may follow. As printed, the count
    /// continues, and equal delays even count: the third cut does nothing.
    #[test]
    fn a_row_of_cuts_ends_when_another_path_is_slowest_or_delays_are_alike() {
        let slow = [path(0, 100, 2), path(1, 200, 20)];
        let (yes, no) = (Some(10_000), None);
        for other in [[path(0, 200, 2), path(1, 100, 20)], [path(0, 100, 2), path(1, 100, 20)]] {
            let periods: [&[PathSample; 2]; 7] = [&slow, &slow, &other, &slow, &slow, &slow, &slow];
            assert_eq!(cuts(&mut build(), &periods), [yes, yes, no, yes, yes, yes, no]);
            assert_eq!(cuts(&mut paper(), &periods), [yes, yes, no, yes, no, yes, yes]);
        }
        let far = [path(0, 100, 2), path(1, 400, 20)];
        assert_eq!(
            cuts(&mut build(), &[&slow, &slow, &far, &slow, &slow, &slow, &slow]),
            [yes, yes, no, yes, yes, yes, no]
        );
    }

    #[test]
    fn a_loss_under_repair_does_not_end_the_row() {
        let slow = [path(0, 100, 10), path(1, 200, 20)];
        let recovering = [path(0, 100, 10), PathSample { in_recovery: true, ..path(1, 200, 20) }];
        let (yes, no) = (Some(10_000), None);
        assert_eq!(cuts(&mut build(), &[&slow, &slow, &recovering, &slow, &slow]), [yes, yes, no, yes, no]);
    }

    /// Algorithm 3, lines 4 and 8: the age is that of the fastest path. Line 6 includes both ends; slow start plays no
    /// role.
    #[test]
    fn as_printed_the_fastest_path_must_be_old_enough() {
        let at = Instant::from_secs(10);
        let (young, old) = (path(0, 100, 10), PathSample { ssthresh: u64::MAX, ..path(1, 200, 20) });
        let young = PathSample { established_at: at, ..young };
        assert_eq!(paper().on_period(Instant::from_millis(10_400), &[young, old]), None);
        assert_eq!(
            paper().on_period(Instant::from_millis(10_401), &[young, old]),
            Some(Cut { path: SubflowId(1), cwnd: 10_000, ssthresh: 10_000 })
        );
        let (old, young) = (path(0, 100, 10), PathSample { established_at: at, ..path(1, 200, 20) });
        assert!(paper().on_period(Instant::from_millis(10_100), &[old, young]).is_some());
        assert_eq!(build().on_period(Instant::from_millis(10_100), &[old, young]), None);
    }
}
