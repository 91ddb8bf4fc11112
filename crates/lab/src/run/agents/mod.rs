//! Creates the agents of the hosts from a scenario.
//!
//! ```text
//! destination   settings of the destination's agent
//! relay         settings of each relay's agent
//! source        settings of the source's agent
//! measuring     measurements by a relay's modem and counters
//! journal       reports of the destination's agent, as results
//! ```

mod destination;
mod journal;
mod measuring;
mod relay;
mod source;

use core::net::{IpAddr, SocketAddr};

use cooperation::agent::Role;
use cooperation::agent::control::{AnswererSettings, ControlSettings};
use cooperation::agent::source::SourceSettings;
use cooperation::channel::Identity;
use units::Prng;

pub(super) use destination::play_stalled_s;
pub(super) use journal::Journal;
pub(super) use measuring::measurement;

use crate::run::RunError;
use crate::run::hosts::CONTROL_PORT;
use crate::run::stage::SOURCE_PORT;
use crate::scenario::{Addresses, Scenario};

/// Settings of the source's agent in a run of `scenario`, for a source outside the run's engines; `None` if the agent
/// has nothing to do.
///
/// # Errors
/// If the scenario asks a module for something that it cannot do.
pub fn source_settings(scenario: &Scenario) -> Result<Option<SourceSettings>, RunError> {
    let addresses = scenario.addresses();
    source::settings(&Agents::new(scenario, &addresses, SocketAddr::new(addresses.source, SOURCE_PORT)))
}

/// Creates the agents of one run.
pub(super) struct Agents<'a> {
    scenario: &'a Scenario,
    addresses: &'a Addresses,
    /// Address at which the source's application listens.
    source: SocketAddr,
}

impl<'a> Agents<'a> {
    /// Creates agents for connections to `source`.
    pub fn new(scenario: &'a Scenario, addresses: &'a Addresses, source: SocketAddr) -> Self {
        Self { scenario, addresses, source }
    }

    /// The destination's agent.
    ///
    /// # Errors
    /// If the scenario asks relay selection for something that it cannot do.
    pub fn destination(&self) -> Result<Role, RunError> {
        destination::agent(self)
    }

    /// The agent of relay `index`, if it has something to do.
    ///
    /// # Errors
    /// If the scenario asks relays for something that they cannot do.
    pub fn relay(&self, index: usize) -> Result<Role, RunError> {
        relay::agent(self, index)
    }

    /// The source's agent, if it has something to do.
    ///
    /// # Errors
    /// If the scenario asks a module for something that it cannot do.
    pub fn source(&self) -> Result<Role, RunError> {
        source::agent(self)
    }

    fn identity(&self, host: &str) -> Identity {
        Identity::from_secret(self.draw(&format!("key of {host}")))
    }

    /// Draws 32 octets that are unique to this run and to `label`.
    fn draw(&self, label: &str) -> [u8; 32] {
        let mut prng = Prng::fork(self.scenario.seed, label);
        core::array::from_fn(|_| prng.below(256) as u8)
    }

    /// Settings with which `host` answers the destination's calls. `channels` names the randomness of its channels.
    fn answerer(&self, host: &str, channels: &str, ip: IpAddr) -> AnswererSettings {
        AnswererSettings {
            address: Self::control_at(ip),
            identity: self.identity(host),
            serves: vec![self.identity("destination").public()],
            seed: self.draw(channels),
            connections: self.control(),
        }
    }

    fn control(&self) -> ControlSettings {
        ControlSettings::new(self.scenario.connection.mtu.0.min(u16::MAX.into()) as u16)
    }

    fn control_at(ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, CONTROL_PORT)
    }
}
