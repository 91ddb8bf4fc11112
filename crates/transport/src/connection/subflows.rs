//! The subflows of a connection, by identifier.
//!
//! Only its [`SubflowId`] identifies a subflow: its position changes when one before it is removed.

use core::ops::{Index, IndexMut};
use core::slice;

use smallvec::SmallVec;

use super::subflow::Subflow;
use crate::SubflowId;

/// Number of subflows whose position is known without a search, if their identifiers are close together.
const HINTS: usize = 16;

/// Identifiers of subflows, in some order. They are few. A copy is needed because an action on one subflow may end
/// another.
pub(super) type Ids = SmallVec<[SubflowId; super::SUBFLOWS_CAP]>;

/// Every subflow that has not ended, in order of creation.
#[derive(Debug, Default)]
pub(super) struct Subflows {
    list: Vec<Subflow>,
    /// Position to try first, by identifier modulo [`HINTS`].
    hints: [u8; HINTS],
}

impl Subflows {
    /// Returns the position of a subflow. Every segment asks many times, and the hint is nearly always right.
    #[inline]
    fn position(&self, id: SubflowId) -> Option<usize> {
        let hint = self.hint(id);
        if self.is_at(hint, id) { Some(hint) } else { self.search(id) }
    }

    #[inline]
    fn hint(&self, id: SubflowId) -> usize {
        usize::from(self.hints[usize::from(id.0) % HINTS])
    }

    #[inline]
    fn is_at(&self, position: usize, id: SubflowId) -> bool {
        self.list.get(position).is_some_and(|subflow| subflow.id == id)
    }

    #[cold]
    fn search(&self, id: SubflowId) -> Option<usize> {
        self.list.iter().position(|subflow| subflow.id == id)
    }

    fn renew_hints(&mut self) {
        for (position, subflow) in (0..=u8::MAX).zip(&self.list) {
            self.hints[usize::from(subflow.id.0) % HINTS] = position;
        }
    }

    /// Adds a subflow with an identifier that no other has.
    pub(super) fn insert(&mut self, subflow: Subflow) {
        debug_assert!(!self.contains(subflow.id), "an identifier names one subflow");
        self.list.push(subflow);
        self.renew_hints();
    }

    /// Removes a subflow.
    pub(super) fn remove(&mut self, id: SubflowId) -> Option<Subflow> {
        let position = self.position(id)?;
        let subflow = self.list.remove(position);
        self.renew_hints();
        Some(subflow)
    }

    #[inline]
    pub(super) fn get(&self, id: SubflowId) -> Option<&Subflow> {
        let hint = self.hint(id);
        if self.is_at(hint, id) { self.list.get(hint) } else { self.search(id).map(|position| &self.list[position]) }
    }

    /// As [`Self::get`], but without checking the hint: nearly always it is the right subflow.
    pub(super) fn likely(&self, id: SubflowId) -> Option<&Subflow> {
        self.list.get(self.hint(id))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SubflowId) -> Option<&mut Subflow> {
        let hint = self.hint(id);
        if self.is_at(hint, id) {
            self.list.get_mut(hint)
        } else {
            self.search(id).map(|position| &mut self.list[position])
        }
    }

    /// Returns the subflow at a position in order of creation; valid while no subflow has been removed since the
    /// position was found.
    #[inline]
    pub(super) fn at_mut(&mut self, position: usize) -> &mut Subflow {
        &mut self.list[position]
    }

