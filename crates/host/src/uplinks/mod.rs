//! Judgements shared by applications that download over several uplinks: when another uplink helps, and when one does
//! harm.
//!
//! ```text
//! bulk          whether a connection brings enough for several paths
//! told          what the peer was told about backup subflows, and when to repeat it
//! harm          which subflows cost more than they bring, or are dead
//! pauses        how long live uplinks are silent
//! held_back     uplinks that were late, and until when they are backups
//! other_family  which uplinks join by the server's other family
//! shares        what uplinks have brought recently, over all connections
//! ```
//!
//! These modules only judge. Their callers act: `anabranch get` for one connection, `anabranch join` for all of a
//! proxy.

mod bulk;
pub mod harm;
mod held_back;
mod other_family;
mod pauses;
mod shares;
mod told;

pub use bulk::{Bulk, HEAVY_BYTES};
pub use harm::{Carrier, Finding, Harm, RTT_UNKNOWN};
pub use held_back::HeldBack;
pub use other_family::{OtherFamily, Step};
pub use pauses::Pauses;
pub use shares::Shares;
pub use told::Told;

use units::Duration;

/// Wait for an answer to an offer of MPTCP before a server is asked without one: the offer's first repetition, after a
/// second (RFC 6298 section 2.1), has then had another second (decision 0054).
pub const WITHOUT_OFFER_AFTER: Duration = Duration::from_secs(2);
