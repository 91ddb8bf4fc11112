//! Delay of ACKs that adapts to the gaps between segments, as in Linux (`icsk_ack.ato`).
//!
//! ```text
//! gap      time between two segments that were next in order
//! least    ConnectionConfig::delayed_ack; 40 ms in Linux (TCP_ATO_MIN)
//! delay    least at first; then with each segment
//!          gap <= least / 2             delay / 2 + least / 2
//!          least / 2 < gap < delay      delay / 2 + gap
//!          after an ACK that waited in vain: 2 delay, at most the RTO
//!          after duplicate data, or a gap above the RTO: least, and 16 segments are acknowledged at once
//! wait     min(delay, max(least, min(SRTT, 200 ms)))
//! ```
//!
//! A peer with a window of one segment therefore waits up to another round-trip time for its ACK, in each round.

use units::{Duration, Instant};

/// Maximum wait in Linux (`TCP_DELACK_MAX`).
const DELAY_MAX: Duration = Duration::from_millis(200);

/// The delay of one subflow's ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdaptiveDelay {
    least: Duration,
    delay: Duration,
    last_at: Option<Instant>,
}

impl AdaptiveDelay {
    /// Creates a delay of `least` (`TCP_ATO_MIN`), used until gaps are known.
    pub(super) fn new(least: Duration) -> Self {
        Self { least, delay: least, last_at: None }
    }

    /// Takes note that the next data arrived. Returns whether the gap was so long that the peer may have timed out.
    pub(super) fn on_next(&mut self, now: Instant, rto: Duration) -> bool {
        let Some(before) = self.last_at.replace(now) else { return false };
        let gap = now.saturating_since(before);
        if gap <= self.least / 2 {
            self.delay = self.delay / 2 + self.least / 2;
        } else if gap < self.delay {
            self.delay = self.delay / 2 + gap;
        }
        gap > rto
    }

    /// Takes note that an ACK was delayed in vain.
    pub(super) fn on_waited(&mut self, rto: Duration) {
        self.delay = self.delay.saturating_mul(2).min(rto.max(self.least));
    }

    /// Starts over: the peer has sent data again, or may have to.
    pub(super) fn begin_anew(&mut self) {
        self.delay = self.least;
    }

    /// Returns how long an ACK may wait now; beyond `least` no longer than a round-trip time.
    pub(super) fn get(&self, srtt: Option<Duration>) -> Duration {
        self.delay.min(srtt.unwrap_or(DELAY_MAX).min(DELAY_MAX).max(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after(gaps_ms: &[u64]) -> AdaptiveDelay {
        let mut delay = AdaptiveDelay::new(ms(40));
        let mut now = Instant::ZERO;
        delay.on_next(now, ms(300));
        for gap in gaps_ms {
            now += ms(*gap);
            delay.on_next(now, ms(300));
        }
        delay
    }

    #[test]
    fn comes_to_twice_what_segments_are_apart() {
        let far = Some(ms(1000));
        assert_eq!(after(&[]).get(far), ms(40));
        assert_eq!(after(&[1, 20, 1]).get(far), ms(40));
        assert_eq!(after(&[30]).get(far), ms(50));
        // 50, 70, 95, 107.5
        assert_eq!(after(&[30, 45, 60, 60]).get(far), Duration::from_micros(107_500));
        assert_eq!(after(&[30, 45, 1]).get(far), ms(55));
        assert_eq!(after(&[250, 250]).get(far), ms(40), "no ACK waits for so long");
    }

    #[test]
    fn grows_by_waits_in_vain_up_to_a_round_trip() {
        let mut delay = AdaptiveDelay::new(ms(40));
        let got = [(); 4].map(|()| {
            delay.on_waited(ms(300));
            [None, Some(ms(100)), Some(ms(5))].map(|srtt| delay.get(srtt).as_millis())
        });
        assert_eq!(got, [[80, 80, 40], [160, 100, 40], [200, 100, 40], [200, 100, 40]]);
        delay.begin_anew();
        assert_eq!(delay.get(None), ms(40));
        // A caller that wants longer delays gets them.
        assert_eq!(AdaptiveDelay::new(ms(500)).get(Some(ms(20))), ms(500));
    }

    #[test]
    fn tells_gaps_in_which_the_peer_may_have_timed_out() {
        let mut delay = AdaptiveDelay::new(ms(40));
        let at = |millis| Instant::ZERO + ms(millis);
        assert!(!delay.on_next(at(1000), ms(300)), "the first");
        assert!(!delay.on_next(at(1300), ms(300)));
        assert!(delay.on_next(at(1601), ms(300)));
    }
}
