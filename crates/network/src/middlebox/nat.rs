//! Network address and port translation (RFC 4787, RFC 5382 and RFC 5508, as far as hosts notice).

use core::any::Any;
use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use bytes::Bytes;
use units::{Duration, Instant};
use wire::{IcmpError, ParseError};

use crate::{DropCause, Gate, Medium, MediumOutput, Node, Output, Packet};

/// The first external port.
const PORT_FIRST: u16 = 20_000;

/// Rewrites TCP sources to ports of one external address, and back. It does not know which addresses are inside: the
/// source of a connection from outside to an inside address is rewritten, too.
///
/// Mappings are endpoint-independent. The NAT forgets a mapping that saw no packet for the idle time: the inside gets a
/// new port next time, and packets from outside no longer reach it. Both directions must pass through the NAT. ICMP
/// errors are translated together with the packet they quote, so an error about the path's MTU reaches the right host.
/// Other protocols and the other address family pass unchanged.
#[derive(Debug)]
pub struct Nat {
    external: IpAddr,
    idle_timeout: Duration,
    outbound: BTreeMap<SocketAddr, Mapping>,
    inbound: BTreeMap<u16, SocketAddr>,
    next_port: u16,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    port: u16,
    used_at: Instant,
}

impl Nat {
    /// Translates to `external`. Packets to that address are inbound, all others outbound.
    pub fn new(external: IpAddr, idle_timeout: Duration) -> Self {
        Self { external, idle_timeout, outbound: BTreeMap::new(), inbound: BTreeMap::new(), next_port: PORT_FIRST }
    }

    /// Returns the external address of an inside source; makes a mapping if there is none.
    fn translate_out(&mut self, inside: SocketAddr, now: Instant) -> Option<SocketAddr> {
        self.forget_if_idle(inside, now);
        let port = match self.outbound.get(&inside) {
            Some(mapping) => mapping.port,
            None => self.free_port(now)?,
        };
        self.outbound.insert(inside, Mapping { port, used_at: now });
        self.inbound.insert(port, inside);
        Some(SocketAddr::new(self.external, port))
    }

    /// Returns the inside address behind an external port, and refreshes its mapping.
    fn translate_in(&mut self, port: u16, now: Instant) -> Option<SocketAddr> {
        let inside = *self.inbound.get(&port)?;
        self.forget_if_idle(inside, now);
        self.outbound.get_mut(&inside)?.used_at = now;
        Some(inside)
    }

    /// As [`Self::translate_in`], but without refreshing: errors keep no mapping alive (RFC 5508 section 4.2, REQ-6).
    fn mapped_in(&mut self, port: u16, now: Instant) -> Option<SocketAddr> {
        let inside = *self.inbound.get(&port)?;
        self.forget_if_idle(inside, now);
        self.outbound.contains_key(&inside).then_some(inside)
    }

    /// Returns the external address of an inside source that has a mapping.
    fn mapped_out(&mut self, inside: SocketAddr, now: Instant) -> Option<SocketAddr> {
        self.forget_if_idle(inside, now);
        Some(SocketAddr::new(self.external, self.outbound.get(&inside)?.port))
    }

    /// Translates an error from outside about a packet that left, or from inside about one that came in (RFC 5508
    /// section 4.2). Returns `None` if no mapping fits the quoted packet.
    fn translate_error(&mut self, error: &IcmpError<'_>, now: Instant) -> Option<Vec<u8>> {
        let [src, dst] = error.quoted();
        if error.destination() == self.external {
            return error.told_to(self.mapped_in(src.port(), now)?);
        }
        error.told_of(self.mapped_out(dst, now)?)
    }

    fn pass_raw(&mut self, octets: &Bytes, now: Instant) -> Result<Option<Bytes>, DropCause> {
        match IcmpError::parse(octets) {
            // The other address family needs no translation.
            Ok(error) if error.destination().is_ipv4() != self.external.is_ipv4() => Ok(None),
            Ok(error) => {
                let translated = self.translate_error(&error, now).ok_or(DropCause::NoRoute)?;
                Ok(Some(translated.into()))
            }
            Err(ParseError::BadChecksum { .. }) => Err(DropCause::Corruption),
            Err(_) => Ok(None),
        }
    }

    fn forget_if_idle(&mut self, inside: SocketAddr, now: Instant) {
        let idle = |mapping: &&Mapping| now - mapping.used_at >= self.idle_timeout;
        if let Some(port) = self.outbound.get(&inside).filter(idle).map(|mapping| mapping.port) {
            self.outbound.remove(&inside);
            self.inbound.remove(&port);
        }
    }

    /// Finds a free port. Ports are not reused soon, so a new mapping never looks like the old one.
    fn free_port(&mut self, now: Instant) -> Option<u16> {
        for _ in PORT_FIRST..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { PORT_FIRST } else { port + 1 };
            // The port of an idle source is free, even if its mapping is still in the table.
            if let Some(inside) = self.inbound.get(&port).copied() {
                self.forget_if_idle(inside, now);
            }
            if !self.inbound.contains_key(&port) {
                return Some(port);
            }
        }
        None
    }
}

