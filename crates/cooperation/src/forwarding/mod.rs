//! Forwarding: how data get from the source through a relay to the destination.
//!
//! ```text
//! range          the data that the destination wants next, and what it has
//! range_keeper   the destination's side of differentiated forwarding: when the range moves on
//! hole_watch     the destination's side: who acknowledges data and delivers none?
//! hold_queue     the relay's side: forward what is wanted, hold what can wait
//! range_shares   the range of each relay, in proportion to its rate
//! differentiated the hold queue between the legs of a fast-ACK relay
//! packet_dsn     which data a packet carries, as somebody on the way sees it
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
