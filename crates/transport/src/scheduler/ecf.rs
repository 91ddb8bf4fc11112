//! ECF, earliest completion first: waits for the fast subflow if that ends the transfer sooner.
//!
//! ```text
//! F has room:  F
//! otherwise:   S, the fastest with room; but wait for F if both
//!
//!   n RTT_F < ( 1 + waiting beta ) ( RTT_S + delta )        F ends sooner, including the wait
//!   k / CWND_S RTT_S >= 2 RTT_F + delta                     and S alone would take long
//!
//! F, S       as in blest.rs
//! n          1 + k / CWND_F: rounds of F until all data are sent, and one for the wait
//! k          octets that wait to be scheduled; at least one whole window
//! CWND       windows, octets
//! delta      the larger RTTVAR of the two
//! waiting    1 if the last decision was to wait, 0 after the first inequality failed
//! beta       parameter; 1/4 in the paper
//! ```
//!
//! Source: Lim, Nahum, Towsley, Gibbens, "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths" (CoNEXT 2017),
//! algorithm 1. The minimum of one window for k follows the authors' implementation in Linux: a segment leaves in any
//! case.

use policy::{Parameter, Values};
use units::{Duration, Prng};

use super::{Marks, ScheduleContext, Scheduler, SubflowView};

/// The parameters of ECF, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    name: "beta",
    default: 0.25,
    values: Values::Within(0.0, 10.0),
    meaning: "how much more patient it is while it waits, as a share of the slow subflow's time",
}];

/// One, in units of 2^-16.
const ONE_Q16: u128 = 1 << 16;

/// The ECF scheduler: earliest completion first.
#[derive(Debug)]
pub struct Ecf {
    beta_q16: u128,
    waiting: bool,
}

impl Ecf {
    /// Creates the scheduler from a valid value of its parameter; the registry checks it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range keeps it small and positive"
    )]
    pub(super) fn new(beta: f64) -> Self {
        Self { beta_q16: (beta * ONE_Q16 as f64).round() as u128, waiting: false }
    }
}

/// As in the paper.
impl Default for Ecf {
    fn default() -> Self {
        Self::new(PARAMETERS[0].default)
    }
}

impl Scheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn may_wait(&self) -> bool {
        true
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, _prng: &mut Prng) -> Marks {
        let Some((position, slow)) = context.fastest_with_room() else { return Marks::NONE };
        let Some((fast, rtt_fast, rtt_slow)) = context.worth_waiting_for(slow) else { return Marks::one(position) };
        let delta = fast.rttvar.max(slow.rttvar);
        let slow_and_delta = (rtt_slow + delta).as_nanos();
        // Both sides multiplied by CWND_F and 2^16.
        let by_fast = rounds_ns(context.waiting_bytes, fast, rtt_fast) + window_ns(fast, rtt_fast.as_nanos());
        let patience_q16 = ONE_Q16 + if self.waiting { self.beta_q16 } else { 0 };
        let by_slow = window_ns(fast, slow_and_delta).saturating_mul(patience_q16);
        if by_fast.saturating_mul(ONE_Q16) >= by_slow {
            self.waiting = false;
        } else if rounds_ns(context.waiting_bytes, slow, rtt_slow)
            >= window_ns(slow, (rtt_fast.saturating_mul(2) + delta).as_nanos())
        {
            self.waiting = true;
            return Marks::NONE;
        }
        Marks::one(position)
    }
}

/// k / CWND RTT, multiplied by CWND: octet-nanoseconds.
fn rounds_ns(waiting_bytes: u64, subflow: &SubflowView, rtt: Duration) -> u128 {
    u128::from(waiting_bytes.max(subflow.cwnd)) * u128::from(rtt.as_nanos() >> RTT_SHIFT)
}

/// `nanos`, multiplied by CWND: octet-nanoseconds.
fn window_ns(subflow: &SubflowView, nanos: u64) -> u128 {
    u128::from(subflow.cwnd) * u128::from(nanos >> RTT_SHIFT)
}

