//! Data that wait for a subflow's window.
//!
//! Data that are bound to a subflow before its window opens wait there. Round trips do not show this part of the path's
//! delay, and a smaller window makes it longer.
//!
//! ```text
//! U_r octets wait unsent, A_r were acknowledged in the period F:     d_r = mean RTT + F U_r / A_r
//! where ACC would cut cwnd_j to cwnd_j / eta:                        B_j = (octets that j holds) / eta
//! each period without a cut of j:                                    B_j = 2 max(B_j, MSS), no limit once that is
//!                                                                    LIMIT_END
//! ```
//!
//! A path delivers in d_r what it holds (Little's law), so B_j is the octets that it delivers in the delay of the
//! fastest path. The engine always lets a subflow hold its window, so the limit never idles a path.

use std::collections::BTreeMap;

use transport::{SubflowId, SubflowStats};
use units::Duration;

use super::{Cut, PathSample};

/// A limit that has grown to this many octets is dropped: no send buffer of a subflow is larger.
const LIMIT_END: u64 = 1 << 20;

/// The waiting data of one connection's subflows, and their limits.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Octets acknowledged by the end of the previous period.
    acked: BTreeMap<SubflowId, u64>,
    /// B_r, octets.
    limits: BTreeMap<SubflowId, u64>,
}

impl Waiting {
    /// Adds the time that data wait for their windows to the delays of `paths`, at the end of a period of length
    /// `period`.
    pub fn lengthen(&mut self, paths: &mut [PathSample], subflows: &[SubflowStats], period: Duration) {
        let before = core::mem::take(&mut self.acked);
        for subflow in subflows {
            self.acked.insert(subflow.id, subflow.acked_bytes);
            let acked = subflow.acked_bytes.saturating_sub(before.get(&subflow.id).copied().unwrap_or(0));
            if let Some(path) = paths.iter_mut().find(|path| path.path == subflow.id) {
                path.mean_delay += period.mul_div(subflow.unsent_bytes, acked.max(1));
            }
        }
    }

    /// Returns the subflows that have a limit.
    pub fn limited(&self) -> impl Iterator<Item = SubflowId> + '_ {
        self.limits.keys().copied()
    }

    /// Returns the new limit of what each of `paths` may hold, given the `cut` that one of the windows would get.
    pub fn limit(
        &mut self,
        cut: Option<Cut>,
        paths: &[PathSample],
        subflows: &[SubflowStats],
    ) -> Vec<(SubflowId, Option<u64>)> {
        let mut told = Vec::new();
        for path in paths {
            let Some(subflow) = subflows.iter().find(|subflow| subflow.id == path.path) else { continue };
            let limit = match cut.filter(|cut| cut.path == path.path) {
                Some(cut) => Some(subflow.held_bytes.saturating_mul(cut.cwnd) / path.cwnd.max(1)),
                // A subflow that held nothing when it was cut has a limit of 0.
                None => self.limits.get(&path.path).map(|limit| 2 * (*limit).max(path.mss.into())),
            };
            match limit.filter(|limit| *limit < LIMIT_END) {
                Some(limit) => self.limits.insert(path.path, limit),
                None => self.limits.remove(&path.path),
            };
            told.push((path.path, self.limits.get(&path.path).copied()));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use crate::adaptive_congestion::delay_meter::tests::stats;

    const F: Duration = Duration::from_secs(2);
    const SLOW: SubflowId = SubflowId(1);

    fn subflow(id: u16, acked_bytes: u64, unsent_bytes: u64) -> SubflowStats {
        // A loss is being repaired: of the 20,000 octets outstanding, most have arrived.
        let (in_flight_bytes, held_bytes) = (2_000, 20_000 + unsent_bytes);
        SubflowStats { acked_bytes, unsent_bytes, in_flight_bytes, held_bytes, ..stats(id, 0, 0) }
    }

    fn path(id: u16) -> PathSample {
        let delay = Duration::from_millis(100);
        PathSample {
            path: SubflowId(id),
            mean_delay: delay,
            way: Duration::ZERO,
            srtt: delay,
            min_rtt: delay,
            cwnd: 20_000,
            ssthresh: 10_000,
            mss: 1000,
            in_recovery: false,
            established_at: Instant::ZERO,
        }
    }

    fn cut() -> Cut {
        Cut { path: SLOW, cwnd: 5_000, ssthresh: 5_000 }
    }

    /// 100 kB wait on a path that delivered 50 kB in 2 s: 4 s. In the next period, it delivers 200 kB: 1 s.
    #[test]
    fn what_waits_counts_at_the_rate_of_the_latest_period() {
        let mut waiting = Waiting::default();
        let mut delays_ms = |slow: SubflowStats| {
            let mut paths = [path(0), path(1)];
            waiting.lengthen(&mut paths, &[subflow(0, 500_000, 0), slow], F);
            paths.map(|path| path.mean_delay.as_millis())
        };
        assert_eq!(delays_ms(subflow(1, 50_000, 100_000)), [100, 4100]);
        assert_eq!(delays_ms(subflow(1, 250_000, 100_000)), [100, 1100]);
    }

    /// A path that delivered nothing is the slowest of all, and nothing is divided by zero.
    #[test]
    fn a_path_that_stands_still_waits_for_ever() {
        let mut paths = [path(0), path(1)];
        Waiting::default().lengthen(&mut paths, &[subflow(0, 500_000, 10), subflow(1, 0, 100_000)], F);
        assert!(paths[1].mean_delay > Duration::from_secs(3600), "{paths:?}");
    }

    #[test]
    fn what_is_cut_of_the_window_is_cut_of_what_is_held() {
        let (paths, subflows) = ([path(0), path(1)], [subflow(0, 0, 60_000), subflow(1, 0, 60_000)]);
        let told = Waiting::default().limit(Some(cut()), &paths, &subflows);
        assert_eq!(told, [(SubflowId(0), None), (SLOW, Some(20_000))]);
    }

    #[test]
    fn limits_double_until_they_are_none() {
        let (paths, subflows) = ([path(1)], [subflow(1, 0, 60_000)]);
        let mut waiting = Waiting::default();
        waiting.limit(Some(cut()), &paths, &subflows);
        assert!(waiting.limited().eq([SLOW]));
        let later: Vec<_> = (0..7).map(|_| waiting.limit(None, &paths, &subflows)[0].1).collect();
        let doubled = [40_000, 80_000, 160_000, 320_000, 640_000].map(Some);
        assert_eq!(later, [&doubled[..], &[None, None]].concat());
        assert_eq!(waiting.limited().count(), 0);
    }

    /// The source pauses when the subflow is cut.
    #[test]
    fn the_limit_of_a_subflow_that_held_nothing_ends_too() {
        let (paths, subflows) = ([path(1)], [SubflowStats { held_bytes: 0, ..subflow(1, 0, 0) }]);
        let mut waiting = Waiting::default();
        assert_eq!(waiting.limit(Some(cut()), &paths, &subflows), [(SLOW, Some(0))]);
        let later: Vec<_> = (0..10).map(|_| waiting.limit(None, &paths, &subflows)[0].1).collect();
        assert_eq!((later[0], later[8]), (Some(2_000), Some(512_000)));
        assert_eq!((later[9], waiting.limited().count()), (Some(1_024_000), 1));
        assert_eq!(waiting.limit(None, &paths, &subflows), [(SLOW, None)]);
    }
}
