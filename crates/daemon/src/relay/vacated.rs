//! Slots whose device was removed. They stay closed until the kernel has forgotten the connections of that device: the
//! next one in the slot has the same addresses, and must not get answers that are meant for the device before it.
//!
//! ```text
//! forwarder: close ──▶ keeper: forget ──▶ forwarder: open, once nothing waits that came before
//! ```

use linux::uplink::SLOTS_MAX;

/// Slots, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots([bool; SLOTS_MAX as usize + 1]);

impl Slots {
    /// Adds a slot.
    pub fn insert(&mut self, slot: u8) {
        if let Some(is_in) = self.0.get_mut(usize::from(slot)) {
            *is_in = true;
        }
    }

    /// Removes a slot.
    pub fn remove(&mut self, slot: u8) {
        if let Some(is_in) = self.0.get_mut(usize::from(slot)) {
            *is_in = false;
        }
    }

    /// Returns whether a slot is in.
    pub fn contains(&self, slot: u8) -> bool {
        self.0.get(usize::from(slot)).is_some_and(|is_in| *is_in)
    }

    /// Returns the slots.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=SLOTS_MAX).filter(move |slot| self.contains(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_and_go() {
        let mut slots = Slots::default();
        [1, SLOTS_MAX, SLOTS_MAX + 1, u8::MAX].into_iter().for_each(|slot| slots.insert(slot));
        assert!(slots.iter().eq([1, SLOTS_MAX]), "there are no others");
        slots.remove(1);
        slots.remove(u8::MAX);
        assert!(slots.contains(SLOTS_MAX) && !slots.contains(1) && !slots.contains(u8::MAX));
    }
}
