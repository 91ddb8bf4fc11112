//! What observers of a relay hear.

use units::Instant;

use crate::channel::to_destination::Offer;

/// Something that an observer may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEvent {
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
    /// It offered this.
    Offered(Offer),
    /// The volume that it lends is spent.
    Spent {
        /// Since when.
        at: Instant,
    },
}
