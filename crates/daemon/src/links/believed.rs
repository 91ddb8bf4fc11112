//! Whether a relay lends, as far as it is believed. Sans-IO.
//!
//! A change takes a line in the log, and another tier of an uplink for all connections. The relay decides how often it
//! says something else, so only a few changes count at once.

use cooperation::link::Lends;
use units::{Duration, Instant};

/// Number of changes that count at once, and the span in which there are no more of them. Both are chosen: a relay whose
/// own link comes and goes is followed, and one that says something else all the time costs little.
const CHANGES_MAX: usize = 4;
const SPAN: Duration = Duration::from_secs(20);

/// What a relay says about its lending, as far as it is believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Believed {
    lends: Option<Lends>,
    /// When the relay changed its mind, the latest time first.
    changed_at: [Option<Instant>; CHANGES_MAX],
}

impl Believed {
    /// Takes what the relay says now; `None`: it is not reachable. Returns whether that is news. That it ceases to lend
    /// counts at once; another change of mind may have to wait, and is to be taken again.
    pub fn take(&mut self, said: Option<Lends>, now: Instant) -> bool {
        if said == self.lends {
            return false;
        }
        // Whether it is reachable is no statement of its own.
        if said.is_some() && self.lends.is_some() {
            let ends = self.carries() && !said.is_some_and(Lends::carries);
            let [.., oldest] = self.changed_at;
            if !ends && oldest.is_some_and(|at| now.saturating_since(at) < SPAN) {
                return false;
            }
            self.changed_at.rotate_right(1);
            self.changed_at[0] = Some(now);
        }
        self.lends = said;
        true
    }

    /// Returns whether it lends; `None`: it is not reachable.
    pub const fn lends(&self) -> Option<Lends> {
        self.lends
    }

    /// Returns whether it carries packets.
    pub fn carries(&self) -> bool {
        self.lends.is_some_and(Lends::carries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is believed of a relay that says one thing and the other by turns, a hundred times a second for a
    /// minute, and the times of news, ms.
    fn by_turns(says: [Lends; 2]) -> (Believed, Vec<u64>) {
        let mut believed = Believed::default();
        let mut said = says.into_iter().cycle();
        let is_news = |ms: &u64| believed.take(said.next(), Instant::from_millis(100_000 + ms));
        let news = (0..60_000).step_by(10).filter(is_news).collect();
        (believed, news)
    }

    #[test]
    fn a_relay_that_changes_its_mind_all_the_time_is_believed_now_and_then() {
        for says in [[Lends::Fully, Lends::AsBackup], [Lends::NoVolume, Lends::NoBattery]] {
            let (_, news) = by_turns(says);
            let later = [20_010, 20_020, 20_030, 20_040, 40_010, 40_020, 40_030, 40_040];
            assert_eq!(news, [&[0, 10, 20, 30, 40][..], &later].concat(), "{says:?}");
        }
        let (believed, news) = by_turns([Lends::Fully, Lends::Ended]);
        assert!(news.len() < 15, "{news:?}");
        assert!(believed.lends().is_some());
    }

    #[test]
    fn that_a_relay_ceases_to_lend_counts_at_once() {
        let at = |secs: u64| Instant::from_secs(100 + secs);
        let mut believed = Believed::default();
        assert!(believed.take(Some(Lends::Fully), at(0)));
        let says = [Lends::AsBackup, Lends::Fully, Lends::AsBackup, Lends::Fully];
        assert!(says.into_iter().all(|lends| believed.take(Some(lends), at(1))));
        assert!(!believed.take(Some(Lends::AsBackup), at(2)));
        assert!(believed.take(Some(Lends::NoUplink), at(2)) && !believed.carries());
        assert!(!believed.take(Some(Lends::Fully), at(3)), "not the way back");
        // A relay that was not heard for a while begins anew.
        assert!(believed.take(None, at(6)) && believed.take(Some(Lends::Fully), at(7)));
        assert!(believed.take(Some(Lends::AsBackup), at(30)), "after a while");
    }
}
