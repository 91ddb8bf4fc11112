//! Round-trip times of a subflow including queues, from the timestamps that the peer echoes with its data. A handshake
//! or a probe measures an empty queue, but a download fills the queues of radio links for a second or more.

use transport::Echo;
use units::{Duration, Instant};

/// The longest round trip is that of this span and the one before.
const SPAN: Duration = Duration::from_secs(1);

/// Echoes seen on a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    tick: Option<u32>,
    heard_at: Instant,
    /// The longest round trip of this span and of the one before.
    longest: [Duration; 2],
    since: Instant,
}

impl RoundTrips {
    pub(super) fn new(heard_at: Instant, now: Instant) -> Self {
        Self { tick: None, heard_at, longest: [Duration::ZERO; 2], since: now }
    }

    /// Notes that the peer was last heard at `heard_at`, with this echo.
    pub(super) fn note(&mut self, echo: Option<Echo>, heard_at: Instant, now: Instant) {
        // A pause before it may be the sender's, for lack of data.
        let pause = heard_at.saturating_since(core::mem::replace(&mut self.heard_at, heard_at));
        let Some(echo) = echo.filter(|echo| self.tick != Some(echo.tick)) else { return };
        // Only a tick's first echo counts: later data of a burst echo the same tick.
        self.tick = Some(echo.tick);
        if now.saturating_since(self.since) >= SPAN {
            (self.longest, self.since) = ([Duration::ZERO, self.longest[0]], now);
        }
        self.longest[0] = self.longest[0].max(echo.took.saturating_sub(pause));
    }

    /// Returns the longest round trip of the last one or two spans with echoes.
    pub(super) fn longest(&self) -> Duration {
        self.longest[0].max(self.longest[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn echo(tick: u32, took_ms: u64) -> Option<Echo> {
        Some(Echo { tick, took: Duration::from_millis(took_ms) })
    }

    #[test]
    fn the_longest_of_late_counts_without_the_pause_before_it() {
        let mut trips = RoundTrips::new(ms(0), ms(0));
        trips.note(echo(1, 600), ms(10), ms(19));
        assert_eq!(trips.longest(), Duration::from_millis(590));
        trips.note(echo(2, 300), ms(30), ms(38));
        trips.note(None, ms(40), ms(57));
        assert_eq!(trips.longest(), Duration::from_millis(590));
        trips.note(echo(3, 50), ms(1_020), ms(1_020));
        assert_eq!(trips.longest(), Duration::from_millis(590), "of the span before");
        trips.note(echo(4, 60), ms(2_030), ms(2_030));
        assert_eq!(trips.longest(), Duration::ZERO, "both came after a second without anything");
        trips.note(echo(5, 60), ms(2_040), ms(2_049));
        assert_eq!(trips.longest(), Duration::from_millis(50));
    }

    #[test]
    fn a_pause_of_the_sender_is_no_way() {
        let mut trips = RoundTrips::new(ms(0), ms(0));
        trips.note(echo(1, 40), ms(40), ms(57));
        // Five seconds later a burst arrives, all of which echoes the last acknowledgement.
        trips.note(echo(2, 5_040), ms(5_040), ms(5_042));
        trips.note(echo(2, 5_060), ms(5_060), ms(5_061));
        assert_eq!(trips.longest(), Duration::from_millis(40));
    }
}
