//! What the shared link carries, as far as it was seen full. Sans-IO.
//!
//! A tick in which the link was not full shows what somebody wanted, and not what it carries: such a sample is limited by the application, as
//! BBR calls it (draft-ietf-ccwg-bbr-02, section 2.5), and makes the estimate no smaller. If more passes than was believed possible, the link carries that too.

use units::{Duration, Instant};

/// For so long it counts what the link was seen to carry.
const LIFE: Duration = Duration::from_secs(60);
/// Weight of the newest sample of a full link: the radio's fades last for less than a second, and their mean is what the link carries.
const NEWEST: f64 = 0.2;
/// Weight of the newest of all samples, in the mean that may show more.
const NEWEST_OF_ALL: f64 = 0.05;

/// What is known of it.
#[derive(Debug)]
pub struct Capacity {
    /// And when it was seen.
    full: Option<(f64, Instant)>,
    /// The mean of what passes, whether the link is full or not.
    passed_bps: f64,
}

impl Capacity {
    /// Nothing.
    pub const fn new() -> Self {
        Self { full: None, passed_bps: 0.0 }
    }

    /// In a tick `bps` came, and the link was full or not.
    pub fn heed(&mut self, bps: f64, is_full: bool, now: Instant) {
        self.passed_bps += NEWEST_OF_ALL * (bps - self.passed_bps);
        let known = self.bps(now);
        if is_full {
            let before = known.unwrap_or(bps);
            self.full = Some((before + NEWEST * (bps - before), now));
        } else if known.is_some_and(|known| self.passed_bps > known) {
            self.full = Some((self.passed_bps, now));
        }
    }

    /// Bit/s, if it was seen not long ago.
    pub fn bps(&self, now: Instant) -> Option<f64> {
        self.full.filter(|(_, at)| now.saturating_since(*at) <= LIFE).map(|(bps, _)| bps)
    }

    /// Whether it was ever seen.
    pub const fn was_known(&self) -> bool {
        self.full.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64) -> Instant {
        Instant::from_millis(tick * 100)
    }

    #[test]
    fn samples_that_somebody_did_not_want_more_than_only_raise_it() {
        let mut capacity = Capacity::new();
        assert!(!capacity.was_known());
        (0..50).for_each(|tick| capacity.heed(2e6, false, at(tick)));
        assert_eq!(capacity.bps(at(50)), None, "it was never full");
        (50..100).for_each(|tick| capacity.heed(8e6, true, at(tick)));
        (100..600).for_each(|tick| capacity.heed(1e6, false, at(tick)));
        assert_eq!(capacity.bps(at(600)), Some(8e6));
        assert_eq!(capacity.bps(at(701)), None, "that was long ago");
        assert!(capacity.was_known());
        capacity.heed(8e6, true, at(702));
        (703..900).for_each(|tick| capacity.heed(9e6, false, at(tick)));
        assert!(capacity.bps(at(900)).is_some_and(|bps| bps > 8.9e6 && bps <= 9e6));
        (900..950).for_each(|tick| capacity.heed(4e6, true, at(tick)));
        assert!(capacity.bps(at(950)).is_some_and(|bps| bps < 4.1e6), "it was full, and slower");
    }
}
