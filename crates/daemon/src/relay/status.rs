//! What a relay does, for people and programs.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Serialize;
use units::{Duration, Instant};

use super::splices::Mode;

/// Everything at one time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RelayStatus {
    /// Of the program.
    pub version: &'static str,
    /// The device behind which destinations are.
    pub device: String,
    /// When this was so, nanoseconds since the start.
    pub at: Instant,
    /// What is lent, and to whom.
    pub relay: Lent,
}

/// What is lent, and to whom.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lent {
    /// What the owner calls this device.
    pub name: String,
    /// Where its keys are.
    pub state: PathBuf,
    /// The shared interface.
    pub interface: String,
    /// Why it cannot be used now, to follow its name in a sentence.
    pub lost: Option<String>,
    /// For how long nothing has come back over it, although destinations have sent something there, if that is longer than answers take.
    pub unheard: Option<Duration>,
    /// Its addresses and gateways, as `10.64.3.2 via 10.64.3.1`.
    pub ways: Vec<String>,
    /// Whether destinations reach IPv6 through it.
    pub ipv6: bool,
    /// The UDP port on which destinations are heard.
    pub port: u16,
    /// Whether it lends: `fully`, `as-backup`, `no-volume`, `no-battery`, `no-uplink` or
    /// `ended`.
    pub lends: &'static str,
    /// The same in words that follow its name.
    pub lends_in_words: &'static str,
    /// What becomes of subflows on their way.
    pub mode: Mode,
    /// The highest rate of each direction, bit/s; `None`: all that there is.
    pub rate_bps: Option<u64>,
    /// What the owner's own traffic takes, both ways, bit/s.
    pub owner_bps: u64,
    /// What can be lent towards destinations now, bit/s, if it is known: less than `rate_bps` while the owner uses the link too.
    pub spare_bps: Option<u64>,
    /// What can be lent from destinations now, likewise.
    pub spare_up_bps: Option<u64>,
    /// The limit of what may be lent, octets.
    pub volume_bytes: Option<u64>,
    /// Octets of it that were used.
    pub volume_used_bytes: Option<u64>,
    /// The date on which it begins anew, as `2026-06-01`.
    pub volume_renews: Option<String>,
    /// Charge of the battery in percent, if it is being emptied.
    pub battery_percent: Option<u8>,
    /// Datagrams that were nobody's: strangers, or old keys.
    pub refused_datagrams: u64,
    /// Who may use it.
    pub destinations: Vec<LentTo>,
}

/// A destination.
#[derive(Clone, Debug, Serialize)]
pub struct LentTo {
    /// What it is called here.
    pub name: String,
    /// Its number.
    pub slot: u8,
    /// Whether it is there.
    pub is_up: bool,
    /// Where it was heard last.
    pub place: Option<IpAddr>,
    /// Octets of packets that it got, and that it sent.
    pub down_bytes: u64,
    /// See `down_bytes`.
    pub up_bytes: u64,
    /// Its packets that were lost at the limits, both ways.
    pub lost_packets: u64,
    /// Its subflows that end at this relay and go on from here.
    pub spliced_subflows: usize,
}
