//! HyStart++ (RFC 9406): leaves the first slow start when the round-trip time rises, before the queue overflows.
//!
//! In the deep queues of cellular networks, the plain rule of doubling until a loss is expensive: half a window is lost
//! at once, and every path pays. Names follow the RFC.

use units::Duration;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Treatment of an ACK's octets in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Normal slow start.
    Grow,
    /// Conservative slow start: grow by this fraction.
    GrowBy(u64),
    /// The window is large enough: start congestion avoidance.
    Leave,
}

/// State of the first slow start of a TCB.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    /// lastRoundMinRTT.
    last_round_min: Option<Duration>,
    /// currentRoundMinRTT.
    current_round_min: Option<Duration>,
    /// rttSampleCount.
    samples: u32,
    /// cssBaselineMinRtt and the rounds spent in conservative slow start.
    css: Option<(Duration, u32)>,
}

impl HyStart {
    /// Takes an ACK in slow start: its sample, and whether it ended a round.
    pub(super) fn on_ack(&mut self, rtt: Option<Duration>, round_ended: bool) -> Advice {
        if round_ended && !self.start_round() {
            return Advice::Leave;
        }
        if let Some(rtt) = rtt {
            self.current_round_min = Some(self.current_round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if let (true, Some(current)) = (self.samples >= N_RTT_SAMPLE, self.current_round_min) {
            self.compare(current);
        }
        if self.css.is_some() { Advice::GrowBy(CSS_GROWTH_DIVISOR) } else { Advice::Grow }
    }

    /// Begins a round. Returns false once conservative slow start has lasted long enough.
    fn start_round(&mut self) -> bool {
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
        match &mut self.css {
            Some((_, rounds)) => {
                *rounds += 1;
                *rounds < CSS_ROUNDS
            }
            None => true,
        }
    }

    fn compare(&mut self, current: Duration) {
        match (self.css, self.last_round_min) {
            // The rise did not come from our queue: back to slow start (RFC 9406 section 4.2).
            (Some((baseline, _)), _) if current < baseline => self.css = None,
            (None, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.css = Some((current, 0));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn round(hystart: &mut HyStart, rtt_ms: u64) -> Advice {
        hystart.on_ack(Some(MS(rtt_ms)), true);
        (1..N_RTT_SAMPLE).map(|_| hystart.on_ack(Some(MS(rtt_ms)), false)).last().unwrap()
    }

    #[test]
    fn a_rising_round_trip_time_ends_slow_start_gently() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 80), Advice::Grow);
        assert_eq!(round(&mut hystart, 89), Advice::Grow, "an eighth of 80 ms is 10 ms");
        assert_eq!(round(&mut hystart, 101), Advice::GrowBy(4));
        for _ in 1..CSS_ROUNDS {
            assert_eq!(round(&mut hystart, 101), Advice::GrowBy(4));
        }
        assert_eq!(hystart.on_ack(Some(MS(101)), true), Advice::Leave);
    }

    #[test]
    fn a_rise_that_passes_was_not_ours() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 80);
        assert_eq!(round(&mut hystart, 120), Advice::GrowBy(4));
        assert_eq!(round(&mut hystart, 80), Advice::Grow);
    }
}
