//! Linux's own scheduler (`default` there): the subflow that would finish soonest, in bursts.
//!
//! ```text
//! the subflow with the smallest LINGER, if it has room; otherwise wait
//!
//! LINGER   held / rate                                  time to deliver the octets that the subflow holds
//! rate     pacing at first; ( rate held + pacing burst ) / ( held + burst ) after each burst given
//! pacing   2 CWND / SRTT in the first half of slow start, else 1.2 CWND / SRTT; without a sample it is unbounded, and
//!          no part of a mean
//! burst    the smaller of 65428 octets and the connection's window: these octets go to the subflow before the next
//!          choice, unless it becomes full or the queue becomes empty first
//! ```
//!
//! The rule is made for subflows with send buffers of their own ([`crate::era::Binding::Autotuned`]). A subflow with a
//! small window then holds a burst for many round trips, and the connection lacks the data that it holds:
//! `docs/linux.md` gives the cost.
//!
//! With timestamps, Linux has a sample when a handshake ends, even if that took several SYNs. (Without them its mean,
//! too, begins with a rate that no path has, and takes many bursts to forget it.) The engine takes none from such a
//! handshake; the first data give it.
//!
//! Source: Linux 6.18, as `ss` shows it; docs/decisions/0040.

use units::{Duration, Prng};

use super::{Marks, SUBFLOWS_MAX, ScheduleContext, Scheduler, SubflowView};
use crate::SubflowId;

/// Maximum burst, octets: a super-segment of 64 KiB without its headers.
const BURST_MAX_BYTES: u64 = 65_428;

/// Chooses the subflow that would finish soonest, in bursts.
#[derive(Debug, Default)]
pub struct Linux {
    burst: Option<Burst>,
    /// Rates of subflows that had a burst, octets/s, averaged over bursts.
    rates: Vec<(SubflowId, u64)>,
}

/// Data for one subflow before the next choice.
#[derive(Clone, Copy, Debug)]
struct Burst {
    subflow: SubflowId,
    left_bytes: u64,
}

impl Scheduler for Linux {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        let going_on = self.burst.take().and_then(|burst| position_of(burst, context));
        let Some((position, burst)) = going_on.or_else(|| self.begin_burst(context)) else { return Marks::NONE };
        let given_bytes = context.fragment_bytes.max(context.subflows[position].mss.into());
        let left_bytes = burst.left_bytes.saturating_sub(given_bytes);
        // If the queue ends with these data, the next data get a new choice.
        let is_over = left_bytes == 0 || context.waiting_bytes <= given_bytes;
        self.burst = (!is_over).then_some(Burst { left_bytes, ..burst });
        Marks::one(position)
    }
}

impl Linux {
    /// Chooses the subflow of the next burst. Returns `None` while that subflow has no room.
    fn begin_burst(&mut self, context: &ScheduleContext<'_>) -> Option<(usize, Burst)> {
        let holds_or_takes = |subflow: &SubflowView| subflow.has_room || subflow.held > 0;
        let subflows = context.subflows.iter().take(SUBFLOWS_MAX).enumerate();
        let candidates = subflows.filter(|(_, subflow)| holds_or_takes(subflow));
        let (position, chosen) = candidates.min_by_key(|(_, subflow)| linger_ns(subflow, self.rate(subflow)))?;
        if !chosen.has_room {
            return None;
        }
        let burst = Burst { subflow: chosen.id, left_bytes: context.window_bytes.min(BURST_MAX_BYTES) };
        self.average(chosen, burst.left_bytes, context);
        Some((position, burst))
    }

    fn rate(&self, subflow: &SubflowView) -> u64 {
        let known = self.rates.iter().find(|(id, _)| *id == subflow.id);
        known.map(|(_, rate)| *rate).or_else(|| pacing_rate(subflow)).unwrap_or(u64::MAX)
    }

    fn average(&mut self, chosen: &SubflowView, burst_bytes: u64, context: &ScheduleContext<'_>) {
        let Some(pacing) = pacing_rate(chosen) else { return };
        let (held, burst) = (u128::from(chosen.held), u128::from(burst_bytes));
        let weighed = u128::from(self.rate(chosen)) * held + u128::from(pacing) * burst;
        let rate = u64::try_from(weighed / (held + burst).max(1)).unwrap_or(u64::MAX);
        // Forget subflows that have ended.
        self.rates.retain(|(id, _)| *id != chosen.id && context.subflows.iter().any(|subflow| subflow.id == *id));
        self.rates.push((chosen.id, rate));
    }
}

/// Returns the position of a burst's subflow, if it still takes data.
fn position_of(burst: Burst, context: &ScheduleContext<'_>) -> Option<(usize, Burst)> {
    let (position, _) = context.with_room().find(|(_, subflow)| subflow.id == burst.subflow)?;
    Some((position, burst))
}

/// Returns the rate at which Linux would pace the subflow, octets/s; `None` before the first sample.
fn pacing_rate(subflow: &SubflowView) -> Option<u64> {
    let srtt = subflow.srtt.filter(|srtt| *srtt > Duration::ZERO)?;
    let percent = if subflow.cwnd < subflow.ssthresh / 2 { 200 } else { 120 };
    let per_second = u128::from(subflow.cwnd) * percent * 10_000_000 / u128::from(srtt.as_nanos());
    Some(u64::try_from(per_second).unwrap_or(u64::MAX))
}

