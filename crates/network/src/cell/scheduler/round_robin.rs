//! Round robin: the resource block groups of a TTI are dealt out evenly, and the next TTI goes on where this one ended.

use super::{Candidates, Grants, ResourceScheduler};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// Those that can receive now.
    reached: Vec<u16>,
    /// The UE after which the next TTI begins.
    after: u16,
}

impl RoundRobin {
    /// Those out of range get no turn. If nobody can receive all get one, and the cell asks them again when that has changed.
    fn look_for_reached(&mut self, candidates: &mut Candidates<'_>) {
        self.reached.clear();
        for index in 0..candidates.ues().len() {
            let ue = candidates.ues()[index];
            if candidates.wideband_bytes(ue) > 0 {
                self.reached.push(ue);
            }
        }
        if self.reached.is_empty() {
            self.reached.extend_from_slice(candidates.ues());
        }
    }
}

impl ResourceScheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn share(&mut self, candidates: &mut Candidates<'_>, grants: &mut Grants) {
        self.look_for_reached(candidates);
        let ues = &self.reached;
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
