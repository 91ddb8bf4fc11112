//! The virtual-time driver: endpoints and network nodes on one event queue.
//!
//! A [`Simulation`] moves time from event to event, carries segments between [`Host`]s and a [`network::Network`], and
//! shows them to [`Tap`]s. A run is a function of scenario and seed, bit for bit. Callers obtain time series from
//! outside: they run the simulation for a window, read the statistics of hosts and links, and repeat.
//!
//! ```text
//! simulation   the driver
//! app          applications of hosts: transfers, echo, requests and responses
//! portal       a point in the network whose host is elsewhere
//! relay        a fast-ACK relay as an element of the network
//! swallower    a relay that acknowledges data and delivers none
//! traffic      flows that follow a demand in time, over UDP or TCP
//! check        independent observers of rules that hold in every run
//! tap          observers of segments: captures, fingerprints, checkers
//! scenario     two hosts joined by paths, ready to run
//! ```

pub mod app;
pub mod check;
mod portal;
pub mod relay;
mod scenario;
mod simulation;
pub mod swallower;
mod tap;
pub mod traffic;

pub use app::Source;
pub use host::{App, EndpointHost, Host, Report};
pub use portal::{Passing, Portal};
pub use scenario::{CLIENT, SERVER, two_hosts};
pub use simulation::{HostId, Simulation};
pub use tap::{Direction, Fingerprint, Interface, Tap};
