//! Random scenarios, drawn from a seed, and the goals that each must meet.
//!
//! ```text
//! kind       what a kind defines for its cases, and the registry of kinds
//! transport  a kind: two hosts, paths between them, applications
//! lab        a kind: scenario files, with cells, Wi-Fi, relays and cooperation
//!
//! hunt       draws a case from a seed, runs it, and shrinks it if it fails
//! campaign   as many cases as fit into a time, of one kind or of several
//! outcome    the result of a case, and its faults
//! coverage   which of the possible values have been drawn
//! traffic    segments that hosts send and receive
//! listing    segments as lines of text
//! ```

pub mod campaign;
pub mod coverage;
pub mod hunt;
pub mod kind;
pub mod lab;
pub mod listing;
pub mod outcome;
mod traffic;
pub mod transport;
