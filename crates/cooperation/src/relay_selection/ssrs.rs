//! Subset-sum based relay selection (SSRS; thesis 4.1.3): finds feasible sets by trimmed subset sums and chooses by
//! cost.

use units::Prng;

use super::choice::{self, Search};
use super::field::{Field, Position};
use super::search::trimmed_lists::{self, Classes, Lists};
use super::search::{Found, Pool, every_subset, few_changes, many_relays};
use super::{Choice, Goal, Mode, Offer, Range, Reasons, RelayId, RelaySelector, SelectorSettings};

/// Up to this many relays, lists are trimmed as printed; if they hold no feasible set, every subset is tried.
const FEW_RELAYS: usize = 16;

/// The SSRS selector. In build mode, it considers relays that offer less than 2 % of TBR only if no set without them is
/// feasible.
#[derive(Debug)]
pub struct Ssrs {
    epsilon: f64,
    mode: Mode,
    /// Result of the latest search. It is kept for its memory, as `lists` and `cells` are.
    pool: Pool,
    lists: Lists,
    cells: Vec<Found>,
}

impl Ssrs {
    /// Creates the selector from valid settings; the registry checks them.
    pub(super) fn new(settings: SelectorSettings) -> Self {
        Self {
            epsilon: settings.epsilon,
            mode: settings.mode,
            pool: Pool::default(),
            lists: Lists::default(),
            cells: Vec::new(),
        }
    }

    fn choose(&mut self, field: &Field, range: Range, in_use: &[RelayId]) -> Choice {
        let counts_operations = self.mode != Mode::PaperSsrs;
        choice::choose(
            field,
            range,
            in_use,
            counts_operations,
            &mut SubsetSums { field, range, ascending: Vec::new(), tried_for: None, ssrs: self },
        )
    }
}

impl RelaySelector for Ssrs {
    fn name(&self) -> &'static str {
        "ssrs"
    }

    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], _: &mut Prng) -> Choice {
        let (field, range) = (Field::new(offers), goal.range());
        if self.mode == Mode::Build && field.has_small(range) {
            let choice = self.choose(&field.without_small(range), range, in_use);
            if choice.feasible {
                return choice;
            }
        }
        self.choose(&field, range, in_use)
    }

    fn reasons(&self, feasible: bool) -> Reasons {
        choice::reasons(feasible)
    }
}

struct SubsetSums<'a> {
    field: &'a Field,
    range: Range,
    /// With many relays: all positions in ascending order of their offers.
    ascending: Vec<Position>,
    /// The marks of the set in use for which every subset was tried, if it was.
    tried_for: Option<Vec<bool>>,
    ssrs: &'a mut Ssrs,
}

impl SubsetSums<'_> {
    fn are_many(&self) -> bool {
        self.ssrs.mode == Mode::Build && self.field.0.len() > FEW_RELAYS
    }
}

impl Search for SubsetSums<'_> {
    fn find(&mut self, in_use: &[bool]) -> &Pool {
        let are_many = self.are_many();
        let (field, range, Ssrs { epsilon, mode, pool, lists, cells }) = (self.field, self.range, &mut *self.ssrs);
        pool.clear();
        if *mode != Mode::Build {
            trimmed_lists::search(pool, lists, field, range, *epsilon, Classes::One, in_use);
        } else if are_many {
            self.ascending = field.ascending(in_use);
            many_relays::search(pool, cells, field, &self.ascending, range, *epsilon);
        } else {
            trimmed_lists::search(pool, lists, field, range, *epsilon, Classes::PerCardinality, in_use);
            // Trimming may lose feasible sums up to (1 + epsilon) L.
            if pool.sets.is_empty() {
                *pool = every_subset::search(field, range, in_use);
                self.tried_for = Some(in_use.to_vec());
            }
        }
        pool
    }

    fn find_around(&mut self, in_use: &[bool]) -> &Pool {
        if self.are_many() {
            few_changes::search(&mut self.ssrs.pool, self.field, &self.ascending, self.range, in_use);
        } else if self.tried_for.as_ref().is_some_and(|tried_for| tried_for != in_use) {
            // Of equally many relays, that search keeps one set for each number of relays shared with the marked ones.
            self.ssrs.pool = every_subset::search(self.field, self.range, in_use);
        }
        &self.ssrs.pool
    }
}
