//! Subflows that end at this relay: it acknowledges arriving data at once, and carries them on by a TCP of its own.
//! Sans-IO.
//!
//! ```text
//!  destinations ◀── links ──▶ splices ◀── limits ──▶ TUN device ◀── the shared link ──▶ servers
//! ```
//!
//! The limits stay in the loop between the server and the end that acknowledges to it: data that wait for a limit are
//! acknowledged later, and data that a limit drops are lost. So the owner still comes first. Data lost in the
//! destinations' network are sent again from here.

use std::collections::BTreeMap;

use bytes::Bytes;
use cooperation::link::INNER_MTU;
use serde::Serialize;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::Instant;
use wire::{Payload, Segment, TcpChecksum, TooBig};

/// Maximum number of a destination's subflows that end here; further ones are routed.
const SPLICES_MAX: usize = 64;
/// Maximum octets of a subflow stored here, each way: enough for 40 Mbit/s over 100 ms.
const BUFFER_BYTES: u64 = 512 << 10;

/// Treatment of the subflows that destinations open through this relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They pass as IP packets.
    #[default]
    Route,
    /// Subflows that join a connection end here and continue from here.
    FastAck,
}

/// The relay's ends of subflows, by destination.
pub struct Splices {
    mode: Mode,
    seed: [u8; 32],
    relays: BTreeMap<u8, ForwardingRelay<AtOnce>>,
}

/// A packet made by one of the relay's TCPs.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    /// Slot of the destination to which the subflow belongs.
    pub slot: u8,
    /// The direction in which it goes.
    pub to: Side,
    /// The packet.
    pub octets: Vec<u8>,
}

impl Splices {
    /// Creates a relay without subflows. Initial sequence numbers derive from `seed`.
    pub const fn new(mode: Mode, seed: [u8; 32]) -> Self {
        Self { mode, seed, relays: BTreeMap::new() }
    }

    /// Takes a packet of the destination `slot` that came from `from`, if it belongs to a subflow that ends here or
    /// opens one. Returns false if the packet is to be routed.
    pub fn take(&mut self, slot: u8, from: Side, packet: &[u8], now: Instant) -> bool {
        if self.mode == Mode::Route {
            return false;
        }
        match Segment::parse_headers(packet, TcpChecksum::Verify) {
            Ok((mut segment, payload)) => {
                segment.payload = Payload::Bytes(Bytes::copy_from_slice(&packet[payload]));
                self.relay(slot).handle_segment(from, segment, now).is_none()
            }
            Err(_) if from == Side::Source => {
                let too_big = TooBig::parse(packet).ok();
                too_big.is_some_and(|too_big| self.relay(slot).handle_too_big(&too_big, now))
            }
            Err(_) => false,
        }
    }

    fn relay(&mut self, slot: u8) -> &mut ForwardingRelay<AtOnce> {
        let mut seed = self.seed;
        seed[0] ^= slot;
        self.relays.entry(slot).or_insert_with(|| {
            let default = RelayConfig::default();
            let tcp = transport::ConnectionConfig { mtu: INNER_MTU, ..default.tcp };
            let config = RelayConfig { tcp, buffer_bytes: BUFFER_BYTES, splices_max: SPLICES_MAX, ..default };
            ForwardingRelay::new(FastAckRelay::new(config, seed).expect("a known controller and some room"), AtOnce)
        })
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Made> {
        self.relays.iter_mut().find_map(|(slot, relay)| {
            let (to, segment) = relay.poll_transmit(now)?;
            let mut octets = Vec::with_capacity(segment.emitted_len());
            segment.emit(&mut octets);
            Some(Made { slot: *slot, to, octets })
        })
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.relays.values().filter_map(ForwardingRelay::poll_timeout).min()
    }

    /// Handles the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        for relay in self.relays.values_mut() {
            if relay.poll_timeout().is_some_and(|at| at <= now) {
                relay.handle_timeout(now);
            }
        }
    }

    /// Keeps only the state of these destinations.
    pub fn keep(&mut self, is_served: impl Fn(u8) -> bool) {
        self.relays.retain(|slot, _| is_served(*slot));
    }

    /// Returns the number of a destination's subflows that end here.
    pub fn count(&self, slot: u8) -> usize {
        let joined =
            |relay: &ForwardingRelay<AtOnce>| relay.relay().splices().filter(|(_, stats)| stats.joined).count();
        self.relays.get(&slot).map_or(0, joined)
    }
}

#[cfg(test)]
mod tests;
