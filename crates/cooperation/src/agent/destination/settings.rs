//! What a destination is told.

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
    /// Where it answers, and who it is; `None` for one to which nothing is said.
    pub control: Option<(SocketAddr, PublicKey)>,
}

/// A source with an agent.
#[derive(Clone, Copy, Debug)]
pub struct KnownSource {
    /// Where it answers.
    pub address: SocketAddr,
    /// Who it is.
    pub key: PublicKey,
}

/// Relay selection.
pub struct SelectionSettings {
    /// Chooses, and leads from one set to the next.
    pub manager: RelayManager,
    /// How often throughput is looked at (F).
    pub period: Duration,
    /// Whether relays advertise oftener, and adverts are acted on between ends of periods.
    pub prompt: bool,
    /// The bit rate at which the application plays what arrives.
    pub plays_at: Rate,
}

/// Differentiated forwarding.
#[derive(Clone, Copy, Debug)]
pub struct RangesSettings {
    /// The ranges.
    pub range: RangeSettings,
    /// What each relay can hold, octets.
    pub hold_bytes: u64,
    /// Whether faster relays have longer ranges.
    pub by_rate: bool,
}

/// The watch over relays.
#[derive(Clone, Copy, Debug)]
pub struct WatchmanSettings {
    /// Its patience.
    pub watch: WatchSettings,
    /// Data are always awaited until the stream ends.
    pub never_idle: bool,
}

/// Settings of a destination's agent.
pub struct DestinationSettings {
    /// Who it is.
    pub identity: Identity,
    /// What its randomness grows from; on a real network it must be unpredictable.
    pub seed: [u8; 32],
    /// How control connections behave.
    pub control: ControlSettings,
    /// Its relays, in the order of their [`RelayId`]s.
    pub relays: Vec<KnownRelay>,
    /// Where its connections lead.
    pub source: SocketAddr,
    /// The source's agent, if it has one.
    pub source_agent: Option<KnownSource>,
    /// The relay over which connections begin, where relay selection does not choose.
    pub first: Option<RelayId>,
    /// Relays splice the subflows that join over them; the first they only route.
    pub relays_splice: bool,
    /// Relay selection.
    pub selection: Option<SelectionSettings>,
    /// Differentiated forwarding.
    pub ranges: Option<RangesSettings>,
    /// The watch over relays.
    pub watch: Option<WatchmanSettings>,
}

impl DestinationSettings {
    /// The destination's address on the path through `relay`.
    pub fn path_of(&self, relay: RelayId) -> Option<IpAddr> {
        self.relays.get(usize::from(relay.0)).map(|known| known.path)
    }

    /// The relay on whose path the destination has this address.
    pub(super) fn relay_at(&self, path: IpAddr) -> Option<RelayId> {
        self.relays.iter().position(|known| known.path == path).map(|index| RelayId(index as u16))
    }

    /// All paths that begin at `old` begin at `new`.
    pub(super) fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        self.relays.iter_mut().filter(|relay| relay.path == old).for_each(|relay| relay.path = new);
    }

    /// Its addresses, in the order of the relays.
    pub(super) fn paths(&self) -> Vec<IpAddr> {
        self.relays.iter().map(|known| known.path).collect()
    }
}
