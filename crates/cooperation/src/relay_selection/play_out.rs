//! Play-out: how much of a stream the destination has left to play, and how far it may miss the target meanwhile.
//!
//! An application that plays at the target bit rate empties its buffer while data arrive more slowly. While the buffer
//! is well filled, a lower rate does no harm, so the accepted range may be wider (thesis section 8.2, which prints no
//! formula):
//!
//! ```text
//! level = octets in order - octets played, over TBR                         s of play
//! theta' = theta + (theta_max - theta) min(1, level / full)
//! ```

use units::{Duration, Instant, Rate};

/// The progress of playing, and the data left to play.
#[derive(Clone, Debug)]
pub struct PlayOut {
    rate: Rate,
    startup: Duration,
    /// Time of the last update, and whether the stream was playing then.
    at: Instant,
    is_playing: bool,
    played: Duration,
    arrived: Duration,
    stalled: Duration,
}

impl PlayOut {
    /// Creates a player that starts at `rate` once data for `startup` have arrived, and again after each stall.
    pub fn new(rate: Rate, startup: Duration) -> Self {
        let zero = Duration::ZERO;
        Self { rate, startup, at: Instant::ZERO, is_playing: false, played: zero, arrived: zero, stalled: zero }
    }

    /// Updates to `now`, when `delivered_bytes` have arrived in order. Data that arrive between two updates count at
    /// the later one.
    pub fn advance(&mut self, delivered_bytes: u64, now: Instant) {
        let elapsed = now.saturating_since(self.at);
        self.at = now;
        if self.is_playing {
            let left = self.level();
            self.played += elapsed.min(left);
            self.stalled += elapsed.saturating_sub(left);
            self.is_playing = left >= elapsed;
        } else if self.played > Duration::ZERO {
            self.stalled += elapsed;
        }
        self.arrived = if self.rate == Rate::ZERO { Duration::ZERO } else { self.rate.time_to_send(delivered_bytes) };
        self.is_playing |= self.level() >= self.startup;
    }

    /// Returns the playing time left.
    pub fn level(&self) -> Duration {
        self.arrived.saturating_sub(self.played)
    }

    /// Returns the total duration of stalls after the start.
    pub fn stalled(&self) -> Duration {
        self.stalled
    }
}

/// How far the range widens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferedTolerance {
    /// Playing time left at which the range is widest.
    pub full: Duration,
    /// The tolerance at that level (theta_max).
    pub widest: f64,
}

impl BufferedTolerance {
    /// Returns the tolerance with `level` left to play, where `tolerance` applies with nothing left.
    pub fn at(&self, level: Duration, tolerance: f64) -> f64 {
        let share = (level.as_secs_f64() / self.full.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0);
        tolerance + (self.widest - tolerance).max(0.0) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s play 1 MB in a second.
    #[test]
    fn a_stall_lasts_until_enough_is_there_again() {
        let mut play = PlayOut::new(Rate::from_mbps(8), Duration::from_secs(2));
        let mut look = |at_s, mega_octets: u64| {
            play.advance(mega_octets * 1_000_000, Instant::from_secs(at_s));
            (play.level().as_millis() / 1000, play.stalled().as_millis() / 1000)
        };
        assert_eq!([look(1, 1), look(2, 3), look(4, 4)], [(1, 0), (3, 0), (2, 0)]);
        // Two seconds are left and nothing arrives for four: the player stalls for two, and for two more until 6 MB
        // have arrived.
        assert_eq!([look(8, 5), look(10, 6)], [(1, 2), (2, 4)]);
        assert_eq!(look(11, 7), (2, 4));
    }

    #[test]
    fn the_tolerance_grows_with_what_is_left() {
        let wide = BufferedTolerance { full: Duration::from_secs(4), widest: 0.3 };
        let at = |level_s| (wide.at(Duration::from_secs(level_s), 0.1) * 1000.0).round();
        assert_eq!([0, 1, 2, 4, 9].map(at), [100.0, 150.0, 200.0, 300.0, 300.0]);
        assert_eq!(BufferedTolerance { widest: 0.05, ..wide }.at(Duration::from_secs(4), 0.1), 0.1);
    }
}
