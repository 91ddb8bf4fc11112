//! Measures how long data take from a relay that acknowledges at once to the destination, on its slowest subflow: the
//! source cannot see this delay.

use std::collections::BTreeMap;

use transport::relay::{SpliceId, SpliceStats};
use units::{Duration, Instant, Rate};

use crate::channel::to_destination::Delay;

pub(super) struct Ways {
    every: Duration,
    next_at: Instant,
    /// Time of the latest measurement of each subflow, and octets that it had sent on by then.
    before: BTreeMap<SpliceId, (Instant, u64)>,
}

impl Ways {
    pub fn every(every: Duration) -> Self {
        Self { every, next_at: Instant::ZERO + every, before: BTreeMap::new() }
    }

    /// Returns when the next measurement is due.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Measures all subflows; a subflow that is new gives no result yet.
    pub fn measure(&mut self, splices: impl Iterator<Item = (SpliceId, SpliceStats)>, now: Instant) -> Option<Delay> {
        self.next_at = now + self.every;
        let mut seen = BTreeMap::new();
        let mut slowest = None;
        for (splice, stats) in splices {
            let leg = stats.towards_destination;
            seen.insert(splice, (now, leg.sent_bytes));
            let Some((since, sent_bytes)) = self.before.get(&splice) else { continue };
            let rate = Rate::from_bytes_per(leg.sent_bytes.saturating_sub(*sent_bytes), now.saturating_since(*since));
            if rate == Rate::ZERO && stats.stored_bytes > 0 {
                // The subflow stands still, and nobody knows for how long.
                continue;
            }
            let delay = Delay::of_leg(now, stats.stored_bytes, rate, leg.srtt.unwrap_or_default());
            if slowest.is_none_or(|known: Delay| known.delay < delay.delay) {
                slowest = Some(delay);
            }
        }
        self.before = seen;
        slowest
    }
}
