//! A relay's status, for people and programs.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Serialize;
use units::{Duration, Instant};

use super::splices::Mode;

/// The status at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RelayStatus {
    /// The program's version.
    pub version: &'static str,
    /// The device behind which destinations are.
    pub device: String,
    /// Time of the status, nanoseconds since the start.
    pub at: Instant,
    /// What is lent, and to which devices.
    pub relay: Lent,
}

/// What is lent, and to which devices.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lent {
    /// The owner's name for this device.
    pub name: String,
    /// Folder of its keys.
    pub state: PathBuf,
    /// The shared interface.
    pub interface: String,
    /// Why the interface cannot be used now, as the continuation of a sentence after its name.
    pub lost: Option<String>,
    /// Time since anything came back over it, if destinations have sent something meanwhile and answers should have
    /// come.
    pub unheard: Option<Duration>,
    /// Its addresses and gateways, such as `10.64.3.2 via 10.64.3.1`.
    pub ways: Vec<String>,
    /// Whether destinations can reach IPv6 through it.
    pub ipv6: bool,
    /// The UDP port for destinations.
    pub port: u16,
    /// Whether it lends: `fully`, `as-backup`, `no-volume`, `no-battery`, `no-uplink` or
    /// `ended`.
    pub lends: &'static str,
    /// The same in words that follow the relay's name.
    pub lends_in_words: &'static str,
    /// Treatment of subflows.
    pub mode: Mode,
    /// Maximum rate of each direction, bit/s; `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Rate of the owner's own traffic, both ways, bit/s.
    pub owner_bps: u64,
    /// Rate that can be lent towards destinations now, bit/s, if known. It is less than `rate_bps` while the owner uses
    /// the link too.
    pub spare_bps: Option<u64>,
    /// The same in the direction from destinations.
    pub spare_up_bps: Option<u64>,
    /// Maximum volume, octets.
    pub volume_bytes: Option<u64>,
    /// Used part of the volume, octets.
    pub volume_used_bytes: Option<u64>,
    /// Date on which the volume renews, such as `2026-06-01`.
    pub volume_renews: Option<String>,
    /// Charge of the battery in percent, if it is discharging.
    pub battery_percent: Option<u8>,
    /// Datagrams of strangers or with old keys.
    pub refused_datagrams: u64,
    /// The devices that may use the relay.
    pub destinations: Vec<LentTo>,
}

/// A destination.
#[derive(Clone, Debug, Serialize)]
pub struct LentTo {
    /// Its local name.
    pub name: String,
    /// Its slot.
    pub slot: u8,
    /// Whether it is connected.
    pub is_up: bool,
    /// The address from which it was last heard.
    pub place: Option<IpAddr>,
    /// Octets of packets that it has received and sent.
    pub down_bytes: u64,
    /// See `down_bytes`.
    pub up_bytes: u64,
    /// Its packets that were lost at this relay, both ways: at the limits, while nothing is lent, or because they could
    /// not be sent.
    pub lost_packets: u64,
    /// Its subflows that end at this relay.
    pub spliced_subflows: usize,
}