/// Keeps sums of products within 128 bits. Units of 16 ns are precise enough.
const RTT_SHIFT: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions_in, subflow};
    use super::*;

    fn marked(ecf: &mut Ecf, subflows: &[SubflowView], waiting_bytes: u64) -> Vec<usize> {
        let context = ScheduleContext {
            subflows,
            waiting_bytes,
            fragment_bytes: 0,
            window_bytes: 1 << 20,
            unacknowledged_bytes: 0,
        };
        positions_in(ecf, &context)
    }

    #[test]
    fn the_fastest_is_taken_while_it_has_room() {
        assert_eq!(marked(&mut Ecf::default(), &[subflow(0, Some(100)), subflow(1, Some(20))], 1_000), [1]);
    }

    #[test]
    fn little_data_waits_for_the_fast_subflow() {
        // Windows of 10 segments, 20 and 100 ms. k = 10: n = 2, 40 < 100, and 100 >= 40.
        let subflows = [full(0, Some(20)), subflow(1, Some(100))];
        assert_eq!(marked(&mut Ecf::default(), &subflows, 10_000), []);
        // Less than a window counts as one.
        assert_eq!(marked(&mut Ecf::default(), &subflows, 1_000), []);
        // k = 39: n = 4.9, 98 < 100. k = 40: n = 5, 100 < 100 is false.
        assert_eq!(marked(&mut Ecf::default(), &subflows, 39_000), []);
        assert_eq!(marked(&mut Ecf::default(), &subflows, 40_000), [1]);
    }

    #[test]
    fn having_waited_makes_it_patient() {
        // 1.25 * 100 = 125: n may be 6.25, k 52.5 segments.
        let subflows = [full(0, Some(20)), subflow(1, Some(100))];
        let mut ecf = Ecf::default();
        assert_eq!(marked(&mut ecf, &subflows, 10_000), []);
        assert_eq!(marked(&mut ecf, &subflows, 52_000), []);
        assert_eq!(marked(&mut ecf, &subflows, 52_500), [1]);
        // The scheduler no longer waits.
        assert_eq!(marked(&mut ecf, &subflows, 52_000), [1]);
    }

    #[test]
    fn beta_is_how_much_more_patient_it_becomes() {
        // As above; with beta = 1, n may be 10 and k 90 segments, with beta = 0, as before, 5 and 40.
        let subflows = [full(0, Some(20)), subflow(1, Some(100))];
        for (beta, waits, gives_up) in [(1.0, 89_900, 90_000), (0.0, 39_900, 40_000)] {
            let mut ecf = Ecf::new(beta);
            assert_eq!(marked(&mut ecf, &subflows, 10_000), []);
            assert_eq!(marked(&mut ecf, &subflows, waits), [], "{beta}");
            assert_eq!(marked(&mut ecf, &subflows, gives_up), [1], "{beta}");
        }
    }

    #[test]
    fn a_subflow_that_is_not_much_slower_is_used() {
        // 2 * 20 < 45, but 45 >= 2 * 20 + delta fails for delta = 10.
        let slow = SubflowView { rttvar: Duration::from_millis(10), ..subflow(1, Some(45)) };
        assert_eq!(marked(&mut Ecf::default(), &[full(0, Some(20)), slow], 10_000), [1]);
        let steady = subflow(1, Some(45));
        assert_eq!(marked(&mut Ecf::default(), &[full(0, Some(20)), steady], 10_000), []);
    }

    #[test]
    fn nothing_is_waited_for_without_end() {
        let silent = SubflowView { in_flight: 0, ..full(0, Some(20)) };
        assert_eq!(marked(&mut Ecf::default(), &[silent, subflow(1, Some(100))], 10_000), [1]);
        assert_eq!(marked(&mut Ecf::default(), &[full(0, Some(20)), full(1, Some(100))], 10_000), []);
    }
}
