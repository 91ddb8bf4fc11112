//! Random settings of Linux kernels in network namespaces, drawn from a seed, and what must hold between their MPTCP and the
//! engine.
//!
//! ```text
//! case       everything that decides a run but the clock, as data
//! draw       cases from a seed
//! goals      what must hold in a case, told from the case alone
//! network    from a case to the topology of an emulation, and to addresses
//! engine     the engine on its device, with its applications and the checkers of the simulator
//! kernel     the kernel's settings and its applications
//! actions    what is done to addresses, subflows and links on the way
//! run        runs a case
//! judge      what came of it
//! trial      runs a case again and again: real time is not the same twice
//! smaller    leaves out of a case that fails what it does not need
//! coverage   what of everything that can be drawn a case has
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
