//! Scenarios with the radio of ns-3.

mod build;
mod refusals;
mod runs;
