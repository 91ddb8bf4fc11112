//! Settings of a destination's agent.

use core::net::{IpAddr, SocketAddr};

use units::{Duration, Rate};

use crate::agent::control::ControlSettings;
use crate::channel::{Identity, PublicKey};
use crate::forwarding::hole_watch::WatchSettings;
use crate::forwarding::range_keeper::RangeSettings;
use crate::relay_selection::RelayId;
use crate::relay_selection::manager::RelayManager;

/// A relay that a destination knows.
#[derive(Clone, Copy, Debug)]
pub struct KnownRelay {
    /// The destination's own address on the path through it.
    pub path: IpAddr,
    /// Address of its agent, and its key; `None` for a relay without a control channel.
    pub control: Option<(SocketAddr, PublicKey)>,
    /// The destination's address from which it calls that agent, if not `path`: a relay that lends its own address
    /// could not answer a call from there.
    pub calls_from: Option<IpAddr>,
}

impl KnownRelay {
    /// Returns the destination's address towards the relay's agent.
    pub(super) fn caller(&self) -> IpAddr {
        self.calls_from.unwrap_or(self.path)
    }

    /// Moves addresses from `old` to `new`.
    fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        let addresses = [Some(&mut self.path), self.calls_from.as_mut()];
        addresses.into_iter().flatten().filter(|address| **address == old).for_each(|address| *address = new);
    }
}

/// A source with an agent.
#[derive(Clone, Copy, Debug)]
pub struct KnownSource {
    /// Address of its agent.
    pub address: SocketAddr,
    /// Its key.
    pub key: PublicKey,
    /// Interval at which relays report on their owners' flows (F). Reports expire after three of them; `None` if that
    /// is not known, then never.
    pub load_period: Option<Duration>,
    /// Interval at which relays report their delays, likewise.
    pub delay_period: Option<Duration>,
}

/// Relay selection.
pub struct SelectionSettings {
    /// The manager, which chooses relay sets and migrates between them.
    pub manager: RelayManager,
    /// Interval at which throughput is measured (F).
    pub period: Duration,
    /// Whether relays advertise more often, and the destination acts on adverts between ends of periods.
    pub prompt: bool,
    /// The bit rate at which the application plays the stream.
    pub plays_at: Rate,
}

/// Differentiated forwarding.
#[derive(Clone, Copy, Debug)]
pub struct RangesSettings {
    /// The ranges.
    pub range: RangeSettings,
    /// Octets that each relay can hold.
    pub hold_bytes: u64,
    /// Whether faster relays have longer ranges.
    pub by_rate: bool,
}

/// The watch over relays.
#[derive(Clone, Copy, Debug)]
pub struct WatchmanSettings {
    /// Its time limits.
    pub watch: WatchSettings,
    /// Whether data are always expected until the stream ends.
    pub never_idle: bool,
}

/// Settings of a destination's agent.
pub struct DestinationSettings {
    /// The destination's identity.
    pub identity: Identity,
    /// Seed of its randomness; must be unpredictable on a real network.
    pub seed: [u8; 32],
    /// Settings of control connections.
    pub control: ControlSettings,
    /// Its relays, in the order of their [`RelayId`]s.
    pub relays: Vec<KnownRelay>,
    /// The address to which its connections lead.
    pub source: SocketAddr,
    /// The source's agent, if it has one.
    pub source_agent: Option<KnownSource>,
    /// The relay over which connections begin, if relay selection does not choose.
    pub first: Option<RelayId>,
    /// Whether relays splice the subflows that join over them; they only route the first one.
    pub relays_splice: bool,
    /// Relay selection.
    pub selection: Option<SelectionSettings>,
    /// Differentiated forwarding.
    pub ranges: Option<RangesSettings>,
    /// The watch over relays.
    pub watch: Option<WatchmanSettings>,
}

impl DestinationSettings {
    /// Returns the destination's address on the path through `relay`.
    pub fn path_of(&self, relay: RelayId) -> Option<IpAddr> {
        self.relays.get(usize::from(relay.0)).map(|known| known.path)
    }

    /// Returns the relay on whose path the destination has this address.
    pub(super) fn relay_at(&self, path: IpAddr) -> Option<RelayId> {
        self.relays.iter().position(|known| known.path == path).map(|index| RelayId(index as u16))
    }

    /// Moves all paths from address `old` to `new`.
    pub(super) fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        self.relays.iter_mut().for_each(|relay| relay.move_to(old, new));
    }

    /// Returns the destination's addresses, in the order of the relays.
    pub(super) fn paths(&self) -> Vec<IpAddr> {
        self.relays.iter().map(|known| known.path).collect()
    }
}
