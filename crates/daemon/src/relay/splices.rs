//! Subflows that end at this relay and go on from here: it acknowledges at once what comes, and carries it on by a TCP of its own. Sans-IO.
//!
//! ```text
//!  destinations ◀── links ──▶ splices ◀── limits ──▶ TUN device ◀── the shared link ──▶ servers
//! ```
//!
//! The limits stay where they are, in the loop between a server and whoever acknowledges to it: what waits for them is acknowledged later, and
//! what they drop is lost. So the owner comes first as ever. What the network of the destinations loses is sent again from here.

use std::collections::BTreeMap;

use bytes::Bytes;
use cooperation::link::INNER_MTU;
use serde::Serialize;
use transport::relay::{AtOnce, FastAckRelay, ForwardingRelay, RelayConfig, Side};
use units::Instant;
use wire::{Payload, Segment, TcpChecksum, TooBig};

/// Subflows of a destination that end here at most; further ones are routed.
const SPLICES_MAX: usize = 64;
/// Octets of one that may be here each way: enough for 40 Mbit/s over 100 ms.
const BUFFER_BYTES: u64 = 512 << 10;

/// What becomes of the subflows that destinations open through this relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They pass as IP packets.
    #[default]
    Route,
    /// Those that join a connection end here and go on from here.
    FastAck,
}

/// The relay's end of subflows, by destination.
pub struct Splices {
    mode: Mode,
    seed: [u8; 32],
    relays: BTreeMap<u8, ForwardingRelay<AtOnce>>,
}

/// A packet that a relay's TCP has made.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    /// Number of the destination whose subflow it is of.
    pub slot: u8,
    /// Where it goes.
    pub to: Side,
    /// The packet.
    pub octets: Vec<u8>,
}

impl Splices {
    /// With no subflow yet. Initial sequence numbers grow from `seed`.
    pub const fn new(mode: Mode, seed: [u8; 32]) -> Self {
        Self { mode, seed, relays: BTreeMap::new() }
    }

    /// Takes a packet of the destination `slot` that came from `from`, if it is one of a subflow that ends here or opens one. False: it goes on as it
    /// is.
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

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Made> {
        self.relays.iter_mut().find_map(|(slot, relay)| {
            let (to, segment) = relay.poll_transmit(now)?;
            let mut octets = Vec::with_capacity(segment.emitted_len());
            segment.emit(&mut octets);
            Some(Made { slot: *slot, to, octets })
        })
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.relays.values().filter_map(ForwardingRelay::poll_timeout).min()
    }

    /// Takes note of the time.
    pub fn handle_timeout(&mut self, now: Instant) {
        for relay in self.relays.values_mut() {
            if relay.poll_timeout().is_some_and(|at| at <= now) {
                relay.handle_timeout(now);
            }
        }
    }

    /// Only these destinations are served: what belongs to others is forgotten.
    pub fn keep(&mut self, is_served: impl Fn(u8) -> bool) {
        self.relays.retain(|slot, _| is_served(*slot));
    }

    /// Subflows of a destination that end here.
    pub fn count(&self, slot: u8) -> usize {
        let joined =
            |relay: &ForwardingRelay<AtOnce>| relay.relay().splices().filter(|(_, stats)| stats.joined).count();
        self.relays.get(&slot).map_or(0, joined)
    }
}

#[cfg(test)]
mod tests;
