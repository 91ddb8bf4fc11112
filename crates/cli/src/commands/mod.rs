//! One file a subcommand.

pub mod demo;
pub mod emulate;
pub mod run;
