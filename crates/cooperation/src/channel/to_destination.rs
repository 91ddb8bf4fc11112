//! What a relay says to the destination.

use bytes::BytesMut;
use units::{Duration, Instant, Rate};

use super::codec::{Frame, put_frame, take_fields};
use super::fault::Fault;
use super::field::{DELAY_MAX, fields};
use super::prefix::Role;
use crate::bandwidth_sharing::Signal;
use crate::relay_selection::RelayId;
use crate::relay_selection::energy::EnergyPrice;
use crate::relay_selection::monitor::Advert;

/// What a relay offers (RELAY_ADVERT), every period F: an [`Advert`] without its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// When it was measured, on the relay's clock.
    pub at: Instant,
    /// What its cellular link could carry (B).
    pub capacity: Rate,
    /// What its owner's traffic takes of that.
    pub local: Rate,
    /// What it pays for a bit that it forwards.
    pub energy: EnergyPrice,
}

impl Offer {
    /// What `advert` says.
    pub const fn of(advert: &Advert) -> Self {
        Self { at: advert.at, capacity: advert.capacity, local: advert.local, energy: advert.energy }
    }

    /// As said by `relay`, whose channel it came from.
    pub const fn by(self, relay: RelayId) -> Advert {
        Advert { relay, at: self.at, capacity: self.capacity, local: self.local, energy: self.energy }
    }
}

/// How a relay's own flows compete, every period F: a [`Signal`] without its author. The destination hands it on to the
/// source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// rho: how far fair sharing falls short of what the local flows want.
    pub ratio: f64,
    /// alpha': additive increase of the local flows, MSS per round trip.
    pub increase: f64,
    /// beta': what is left of the window of local flows after a loss.
    pub decrease: f64,
    /// When it was measured, on the relay's clock.
    pub at: Instant,
}

impl Load {
    /// What `signal` says.
    pub const fn of(signal: &Signal) -> Self {
        Self { ratio: signal.ratio, increase: signal.increase, decrease: signal.decrease, at: signal.at }
    }

    /// As said by `relay`, whose channel it came from.
    pub const fn by(self, relay: RelayId) -> Signal {
        Signal { relay, ratio: self.ratio, increase: self.increase, decrease: self.decrease, at: self.at }
    }
}

/// How long data take from a relay to the destination, every period F: what a relay that acknowledges at once hides from the
/// source, whose round-trip times end there. The destination hands it on to the source, for adaptive congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When it was measured, on the relay's clock.
    pub at: Instant,
    /// From the relay's storing an octet until the destination has it; an hour at most is told.
    pub delay: Duration,
}

impl Delay {
    /// Of a relay that stores `stored_bytes`, sends on at `rate`, and whose leg to the destination has a smoothed round-trip
    /// time of `srtt`: stored / rate + srtt / 2.
    pub fn of_leg(at: Instant, stored_bytes: u64, rate: Rate, srtt: Duration) -> Self {
        // Nothing stored waits for nothing, whatever the rate.
        let wait = if stored_bytes == 0 { Duration::ZERO } else { rate.time_to_send(stored_bytes) };
        Self { at, delay: (wait + srtt / 2).min(DELAY_MAX) }
    }
}

/// A frame to the destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToDestination {
    /// What the relay offers.
    Offer(Offer),
    /// How its own flows compete.
    Load(Load),
    /// How long data take from it to the destination.
    Delay(Delay),
}

mod kind {
    pub(super) const OFFER: u8 = 0x01;
    pub(super) const LOAD: u8 = 0x02;
    pub(super) const DELAY: u8 = 0x03;
}

fields!(Offer { at, capacity, local, energy });
fields!(Load { ratio, increase, decrease, at });
fields!(Delay { at, delay });

impl Frame for ToDestination {
    const WRITER: Role = Role::Relay;

    fn take(kind: u8, fields: &[u8]) -> Result<Self, Fault> {
        match kind {
            kind::OFFER => take_fields("Offer", fields).map(Self::Offer),
            kind::LOAD => take_fields("Load", fields).map(Self::Load),
            kind::DELAY => take_fields("Delay", fields).map(Self::Delay),
            _ => Err(Fault::UnknownKind { kind }),
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match self {
            Self::Offer(fields) => put_frame(kind::OFFER, fields, out),
            Self::Load(fields) => put_frame(kind::LOAD, fields, out),
            Self::Delay(fields) => put_frame(kind::DELAY, fields, out),
        }
    }
}
