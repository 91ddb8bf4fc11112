//! Messages from a relay to the destination.

use bytes::BytesMut;
use units::{Duration, Instant, Rate};

use super::codec::{Frame, put_frame, take_fields};
use super::fault::Fault;
use super::field::{DELAY_MAX, fields};
use super::prefix::Role;
use crate::bandwidth_sharing::Signal;
use crate::relay_selection::RelayId;
use crate::relay_selection::energy::EnergyPrice;
use crate::relay_selection::monitor;

/// How a relay describes its link (RELAY_ADVERT), sent every period F: a [`monitor::Advert`] without its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// Time of measurement, on the relay's clock.
    pub at: Instant,
    /// Rate that the relay's cellular link could carry (B).
    pub capacity: Rate,
    /// Part of the capacity that the owner's traffic takes.
    pub local: Rate,
    /// The relay's cost of forwarding a bit.
    pub energy: EnergyPrice,
}

impl Advert {
    /// Returns the contents of `advert`.
    pub const fn of(advert: &monitor::Advert) -> Self {
        Self { at: advert.at, capacity: advert.capacity, local: advert.local, energy: advert.energy }
    }

    /// Adds the author: `relay`, whose channel it came from.
    pub const fn by(self, relay: RelayId) -> monitor::Advert {
        monitor::Advert { relay, at: self.at, capacity: self.capacity, local: self.local, energy: self.energy }
    }
}

/// How the relay's own flows compete, sent every period F: a [`Signal`] without its author. The destination passes it
/// on to the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// rho: how far fair sharing falls short of the local flows' demand.
    pub ratio: f64,
    /// alpha': additive increase of the local flows, MSS per round trip.
    pub increase: f64,
    /// beta': part of the local flows' window that remains after a loss.
    pub decrease: f64,
    /// Time of measurement, on the relay's clock.
    pub at: Instant,
}

impl Load {
    /// Returns the contents of `signal`.
    pub const fn of(signal: &Signal) -> Self {
        Self { ratio: signal.ratio, increase: signal.increase, decrease: signal.decrease, at: signal.at }
    }

    /// Adds the author: `relay`, whose channel the load came from.
    pub const fn by(self, relay: RelayId) -> Signal {
        Signal { relay, ratio: self.ratio, increase: self.increase, decrease: self.decrease, at: self.at }
    }
}

/// The time that data take from a relay to the destination, sent every period F. A relay that acknowledges at once
/// hides this delay from the source, whose round-trip times end at the relay. The destination passes it on to the
/// source, for adaptive congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Time of measurement, on the relay's clock.
    pub at: Instant,
    /// Time from when the relay stores an octet until the destination has it; values above an hour are reported as an
    /// hour.
    pub delay: Duration,
}

impl Delay {
    /// Computes the delay of a relay that stores `stored_bytes`, forwards at `rate`, and whose leg to the destination
    /// has a smoothed round-trip time of `srtt`: stored / rate + srtt / 2.
    pub fn of_leg(at: Instant, stored_bytes: u64, rate: Rate, srtt: Duration) -> Self {
        // An empty store causes no wait, even at a rate of zero.
        let wait = if stored_bytes == 0 { Duration::ZERO } else { rate.time_to_send(stored_bytes) };
        Self { at, delay: (wait + srtt / 2).min(DELAY_MAX) }
    }
}

/// A frame to the destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToDestination {
    /// How the relay describes its link.
    Advert(Advert),
    /// How the relay's own flows compete.
    Load(Load),
    /// The time that data take from the relay to the destination.
    Delay(Delay),
}

mod kind {
    pub(super) const ADVERT: u8 = 0x01;
    pub(super) const LOAD: u8 = 0x02;
    pub(super) const DELAY: u8 = 0x03;
}

fields!(Advert { at, capacity, local, energy });
fields!(Load { ratio, increase, decrease, at });
fields!(Delay { at, delay });

impl Frame for ToDestination {
    const WRITER: Role = Role::Relay;

    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::ADVERT => take_fields("Advert", fields).map(Self::Advert),
            kind::LOAD => take_fields("Load", fields).map(Self::Load),
            kind::DELAY => take_fields("Delay", fields).map(Self::Delay),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match self {
            Self::Advert(fields) => put_frame(kind::ADVERT, fields, out),
            Self::Load(fields) => put_frame(kind::LOAD, fields, out),
            Self::Delay(fields) => put_frame(kind::DELAY, fields, out),
        }
    }
}
