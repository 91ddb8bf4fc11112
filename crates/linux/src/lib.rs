//! Real Linux around the sans-IO crates.
//!
//! ```text
//! ability     what this process may do on this machine, found out by trying
//! lack        what it may not or cannot do, with the remedy
//! tun         packets between the kernel and this process, whole super-segments at a time
//! memory      memory for packets that are read, reused
//! gather      makes super-segments of packets where the kernel has not
//! backlog     data that wait in the kernel to be sent
//! program     finds `ip`, `nft` and the shell
//! run_folder  the folder of sockets, locks and records of changes
//! netns       network namespaces that vanish with the process, even when it is killed
//! mptcp       the kernel's own MPTCP, from outside
//! descriptors limit of the process's file descriptors
//! driver      drives a host over a TUN device
//! tap         sees every packet of a driver
//! device_loop moves packets between devices and the network inside
//! uplink      interfaces that reach the Internet by themselves, and the plumbing between them and an engine
//! engine_options
//!             policies by name, and the tap, for the modules below
//! serve, get  HTTP over the engine: `anabranch serve` and `anabranch get`
//! ```

pub mod ability;
pub mod attachment;
#[cfg(test)]
mod back_to_back;
pub mod backlog;
pub mod clock;
pub mod descriptors;
pub mod device_loop;
pub mod driver;
pub mod engine_options;
pub mod error;
mod gather;
pub mod get;
mod helper;
pub mod http;
mod ip_command;
pub mod lack;
mod memory;
pub mod mptcp;
pub mod netns;
pub mod offload;
pub mod program;
pub mod retention;
pub mod run_folder;
pub mod serve;
pub mod stop;
pub mod tap;
mod template;
pub mod tun;
pub mod uplink;
pub mod wait;

pub use engine_options::{EngineOptions, PATH_MANAGER};
pub use error::Error;

/// Result of most functions here.
pub type Result<T, E = Error> = core::result::Result<T, E>;
