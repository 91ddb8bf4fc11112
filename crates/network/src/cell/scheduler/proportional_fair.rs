//! Proportional fair: each resource block group goes to the UE whose rate there is highest relative to its past
//! average.
//!
//! metric_{i,k} = r_{i,k}(t) / R_i(t) (ns-3's PF; R_i as for blind equal throughput).

use super::{Candidates, Grants, ResourceScheduler, highest};

/// Octets per TTI below which a UE counts as not served yet.
const AVERAGE_MIN: f64 = 1e-3;

/// Proportional fair scheduler; see the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProportionalFair;

impl ResourceScheduler for ProportionalFair {
    fn name(&self) -> &'static str {
        "proportional-fair"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        let Candidates { ues, .. } = *candidates;
        for group in grants.free() {
            let best = highest(ues, |ue| {
                f64::from(candidates.group_bytes(ue, group)) / candidates.average_bytes(ue).max(AVERAGE_MIN)
            });
            best.filter(|ue| candidates.group_bytes(*ue, group) > 0).into_iter().for_each(|ue| grants.give(group, ue));
        }
    }
}
