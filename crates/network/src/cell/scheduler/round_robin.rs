//! Round robin: the resource block groups of a TTI are dealt out evenly, and the next TTI goes on where this one ended.

use super::{Candidates, Grants, ResourceScheduler};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    /// The UE after which the next TTI begins.
    after: u16,
}

impl ResourceScheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        let ues = candidates.ues();
        let free = grants.free();
        let groups_each = (free.len() / ues.len()).max(1);
        let begin = ues.partition_point(|ue| *ue <= self.after) % ues.len();
        // Whoever was left out is first; if all were served, the second of them is.
        let served = free.len().min(ues.len());
        self.after = if served == ues.len() { ues[begin] } else { ues[(begin + served - 1) % ues.len()] };
        for (turn, group) in free.enumerate() {
            // What does not divide evenly goes to the last one in turn.
            let turn = (turn / groups_each).min(ues.len() - 1);
            grants.give(group, ues[(begin + turn) % ues.len()]);
        }
    }

    fn adapts_to_wideband(&self) -> bool {
        true
    }
}