impl Node for Nat {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        let mut translated = true;
        let is_tcp = packet.edit(|segment| {
            // The other address family needs no translation.
            if segment.src.is_ipv4() != self.external.is_ipv4() {
                return;
            }
            let translation = if segment.dst.ip() == self.external {
                self.translate_in(segment.dst.port(), now).map(|inside| segment.dst = inside)
            } else {
                self.translate_out(segment.src, now).map(|outside| segment.src = outside)
            };
            translated = translation.is_some();
        });
        if let Some(octets) = packet.raw().filter(|_| !is_tcp) {
            match self.pass_raw(octets, now) {
                Ok(Some(translated)) => out.forward(packet.remade(Packet::from_raw(translated))),
                Ok(None) => out.forward(packet),
                Err(cause) => out.discard(packet, cause),
            }
            return;
        }
        if translated { out.forward(packet) } else { out.discard(packet, DropCause::NoRoute) }
    }
}

/// A [`Nat`] in a link. What enters at one gate leaves at the other or is dropped, whatever its addresses.
#[derive(Debug)]
pub struct NatEntry {
    nat: Nat,
    out: Output,
}

impl NatEntry {
    /// The gate towards the hosts whose addresses are translated.
    pub const INSIDE: Gate = Gate(0);
    /// The gate towards all others.
    pub const OUTSIDE: Gate = Gate(1);

    /// Puts `nat` into a link.
    pub fn new(nat: Nat) -> Self {
        Self { nat, out: Output::new() }
    }
}

