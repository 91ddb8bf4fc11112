//! A host, which a driver drives in virtual time or on the real clock.
//!
//! ```text
//!              driver: segments, datagrams, the time
//!                 │
//!  host        ┌──┴─────────────────────────────┐
//!              │ agent   before the engine, which never sees what the agent takes
//!              │ engine  transport::Endpoint
//!              │ apps    above the engine: they receive its events and command it
//!              └────────────────────────────────┘
//! ```
//!
//! ```text
//! host      the contract between a host and its driver
//! stack     a host made of the engine, an agent and applications
//! agent     the contract of agents: segments before the engine, events before the applications
//! app       the contract of applications
//! apps      several applications as one
//! uplinks   what applications with several uplinks share: judging subflows and uplinks
//! ```

mod agent;
mod app;
mod apps;
mod host;
mod stack;
pub mod uplinks;

pub use agent::{Agent, Alone};
pub use app::{App, Report};
pub use apps::Apps;
pub use host::Host;
pub use stack::EndpointHost;
