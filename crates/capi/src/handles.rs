//! Numbers by which C names connections and listeners.

use std::collections::BTreeMap;

/// Assigns numbers from 1 on. No number is reused, so a stale one is always detected.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    last: u64,
    things: BTreeMap<u64, T>,
    numbers: BTreeMap<T, u64>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { last: 0, things: BTreeMap::new(), numbers: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Handles<T> {
    /// Returns the number of `thing`, and assigns one if it has none.
    pub fn number(&mut self, thing: T) -> u64 {
        *self.numbers.entry(thing).or_insert_with(|| {
            self.last += 1;
            self.things.insert(self.last, thing);
            self.last
        })
    }

    /// Returns whether `thing` has a number.
    pub fn has(&self, thing: T) -> bool {
        self.numbers.contains_key(&thing)
    }

    /// Returns the thing named `number`.
    pub fn thing(&self, number: u64) -> Option<T> {
        self.things.get(&number).copied()
    }

    /// Removes the thing named `number`.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let thing = self.things.remove(&number)?;
        self.numbers.remove(&thing);
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_given_twice() {
        let mut handles = Handles::default();
        assert_eq!(handles.number('a'), 1);
        assert_eq!(handles.number('b'), 2);
        assert_eq!(handles.number('a'), 1);
        assert_eq!(handles.remove(1), Some('a'));
        assert_eq!(handles.thing(1), None);
        assert_eq!(handles.remove(1), None);
        assert_eq!(handles.number('a'), 3);
        assert_eq!(handles.thing(2), Some('b'));
    }
}
