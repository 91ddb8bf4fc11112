//! A hop that takes no packets larger than its MTU, like a tunnel or PPPoE.

use core::any::Any;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use units::Instant;
use wire::TooBig;

use crate::{DropCause, Gate, Medium, MediumOutput, Node, Output, Packet};

/// The source address of the router's answers: the dummy address for routers without an address of their own (RFC
/// 7600). No host has it.
const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0xfdff, 0, 0, 0, 0, 0, 0, 8);

/// Drops packets larger than its MTU, silently or with an ICMP error to the sender.
///
/// It never fragments: it treats every packet as if DF were set. Place it where both directions pass; otherwise its
/// answers do not find their way back.
#[derive(Clone, Debug)]
pub struct NarrowHop {
    /// Start time of each MTU, in order.
    steps: Vec<(Instant, u16)>,
    silent: bool,
}

impl NarrowHop {
    /// Creates a hop that takes packets of at most `mtu` octets and answers larger ones.
    pub fn new(mtu: u16) -> Self {
        Self { steps: vec![(Instant::ZERO, mtu)], silent: false }
    }

    /// Makes the hop drop silently: a black hole.
    pub fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Changes to another MTU at `at`, which must be later than every earlier change.
    pub fn then(mut self, at: Instant, mtu: u16) -> Self {
        self.steps.push((at, mtu));
        self
    }

    /// Returns the MTU if `packet` is too large for it.
    fn refuses(&self, packet: &Packet, now: Instant) -> Option<u16> {
        let mtu = self.mtu(now);
        (packet.wire_len() > u32::from(mtu)).then_some(mtu)
    }

    /// Returns the ICMP error for the sender of `packet`; `None` if the hop is silent.
    fn answer(&self, packet: &Packet, mtu: u16) -> Option<Packet> {
        if self.silent { None } else { answer(packet, mtu) }
    }

    fn mtu(&self, now: Instant) -> u16 {
        let step = self.steps.iter().rfind(|(at, _)| *at <= now).or(self.steps.first());
        step.map_or(u16::MAX, |(_, mtu)| *mtu)
    }
}

impl Node for NarrowHop {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(packet) = packet else { return };
        let Some(mtu) = self.refuses(&packet, now) else { return out.forward(packet) };
        self.answer(&packet, mtu).into_iter().for_each(|answer| out.forward(answer));
        out.discard(packet, DropCause::TooBig);
    }

    /// An answer leaves without having entered.
    fn conserves(&self) -> bool {
        self.silent
    }
}

/// A [`NarrowHop`] at the entry of a link. Packets that enter at [`Self::OUTSIDE`] and fit leave at [`Self::LINK`];
/// answers return to where the packets came from, whatever their addresses. Packets that enter at [`Self::LINK`] pass.
#[derive(Clone, Debug)]
pub struct NarrowEntry(NarrowHop);

impl NarrowEntry {
    /// The gate towards the senders of packets for the link, where answers leave.
    pub const OUTSIDE: Gate = Gate(0);
    /// The gate towards the link.
    pub const LINK: Gate = Gate(1);

    /// Creates the entry of a link that is as narrow as `hop`.
    pub const fn new(hop: NarrowHop) -> Self {
        Self(hop)
    }
}

impl Medium for NarrowEntry {
    fn gates(&self) -> u16 {
        2
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        let Some((gate, packet)) = packet else { return };
        if gate == Self::LINK {
            return out.forward(Self::OUTSIDE, packet);
        }
        let Some(mtu) = self.0.refuses(&packet, now) else { return out.forward(Self::LINK, packet) };
        let answer = self.0.answer(&packet, mtu);
        answer.into_iter().for_each(|answer| out.forward(Self::OUTSIDE, answer));
        out.discard(Self::OUTSIDE, packet, DropCause::TooBig);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// An answer leaves without having entered.
    fn conserves(&self) -> bool {
        self.0.silent
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

fn answer(packet: &Packet, mtu: u16) -> Option<Packet> {
    let router: IpAddr = if packet.source()?.is_ipv4() { ROUTER_V4.into() } else { ROUTER_V6.into() };
    let (mut octets, mut answer) = (Vec::new(), Vec::new());
    packet.emit(&mut octets);
    TooBig::emit(router, &octets, mtu, &mut answer).then(|| Packet::from_raw(Bytes::from(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Payload, Segment};

    fn packet(family: &str, payload: usize) -> Packet {
        let ends = if family == "v4" { ["10.0.0.1:1", "10.0.0.2:2"] } else { ["[fd00::1]:1", "[fd00::2]:2"] };
        let [src, dst] = ends.map(|end| end.parse().unwrap());
        Packet::from_segment(Segment { payload: Payload::from(vec![0; payload]), ..Segment::new(src, dst) })
    }

    #[test]
    fn what_fits_passes_and_the_rest_is_answered() {
        for (family, headers) in [("v4", 40), ("v6", 60)] {
            let mut hop = NarrowHop::new(1400);
            let mut out = Output::new();
            hop.process(Some(packet(family, 1400 - headers)), Instant::ZERO, &mut out);
            assert_eq!(out.take_forwarded().map(|passed| passed.wire_len()).collect::<Vec<_>>(), [1400]);
            assert_eq!(out.take_dropped().count(), 0);
            hop.process(Some(packet(family, 1401 - headers)), Instant::ZERO, &mut out);
            let answer = out.take_forwarded().next().unwrap();
            assert_eq!(answer.destination(), packet(family, 0).source());
            let error = TooBig::parse(answer.raw().unwrap()).unwrap();
            assert_eq!((error.packet_bytes, error.next_hop_mtu), (1401, 1400));
            assert_eq!(out.take_dropped().map(|(_, cause)| cause).collect::<Vec<_>>(), [DropCause::TooBig]);
        }
    }

    #[test]
    fn an_entry_answers_where_packets_come_from() {
        let mut out = MediumOutput::new();
        for (hop, answers) in [(NarrowHop::new(1400), 1), (NarrowHop::new(1400).silent(), 0)] {
            let mut entry = NarrowEntry::new(hop);
            for (gate, payload) in [(NarrowEntry::OUTSIDE, 1360), (NarrowEntry::LINK, 1460)] {
                entry.process(Some((gate, packet("v4", payload))), Instant::ZERO, &mut out);
                let left: Vec<_> = out.take_forwarded().map(|(gate, packet)| (gate, packet.wire_len())).collect();
                let other = Gate(1 - gate.0);
                assert_eq!(left, [(other, 40 + payload as u32)]);
            }
            entry.process(Some((NarrowEntry::OUTSIDE, packet("v4", 1361))), Instant::ZERO, &mut out);
            let left: Vec<_> = out.take_forwarded().map(|(gate, packet)| (gate, packet.destination())).collect();
            assert_eq!(left, vec![(NarrowEntry::OUTSIDE, packet("v4", 0).source()); answers]);
            let dropped: Vec<_> = out.take_dropped().map(|(gate, _, cause)| (gate, cause)).collect();
            assert_eq!(dropped, [(NarrowEntry::OUTSIDE, DropCause::TooBig)]);
        }
    }

    #[test]
    fn a_black_hole_says_nothing_and_time_changes_it() {
        let mut hop = NarrowHop::new(1500).then(Instant::from_secs(1), 1400).silent();
        let mut out = Output::new();
        for (at, passed) in [(0, 1), (1, 0), (9, 0)] {
            hop.process(Some(packet("v4", 1460)), Instant::from_secs(at), &mut out);
            assert_eq!(out.take_forwarded().count(), passed);
        }
        assert_eq!(out.take_dropped().count(), 2);
    }
}
