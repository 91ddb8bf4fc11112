//! Events for observers of a source.

use units::Instant;

use crate::channel::to_source::ToSource;

/// An event for observers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceEvent {
    /// A destination has called and proven its identity.
    Called {
        /// Time of the event.
        at: Instant,
    },
    /// The last destination has left.
    Deserted {
        /// Time of the event.
        at: Instant,
    },
    /// A destination reported this about one of its relays.
    Told(ToSource),
}
