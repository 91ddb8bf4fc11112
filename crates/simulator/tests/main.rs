//! The driver with the engine, and with hosts other than the engine.

mod allocation;
mod bbr;
mod bottlenecks;
mod checker;
mod crowd;
mod driver;
mod dummy;
mod engine;
mod equilibria;
// The same counting allocator as in the tests of transport.
#[path = "../../transport/tests/live/mod.rs"]
mod live;
mod long_fat_path;
mod middleboxes;
mod olia_scenarios;
mod olia_testbed;
mod path_mtu;
mod receiver_centric;
mod relay;
mod relay_churn;
mod rfc6356_goals;
mod schedulers;
mod traffic;
mod traffic_users;
mod windows;
