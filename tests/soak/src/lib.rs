//! Random scenarios, drawn from a seed, and what must hold in each.
//!
//! ```text
//! case       everything that decides a run, as data: settings, paths, applications, actions
//! draw       cases from a seed
//! goals      what must hold in a case, told from the case alone
//! wiring     from a case to a simulation
//! talker     the applications
//! actions    what is done to subflows and addresses on the way
//! run        runs a case, with an eye on storms
//! judge      what came of it
//! hunt       draws, runs, and shrinks what fails
//! coverage   what of everything that can be drawn has been drawn
//! listing    segments as lines of text
//! campaign   as many cases as fit into a time
//! ```

mod actions;
pub mod campaign;
pub mod case;
pub mod coverage;
mod draw;
pub mod goals;
pub mod hunt;
pub mod judge;
mod listing;
pub mod run;
mod talker;
mod wiring;