    #[inline]
    pub(super) fn contains(&self, id: SubflowId) -> bool {
        self.position(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the oldest subflow.
    pub(super) fn first(&self) -> Option<&Subflow> {
        self.list.first()
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut Subflow> {
        self.list.first_mut()
    }

    #[inline]
    pub(super) fn iter(&self) -> slice::Iter<'_, Subflow> {
        self.list.iter()
    }

    #[inline]
    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, Subflow> {
        self.list.iter_mut()
    }

    /// Iterates over all subflows but one.
    pub(super) fn others(&self, id: SubflowId) -> impl Iterator<Item = &Subflow> {
        self.list.iter().filter(move |subflow| subflow.id != id)
    }

    /// Returns all identifiers.
    pub(super) fn ids(&self) -> Ids {
        self.list.iter().map(|subflow| subflow.id).collect()
    }

    /// Returns the next subflow for which `is_wanted` holds, starting at `start` if that still exists, once around.
    /// Skips the first `passed` subflows, which have been asked before; also returns the new value of `passed`.
    #[inline]
    pub(super) fn next_around(
        &self,
        start: Option<SubflowId>,
        passed: usize,
        is_wanted: impl Fn(&Subflow) -> bool,
    ) -> Option<(usize, SubflowId)> {
        let at = start.and_then(|id| self.position(id)).unwrap_or(0);
        let count = self.list.len();
        (passed..count).find_map(|step| {
            let position = if at + step < count { at + step } else { at + step - count };
            let subflow = &self.list[position];
            is_wanted(subflow).then_some((step + 1, subflow.id))
        })
    }
}

/// The engine uses only identifiers that it has just received or found, and removes no subflow in between: see
/// `retire_subflows`.
impl Index<SubflowId> for Subflows {
    type Output = Subflow;

    #[inline]
    fn index(&self, id: SubflowId) -> &Subflow {
        self.get(id).expect("the subflow exists")
    }
}

impl IndexMut<SubflowId> for Subflows {
    #[inline]
    fn index_mut(&mut self, id: SubflowId) -> &mut Subflow {
        self.get_mut(id).expect("the subflow exists")
    }
}

impl<'a> IntoIterator for &'a mut Subflows {
    type Item = &'a mut Subflow;
    type IntoIter = slice::IterMut<'a, Subflow>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use units::{Instant, SeqNr};

    use super::super::subflow::Handshake;
    use super::*;
    use crate::ConnectionConfig;
    use crate::tcp::{Secrets, Tcb};

    fn subflow(id: u16) -> Subflow {
        let (local, remote) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
        let secrets = Secrets { iss: SeqNr(0), timestamp_offset: 0 };
        let tcb = Tcb::connect(local, remote, Arc::new(ConnectionConfig::default()), secrets, Instant::ZERO);
        Subflow::new(SubflowId(id), tcb, Handshake::Initial)
    }

    fn with(ids: impl IntoIterator<Item = u16>) -> Subflows {
        let mut subflows = Subflows::default();
        ids.into_iter().for_each(|id| subflows.insert(subflow(id)));
        subflows
    }

    fn numbers(ids: Ids) -> Vec<u16> {
        ids.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_name_stays_its_own_when_others_go() {
        let mut subflows = with(0..40);
        for gone in [0, 3, 17, 39] {
            assert_eq!(subflows.remove(SubflowId(gone)).map(|subflow| subflow.id), Some(SubflowId(gone)));
            assert!(subflows.remove(SubflowId(gone)).is_none());
        }
        for id in (0..40).map(SubflowId) {
            let is_left = ![0, 3, 17, 39].contains(&id.0);
            assert_eq!(subflows.get(id).map(|subflow| subflow.id), is_left.then_some(id));
        }
        assert_eq!((subflows.len(), subflows.first().map(|first| first.id)), (36, Some(SubflowId(1))));
    }

    #[test]
    fn names_with_the_same_hint_and_after_the_wrap_are_found() {
        let ids = [0, 16, 32, u16::MAX, 1];
        let subflows = with(ids);
        assert!(ids.iter().all(|id| subflows[SubflowId(*id)].id.0 == *id));
        assert!(!subflows.contains(SubflowId(48)));
        assert_eq!(numbers(subflows.ids()), ids, "in order of creation");
    }

    /// Returns the order in which subflows with identifiers of at least `least` are asked.
    fn round(subflows: &Subflows, start: Option<u16>, least: u16) -> Vec<u16> {
        let mut passed = 0;
        let next = || {
            let found = subflows.next_around(start.map(SubflowId), passed, |subflow| subflow.id.0 >= least);
            found.map(|(now_passed, id)| {
                passed = now_passed;
                id.0
            })
        };
        core::iter::from_fn(next).collect()
    }

    #[test]
    fn the_round_goes_on_where_it_was_though_earlier_ones_have_gone() {
        let mut subflows = with(0..5);
        assert_eq!(round(&subflows, Some(3), 0), [3, 4, 0, 1, 2]);
        subflows.remove(SubflowId(1));
        assert_eq!(round(&subflows, Some(3), 0), [3, 4, 0, 2]);
        subflows.remove(SubflowId(3));
        assert_eq!(round(&subflows, Some(3), 0), [0, 2, 4]);
        assert_eq!(round(&subflows, None, 1), [2, 4]);
    }
}
