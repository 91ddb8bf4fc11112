//! Round-trip time and retransmission time-out (RFC 6298).

use units::{Duration, Instant};

use crate::era::RtoFloor;

/// RTO before the first sample (RFC 6298 section 2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// RTO after a lost SYN, until there is a sample (RFC 6298 section 5.7).
const RTO_AFTER_SYN_LOSS: Duration = Duration::from_secs(3);
/// Maximum RTO. RFC 6298 section 2.5 allows any bound of at least 60 s.
const RTO_MAX: Duration = Duration::from_secs(60);
/// RFC 9293 section 3.8.3 (SHLD-10): three retransmissions at the current RTO, and time for the last one.
const USER_TIMEOUT_SHARES: u64 = 4;
/// Clock granularity G.
const GRANULARITY: Duration = Duration::from_millis(1);
/// Horizon of the windowed minimum. RFC 8985 section 6.2 leaves the choice; Linux uses the same.
const MIN_RTT_HORIZON: Duration = Duration::from_secs(300);

/// Estimates the round-trip time of one path.
#[derive(Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    latest: Option<Duration>,
    min: Option<(Duration, Instant)>,
    least: Option<Duration>,
    sum: Duration,
    samples: u64,
    rto_min: Duration,
    rto_floor: RtoFloor,
    rto_initial: Duration,
    /// Limit of the doubling.
    rto_max: Duration,
    backoff: u32,
    /// The resulting RTO, cached because every segment needs it.
    rto: Duration,
}

