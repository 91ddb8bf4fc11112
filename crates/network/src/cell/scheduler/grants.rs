//! The assignment of one TTI's resource block groups to UEs.

use crate::cell::channel::GROUPS_MAX;

const NOBODY: u16 = u16::MAX;

/// The resource block groups of one TTI and their owners.
#[derive(Clone, Debug)]
pub struct Grants {
    owners: [u16; GROUPS_MAX],
    /// Owner of all free groups: faster than writing it into each.
    everything: Option<u16>,
    groups: usize,
    /// Groups below this are not free.
    first_free: usize,
}

impl Grants {
    /// Creates grants for `groups` groups, of which those below `first_free` serve retransmissions.
    pub(crate) fn new(groups: usize, first_free: usize) -> Self {
        Self { owners: [NOBODY; GROUPS_MAX], everything: None, groups, first_free }
    }

    /// Returns the groups that a scheduler may give.
    pub fn free(&self) -> core::ops::Range<usize> {
        self.first_free..self.groups
    }

    /// Gives one of the free groups to a UE.
    pub fn give(&mut self, group: usize, ue: u16) {
        self.owners[group] = ue;
    }

    /// Gives all free groups to one UE, replacing earlier owners.
    #[inline]
    pub fn give_all(&mut self, ue: u16) {
        self.everything = Some(ue);
    }

    /// Takes one owner and its groups, as bits.
    pub(crate) fn take_next(&mut self) -> Option<(u16, u32)> {
        let free = self.free();
        if let Some(ue) = self.everything.take() {
            self.owners = [NOBODY; GROUPS_MAX];
            return Some((ue, (((1_u64 << free.end) - 1) >> free.start << free.start) as u32));
        }
        let first = free.clone().find(|group| self.owners[*group] != NOBODY)?;
        let owner = self.owners[first];
        let mut mask = 0;
        for group in first..free.end {
            if self.owners[group] == owner {
                self.owners[group] = NOBODY;
                mask |= 1 << group;
            }
        }
        Some((owner, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_taken_one_by_one_with_their_groups() {
        let mut grants = Grants::new(6, 1);
        [(1, 7), (2, 3), (3, 7), (5, 3)].iter().for_each(|(group, ue)| grants.give(*group, *ue));
        assert_eq!(grants.take_next(), Some((7, 0b00_1010)));
        assert_eq!(grants.take_next(), Some((3, 0b10_0100)));
        assert_eq!(grants.take_next(), None);
        grants.give_all(4);
        assert_eq!([grants.take_next(), grants.take_next()], [Some((4, 0b11_1110)), None]);
    }
}
