//! One file per subcommand, and the scenarios that ship.

mod builds;
pub mod cc;
pub mod check;
pub mod claims;
pub mod clean;
pub mod demo;
mod device;
pub mod doctor;
pub mod emulate;
mod engine;
pub mod fading;
pub mod get;
pub mod join;
mod keys;
pub mod manual;
mod notes;
pub mod peers;
mod real_time;
pub mod relay;
pub mod run;
pub mod scenarios;
pub mod select;
pub mod serve;
mod shipped;
pub mod status;
pub mod sweep;
mod tape;
