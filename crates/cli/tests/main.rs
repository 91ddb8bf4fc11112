//! The command as a program.

mod cc;
mod claims;
mod command;
mod compare;
mod confined;
mod daemons;
mod fading;
mod overrides;
mod policies;
mod schema;
mod select;
mod statistics_page;
mod status_page;
mod sweep;
