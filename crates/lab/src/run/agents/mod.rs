//! From a scenario to the agents of its hosts.
//!
//! ```text
//! destination   what the destination is told
//! relay         what each relay is told
//! source        what the source is told
//! measuring     what a relay's modem and counters show
//! journal       what observers hear of the destination, as results
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

/// What the source's agent is told in a run of `scenario`, for a source that is none of the run's engines; `None` if it has nothing to do.
///
/// # Errors
/// If a module is asked for something that it cannot do.
pub fn source_settings(scenario: &Scenario) -> Result<Option<SourceSettings>, RunError> {
    let addresses = scenario.addresses();
    source::settings(&Agents::new(scenario, &addresses, SocketAddr::new(addresses.source, SOURCE_PORT)))
}

/// Makes the agents of one run.
pub(super) struct Agents<'a> {
    scenario: &'a Scenario,
    addresses: &'a Addresses,
    /// Where the source's application answers.
    source: SocketAddr,
}

impl<'a> Agents<'a> {
    /// For connections to `source`.
    pub fn new(scenario: &'a Scenario, addresses: &'a Addresses, source: SocketAddr) -> Self {
        Self { scenario, addresses, source }
    }

    /// The destination's.
    ///
    /// # Errors
    /// If relay selection is asked for something that it cannot do.
    pub fn destination(&self) -> Result<Role, RunError> {
        destination::agent(self)
    }

    /// The one of relay `index`, if it has something to do.
    ///
    /// # Errors
    /// If relays are asked for something that they cannot do.
    pub fn relay(&self, index: usize) -> Result<Role, RunError> {
        relay::agent(self, index)
    }

    /// The source's, if it has something to do.
    ///
    /// # Errors
    /// If a module is asked for something that it cannot do.
    pub fn source(&self) -> Result<Role, RunError> {
        source::agent(self)
    }

    fn identity(&self, host: &str) -> Identity {
        Identity::from_secret(self.draw(&format!("key of {host}")))
    }

    /// 32 octets that only this run, and only `label`, has.
    fn draw(&self, label: &str) -> [u8; 32] {
        let mut prng = Prng::fork(self.scenario.seed, label);
        core::array::from_fn(|_| prng.below(256) as u8)
    }

    /// How `host` answers the destination's calls. `channels` is what the randomness of its channels is called after.
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
