//! Which paths carry new data (section 4.2, equation 8 and algorithm 1).
//!
//! ```text
//! blocking is not near:  all paths                                          full MPTCP
//! blocking is near:      v = argmin Rate_e over the list; v becomes UNUSED   (8)
//!                        an UNUSED path (not v) whose Rate_e is above the smallest in the list returns
//! ```
//!
//! Only one path leaves at a time, and never the last of those whose rate is known. A path without a known rate neither
//! leaves nor counts as the smallest: it may be new, a backup, or dead, so the others must not rely on it.

use super::Reading;

/// A path, as input and output of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) rate_bytes_per_s: Option<u64>,
    pub(super) is_unused: bool,
}

/// The candidate path list.
#[derive(Debug)]
pub(super) struct PathList {
    reading: Reading,
    /// Consecutive rounds without blocking near until all paths return to the list.
    clear_rounds: u32,
    clear: u32,
}

impl PathList {
    pub(super) fn new(reading: Reading, clear_rounds: u32) -> Self {
        Self { reading, clear_rounds, clear: 0 }
    }

    /// Decides at the end of a round.
    pub(super) fn on_round(&mut self, is_blocking_near: bool, paths: &mut [Choice]) {
        if !is_blocking_near {
            self.clear = self.clear.saturating_add(1);
            if self.clear >= self.clear_rounds {
                paths.iter_mut().for_each(|path| path.is_unused = false);
            }
            return;
        }
        self.clear = 0;
        match self.reading {
            Reading::Build => leave_out_slowest(paths),
            Reading::Paper => search_as_printed(paths),
        }
    }
}

fn leave_out_slowest(paths: &mut [Choice]) {
    let known = paths.iter().filter(|path| !path.is_unused && path.rate_bytes_per_s.is_some()).count();
    let left_out = slowest(paths).filter(|_| known > 1);
    if let Some(victim) = left_out {
        paths[victim].is_unused = true;
    }
    let Some(least) = slowest(paths).and_then(|position| paths[position].rate_bytes_per_s) else { return };
    for (position, path) in paths.iter_mut().enumerate() {
        let is_faster = path.rate_bytes_per_s.is_some_and(|rate| rate > least);
        if path.is_unused && Some(position) != left_out && is_faster {
            path.is_unused = false;
        }
    }
}

/// Algorithm 1 line by line. It marks every minimum on the way; the second loop, which compares with the last minimum,
/// brings back all but the last.
fn search_as_printed(paths: &mut [Choice]) {
    let rate = |path: &Choice| path.rate_bytes_per_s.unwrap_or(u64::MAX);
    let Some(mut least) = paths.iter().position(|path| !path.is_unused) else { return };
    for position in 0..paths.len() {
        if !paths[position].is_unused && rate(&paths[position]) < rate(&paths[least]) {
            least = position;
            paths[position].is_unused = true;
        }
    }
    let threshold = rate(&paths[least]);
    paths.iter_mut().filter(|path| rate(path) > threshold).for_each(|path| path.is_unused = false);
}

/// Returns the listed path with the smallest rate.
fn slowest(paths: &[Choice]) -> Option<usize> {
    let listed = paths.iter().enumerate().filter(|(_, path)| !path.is_unused);
    listed.filter_map(|(position, path)| Some((path.rate_bytes_per_s?, position))).min().map(|(_, position)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths<const N: usize>(rates: [(u64, bool); N]) -> [Choice; N] {
        rates.map(|(rate, is_unused)| Choice { rate_bytes_per_s: Some(rate).filter(|rate| *rate > 0), is_unused })
    }

    fn unused(paths: &[Choice]) -> Vec<usize> {
        (0..paths.len()).filter(|position| paths[*position].is_unused).collect()
    }

    #[test]
    fn the_slowest_leaves_one_at_a_time_and_never_the_last() {
        let mut list = PathList::new(Reading::Build, 1);
        let mut three = paths([(100, false), (900, false), (300, false)]);
        let mut course = Vec::new();
        for _ in 0..4 {
            list.on_round(true, &mut three);
            course.push(unused(&three));
        }
        assert_eq!(course, [vec![0], vec![0, 2], vec![0, 2], vec![0, 2]]);
        list.on_round(false, &mut three);
        assert!(unused(&three).is_empty(), "full MPTCP");
    }

    #[test]
    fn a_path_that_became_faster_comes_back_at_the_next_blocking() {
        let mut list = PathList::new(Reading::Build, 1);
        let mut three = paths([(500, true), (900, false), (300, false)]);
        list.on_round(true, &mut three);
        // 300 leaves; 900 is the smallest left, and 500 is not above it.
        assert_eq!(unused(&three), [0, 2]);
        let mut three = paths([(950, true), (900, false), (300, false)]);
        list.on_round(true, &mut three);
        assert_eq!(unused(&three), [2]);
    }

    #[test]
    fn all_return_only_after_the_clear_rounds() {
        let mut list = PathList::new(Reading::Build, 2);
        let mut two = paths([(100, false), (900, false)]);
        list.on_round(true, &mut two);
        list.on_round(false, &mut two);
        assert_eq!(unused(&two), [0]);
        list.on_round(false, &mut two);
        assert!(unused(&two).is_empty());
    }

    #[test]
    fn as_printed_the_first_path_never_leaves() {
        let mut list = PathList::new(Reading::Paper, 1);
        let mut three = paths([(100, false), (900, false), (300, false)]);
        list.on_round(true, &mut three);
        assert!(unused(&three).is_empty(), "the first is the slowest");
        let mut three = paths([(900, false), (300, false), (100, false)]);
        list.on_round(true, &mut three);
        assert_eq!(unused(&three), [2], "300 is marked on the way and comes back");
        list.on_round(true, &mut three);
        assert_eq!(unused(&three), [1, 2], "100 is not faster than 300");
        list.on_round(true, &mut three);
        assert_eq!(unused(&three), [1, 2], "what is left is the first");
    }

    #[test]
    fn a_path_without_a_rate_neither_leaves_nor_stands_in_for_another() {
        let mut list = PathList::new(Reading::Build, 1);
        let mut three = paths([(0, false), (900, false), (0, false)]);
        list.on_round(true, &mut three);
        assert!(unused(&three).is_empty(), "the others may be backups, or dead");
        let mut three = paths([(0, false), (900, false), (300, false)]);
        for _ in 0..2 {
            list.on_round(true, &mut three);
            assert_eq!(unused(&three), [2]);
        }
    }
}
