//! Goodput G1 (thesis 5.1): payload of a unit over the time it took to receive the unit.

use core::ops::Range;

use units::Instant;

use super::{FinishedUnit, Units, rate_bps};

/// Mean goodput of finished units, by window and overall.
///
/// A unit's clock starts with the first of its packets that arrives. Therefore units overlap in time, and the mean may
/// permanently differ from the throughput. A unit that arrives all at once has no receiving time and no goodput; it is
/// left out.
#[derive(Clone, Debug)]
pub struct UnitGoodput {
    units: Units,
    window: Mean,
    run: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum_bps: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, bps: f64) {
        self.sum_bps += bps;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_bps / self.count as f64)
    }
}

impl UnitGoodput {
    /// Measures units of `unit_bytes` octets: M packets, see [`range_bytes`](super::range_bytes) for M = H.
    pub fn new(unit_bytes: u64) -> Self {
        Self { units: Units::new(unit_bytes), window: Mean::default(), run: Mean::default() }
    }

    /// Octets in `range` arrive for the first time.
    pub fn fresh(&mut self, at: Instant, range: Range<u64>) {
        let unit_bytes = self.units.unit_bytes();
        let (window, run) = (&mut self.window, &mut self.run);
        self.units.fresh(at, range, |FinishedUnit { first_at, last_at, .. }| {
            if let Some(bps) = rate_bps(unit_bytes, last_at.saturating_since(first_at)) {
                window.add(bps);
                run.add(bps);
            }
        });
    }

    /// Ends the window: mean over the units finished in it, bit/s; `None` if there are none.
    pub fn close(&mut self) -> Option<f64> {
        core::mem::take(&mut self.window).value()
    }

    /// Mean over all finished units, bit/s.
    pub fn mean_bps(&self) -> Option<f64> {
        self.run.value()
    }

    /// Number of units in the mean.
    pub fn units(&self) -> u64 {
        self.run.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of four packets of 1000 octets, paths with intervals of 1 and 3 s and 2 s apart (the thesis' Fig. 5.1).
    /// Unit 0: packets at 1, 2, 3 and, over the slow path, 5 s: 4000 * 8 / (5 - 1) = 8000 bit/s. Unit 1: at 4, 5, 6 and
    /// 8 s, the same. They overlap: 64000 bit in 7 s are more than 8000 bit/s.
    #[test]
    fn a_units_clock_starts_with_its_first_packet() {
        let mut goodput = UnitGoodput::new(4000);
        let packets = [(1, 0), (2, 1), (3, 2), (4, 4), (5, 3), (5, 5), (6, 6), (8, 7)];
        for (at, packet) in packets {
            goodput.fresh(Instant::from_secs(at), packet * 1000..(packet + 1) * 1000);
        }
        assert_eq!((goodput.mean_bps(), goodput.units()), (Some(8000.0), 2));
    }

    /// Unit 0 takes 2 s (4000 bit/s), unit 1 takes 1 s (8000 bit/s), unit 2 ends in the next window.
    #[test]
    fn a_window_averages_the_units_that_finish_in_it() {
        let mut goodput = UnitGoodput::new(1000);
        assert_eq!(goodput.close(), None);
        for (at_ms, range) in [(0, 0..500), (2000, 500..1200), (3000, 1200..2500)] {
            goodput.fresh(Instant::from_millis(at_ms), range);
        }
        assert_eq!(goodput.close(), Some(6000.0));
        goodput.fresh(Instant::from_secs(5), 2500..3000);
        assert_eq!(goodput.close(), Some(4000.0));
        assert_eq!(goodput.units(), 3);
    }

    #[test]
    fn a_unit_in_one_piece_has_no_receiving_time() {
        let mut goodput = UnitGoodput::new(1000);
        goodput.fresh(Instant::from_secs(1), 0..3000);
        assert_eq!((goodput.close(), goodput.units()), (None, 0));
    }
}
