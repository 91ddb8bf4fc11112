//! One eNB: its waiting UEs and its scheduler.

use std::collections::VecDeque;

use super::bearer::BlockNr;
use super::decibel::Decibel;
use super::scheduler::ResourceScheduler;

/// A transport block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub ue: u16,
    pub nr: BlockNr,
    /// Number of resource block groups it takes.
    pub groups: u8,
    /// Earlier transmissions since RLC gave it to HARQ.
    pub attempt: u8,
    /// The SINR for which its MCS was chosen.
    pub reported: Decibel,
}

/// A transport block on its way to a UE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub lands_tti: u64,
    pub intact: bool,
    pub block: Block,
}

/// The state of one site.
pub(crate) struct Site {
    pub scheduler: Box<dyn ResourceScheduler>,
    /// The UEs it serves, in ascending order.
    pub members: Vec<u16>,
    /// The UEs with data, in ascending order.
    pub active: Vec<u16>,
    /// Blocks to send again, each with its earliest TTI; in ascending order of TTI.
    pub again: VecDeque<(u64, Block)>,
}

impl Site {
    pub(crate) fn new(scheduler: Box<dyn ResourceScheduler>) -> Self {
        Self { scheduler, members: Vec::new(), active: Vec::new(), again: VecDeque::new() }
    }

    pub(crate) fn join(&mut self, ue: u16) {
        insert(&mut self.members, ue);
    }

    /// Removes a UE; returns whether it was a member.
    pub(crate) fn leave(&mut self, ue: u16) -> bool {
        self.deactivate(ue);
        remove(&mut self.members, ue)
    }

    pub(crate) fn activate(&mut self, ue: u16) {
        insert(&mut self.active, ue);
    }

    pub(crate) fn deactivate(&mut self, ue: u16) {
        remove(&mut self.active, ue);
    }

    /// The UEs that may get a share of a TTI.
    pub(crate) fn contenders(&self) -> &[u16] {
        if self.scheduler.reserves() && !self.active.is_empty() { &self.members } else { &self.active }
    }

    /// Whether there are data for any UE, new or to be sent again.
    pub(crate) fn has_data(&self) -> bool {
        !(self.active.is_empty() && self.again.is_empty())
    }

    pub(crate) fn send_again(&mut self, due_tti: u64, block: Block) {
        let position = self.again.partition_point(|(due, _)| *due <= due_tti);
        self.again.insert(position, (due_tti, block));
    }
}

fn insert(ascending: &mut Vec<u16>, ue: u16) {
    if let Err(position) = ascending.binary_search(&ue) {
        ascending.insert(position, ue);
    }
}

fn remove(ascending: &mut Vec<u16>, ue: u16) -> bool {
    let position = ascending.binary_search(&ue);
    if let Ok(position) = position {
        ascending.remove(position);
    }
    position.is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::scheduler;
    use super::*;

    #[test]
    fn what_is_due_first_goes_first() {
        let mut site = Site::new(scheduler::build("round-robin").unwrap());
        let block = |nr| Block { ue: 0, nr, groups: 1, attempt: 0, reported: Decibel::ZERO };
        [(10, 1), (60, 2), (12, 3), (10, 4)].iter().for_each(|(due, nr)| site.send_again(*due, block(*nr)));
        assert_eq!(
            site.again.iter().map(|(due, block)| (*due, block.nr)).collect::<Vec<_>>(),
            [(10, 1), (10, 4), (12, 3), (60, 2)]
        );
    }

    #[test]
    fn members_and_those_with_data_are_kept_in_order() {
        let mut site = Site::new(scheduler::build("blind-equal-throughput-reserved").unwrap());
        [5, 2, 9].iter().for_each(|ue| site.join(*ue));
        assert_eq!(site.contenders(), []);
        site.activate(9);
        assert_eq!((site.contenders(), &site.active[..]), (&[2, 5, 9][..], &[9][..]));
        assert!(site.leave(9) && !site.leave(9));
        assert_eq!((&site.members[..], site.active.len()), (&[2, 5][..], 0));
    }
}
