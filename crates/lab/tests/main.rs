//! Scenarios from file to report, through the crate's public interface.

mod agreement;
mod allocation;
mod attacks;
mod bad_input;
mod ceased;
mod control_plane;
mod elements;
mod eras;
mod fast_ack;
mod lending;
mod link_rates;
// The same counting allocator as in the tests of transport.
#[path = "../../transport/tests/live/mod.rs"]
mod live;
mod media;
mod modules;
mod mutated_scenarios;
mod narrow_links;
mod qlog;
mod queueing;
mod radio;
mod remedies;
mod report;
mod report_browser;
mod results_page;
mod routed_forwarding;
mod runs;
mod scenario_files;
mod selection;
mod support;
mod sweep_report;
mod traffic;
