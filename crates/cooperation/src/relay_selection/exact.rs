//! Exact relay selection: every subset is tried.

use super::choice::{self, Search};
use super::field::Field;
use super::search::{Pool, every_subset};
use super::{Choice, Goal, Offer, Range, Reasons, RelayId, RelaySelector};

/// Most relays among which every subset is tried.
pub const EXACT_RELAYS_MAX: usize = every_subset::RELAYS_MAX;

/// Chooses by the costs of SSRS (thesis (4.4)-(4.7)) among all feasible sets there are; without a feasible set, the one with the
/// sum nearest to the target.
///
/// For few relays, and as an oracle. Of more than [`EXACT_RELAYS_MAX`] relays with an offer only those that offer most are
/// considered; whoever cannot accept that asks [`Exact::is_exact_for`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

impl Exact {
    /// Whether all relays that offer anything are considered.
    pub fn is_exact_for(offers: &[Offer]) -> bool {
        Field::new(offers).0.len() <= EXACT_RELAYS_MAX
    }
}

impl RelaySelector for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn select(&mut self, offers: &[Offer], goal: &Goal, in_use: &[RelayId]) -> Choice {
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
