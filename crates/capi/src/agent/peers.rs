//! The role of an agent, who its peers are, and where.

use core::ffi::c_char;
use core::net::{IpAddr, SocketAddr};

use cooperation::channel::PublicKey;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use units::text::Text;

use crate::config::read_object;
use crate::status::Failure;

/// The role of an agent, and its peers.
#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Peers {
    Destination {
        #[serde(deserialize_with = "callable")]
        source: SocketAddr,
        source_agent: Option<SourcePeer>,
        relays: Vec<RelayPeer>,
    },
    Relay {
        #[serde(deserialize_with = "callable")]
        control: SocketAddr,
        serves: Vec<Text<PublicKey>>,
        path: Option<IpAddr>,
    },
    Source {
        #[serde(deserialize_with = "callable")]
        control: SocketAddr,
        serves: Vec<Text<PublicKey>>,
    },
}

/// A relay, as its destination knows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RelayPeer {
    pub path: IpAddr,
    #[serde(deserialize_with = "callable")]
    pub control: SocketAddr,
    pub key: Text<PublicKey>,
    pub calls_from: Option<IpAddr>,
}

/// The agent of a source, as its destinations know it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourcePeer {
    #[serde(deserialize_with = "callable")]
    pub control: SocketAddr,
    pub key: Text<PublicKey>,
}

/// Reads an address that somebody calls.
fn callable<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let address = SocketAddr::deserialize(from)?;
    if address.port() == 0 {
        return Err(D::Error::custom(format_args!("{address} has port 0, which nobody can call: write another port")));
    }
    Ok(address)
}

/// Reads role and peers.
///
/// # Safety
/// `json` is null or a string.
pub(super) unsafe fn read(json: *const c_char) -> Result<Peers, Failure> {
    const LIKE: &str = "{\"role\": \"destination\", ...}";
    // SAFETY: null, or a string by the contract of this function.
    unsafe { read_object(json, "peers_json", LIKE) }?.ok_or_else(|| Failure::null("peers_json"))
}