/// Returns the time to deliver the octets that the subflow holds.
fn linger_ns(subflow: &SubflowView, rate: u64) -> u128 {
    u128::from(subflow.held) * 1_000_000_000 / u128::from(rate.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions, positions_in, subflow};
    use super::*;

    fn holding(id: u16, srtt_ms: u64, held: u64) -> SubflowView {
        SubflowView { held, ssthresh: 0, ..subflow(id, Some(srtt_ms)) }
    }

    fn context(subflows: &[SubflowView], waiting_bytes: u64, window_bytes: u64) -> ScheduleContext<'_> {
        ScheduleContext { subflows, waiting_bytes, fragment_bytes: 0, window_bytes, unacknowledged_bytes: 0 }
    }

    #[test]
    fn the_one_that_would_be_done_soonest_is_marked() {
        // Windows of 10 kB: 12 kB in 20 ms and in 80 ms. 12 kB take 20 ms; 2 kB take 13 ms, 4 kB 27 ms.
        assert_eq!(positions(&mut Linux::default(), &[holding(0, 20, 12_000), holding(1, 80, 2_000)]), [1]);
        assert_eq!(positions(&mut Linux::default(), &[holding(0, 20, 12_000), holding(1, 80, 4_000)]), [0]);
        // At the beginning of slow start Linux paces at twice the window: 12 kB take 12 ms.
        let starting = SubflowView { ssthresh: u64::MAX, ..holding(0, 20, 12_000) };
        assert_eq!(positions(&mut Linux::default(), &[starting, holding(1, 80, 2_000)]), [0]);
    }

    #[test]
    fn it_is_waited_for_though_another_has_room() {
        let fast = SubflowView { held: 12_000, ..full(0, Some(20)) };
        assert_eq!(positions(&mut Linux::default(), &[fast, holding(1, 80, 4_000)]), []);
        // The scheduler must not wait for a subflow that neither holds nor takes data.
        let shut = SubflowView { held: 0, ..full(0, Some(20)) };
        assert_eq!(positions(&mut Linux::default(), &[shut, holding(1, 80, 4_000)]), [1]);
    }

    #[test]
    fn a_burst_stays_with_its_subflow() {
        let mut linux = Linux::default();
        let first = [holding(0, 20, 0), holding(1, 80, 0)];
        assert_eq!(positions(&mut linux, &first), [0]);
        // Later the other subflow would finish sooner: 65428 octets are 66 segments of 1000.
        let later = [holding(0, 20, 30_000), holding(1, 80, 0)];
        for _ in 1..66 {
            assert_eq!(positions(&mut linux, &later), [0]);
        }
        assert_eq!(positions(&mut linux, &later), [1]);
    }

    #[test]
    fn a_burst_ends_with_the_data_the_window_or_the_room() {
        let first = [holding(0, 20, 0), holding(1, 80, 0)];
        let later = [holding(0, 20, 30_000), holding(1, 80, 0)];
        for (waiting_bytes, window_bytes) in [(1_000, 1 << 20), (1 << 20, 1_000)] {
            let mut linux = Linux::default();
            assert_eq!(positions_in(&mut linux, &context(&first, waiting_bytes, window_bytes)), [0]);
            assert_eq!(positions_in(&mut linux, &context(&later, 1 << 20, 1 << 20)), [1]);
        }
        let mut linux = Linux::default();
        assert_eq!(positions(&mut linux, &first), [0]);
        let no_room = SubflowView { held: 30_000, ..full(0, Some(20)) };
        assert_eq!(positions(&mut linux, &[no_room, holding(1, 80, 0)]), [1]);
    }

    /// Without a sample the subflow comes first. After the first one it is as any other: 40 kB at 600 kB/s are more
    /// than 1 kB at 150 kB/s.
    #[test]
    fn an_unknown_rate_ends_with_the_first_sample() {
        let mut linux = Linux::default();
        let slow = holding(1, 80, 1_000);
        let unknown = SubflowView { held: 40_000, ssthresh: 0, ..subflow(0, None) };
        assert_eq!(positions_in(&mut linux, &context(&[unknown, slow], 1_000, 1 << 20)), [0]);
        let known = SubflowView { has_room: false, ..holding(0, 20, 40_000) };
        assert_eq!(positions(&mut linux, &[known, slow]), [1]);
    }

    #[test]
    fn a_rate_is_averaged_over_what_was_given() {
        // 600 kB/s, then 1200 kB/s with a burst of 65428 over 65428 held: 900 kB/s in the mean.
        let mut linux = Linux::default();
        let mut chosen = |subflow| positions_in(&mut linux, &context(&[subflow], 1_000, 1 << 20));
        assert_eq!(chosen(holding(0, 20, 0)), [0]);
        assert_eq!(chosen(holding(0, 10, 65_428)), [0]);
        assert_eq!(linux.rates, [(SubflowId(0), 900_000)]);
        assert_eq!(positions(&mut linux, &[holding(1, 10, 0)]), [0]);
        assert_eq!(linux.rates, [(SubflowId(1), 1_200_000)], "the first has ended");
    }
}
