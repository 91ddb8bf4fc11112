//! The engine's congestion controllers in the running kernel, by eBPF.
//!
//! [`load`] gives the kernel a controller from `bpf/`, which from then on stands in `net.ipv4.tcp_available_congestion_control` of every
//! network namespace, until [`unload`]. What holds it is a pin in the BPF file system, so no process has to stay; with [`hold`] it is there
//! for as long as the process. [`connections`] tells what its connections do, [`tell`] tells it what relays tell
//! of their paths, as an [`Agent`] hears it from destinations, and [`adapt`] lays adaptive congestion control over it.
//!
//! Built without the feature `load`, or without a clang that compiles for BPF, it says so and does nothing.

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

/// The result of what may be refused.
pub type Result<T> = std::result::Result<T, Error>;
