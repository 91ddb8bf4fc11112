//! Maximum throughput: each resource block group goes to the UE with the highest rate there (ns-3's FD-MT), regardless
//! of fairness.

use super::{Candidates, Grants, ResourceScheduler, highest};

/// Scheduler for maximum throughput; see the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaximumThroughput;

impl ResourceScheduler for MaximumThroughput {
    fn name(&self) -> &'static str {
        "maximum-throughput"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        let Candidates { ues, .. } = *candidates;
        for group in grants.free() {
            let best = highest(ues, |ue| f64::from(candidates.group_bytes(ue, group)));
            best.filter(|ue| candidates.group_bytes(*ue, group) > 0).into_iter().for_each(|ue| grants.give(group, ue));
        }
    }

    /// The best UEs share all the time, the others get nothing.
    fn long_run_shares(&self, rates: &[f64]) -> Vec<f64> {
        let most = rates.iter().fold(0.0, |most: f64, rate| most.max(*rate));
        let winners = rates.iter().filter(|rate| **rate == most).count();
        rates.iter().map(|rate| if *rate == most { most / winners as f64 } else { 0.0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_takes_it_all() {
        let shares = MaximumThroughput.long_run_shares(&[20.0, 30.0, 30.0]);
        assert_eq!(shares, [0.0, 15.0, 15.0]);
    }
}
