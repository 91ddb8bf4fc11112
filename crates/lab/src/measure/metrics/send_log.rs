//! Records when octets were first sent.

use core::ops::Range;
use std::collections::VecDeque;

use units::Instant;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    range: Range<u64>,
    at: Instant,
}

/// First transmissions of outstanding data: sorted, disjoint ranges. It forgets data that were released, so a window's
/// worth of data bounds the memory.
#[derive(Clone, Debug, Default)]
pub struct SendLog {
    floor: u64,
    entries: VecDeque<Entry>,
}

impl SendLog {
    /// The source sends `range`. Parts that were sent before, or released, stay unchanged.
    pub fn sent(&mut self, at: Instant, range: Range<u64>) {
        self.insert(at, range, |_| {});
    }

    /// Does the same as [`Self::sent`], and passes to `first_time` the parts that are sent for the first time, in order.
    pub fn insert(&mut self, at: Instant, range: Range<u64>, mut first_time: impl FnMut(Range<u64>)) {
        let (mut start, end) = (range.start.max(self.floor), range.end);
        // Nearly always, new data follow the previous ones.
        if self.entries.back().is_none_or(|last| last.range.end <= start) {
            if start < end {
                self.entries.push_back(Entry { range: start..end, at });
                first_time(start..end);
            }
            return;
        }
        let mut place = self.entries.partition_point(|entry| entry.range.end <= start);
        while start < end {
            let known = self.entries.get(place).map_or(end..end, |entry| entry.range.clone());
            if start < known.start.min(end) || known.is_empty() {
                let gap = start..known.start.min(end);
                start = gap.end;
                self.entries.insert(place, Entry { range: gap.clone(), at });
                first_time(gap);
            } else {
                start = known.end;
            }
            place += 1;
        }
    }

    /// Allocated capacity in ranges: at least as many as it ever held.
    #[cfg(test)]
    pub(super) fn ranges_max(&self) -> usize {
        self.entries.capacity()
    }

    /// When the octet at `dsn` was first sent; `None` if it was not sent, or has been released.
    pub fn first_sent(&self, dsn: u64) -> Option<Instant> {
        let place = self.entries.partition_point(|entry| entry.range.end <= dsn);
        self.entries.get(place).filter(|entry| entry.range.start <= dsn).map(|entry| entry.at)
    }

    /// Passes to `each` the parts of `range` that were sent, in order: their number of octets, and when they were first
    /// sent.
    pub fn each_sent(&self, range: Range<u64>, mut each: impl FnMut(u64, Instant)) {
        let place = self.entries.partition_point(|entry| entry.range.end <= range.start);
        for entry in self.entries.range(place..).take_while(|entry| entry.range.start < range.end) {
            each(entry.range.end.min(range.end) - entry.range.start.max(range.start), entry.at);
        }
    }

    /// Forgets everything below `dsn`, which is no longer asked for.
    pub fn release_below(&mut self, dsn: u64) {
        self.floor = self.floor.max(dsn);
        while self.entries.front().is_some_and(|entry| entry.range.end <= dsn) {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: u64) -> Instant {
        Instant::from_millis(at)
    }

    #[test]
    fn the_first_transmission_of_every_octet_counts() {
        let mut log = SendLog::default();
        log.sent(ms(1), 0..100);
        log.sent(ms(2), 200..300);
        let mut new = Vec::new();
        log.insert(ms(3), 50..350, |part| new.push(part));
        assert_eq!(new, [100..200, 300..350]);
        let first = |log: &SendLog, dsn| log.first_sent(dsn).map(Instant::as_millis);
        let times: Vec<_> = [0, 99, 100, 199, 200, 299, 300, 349].map(|dsn| first(&log, dsn)).to_vec();
        assert_eq!(times, [1, 1, 3, 3, 2, 2, 3, 3].map(Some));
        assert_eq!(first(&log, 350), None);
        log.insert(ms(4), 0..350, |part| panic!("{part:?} was sent before"));
        assert_eq!(log.entries.len(), 4);
    }

    #[test]
    fn parts_of_what_was_sent_come_in_order_with_their_times() {
        let mut log = SendLog::default();
        log.sent(ms(1), 0..100);
        log.sent(ms(2), 100..200);
        log.sent(ms(3), 250..300);
        let parts = |range| {
            let mut parts = Vec::new();
            log.each_sent(range, |bytes, at| parts.push((bytes, at.as_millis())));
            parts
        };
        assert_eq!(parts(50..260), [(50, 1), (100, 2), (10, 3)]);
        assert_eq!((parts(120..130), parts(200..250), parts(300..400)), (vec![(10, 2)], vec![], vec![]));
    }

    #[test]
    fn what_has_arrived_is_forgotten_for_good() {
        let mut log = SendLog::default();
        log.sent(ms(1), 0..100);
        log.sent(ms(2), 100..200);
        log.release_below(150);
        log.sent(ms(3), 0..160);
        assert_eq!((log.first_sent(99), log.first_sent(155)), (None, Some(ms(2))));
        assert_eq!(log.entries.len(), 1);
        log.sent(ms(4), 300..300);
        assert_eq!(log.entries.len(), 1);
    }
}
