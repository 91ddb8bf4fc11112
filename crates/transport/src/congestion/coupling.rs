//! Quantities that coupled controllers derive from a connection's subflows.
//!
//! Equations of coupled controllers contain rates `cwnd_i / rtt_i`, but only their ratios matter. Multiplied by the
//! round-trip time of one subflow, a rate becomes a window in octets, which integers represent precisely enough.

use units::Duration;

use super::arithmetic::mul_div;
use super::{PathView, Paths};

/// TCP windows stay below 2^30 octets (RFC 7323 section 2.3), so this cap only keeps absurd values from overflowing.
const COUPLED_CWND_MAX: u64 = u32::MAX as u64;

/// Returns the window that counts. During recovery, the window in use follows the recovery, not the path.
pub(super) fn effective_cwnd(path: &PathView) -> u64 {
    let cwnd = if path.in_recovery { path.cwnd.min(path.ssthresh) } else { path.cwnd };
    cwnd.clamp(1, COUPLED_CWND_MAX)
}

/// The smoothed round-trip time in microseconds, below 2^32.
pub(super) fn rtt_us(path: &PathView) -> Option<u64> {
    path.srtt.map(whole_us)
}

/// `rtt` in microseconds, between 1 and 2^32.
pub(super) fn whole_us(rtt: Duration) -> u64 {
    rtt.as_micros().clamp(1, u32::MAX.into())
}

/// Returns windows and round-trip times of the subflows that have a round-trip time; the others do not take part in the
/// coupling.
pub(super) fn measured<'a>(paths: Paths<'a>) -> impl Iterator<Item = (u64, u64)> + Clone + use<'a> {
    paths.0.iter().filter_map(|path| rtt_us(path).map(|rtt| (effective_cwnd(path), rtt)))
}

/// Returns each subflow's rate over one round-trip time `rtt_us`, octets: `cwnd_i * rtt / rtt_i`.
pub(super) fn windows_over<'a>(rtt_us: u64, paths: Paths<'a>) -> impl Iterator<Item = u64> + Clone + use<'a> {
    measured(paths).map(move |(cwnd, rtt_i)| cwnd * rtt_us / rtt_i)
}

/// Returns the octets in the queue of a path, estimated as in Vegas: `cwnd * (rtt - base_rtt) / rtt`.
pub(super) fn backlog_bytes(cwnd: u64, rtt: Duration, base_rtt: Duration) -> u64 {
    mul_div(cwnd, rtt.saturating_sub(base_rtt).as_nanos(), rtt.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{path, path_with_rtt};
    use super::*;

    #[test]
    fn rates_become_windows_over_the_round_trip_in_question() {
        // 20 segments in 100 ms are 40 in 200 ms.
        let paths = [path_with_rtt(0, 20, 100), path_with_rtt(1, 10, 200)];
        assert_eq!(windows_over(200_000, Paths(&paths)).collect::<Vec<_>>(), [40_000, 10_000]);
        assert_eq!(windows_over(100_000, Paths(&paths)).collect::<Vec<_>>(), [20_000, 5_000]);
    }

    #[test]
    fn subflows_without_a_round_trip_time_do_not_count() {
        let paths = [path(0, 20), PathView { srtt: None, ..path(1, 10) }];
        assert_eq!(windows_over(100_000, Paths(&paths)).sum::<u64>(), 20_000);
    }

    #[test]
    fn the_queue_holds_what_exceeds_the_pipe() {
        // 20 segments over 125 ms, 100 ms of them propagation: a fifth of the segments waits.
        let millis = Duration::from_millis;
        assert_eq!(backlog_bytes(20_000, millis(125), millis(100)), 4_000);
        assert_eq!(backlog_bytes(20_000, millis(100), millis(125)), 0);
    }
}
