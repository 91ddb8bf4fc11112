//! A fast-ACK relay without an agent in a namespace: a host behind a TUN device, with an address on each side.
//!
//! ```text
//!  source ── cellular ── kernel ── TUN ── relay ── TUN ── kernel ── Wi-Fi ── destination
//! ```
//!
//! Joins go to the relay's addresses, so no other host needs routes: the source's joins go to the address on the
//! cellular link, the destination's to the one on Wi-Fi.

use std::net::IpAddr;

use bytes::Bytes;
use host::Host;
use transport::relay::{FastAckRelay, Forwarding, ForwardingRelay, RelayConfig, Side};
use units::Instant;
use wire::{Segment, TooBig};

use linux::attachment::MTU;
use linux::driver::{Driver, OFFLOAD_PAYLOAD_MAX, random_seed};
use linux::netns::Namespace;
use linux::tun::{Tun, TunConfig};
use linux::{Error, Result};

/// A relay that distinguishes its sides by its addresses.
pub struct Relaying<F> {
    relay: ForwardingRelay<F>,
    towards_source: IpAddr,
}

impl<F: Forwarding> Relaying<F> {
    /// Returns the relay and the policy, for commands.
    pub fn parts(&mut self) -> (&mut FastAckRelay, &mut F) {
        self.relay.parts()
    }
}

impl<F: Forwarding> Host for Relaying<F> {
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        let side = if segment.dst.ip() == self.towards_source { Side::Source } else { Side::Destination };
        // Only joins and their data belong here.
        let _stray = self.relay.handle_segment(side, core::mem::take(segment), now);
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        if let Ok(too_big) = TooBig::parse(&octets) {
            // The error is about a packet of an unknown sender: there is no host to pass it to.
            let _ours = self.relay.handle_too_big(&too_big, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.relay.handle_timeout(now);
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let Some((_, own)) = self.relay.poll_transmit(now) else { return false };
        *segment = own;
        true
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.relay.poll_timeout()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.relay.relay().packet_payload(segment)
    }
}

/// The place of a relay.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the TUN device.
    pub device: String,
    /// The relay's address on its cellular link; no interface has it.
    pub towards_source: IpAddr,
    /// The relay's address on Wi-Fi; no interface has it.
    pub towards_destination: IpAddr,
}

/// Sets up a relay in namespace `host`, and returns it with its driver.
///
/// # Errors
/// If the process lacks the rights, or if a name or an address is in use.
pub fn open<F: Forwarding>(
    host: &Namespace,
    place: &Place,
    config: RelayConfig,
    forwarding: F,
) -> Result<(Driver<Relaying<F>>, Relaying<F>)> {
    let tun = TunConfig { name: place.device.clone(), mtu: MTU, offload: true, addresses: Vec::new() };
    let tun = host.run(|| Tun::open(&tun))??;
    let route = |address: IpAddr| format!("route add {address} dev {}", place.device);
    host.ip([route(place.towards_source), route(place.towards_destination)])?;
    let mut config = RelayConfig {
        address_towards_source: Some(place.towards_source),
        address_towards_destination: Some(place.towards_destination),
        ..config
    };
    (config.tcp.mtu, config.tcp.offload_max_bytes) = (MTU, OFFLOAD_PAYLOAD_MAX);
    let refused = |error| Error::Usage(format!("the relay cannot be set up: {error}"));
    let relay = FastAckRelay::new(config, random_seed()?).map_err(refused)?;
    let relay = Relaying { relay: ForwardingRelay::new(relay, forwarding), towards_source: place.towards_source };
    Ok((Driver::new(tun, MTU)?, relay))
}
