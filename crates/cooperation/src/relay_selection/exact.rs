//! Exact relay selection: tries every subset.

use units::Prng;

use super::choice::{self, Search};
use super::field::Field;
use super::search::{Pool, every_subset};
use super::{Choice, Goal, Offer, Range, Reasons, RelayId, RelaySelector};

/// Maximum number of relays among which every subset is tried.
pub const EXACT_RELAYS_MAX: usize = every_subset::RELAYS_MAX;

/// Chooses by the costs of SSRS (thesis (4.4)-(4.7)) among all feasible sets; if no set is feasible, the one whose sum
/// is nearest to the target.
///
/// Meant for few relays, and as an oracle. With more than [`EXACT_RELAYS_MAX`] relays that offer anything, it considers
/// only those with the largest offers; check [`Exact::is_exact_for`] if that matters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

impl Exact {
    /// Returns whether all relays that offer anything are considered.
    pub fn is_exact_for(offers: &[Offer]) -> bool {
        Field::new(offers).0.len() <= EXACT_RELAYS_MAX
    }
}

impl RelaySelector for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId], _: &mut Prng) -> Choice {
        let (mut field, range) = (Field::new(offers), goal.range());
        field.0.sort_by_key(|candidate| (core::cmp::Reverse(candidate.bps), candidate.id));
        field.0.truncate(EXACT_RELAYS_MAX);
        field.0.sort_by_key(|candidate| candidate.id);
        choice::choose(&field, range, in_use, true, &mut EverySubset { field: &field, range, pool: Pool::default() })
    }

    fn reasons(&self, feasible: bool) -> Reasons {
        choice::reasons(feasible)
    }
}

struct EverySubset<'a> {
    field: &'a Field,
    range: Range,
    pool: Pool,
}

impl Search for EverySubset<'_> {
    fn find(&mut self, in_use: &[bool]) -> &Pool {
        self.pool = every_subset::search(self.field, self.range, in_use);
        &self.pool
    }

    fn find_around(&mut self, in_use: &[bool]) -> &Pool {
        self.find(in_use)
    }
}
