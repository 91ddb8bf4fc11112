//! Finds the UE with the lowest average among those that may be served.
//!
//! The structure is a tournament: every node of a binary tree holds the lowest value below it. With a thousand waiting
//! UEs, a TTI costs ten comparisons to find one of them and ten to update its average, instead of a look at each UE.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::averages::Averages;

/// Value of a UE that may not be served.
const ABSENT: f64 = f64::INFINITY;

#[derive(Clone, Debug)]
pub(crate) struct Poorest {
    /// The tree. The root is at 1, the children of `n` are at `2 n` and `2 n + 1`, and the UEs fill the second half.
    lowest: Vec<f64>,
    /// UEs whose values must be updated.
    touched: Vec<u16>,
    /// UEs that may be served from a later TTI on.
    later: BinaryHeap<Reverse<(u64, u16)>>,
    /// The unit of the averages in the tree.
    unit: u64,
}

impl Poorest {
    pub(crate) fn new(ues: usize) -> Self {
        let lowest = vec![ABSENT; 2 * ues.next_power_of_two()];
        Self { lowest, touched: (0..ues as u16).collect(), later: BinaryHeap::new(), unit: 0 }
    }

    /// Notes that a UE's average has changed, or whether or when it may be served.
    #[inline]
    pub(crate) fn touch(&mut self, ue: u16) {
        self.touched.push(ue);
    }

    /// Returns the UE with the lowest average among those that may be served in `tti`; the first of equals.
    /// `served_from` returns the TTI from which on a UE may be served, or `None` if it does not wait.
    pub(crate) fn find(
        &mut self,
        tti: u64,
        averages: &Averages,
        served_from: impl Fn(u16) -> Option<u64>,
    ) -> Option<u16> {
        if self.unit != averages.unit() {
            self.unit = averages.unit();
            self.touched.extend(0..averages.len() as u16);
        }
        while let Some(Reverse((_, ue))) = self.later.peek().filter(|Reverse((due, _))| *due <= tti) {
            self.touched.push(*ue);
            self.later.pop();
        }
        while let Some(ue) = self.touched.pop() {
            let from = served_from(ue);
            match from {
                Some(from) if from <= tti => self.set(ue, averages.stored(usize::from(ue))),
                _ => self.set(ue, ABSENT),
            }
            if let Some(from) = from.filter(|from| *from > tti && *from < u64::MAX) {
                self.later.push(Reverse((from, ue)));
            }
        }
        self.first(averages)
    }

    fn set(&mut self, ue: u16, value: f64) {
        let mut node = self.lowest.len() / 2 + usize::from(ue);
        self.lowest[node] = value;
        while node > 1 {
            node /= 2;
            let lowest = self.lowest[2 * node].min(self.lowest[2 * node + 1]);
            if self.lowest[node] == lowest {
                break;
            }
            self.lowest[node] = lowest;
        }
    }

    /// The first UE with the lowest average. Averages are compared after multiplying out, so that rounding makes the
    /// same ones equal.
    fn first(&self, averages: &Averages) -> Option<u16> {
        let lowest = averages.multiplied_out(self.lowest[1]);
        if lowest == ABSENT {
            return None;
        }
        let leaves = self.lowest.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            if averages.multiplied_out(self.lowest[node]) > lowest {
                node += 1;
            }
        }
        Some((node - leaves) as u16)
    }
}

#[cfg(test)]
mod tests {
    use units::Prng;

    use super::*;

    #[test]
    fn it_finds_whom_a_look_at_all_finds() {
        for ues in [1_usize, 2, 10, 33] {
            let mut prng = Prng::new(ues as u64);
            let mut averages = Averages::new(ues, 20.0);
            let mut poorest = Poorest::new(ues);
            let mut served_from: Vec<Option<u64>> = vec![Some(0); ues];
            for tti in 1..20_000 {
                averages.advance(tti);
                let fit = (0..ues as u16).filter(|ue| served_from[usize::from(*ue)].is_some_and(|from| from <= tti));
                let average = |ue: &u16| averages.get(usize::from(*ue));
                let expected = fit.min_by(|a, b| average(a).total_cmp(&average(b)));
                let found = poorest.find(tti, &averages, |ue| served_from[usize::from(ue)]);
                assert_eq!(found, expected, "{ues} UEs, TTI {tti}");
                if let Some(ue) = found {
                    averages.add(usize::from(ue), 100 * (1 + prng.below(3) as u32));
                    poorest.touch(ue);
                }
                let changed = prng.below(ues as u64) as usize;
                served_from[changed] = match prng.below(8) {
                    0 => None,
                    1 => Some(u64::MAX),
                    2..=4 => Some(tti + prng.below(9)),
                    _ => Some(0),
                };
                poorest.touch(changed as u16);
            }
        }
    }
}
