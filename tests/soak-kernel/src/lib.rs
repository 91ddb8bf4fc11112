//! Random settings of Linux kernels in network namespaces, drawn from a seed, and what must hold between their MPTCP
//! and the engine.
//!
//! ```text
//! case       everything that determines a run except the clock, as data
//! draw       cases from a seed
//! goals      what must hold in a case, from the case alone
//! network    from a case to the topology of an emulation, and to addresses
//! engine     the engine on its device, with its applications and the checkers of the simulator
//! kernel     the kernel's settings and its applications
//! actions    the actions on addresses, subflows and links
//! run        runs a case
//! judge      judges the results
//! trial      runs a case repeatedly: real time is never the same twice
//! smaller    leaves out parts that a failing case does not need
//! coverage   the properties of a case, of all that can be drawn
//! campaign   as many cases as fit into a time
//! ```

mod actions;
pub mod campaign;
pub mod case;
mod coverage;
pub mod draw;
mod engine;
pub mod goals;
mod judge;
mod kernel;
mod network;
mod patience;
mod run;
mod smaller;
pub mod trial;
