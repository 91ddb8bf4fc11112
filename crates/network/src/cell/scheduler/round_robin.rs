//! Round robin: the resource block groups of a TTI are dealt out evenly, and the next TTI continues where this one
//! ended.

use super::{Candidates, Grants, ResourceScheduler};

/// Round robin scheduler; see the module documentation.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// UEs that can receive now.
    reached: Vec<u16>,
    /// The UE after which the next TTI begins.
    after: u16,
}

impl RoundRobin {
    /// Finds the UEs in range; the others get no turn. If no UE can receive, all UEs get a turn, and the cell asks them
    /// again when their channels change.
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
        // The next TTI begins with the first UE that was left out; if all were served, with the second of them.
        let served = free.len().min(ues.len());
        self.after = if served == ues.len() { ues[begin] } else { ues[(begin + served - 1) % ues.len()] };
        for (turn, group) in free.enumerate() {
            // The remainder goes to the last UE in turn.
            let turn = (turn / groups_each).min(ues.len() - 1);
            grants.give(group, ues[(begin + turn) % ues.len()]);
        }
    }

    fn adapts_to_wideband(&self) -> bool {
        true
    }
}
