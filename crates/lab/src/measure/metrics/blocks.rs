//! Cuts the stream into units of equal size and tells when each is complete.

use core::ops::Range;

use units::{Duration, Instant, Rate};

/// A unit whose octets have all arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedUnit {
    /// Its number, from 0.
    pub index: u64,
    /// Arrival of its first octet.
    pub first_at: Instant,
    /// Arrival of its last missing octet.
    pub last_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct OpenUnit {
    index: u64,
    first_at: Instant,
    missing_bytes: u64,
}

/// Units that have arrived in part. Their number is bounded by the data outstanding.
#[derive(Clone, Debug)]
pub struct Units {
    unit_bytes: u64,
    open: Vec<OpenUnit>,
}

impl Units {
    /// Cuts the stream into units of `unit_bytes` octets, at least one.
    pub fn new(unit_bytes: u64) -> Self {
        Self { unit_bytes: unit_bytes.max(1), open: Vec::new() }
    }

    /// Size of a unit, octets.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Records octets in `range` that arrive for the first time; passes the units that they complete to `finished`.
    pub fn fresh(&mut self, at: Instant, range: Range<u64>, mut finished: impl FnMut(FinishedUnit)) {
        let mut start = range.start;
        while start < range.end {
            let index = start / self.unit_bytes;
            let end = range.end.min((index + 1).saturating_mul(self.unit_bytes));
            if let Some(first_at) = self.fill(at, index, end - start) {
                finished(FinishedUnit { index, first_at, last_at: at });
            }
            start = end;
        }
    }

    /// Adds octets to a unit; if that completes it, returns when its first octet arrived.
    fn fill(&mut self, at: Instant, index: u64, bytes: u64) -> Option<Instant> {
        let place = self.open.partition_point(|unit| unit.index < index);
        if self.open.get(place).is_none_or(|unit| unit.index != index) {
            self.open.insert(place, OpenUnit { index, first_at: at, missing_bytes: self.unit_bytes });
        }
        let unit = &mut self.open[place];
        unit.missing_bytes -= bytes;
        (unit.missing_bytes == 0).then(|| self.open.remove(place).first_at)
    }
}

/// Octets of the thesis' DSN range H = TBR F, in whole packets of `packet_bytes` (at least one) of payload.
pub fn range_bytes(tbr: Rate, window: Duration, packet_bytes: u32) -> u64 {
    let packet_bytes = u64::from(packet_bytes.max(1));
    tbr.bytes_in(window).div_ceil(packet_bytes).max(1).saturating_mul(packet_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_overlap_in_time_and_finish_in_any_order() {
        let mut units = Units::new(100);
        let mut done = Vec::new();
        for (at, range) in [(1, 0..50), (2, 150..200), (3, 90..150), (4, 50..90)] {
            units.fresh(Instant::from_millis(at), range, |unit| done.push((unit.index, unit.first_at.as_millis(), at)));
        }
        assert_eq!(done, [(1, 2, 3), (0, 1, 4)]);
        assert!(units.open.is_empty());
    }

    #[test]
    fn a_piece_far_ahead_opens_one_unit() {
        let mut units = Units::new(1000);
        units.fresh(Instant::ZERO, u64::MAX - 10..u64::MAX, |_| panic!("nothing is complete"));
        assert_eq!(units.open.len(), 1);
    }

    /// 3 Mbit/s for 2 s are 750000 octets: 536 packets of 1400 octets, 1400 of 536.
    #[test]
    fn the_range_is_whole_packets() {
        let (tbr, window) = (Rate::from_mbps(3), Duration::from_secs(2));
        assert_eq!(range_bytes(tbr, window, 1400), 536 * 1400);
        assert_eq!(range_bytes(tbr, window, 536), 1400 * 536);
        assert_eq!(range_bytes(Rate::ZERO, window, 0), 1);
    }
}
