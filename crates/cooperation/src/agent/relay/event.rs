//! Events for observers of a relay.

use units::Instant;

use crate::channel::to_destination::Advert;

/// An event for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEvent {
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
    /// The relay made an offer by this advert.
    Offered(Advert),
    /// The lent volume is spent.
    Spent {
        /// Time of the event.
        at: Instant,
    },
}
