//! Forwarding: how data travel from the source through a relay to the destination.
//!
//! ```text
//! range          the data that the destination wants next, and the data that it has
//! range_keeper   the destination's side of differentiated forwarding: when the range moves on
//! hole_watch     the destination's side: which relay acknowledges data and does not deliver them?
//! hold_queue     the relay's side: forwards wanted data, holds data that can wait
//! range_shares   the range of each relay, in proportion to its rate
//! differentiated the hold queue between the legs of a fast-ACK relay
//! packet_dsn     which data a packet carries, as a device on the path sees it
//! routed         the hold queue of a relay that only routes
//! ```

pub mod differentiated;
pub mod hold_queue;
pub mod hole_watch;
pub mod packet_dsn;
pub mod range;
pub mod range_keeper;
pub mod range_shares;
mod received_set;
pub mod routed;
