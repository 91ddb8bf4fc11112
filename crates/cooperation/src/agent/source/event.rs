//! What observers of a source hear.

use units::Instant;

use crate::channel::to_source::ToSource;

/// Something that an observer may want to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceEvent {
    /// A destination has called and proven who it is.
    Called {
        /// When.
        at: Instant,
    },
    /// The last of them cannot be heard any more.
    Deserted {
        /// Since when.
        at: Instant,
    },
    /// A destination told this of one of its relays.
    Told(ToSource),
}
