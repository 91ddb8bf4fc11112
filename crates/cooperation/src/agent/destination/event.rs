//! What observers of a destination hear.

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
    /// The connection was given up: octets never arrived, and nobody is left to be excluded.
    GaveUp {
        /// The first of them.
        missing: Dsn,
        /// Nothing came over any relay any more: that may be the links'.
        silence: bool,
    },
}

/// Those that wait for an observer.
pub(super) type Events = crate::agent::events::Events<DestinationEvent>;
