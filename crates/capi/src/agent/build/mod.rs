//! Builds agents from their peers and settings, as scenario files do.

mod destination;
mod relay;
mod source;

use core::net::SocketAddr;

use cooperation::agent::Role;
use cooperation::agent::control::AnswererSettings;
use cooperation::agent::control::ControlSettings;
use cooperation::channel::{Identity, PublicKey};
use units::text::Text;

use super::peers::Peers;
use super::settings::Settings;
use crate::status::Failure;

/// Octets of the packets of control connections.
const MTU: u16 = 1500;
/// Octets of payload in full packets of that size, with timestamps and a mapping.
pub(super) const PAYLOAD_BYTES: u64 = MTU as u64 - 72;

/// An agent, and what it needs of the connections of its endpoint.
pub(super) struct Built {
    pub role: Role,
    pub needs: Needs,
}

/// What an agent needs of the connections that the program opens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// The agent alone opens and closes subflows.
    pub steers: bool,
    /// Subflows for which there must be room.
    pub subflows: usize,
}

/// Builds an agent with these peers.
pub(super) fn agent(peers: Peers, settings: &Settings, identity: Identity, seed: [u8; 32]) -> Result<Built, Failure> {
    match peers {
        Peers::Destination { source, source_agent, relays } => {
            destination::agent((source, source_agent), &relays, settings, identity, seed)
        }
        Peers::Relay { control, serves, path } => {
            relay::agent(answerer(control, serves, identity, seed), path, settings)
        }
        Peers::Source { control, serves } => {
            Ok(source::agent(answerer(control, serves, identity, seed), &settings.cooperation))
        }
    }
}

fn answerer(address: SocketAddr, serves: Vec<Text<PublicKey>>, identity: Identity, seed: [u8; 32]) -> AnswererSettings {
    let serves = serves.into_iter().map(|Text(key)| key).collect();
    AnswererSettings { address, identity, serves, seed, connections: ControlSettings::new(MTU) }
}
