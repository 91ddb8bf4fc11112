//! Middleboxes: they read and rewrite segments of others (RFC 8684 section 6 lists what MPTCP must survive).
//!
//! Most see one direction. [`Nat`], [`EditStream`], [`ForgetfulFirewall`] and [`NarrowHop`] must see both: place them
//! where both directions pass. [`NarrowEntry`] is for one direction of a link, [`NatEntry`] for a link whose hosts forward
//! packets of others. An [`EditStream::overwriting`] sees one direction.

mod edit_stream;
mod forgetful_firewall;
mod merge;
mod narrow_hop;
mod nat;
mod shift_dsn;
mod split;
mod strip_options;

pub use edit_stream::{Edit, EditStream};
pub use forgetful_firewall::ForgetfulFirewall;
pub use merge::Merge;
pub use narrow_hop::{NarrowEntry, NarrowHop};
pub use nat::{Nat, NatEntry};
pub use shift_dsn::ShiftDsn;
pub use split::Split;
pub use strip_options::{OptionKinds, StripOn, StripOptions};
