//! What observers of a destination hear.

use std::collections::VecDeque;

use units::{Dsn, Instant};

use crate::relay_selection::RelayId;
use crate::relay_selection::manager::Report;

/// Something that an observer may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DestinationEvent {
    /// Relay selection tells something.
    Selection(Report),
    /// So many subflows carry new data.
    ActiveSet {
        /// Since when.
        at: Instant,
        /// How many.
        count: u64,
    },
    /// A relay was found to swallow data.
    Guilty(RelayId),
    /// The connection was given up: octets that were acknowledged never arrived, and the source has them no longer.
    GaveUp {
        /// The first of them.
        missing: Dsn,
    },
}

/// Events that wait to be asked for, at most: a run of hours without an observer must not fill the memory.
const WAITING_MAX: usize = 4096;

/// Events that wait to be asked for; the oldest are forgotten if nobody asks.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<DestinationEvent>);

impl Events {
    pub fn push_back(&mut self, event: DestinationEvent) {
        if self.0.len() == WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub fn pop_front(&mut self) -> Option<DestinationEvent> {
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
        for relay in 0..=WAITING_MAX {
            events.push_back(DestinationEvent::Guilty(RelayId(relay as u16)));
        }
        assert_eq!(events.pop_front(), Some(DestinationEvent::Guilty(RelayId(1))));
        let left = core::iter::from_fn(|| events.pop_front()).count();
        assert_eq!((left, events.is_empty()), (WAITING_MAX - 1, true));
    }
}
