//! The kernel's own MPTCP, from outside: what happens to its connections, and which subflows they get.
//!
//! ```text
//! attributes    octets of netlink messages ↔ attributes, total on any input
//! netlink       requests to the kernel and its answers
//! path_manager  creates, ends and reprioritises subflows of one connection
//! events        the kernel's reports on connections and subflows
//! sockets       the subflows that exist now or existed, and the traffic over each
//! ```
//!
//! These are the means of a path manager outside the kernel (`net.mptcp.path_manager=userspace`, since Linux 5.19),
//! which can act on one connection without touching another. The kernel's own path manager, which `ip mptcp endpoint`
//! configures, cannot: removing an endpoint ends its subflows in all connections, including first subflows, so the end
//! of a daemon would leave connections without any subflow (seen on Linux 6.18).

mod attributes;
mod events;
mod netlink;
mod path_manager;
mod sockets;

pub(crate) use attributes::{Attributes, Writer};
pub use events::{Ends, Event, Monitor};
pub(crate) use netlink::{ERROR, messages, outcome};
pub use path_manager::{Origin, PathManager};
pub use sockets::{Ended, EndedSockets, Socket, State, Traffic, sockets};
