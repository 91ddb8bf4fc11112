//! Events that wait for an observer.

use std::collections::VecDeque;

/// Maximum number of waiting events: hours without an observer must not fill the memory.
const WAITING_MAX: usize = 1024;

/// A queue of events that an observer polls; it drops the oldest if nobody does.
#[derive(Debug)]
pub(super) struct Events<E>(VecDeque<E>);

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<E> Events<E> {
    pub fn push_back(&mut self, event: E) {
        if self.0.len() == WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub fn pop_front(&mut self) -> Option<E> {
        self.0.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_observer_the_oldest_are_forgotten() {
        let mut events = Events::default();
        (0..=WAITING_MAX).for_each(|number| events.push_back(number));
        assert_eq!(events.pop_front(), Some(1));
        let left = core::iter::from_fn(|| events.pop_front()).count();
        assert_eq!((left, events.is_empty()), (WAITING_MAX - 1, true));
    }
}