impl RttEstimator {
    pub(crate) fn new(rto_min: Duration, rto_floor: RtoFloor) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            latest: None,
            min: None,
            least: None,
            sum: Duration::ZERO,
            samples: 0,
            rto_min,
            rto_floor,
            rto_initial: RTO_INITIAL,
            rto_max: RTO_MAX,
            backoff: 0,
            rto: RTO_INITIAL,
        }
    }

    /// Takes a sample from a segment that was not retransmitted (Karn's algorithm, RFC 6298 section 3).
    pub(crate) fn sample(&mut self, rtt: Duration, now: Instant) {
        self.latest = Some(rtt);
        self.sum += rtt;
        self.samples += 1;
        self.backoff = 0;
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        match self.min {
            Some((min, at)) if rtt > min && now.saturating_since(at) < MIN_RTT_HORIZON => {}
            _ => self.min = Some((rtt, now)),
        }
        // RFC 6298 sections 2.2 and 2.3: alpha = 1/8, beta = 1/4.
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                self.rttvar = Duration::from_nanos((self.rttvar.as_nanos() * 3 + srtt.abs_diff(rtt).as_nanos()) / 4);
                self.srtt = Some(Duration::from_nanos((srtt.as_nanos() * 7 + rtt.as_nanos()) / 8));
            }
        }
        self.update_rto();
    }

    /// Returns the retransmission time-out, including back-off.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }

    fn update_rto(&mut self) {
        self.rto = self.rto_backed_off(self.backoff);
    }

    fn base(&self) -> Duration {
        match self.srtt {
            None => self.rto_initial,
            Some(srtt) => {
                let variance = (self.rttvar * 4).max(GRANULARITY);
                match self.rto_floor {
                    // As in Linux: a path of 400 ms keeps its own margin.
                    RtoFloor::Variance => srtt + variance.max(self.rto_min),
                    RtoFloor::Whole => (srtt + variance).max(self.rto_min),
                }
            }
        }
    }

    /// Doubles the time-out (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
        self.update_rto();
    }

    /// Records the end of the handshake. From now on only a sample ends the back-off (RFC 6298 section 5.7, Karn's
    /// algorithm).
    pub(crate) fn end_handshake(&mut self) {
        if self.backoff > 0 {
            self.rto_initial = RTO_AFTER_SYN_LOSS;
        }
        self.backoff = 0;
        self.update_rto();
    }

    /// Limits the doubling to leave room for three retransmissions before data have waited for `user_timeout`. Karn's
    /// rule keeps a back-off until an ACK covers a segment that was sent once, which may take minutes while much is
    /// being repaired. Without a bound, the connection would then give up a responsive peer after a single loss.
    pub(crate) fn leave_room_within(&mut self, user_timeout: Duration) {
        self.rto_max = RTO_MAX.min(user_timeout / USER_TIMEOUT_SHARES);
        self.update_rto();
    }

    /// Returns the time-out after `doublings`, independent of the back-off of retransmissions. No bound shortens it
    /// below what the round-trip time requires.
    pub(crate) fn rto_backed_off(&self, doublings: u32) -> Duration {
        let base = self.base().min(RTO_MAX);
        base.saturating_mul(1 << doublings.min(16)).min(self.rto_max.max(base))
    }

    /// Returns the limit of the doubling: the longest interval between retransmissions of a segment.
    pub(crate) fn rto_max(&self) -> Duration {
        self.rto_max
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }

    pub(crate) fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Returns the smallest round-trip time of about the last five minutes, because a path may change.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min.map(|(rtt, _)| rtt)
    }

    /// Returns the smallest round-trip time ever.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Returns the sum of all samples.
    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn follows_rfc_6298() {
        let mut rtt = RttEstimator::new(MS(200), RtoFloor::Variance);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(MS(100), Instant::ZERO);
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(MS(100)), MS(50)));
        assert_eq!(rtt.rto(), MS(300));
        rtt.sample(MS(180), Instant::ZERO);
        // rttvar = 3/4 * 50 + 1/4 * 80, srtt = 7/8 * 100 + 1/8 * 180
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(MS(110)), Duration::from_micros(57_500)));
        assert_eq!(rtt.rto(), MS(340));
        assert_eq!((rtt.min(), rtt.latest()), (Some(MS(100)), Some(MS(180))));
        assert_eq!((rtt.sum(), rtt.samples()), (MS(280), 2));
    }

    #[test]
    fn the_least_outlives_the_windowed_minimum() {
        let mut rtt = RttEstimator::new(MS(200), RtoFloor::Variance);
        rtt.sample(MS(40), Instant::ZERO);
        rtt.sample(MS(60), Instant::from_secs(299));
        assert_eq!((rtt.min(), rtt.least()), (Some(MS(40)), Some(MS(40))));
        rtt.sample(MS(60), Instant::from_secs(301));
        assert_eq!((rtt.min(), rtt.least()), (Some(MS(60)), Some(MS(40))));
    }

    /// Section 2.4: at least one second, however the RTO is composed, and no longer if the RTO already exceeds it.
    #[test]
    fn the_floor_may_be_under_all_of_it() {
        let mut rtt = RttEstimator::new(MS(1000), RtoFloor::Whole);
        rtt.sample(MS(100), Instant::ZERO);
        assert_eq!(rtt.rto(), MS(1000));
        let mut rtt = RttEstimator::new(MS(1000), RtoFloor::Whole);
        rtt.sample(MS(500), Instant::ZERO);
        assert_eq!(rtt.rto(), MS(1500));
        let mut rtt = RttEstimator::new(MS(1000), RtoFloor::Variance);
        rtt.sample(MS(100), Instant::ZERO);
        assert_eq!(rtt.rto(), MS(1100));
    }

    #[test]
    fn backs_off_up_to_the_bound_and_recovers() {
        let mut rtt = RttEstimator::new(MS(200), RtoFloor::Variance);
        rtt.sample(MS(100), Instant::ZERO);
        rtt.back_off();
        assert_eq!(rtt.rto(), MS(600));
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), RTO_MAX);
        rtt.sample(MS(100), Instant::ZERO);
        // rttvar = 3/4 * 50 = 37.5 ms; four times that is below the floor.
        assert_eq!(rtt.rto(), MS(300));
    }

    #[test]
    fn doubling_ends_at_a_quarter_of_the_user_time_out() {
        let mut rtt = RttEstimator::new(MS(200), RtoFloor::Variance);
        rtt.sample(MS(100), Instant::ZERO);
        rtt.leave_room_within(MS(4000));
        (0..2).for_each(|_| rtt.back_off());
        assert_eq!((rtt.rto(), rtt.rto_backed_off(1)), (MS(1000), MS(600)));
        rtt.leave_room_within(MS(1000));
        assert_eq!(rtt.rto(), MS(300), "the round-trip time and its variance ask for that");
        rtt.leave_room_within(MS(300_000));
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), RTO_MAX);
    }

    #[test]
    fn a_lost_syn_makes_the_first_time_out_three_seconds() {
        let mut rtt = RttEstimator::new(MS(200), RtoFloor::Variance);
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        rtt.end_handshake();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
