//! The command as a program.

mod claims;
mod command;
mod confined;
mod daemons;
mod fading;
mod overrides;
mod schema;
mod select;
mod sweep;
