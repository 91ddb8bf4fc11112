//! One file a subcommand.

pub mod demo;
pub mod emulate;
pub mod get;
pub mod run;
pub mod serve;
