//! Numbers for C to name connections and listeners by.

use std::collections::BTreeMap;

/// Gives out numbers from 1 on and never twice, so that a stale one is always found out.
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
    /// The number of `thing`; a new one at first sight.
    pub fn number(&mut self, thing: T) -> u64 {
        *self.numbers.entry(thing).or_insert_with(|| {
            self.last += 1;
            self.things.insert(self.last, thing);
            self.last
        })
    }

    /// What `number` names.
    pub fn thing(&self, number: u64) -> Option<T> {
        self.things.get(&number).copied()
    }

    /// Forgets what `number` names.
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
