//! What applications know in common that download over several uplinks: when a further one is worth it, and when one does harm.
//!
//! ```text
//! bulk          whether a connection brings enough for several paths
//! told          what its peer was told of subflows that are backups, and when that is to be said again
//! harm          which subflows cost more than they bring, or are dead
//! pauses        how long uplinks are silent that are alive
//! held_back     uplinks that were late, and until when they are backups
//! other_family  which uplinks join by their server's other family
//! shares        what uplinks bring of late, all connections together
//! ```
//!
//! All of them only judge: those who ask carry it out, for one connection (`anabranch get`) or for all of a proxy (`anabranch join`).

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

/// How long an answer to an offer of MPTCP is waited for before a server is asked without one: until its first repetition, after a second
/// (RFC 6298 section 2.1), has had another one (decision 0054).
pub const WITHOUT_OFFER_AFTER: Duration = Duration::from_secs(2);
