//! The role of an agent, who its peers are, and where.

use core::ffi::c_char;
use core::net::{IpAddr, SocketAddr};

use cooperation::channel::PublicKey;
use serde::Deserialize;
use units::text::Text;

use crate::config::read_object;
use crate::status::Failure;

/// The role of an agent, and its peers.
#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Peers {
    Destination { source: SocketAddr, source_agent: Option<SourcePeer>, relays: Vec<RelayPeer> },
    Relay { control: SocketAddr, serves: Vec<Text<PublicKey>>, path: Option<IpAddr> },
    Source { control: SocketAddr, serves: Vec<Text<PublicKey>> },
}

/// A relay, as its destination knows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RelayPeer {
    pub path: IpAddr,
    pub control: SocketAddr,
    pub key: Text<PublicKey>,
    pub calls_from: Option<IpAddr>,
}

/// The agent of a source, as its destinations know it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourcePeer {
    pub control: SocketAddr,
    pub key: Text<PublicKey>,
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
