//! The engine's congestion controllers in the running kernel, with eBPF.
//!
//! [`load`] gives the kernel a controller from `bpf/`, which is then listed in
//! `net.ipv4.tcp_available_congestion_control` of every network namespace, until [`unload`]. A pin in the BPF file
//! system keeps it, so no process has to stay; with [`hold`] it exists only while the process does. [`connections`]
//! returns the state of its connections; [`tell`] passes it the relays' reports on their paths, as an [`Agent`]
//! receives them from destinations; [`adapt`] sets adaptive congestion control on top of it.
//!
//! If built without the feature `load`, or without a clang that compiles for BPF, all functions only return an error.

mod adapting;
mod agent;
mod clock;
mod controllers;
mod error;
mod file_system;
#[cfg(bpf_programs)]
mod layers;
#[cfg(bpf_programs)]
mod loader;
#[cfg(bpf_programs)]
mod namespaces;
mod sysctl;
#[cfg(not(bpf_programs))]
mod without;

mod connection;
pub mod layout;
#[cfg(any(test, bpf_programs))]
mod reading;
mod told;
#[cfg(any(test, bpf_programs))]
mod words;

pub use adapting::Adapting;
pub use agent::Agent;
pub use connection::{Connection, Counters, Subflow};
pub use controllers::{CONTROLLERS, Controller};
pub use error::Error;
#[cfg(bpf_programs)]
pub use layers::{adapt, adapting, tell};
#[cfg(bpf_programs)]
pub use loader::{COMPILER, Hold, check, connections, counters, hold, is_loaded, load, unload};
pub use sysctl::{available, default, set_default};
pub use told::{PathId, Told};
pub use transport::congestion::Competition;
#[cfg(not(bpf_programs))]
pub use without::{COMPILER, Hold, adapt, adapting, check, connections, counters, hold, is_loaded, load, tell, unload};

/// Result of the functions here.
pub type Result<T> = std::result::Result<T, Error>;
