//! The harness of the tests on real Linux: namespaces connected by emulated links, and the kernel's sockets in them.
//!
//! The tests need network namespaces, TUN devices and a kernel with MPTCP. Without these they print a message and pass.
//! If `CI` is `true` they fail instead, because CI relies on them.

mod controllers;
mod cooperation;
mod daemon;
mod echo;
mod engine;
mod environment;
mod janitors;
mod kernel;
mod patience;
mod priority;
mod relaying;
mod rig;
mod stream;
mod tethered;

pub use self::daemon::{Daemon, Files, ask, both_carried, break_the_watch, carried, wait_for};
pub use controllers::{Loaded, make_way};
pub use cooperation::{Cooperation, Joins, Orders, Relay, open_relay, relay_place};
pub use echo::{Echo, echo};
pub use engine::{ENGINE_MTU, Engine, engine_config, engine_device};
pub use environment::{available, available_unless, available_with};
pub use janitors::{janitors_of, kill_with_janitors};
pub use kernel::{
    MptcpInfo, Protocol, abort, accept, connect, connect_with, counter, find_counter, listen, listen_only, mptcp_info,
    srtt,
};
pub use patience::{Ended, in_three_tries, wait_until};
pub use priority::go_first;
pub use relaying::{Place, Relaying};
pub use rig::{Rig, one_at_a_time};
pub use stream::{Digest, pattern, receive_all, receive_rest, send_pattern, send_pattern_from};
pub use tethered::{Running, Tethered, USB, kill_at, output};
