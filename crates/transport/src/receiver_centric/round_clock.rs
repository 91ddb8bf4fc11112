//! The round-trip time as the receiver measures it (section 4.1, equation 1).
//!
//! A report `S_i` leaves at `t_i` and names a round. From then on the sender puts that round on every packet. The first
//! of these packets arrives at `t_(i+1)`:
//!
//! ```text
//! rtt    = xi * rtt + eta * (t_(i+1) - t_i)      xi + eta = 1                       (1)
//! rttvar = 3/4 rttvar + 1/4 | rtt - sample |     rto = rtt + max(4 rttvar, RTO_min)   RFC 6298
//! ```
//!
//! Each report names its own round, so a sample never stands for two reports: Karn's condition holds by construction.
//!
//! A sender that has nothing to send answers late. After silence for an RTO nothing tells such a pause from a longer
//! path, so no report sent until then gives a sample. As after a time-out in TCP (RFC 6298 section 5), the RTO doubles
//! until there is one, or else a path that has become longer than the RTO would never be measured.

use arrayvec::ArrayVec;
use units::{Duration, Instant};

/// Maximum number of reports remembered while no packet answers them.
const UNANSWERED_MAX: usize = 8;
/// RTO before the first sample (RFC 6298 section 2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Maximum RTO. RFC 6298 section 2.5 allows any bound of at least 60 s.
const RTO_MAX: Duration = Duration::from_secs(60);
/// Doublings of the RTO until there is a sample. More would take longer pauses for round-trip times, where a sender says
/// a packet at a time.
const DOUBLINGS_MAX: u32 = 3;
/// Minimum sample, even if a peer guesses rounds.
const RTT_MIN: Duration = Duration::from_millis(1);

/// Rounds, and their round-trip times.
#[derive(Debug)]
pub(super) struct RoundClock {
    old_eighths: u64,
    rto_min: Duration,
    rtt: Option<Duration>,
    rttvar: Duration,
    /// Doublings of the RTO since the last sample.
    doublings: u32,
    last: u8,
    /// Round and time of the reports that no packet has answered, oldest first.
    unanswered: ArrayVec<(u8, Instant), UNANSWERED_MAX>,
}

impl RoundClock {
    pub(super) fn new(old_eighths: u64, rto_min: Duration) -> Self {
        let (rttvar, unanswered) = (Duration::ZERO, ArrayVec::new());
        Self { old_eighths, rto_min, rtt: None, rttvar, doublings: 0, last: 0, unanswered }
    }

    /// Records a departing report and returns the round that it names.
    pub(super) fn on_report(&mut self, now: Instant) -> u8 {
        self.last = self.last.wrapping_add(1);
        if self.unanswered.is_full() {
            self.unanswered.remove(0);
        }
        self.unanswered.push((self.last, now));
        self.last
    }

    /// Takes a packet of `round`. Returns true if it is the first of a new round.
    pub(super) fn on_packet(&mut self, round: u8, now: Instant) -> bool {
        let Some(position) = self.unanswered.iter().position(|(id, _)| *id == round) else { return false };
        let (_, sent_at) = self.unanswered[position];
        // The sender has passed the earlier rounds.
        self.unanswered.drain(..=position);
        self.sample(now.saturating_since(sent_at).max(RTT_MIN));
        true
    }

    /// Handles silence for an RTO.
    pub(super) fn on_silence(&mut self) {
        self.doublings = DOUBLINGS_MAX.min(self.doublings + 1);
    }

    /// Handles the end of a silence: the reports up to now measure nothing.
    pub(super) fn forget_reports(&mut self) {
        self.unanswered.clear();
    }

    fn sample(&mut self, sample: Duration) {
        self.doublings = 0;
        match self.rtt {
            None => {
                self.rtt = Some(sample);
                self.rttvar = sample / 2;
            }
            Some(rtt) => {
                self.rttvar = Duration::from_nanos((self.rttvar.as_nanos() * 3 + rtt.abs_diff(sample).as_nanos()) / 4);
                let weighted = rtt.as_nanos() * self.old_eighths + sample.as_nanos() * (8 - self.old_eighths);
                self.rtt = Some(Duration::from_nanos(weighted / 8));
            }
        }
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(super) fn rto(&self) -> Duration {
        let rto = self.rtt.map_or(RTO_INITIAL, |rtt| rtt + (self.rttvar * 4).max(self.rto_min));
        rto.saturating_mul(1 << self.doublings).min(RTO_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn after_two_samples(old_eighths: u64) -> RoundClock {
        let mut clock = RoundClock::new(old_eighths, ms(200));
        assert_eq!((clock.rtt(), clock.rto()), (None, Duration::from_secs(1)));
        let first = clock.on_report(at(0));
        assert!(!clock.on_packet(0, at(50)), "sent before the report got there");
        assert!(clock.on_packet(first, at(100)));
        assert!(!clock.on_packet(first, at(110)), "only the first packet of a round counts");
        assert_eq!((clock.rtt(), clock.rto()), (Some(ms(100)), ms(300)));
        let second = clock.on_report(at(200));
        assert!(clock.on_packet(second, at(380)));
        clock
    }

    /// 7/8 of 100 ms plus 1/8 of 180 ms is 110 ms. The variance goes from 50 ms to 3/4 of it plus 1/4 of 80 ms: 57.5
    /// ms.
    #[test]
    fn the_old_time_weighs_seven_eighths() {
        let clock = after_two_samples(7);
        assert_eq!((clock.rtt(), clock.rto()), (Some(ms(110)), ms(340)));
    }

    /// As printed: 1/8 of 100 ms plus 7/8 of 180 ms is 170 ms.
    #[test]
    fn the_printed_weights_follow_each_sample() {
        assert_eq!(after_two_samples(1).rtt(), Some(ms(170)));
    }

    #[test]
    fn a_lost_report_is_passed_over() {
        let mut clock = RoundClock::new(7, ms(200));
        clock.on_report(at(0));
        let second = clock.on_report(at(300));
        assert!(clock.on_packet(second, at(400)));
        assert_eq!(clock.rtt(), Some(ms(100)));
        assert!(!clock.on_packet(1, at(410)), "the sender has gone past it");
    }

    #[test]
    fn reports_before_a_silence_measure_nothing_and_the_time_out_doubles_until_there_is_a_sample() {
        let mut clock = after_two_samples(7);
        let before = clock.on_report(at(400));
        (0..5).for_each(|_| clock.on_silence());
        assert_eq!(clock.rto(), ms(8 * 340));
        clock.forget_reports();
        assert!(!clock.on_packet(before, at(5000)));
        let after = clock.on_report(at(5000));
        assert!(clock.on_packet(after, at(5110)));
        // The variance is three quarters of 57.5 ms.
        assert_eq!((clock.rtt(), clock.rto()), (Some(ms(110)), ms(310)));
    }

    #[test]
    fn a_peer_that_never_answers_or_guesses_costs_nothing() {
        let mut clock = RoundClock::new(7, ms(200));
        for i in 0..1000 {
            clock.on_report(at(i));
        }
        assert_eq!(clock.unanswered.len(), UNANSWERED_MAX);
        assert!(clock.on_packet(clock.last, at(999)));
        assert_eq!(clock.rtt(), Some(RTT_MIN));
    }
}
