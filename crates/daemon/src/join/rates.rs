//! The rate of each uplink between two looks, from which the selection decides.

use units::{Duration, Instant, Rate};

use super::roster::{Entry, Roster};
use super::selection::Measured;

/// A rate over a longer time, during which the device slept, says little.
const SPAN_MAX: Duration = Duration::from_secs(5);

/// What each uplink had carried at the last look.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Octets, by position.
    sums: Vec<u64>,
    looked_at: Instant,
}

impl Rates {
    /// Returns whether any uplink has carried octets since the last look, if it has carried `sums` in all.
    pub fn have_moved(&self, sums: &[u64]) -> bool {
        (0..sums.len()).any(|index| self.since(index, sums) > 0)
    }

    /// Decides which uplinks of `roster` carry data, once a second. `sums` are the octets that each has carried in all;
    /// `busy` means that programs' octets have moved since the last look. Returns whether the choice has changed. Does
    /// nothing without a target.
    pub fn look(&mut self, roster: &mut Roster, sums: Vec<u64>, busy: bool, now: Instant) -> bool {
        let span = now.saturating_since(self.looked_at);
        if span > SPAN_MAX {
            self.sums.clear();
        }
        let busy = busy && span <= SPAN_MAX;
        let measured = |(index, entry): (usize, &Entry)| Measured {
            // The target is to be reached without the link of a relay that has little left.
            tier: entry.spared_tier(),
            price: entry.price,
            usable: entry.lost.is_none(),
            held_back: entry.held_back,
            rate: Rate::from_bytes_per(self.since(index, &sums), span),
        };
        let measured: Vec<Measured> = roster.entries.iter().enumerate().map(measured).collect();
        (self.sums, self.looked_at) = (sums, now);
        roster.selection.as_mut().is_some_and(|selection| selection.look(&measured, busy, now))
    }

    /// Returns the octets since the last look; 0 at an uplink's first look, since they may be of any age.
    fn since(&self, index: usize, sums: &[u64]) -> u64 {
        let sum = sums.get(index).copied().unwrap_or_default();
        self.sums.get(index).map_or(0, |before| sum.saturating_sub(*before))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use linux::uplink::{EnginePath, Uplink};

    use super::*;
    use crate::proxy::choice::Tier;

    #[test]
    fn what_an_uplink_carried_long_ago_says_nothing_of_its_rate() {
        let path = |name| EnginePath { addresses: Vec::new(), uplink: Uplink::absent(name).unwrap() };
        let mut roster =
            Roster::new("anabranch0", Path::new("/state"), &[path("usb0"), path("usb1")], &[Tier::Primary; 2]);
        roster.entries.iter_mut().for_each(|entry| entry.lost = None);
        roster.set_target(Some(Rate::from_bps(8_000_000))).unwrap();
        let mut rates = Rates::default();
        let mut look = |second, sums: [u64; 2]| {
            rates.look(&mut roster, sums.into(), true, Instant::from_secs(second));
            [0, 1].map(|index| roster.selection.as_ref().unwrap().estimate(index).map(Rate::as_bps))
        };
        assert_eq!(look(1000, [5_000_000; 2]), [None; 2], "of any age");
        assert_eq!(look(1001, [6_000_000, 5_500_000]), [Some(8_000_000), Some(4_000_000)]);
        assert_eq!(look(1300, [9_000_000, 9_500_000]), [Some(8_000_000), Some(4_000_000)], "after a sleep");
        assert_eq!(look(1301, [10_200_000, 9_500_000]), [Some(9_600_000), Some(4_000_000)]);
    }
}