impl Medium for NatEntry {
    fn gates(&self) -> u16 {
        2
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        let Some((gate, packet)) = packet else { return };
        let other = if gate == Self::INSIDE { Self::OUTSIDE } else { Self::INSIDE };
        self.nat.process(Some(packet), now, &mut self.out);
        self.out.take_forwarded().for_each(|packet| out.forward(other, packet));
        self.out.take_dropped().for_each(|(packet, cause)| out.discard(gate, packet, cause));
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::middlebox::NarrowHop;
    use crate::testing::{CLIENT, Lane, SERVER, segment};
    use wire::{Segment, TooBig};

    const IDLE: Duration = Duration::from_secs(60);

    fn external() -> IpAddr {
        "192.0.2.1".parse().unwrap()
    }

    fn between(src: SocketAddr, dst: SocketAddr) -> Packet {
        Packet::from_segment(Segment { src, dst, ..segment(0) })
    }

    #[test]
    fn sources_become_external_ports_and_answers_find_back() {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        let other = SocketAddr::new(CLIENT.ip(), 2000);
        lane.send(between(CLIENT, SERVER), Instant::ZERO);
        lane.send(between(other, SERVER), Instant::ZERO);
        lane.send(between(CLIENT, SERVER), Instant::ZERO);
        lane.send(between(SERVER, SocketAddr::new(external(), 20_001)), Instant::ZERO);
        let ends: Vec<_> = lane.segments().iter().map(|segment| (segment.src, segment.dst)).collect();
        let outside = |port| SocketAddr::new(external(), port);
        let expected =
            [(outside(20_000), SERVER), (outside(20_001), SERVER), (outside(20_000), SERVER), (SERVER, other)];
        assert_eq!(ends, expected);
    }

    #[test]
    fn an_entry_passes_packets_on_to_the_other_side() {
        let mut entry = NatEntry::new(Nat::new(external(), IDLE));
        let mut out = MediumOutput::new();
        let outside = SocketAddr::new(external(), 20_000);
        for (gate, packet) in
            [(NatEntry::INSIDE, between(CLIENT, SERVER)), (NatEntry::OUTSIDE, between(SERVER, outside))]
        {
            entry.process(Some((gate, packet)), Instant::ZERO, &mut out);
        }
        let left: Vec<_> = out.take_forwarded().map(|(gate, packet)| (gate, packet.destination())).collect();
        assert_eq!(left, [(NatEntry::OUTSIDE, Some(SERVER.ip())), (NatEntry::INSIDE, Some(CLIENT.ip()))]);
        entry.process(Some((NatEntry::OUTSIDE, between(SERVER, outside))), Instant::ZERO + IDLE, &mut out);
        let dropped: Vec<_> = out.take_dropped().map(|(gate, _, cause)| (gate, cause)).collect();
        assert_eq!(dropped, [(NatEntry::OUTSIDE, DropCause::NoRoute)]);
    }

    /// A connection from outside to an inside address: the inside sees the external address, and its answers find back.
    #[test]
    fn who_calls_from_outside_looks_as_if_translated() {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        let outside = SocketAddr::new(external(), 20_000);
        lane.send(between(SERVER, CLIENT), Instant::ZERO);
        lane.send(between(CLIENT, outside), Instant::ZERO);
        let ends: Vec<_> = lane.segments().iter().map(|segment| (segment.src, segment.dst)).collect();
        assert_eq!(ends, [(outside, CLIENT), (CLIENT, SERVER)]);
    }

    #[test]
    fn ports_of_the_forgotten_are_free_again() {
        let mut nat = Nat::new(external(), IDLE);
        for number in 0..100_000_u64 {
            // Each source sends once, a second after the one before.
            let inside = SocketAddr::new(Ipv4Addr::from_bits(0x0a00_0000 + number as u32).into(), 2000);
            assert!(nat.translate_out(inside, Instant::from_secs(number)).is_some(), "{number}");
        }
    }

    #[test]
    fn the_other_family_passes_unchanged() {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        let ends = ["[fd00:1::1]:1000", "[fd00:2::1]:80"].map(|end| end.parse::<SocketAddr>().unwrap());
        lane.send(between(ends[0], ends[1]), Instant::ZERO);
        lane.send(between(ends[1], ends[0]), Instant::ZERO);
        let passed: Vec<_> = lane.segments().iter().map(|segment| (segment.src, segment.dst)).collect();
        assert_eq!(passed, [(ends[0], ends[1]), (ends[1], ends[0])]);
        let (mut about, mut error) = (Vec::new(), Vec::new());
        Packet::from_segment(Segment { src: ends[0], dst: ends[1], ..segment(1400) }).emit(&mut about);
        assert!(TooBig::emit("fd00:3::1".parse().unwrap(), &about, 1280, &mut error));
        lane.send(Packet::from_raw(error.clone().into()), Instant::ZERO);
        assert_eq!(lane.arrived[2].1.raw().unwrap(), &error);
    }

    #[test]
    fn strangers_and_the_forgotten_are_dropped() {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        let answer = || between(SERVER, SocketAddr::new(external(), 20_000));
        lane.send(answer(), Instant::ZERO);
        lane.send(between(CLIENT, SERVER), Instant::ZERO);
        // Traffic keeps the mapping; a minute of silence ends it, and the inside source returns with a new port.
        lane.send(answer(), Instant::from_secs(59));
        lane.send(answer(), Instant::from_secs(118));
        lane.send(answer(), Instant::from_secs(178));
        lane.send(between(CLIENT, SERVER), Instant::from_secs(178));
        assert_eq!(lane.dropped, [(0, DropCause::NoRoute), (178_000_000, DropCause::NoRoute)]);
        assert_eq!(lane.segments().last().unwrap().src, SocketAddr::new(external(), 20_001));
    }

    /// The result, at time `at`, of the answer that a hop for packets of 600 octets gives to `packet`.
    fn answer_to(packet: Packet, at: Instant) -> Result<TooBig, DropCause> {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        lane.send(between(CLIENT, SERVER), Instant::ZERO);
        let mut out = Output::new();
        NarrowHop::new(600).process(Some(packet), at, &mut out);
        lane.send(out.take_forwarded().next().unwrap(), at);
        // Within a minute of the first packet, but not of the error.
        lane.send(between(SERVER, SocketAddr::new(external(), 20_000)), Instant::from_secs(60));
        assert_eq!(lane.dropped.last(), Some(&(60_000_000, DropCause::NoRoute)), "an error keeps no mapping alive");
        lane.arrived
            .get(1)
            .map_or(Err(lane.dropped[0].1), |(_, error)| Ok(TooBig::parse(error.raw().unwrap()).unwrap()))
    }

    #[test]
    fn errors_are_told_to_whom_they_concern() {
        let outside = |port| SocketAddr::new(external(), port);
        let large = |src, dst| Packet::from_segment(Segment { src, dst, ..segment(900) });
        // A router outside, about a packet that left; a router inside, about a packet that came in.
        for (src, dst, told) in
            [(outside(20_000), SERVER, (CLIENT, SERVER)), (SERVER, CLIENT, (SERVER, outside(20_000)))]
        {
            let error = answer_to(large(src, dst), Instant::from_secs(1)).unwrap();
            assert_eq!(((error.src, error.dst), error.next_hop_mtu), (told, 600));
        }
        assert_eq!(answer_to(large(outside(20_001), SERVER), Instant::ZERO), Err(DropCause::NoRoute));
        assert_eq!(answer_to(large(SERVER, SocketAddr::new(CLIENT.ip(), 9)), Instant::ZERO), Err(DropCause::NoRoute));
    }

    #[test]
    fn damaged_errors_end_here_and_other_protocols_pass() {
        let mut lane = Lane::new(Nat::new(external(), IDLE));
        lane.send(between(CLIENT, SERVER), Instant::ZERO);
        let (mut about, mut octets) = (Vec::new(), Vec::new());
        between(SocketAddr::new(external(), 20_000), SERVER).emit(&mut about);
        assert!(TooBig::emit("10.5.0.1".parse().unwrap(), &about, 600, &mut octets));
        octets[40] ^= 1;
        lane.send(Packet::from_raw(octets.into()), Instant::ZERO);
        assert_eq!(lane.dropped, [(0, DropCause::Corruption)]);
        let datagram = crate::Datagram { src: CLIENT, dst: SERVER, payload_len: 9, number: 0 };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        lane.send(Packet::from_raw(octets.clone().into()), Instant::ZERO);
        lane.send(Packet::from_datagram(datagram), Instant::ZERO);
        assert_eq!(lane.arrived[1].1.raw().unwrap(), &octets);
        assert_eq!(lane.arrived[2].1.datagram(), Some(&datagram));
    }
}
