//! Estimate of the shared link's capacity, from ticks in which the link was full. Sans-IO.
//!
//! A tick in which the link was not full shows only the demand. Such a sample is application-limited, in the terms of
//! BBR (draft-ietf-ccwg-bbr-02, section 2.5), and never lowers the estimate. If more passes than the estimate, it
//! raises the estimate.

use units::{Duration, Instant};

/// Lifetime of an estimate.
const LIFE: Duration = Duration::from_secs(60);
/// Weight of the newest sample of a full link. Fades of the radio last less than a second; the capacity is the mean
/// over them.
const NEWEST: f64 = 0.2;
/// Weight of the newest sample in the mean of all samples, which may raise the estimate.
const NEWEST_OF_ALL: f64 = 0.05;

/// The estimate and its inputs.
#[derive(Debug)]
pub struct Capacity {
    /// Estimate in bit/s, and the time of its last sample.
    full: Option<(f64, Instant)>,
    /// Mean of all samples, whether the link was full or not.
    passed_bps: f64,
}

impl Capacity {
    /// Creates an empty estimate.
    pub const fn new() -> Self {
        Self { full: None, passed_bps: 0.0 }
    }

    /// Adds a tick's sample: `bps` arrived, and the link was full or not.
    pub fn observe(&mut self, bps: f64, is_full: bool, now: Instant) {
        self.passed_bps += NEWEST_OF_ALL * (bps - self.passed_bps);
        let known = self.bps(now);
        if is_full {
            let before = known.unwrap_or(bps);
            self.full = Some((before + NEWEST * (bps - before), now));
        } else if let Some((_, at)) = self.full.filter(|(last, _)| self.passed_bps > *last) {
            // One that is too old stays so until the link is full.
            self.full = Some((self.passed_bps, if known.is_some() { now } else { at }));
        }
    }

    /// Returns the estimate in bit/s, if it is recent.
    pub fn bps(&self, now: Instant) -> Option<f64> {
        self.full.filter(|(_, at)| now.saturating_since(*at) <= LIFE).map(|(bps, _)| bps)
    }

    /// Returns the last estimate in bit/s, however old it is, if there has ever been one.
    pub fn last_bps(&self) -> Option<f64> {
        self.full.map(|(bps, _)| bps)
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
        assert_eq!(capacity.last_bps(), None);
        (0..50).for_each(|tick| capacity.observe(2e6, false, at(tick)));
        assert_eq!(capacity.bps(at(50)), None, "it was never full");
        (50..100).for_each(|tick| capacity.observe(8e6, true, at(tick)));
        (100..600).for_each(|tick| capacity.observe(1e6, false, at(tick)));
        assert_eq!(capacity.bps(at(600)), Some(8e6));
        assert_eq!(capacity.bps(at(701)), None, "that was long ago");
        assert_eq!(capacity.last_bps(), Some(8e6));
        (701..900).for_each(|tick| capacity.observe(9e6, false, at(tick)));
        assert_eq!(capacity.bps(at(900)), None, "it was not full");
        assert!(capacity.last_bps().is_some_and(|bps| bps > 8.9e6 && bps <= 9e6));
        let mut capacity = Capacity::new();
        capacity.observe(8e6, true, at(702));
        (703..900).for_each(|tick| capacity.observe(9e6, false, at(tick)));
        assert!(capacity.bps(at(900)).is_some_and(|bps| bps > 8.9e6 && bps <= 9e6));
        (900..950).for_each(|tick| capacity.observe(4e6, true, at(tick)));
        assert!(capacity.bps(at(950)).is_some_and(|bps| bps < 4.1e6), "it was full, and slower");
    }
}
