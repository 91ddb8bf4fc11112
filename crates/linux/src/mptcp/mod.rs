//! The kernel's Multipath TCP from outside: what becomes of its connections, and which subflows they get.
//!
//! ```text
//! attributes    octets of netlink messages ↔ attributes, total on whatever arrives
//! netlink       requests to the kernel and its answers
//! path_manager  subflows of one connection: made, ended, given another priority
//! events        what the kernel tells of connections and subflows
//! sockets       the subflows that there are now or were, and what passed over each
//! ```
//!
//! These are the means of a path manager outside of the kernel (`net.mptcp.path_manager=userspace`, since Linux 5.19): it may do
//! something for one connection without touching another. Through the kernel's own, which `ip mptcp endpoint` sets up, that cannot
//! be: an endpoint that is removed ends its subflows in all connections, the first ones included, so that at the end of a daemon
//! connections would be left with none (seen on Linux 6.18).

mod attributes;
mod events;
mod netlink;
mod path_manager;
mod sockets;

pub use events::{Ends, Event, Monitor};
pub(crate) use netlink::messages;
pub use path_manager::{Origin, PathManager};
pub use sockets::{Ended, EndedSockets, Socket, State, Traffic, sockets};
