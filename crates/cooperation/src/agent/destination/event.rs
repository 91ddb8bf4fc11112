//! Events for observers of a destination.

use units::{Dsn, Instant};

use crate::channel::to_destination::Advert;
use crate::relay_selection::RelayId;
use crate::relay_selection::manager::Report;

/// An event for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DestinationEvent {
    /// A report of relay selection.
    Selection(Report),
    /// A relay's advert arrived.
    Offered {
        /// Time of arrival.
        at: Instant,
        /// The relay.
        relay: RelayId,
        /// The advert.
        advert: Advert,
    },
    /// The number of subflows that carry new data changed.
    ActiveSet {
        /// Time of the change.
        at: Instant,
        /// The new number.
        count: u64,
    },
    /// The source forbids further subflows to its address (RFC 8684 section 3.1, flag C). No relay can carry one, so
    /// the connection stays on its first subflow, and relay selection has ended.
    JoinsForbidden,
    /// A relay swallowed data.
    Guilty(RelayId),
    /// The destination gave up the connection: octets never arrived, and no relay is left to exclude.
    GaveUp {
        /// The first missing octet.
        missing: Dsn,
        /// Whether no relay delivered anything any more; the links may be the cause.
        silence: bool,
    },
}

/// The events that wait for an observer.
pub(super) type Events = crate::agent::events::Events<DestinationEvent>;
