//! A packet: a TCP segment, a UDP datagram, or raw octets of any protocol.

use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use wire::{Ecn, Payload, Segment};

use crate::Datagram;

/// A packet. It is one word, so queues move it cheaply; its content lies in memory that a [`PacketPool`] reuses.
#[derive(Debug)]
pub struct Packet(Box<Held>);

// One word: queues and heaps move packets often.
const _: () = assert!(size_of::<Option<Packet>>() == 8);
// Four cache lines.
const _: () = assert!(size_of::<Held>() <= 256);

#[derive(Clone, Debug)]
struct Held {
    content: Content,
    wire_len: u32,
    /// Number of vertices passed. Its limit ends routing loops.
    hops: u8,
    /// Hop limit of the octets from which a segment was read. It leaves with it, so that packets which hosts forward in
    /// a circle end; one that was not read from octets leaves with that of [`Segment::emit`].
    hop_limit: Option<u8>,
    /// Whether an element made this packet by duplicating another.
    is_copy: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Segment(Segment),
    Raw(Bytes),
    Datagram(Datagram),
}

impl Packet {
    fn new(content: Content, wire_len: u32) -> Self {
        Self(Box::new(Held { content, wire_len, hops: 0, hop_limit: None, is_copy: false }))
    }

    /// Creates a packet with memory of its own. [`PacketPool::segment`] avoids the allocation.
    pub fn from_segment(segment: Segment) -> Self {
        let wire_len = segment.emitted_len() as u32;
        Self::new(Content::Segment(segment), wire_len)
    }

    /// Creates a packet from the octets of an IPv4 or IPv6 packet, from the IP header on.
    pub fn from_raw(octets: Bytes) -> Self {
        let wire_len = octets.len() as u32;
        Self::new(Content::Raw(octets), wire_len)
    }

    /// Creates a packet from a UDP datagram.
    pub fn from_datagram(datagram: Datagram) -> Self {
        Self::new(Content::Datagram(datagram), datagram.wire_len())
    }

    /// Prefetches the content into the cache.
    #[inline]
    pub(crate) fn prefetch(&self) {
        units::prefetch(&*self.0);
    }

    /// Returns the octets on the wire: IP header, TCP header with options, payload.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        self.0.wire_len
    }

    /// Counts one more vertex on the way; returns false if the packet has passed too many.
    #[inline]
    pub(crate) fn count_hop(&mut self) -> bool {
        let before = self.0.hops;
        self.0.hops = before.saturating_add(1);
        before < u8::MAX
    }

    /// Returns the segment if the packet holds one.
    #[inline]
    pub fn segment(&self) -> Option<&Segment> {
        match &self.0.content {
            Content::Segment(segment) => Some(segment),
            Content::Raw(_) | Content::Datagram(_) => None,
        }
    }

    /// Returns the segment for taking its parts out, if the packet holds one.
    #[inline]
    pub fn segment_mut(&mut self) -> Option<&mut Segment> {
        match &mut self.0.content {
            Content::Segment(segment) => Some(segment),
            Content::Raw(_) | Content::Datagram(_) => None,
        }
    }

    /// Returns the datagram if the packet holds one.
    pub fn datagram(&self) -> Option<&Datagram> {
        match &self.0.content {
            Content::Datagram(datagram) => Some(datagram),
            Content::Segment(_) | Content::Raw(_) => None,
        }
    }

    /// Returns the raw octets if the packet holds them.
    pub fn raw(&self) -> Option<&Bytes> {
        match &self.0.content {
            Content::Segment(_) | Content::Datagram(_) => None,
            Content::Raw(octets) => Some(octets),
        }
    }

    /// Changes the segment. Returns false, without calling `change`, if the packet holds none.
    ///
    /// Raw octets that hold a TCP segment become a segment first. They lose what a segment does not represent (unknown
    /// options, reserved bits, all IP fields except addresses, ECN and hop limit), as in many middleboxes.
    pub fn edit(&mut self, change: impl FnOnce(&mut Segment)) -> bool {
        self.parse();
        let Some(segment) = self.segment_mut() else { return false };
        change(segment);
        self.0.wire_len = segment.emitted_len() as u32;
        true
    }

    /// Turns raw octets into the segment they hold, if they hold an undamaged one.
    pub fn parse(&mut self) -> Option<&Segment> {
        if let Content::Raw(octets) = &self.0.content {
            let segment = Segment::parse(octets).ok()?;
            self.0.hop_limit = wire::hop_limit(octets);
            self.0.wire_len = segment.emitted_len() as u32;
            self.0.content = Content::Segment(segment);
        }
        self.segment()
    }

    /// Appends the octets on the wire ([`Self::wire_len`] of them) to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match &self.0.content {
            Content::Raw(octets) => out.extend_from_slice(octets),
            Content::Segment(segment) => {
                let start = out.len();
                segment.emit(out);
                if let Some(hop_limit) = self.0.hop_limit {
                    wire::set_hop_limit(&mut out[start..], hop_limit);
                }
            }
            Content::Datagram(datagram) => datagram.emit(out),
        }
    }

    /// Returns the destination address; `None` for octets that are not an IP packet.
    #[inline]
    pub fn destination(&self) -> Option<IpAddr> {
        match &self.0.content {
            Content::Segment(segment) => Some(segment.dst.ip()),
            Content::Raw(octets) => wire::destination(octets),
            Content::Datagram(datagram) => Some(datagram.dst.ip()),
        }
    }

    /// Returns the source address; `None` for octets that are not an IP packet.
    #[inline]
    pub fn source(&self) -> Option<IpAddr> {
        match &self.0.content {
            Content::Segment(segment) => Some(segment.src.ip()),
            Content::Raw(octets) => wire::source(octets),
            Content::Datagram(datagram) => Some(datagram.src.ip()),
        }
    }

    /// Returns source and destination addresses; `None` for octets that are not an IP packet.
    pub(crate) fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        self.source().zip(self.destination())
    }

    /// [`Self::ends`] for an IPv4 segment, the most common packet.
    #[inline]
    pub(crate) fn ends_v4(&self) -> Option<(u32, u32)> {
        let segment = self.segment()?;
        match (&segment.src, &segment.dst) {
            (SocketAddr::V4(src), SocketAddr::V4(dst)) => Some((src.ip().to_bits(), dst.ip().to_bits())),
            _ => None,
        }
    }

    /// Marks congestion experienced if the packet is ECN-capable; returns false if it is not (RFC 3168 section 5).
    pub fn mark_congestion(&mut self) -> bool {
        match &mut self.0.content {
            Content::Segment(segment) => {
                let capable = segment.ecn != Ecn::NotCapable;
                if capable {
                    segment.ecn = Ecn::CongestionExperienced;
                }
                capable
            }
            Content::Raw(octets) => mark_raw(octets),
            Content::Datagram(_) => false,
        }
    }

    /// Creates what an element makes of this packet, or of a part of it: it has come as far, and is a copy if this one is.
    pub(crate) fn remade(&self, with: Self) -> Self {
        let Self(mut held) = with;
        (held.hops, held.hop_limit, held.is_copy) = (self.0.hops, self.0.hop_limit, self.0.is_copy);
        Self(held)
    }

    /// Makes a copy with memory of its own.
    pub fn duplicate(&self) -> Self {
        Self(Box::new(Held { is_copy: true, ..(*self.0).clone() }))
    }

    /// Whether the packet is such a copy. Losing a copy loses nothing that a host sent.
    pub(crate) fn is_copy(&self) -> bool {
        self.0.is_copy
    }
}

/// Sets both ECN bits of an ECN-capable IP header and, in IPv4, updates the header checksum (RFC 1624).
fn mark_raw(octets: &mut Bytes) -> bool {
    let version = octets.first().map(|first| first >> 4);
    let mut header = match version {
        Some(4) if octets.len() >= 20 && octets[1] & 0b11 != 0 => bytes_mut(octets),
        Some(6) if octets.len() >= 40 && octets[1] >> 4 & 0b11 != 0 => bytes_mut(octets),
        _ => return false,
    };
    if version == Some(6) {
        header[1] |= 0b11 << 4;
    } else {
        let old = u16::from_be_bytes([header[0], header[1]]);
        header[1] |= 0b11;
        let new = u16::from_be_bytes([header[0], header[1]]);
        let sum = u16::from_be_bytes([header[10], header[11]]);
        // RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
        let mut folded = u32::from(!sum) + u32::from(!old) + u32::from(new);
        folded = (folded & 0xffff) + (folded >> 16);
        folded = (folded & 0xffff) + (folded >> 16);
        let [high, low] = (!(folded as u16)).to_be_bytes();
        (header[10], header[11]) = (high, low);
    }
    *octets = header.freeze();
    true
}

/// Returns the octets as writable; copies them only if they are shared.
pub(crate) fn bytes_mut(octets: &mut Bytes) -> bytes::BytesMut {
    core::mem::take(octets).try_into_mut().unwrap_or_else(|shared| shared.as_ref().into())
}

/// Number of packets made at once: several pages full.
const MADE_AT_ONCE: usize = 64;

/// Maximum number of packets kept: some megabytes. The limit matters only for an owner that makes packets elsewhere and
/// lets all of them end here.
const KEPT_MAX: usize = 1 << 16;

/// Memory of finished packets, reused for new ones: in steady state no packet allocates.
#[derive(Debug, Default)]
pub struct PacketPool {
    /// All of these hold segments.
    free: Vec<Packet>,
    free_datagrams: Vec<Packet>,
}

impl PacketPool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a packet with the segment that `fill` makes; `None` if `fill` returns false. Segments are large, so
    /// `fill` makes the segment in place, from whatever was there before.
    #[inline]
    pub fn segment(&mut self, fill: impl FnOnce(&mut Segment) -> bool) -> Option<Packet> {
        if self.free.is_empty() {
            self.make_room();
        }
        // The packet leaves the pool only once it has content: every second call makes none.
        let packet = self.free.last_mut()?;
        let segment = packet.segment_mut()?;
        if !fill(segment) {
            return None;
        }
        packet.0.wire_len = segment.emitted_len() as u32;
        (packet.0.hops, packet.0.hop_limit, packet.0.is_copy) = (0, None, false);
        self.free.pop()
    }

    /// Makes several packets at once, so they lie together. Single packets between the allocations of connections would
    /// each have a page of its own, and pages that were not used recently cost the processor an address translation.
    #[cold]
    fn make_room(&mut self) {
        self.free.extend((0..MADE_AT_ONCE).map(|_| Packet::new(Content::Segment(Segment::default()), 0)));
    }

    /// Returns a packet that holds a datagram.
    pub fn datagram(&mut self, datagram: Datagram) -> Packet {
        let Some(mut packet) = self.free_datagrams.pop() else { return Packet::from_datagram(datagram) };
        let Held { content, wire_len, hops, hop_limit, is_copy } = &mut *packet.0;
        *content = Content::Datagram(datagram);
        (*wire_len, *hops, *hop_limit, *is_copy) = (datagram.wire_len(), 0, None, false);
        packet
    }

    /// Takes the segment out of a packet and keeps the packet's memory. Raw octets are parsed.
    pub fn take_segment(&mut self, mut packet: Packet) -> Option<Segment> {
        packet.parse();
        let segment = packet.segment_mut().map(core::mem::take);
        self.recycle(packet);
        segment
    }

    /// Keeps the memory of a finished packet, except the payload, which may be shared.
    #[inline]
    pub fn recycle(&mut self, mut packet: Packet) {
        match &mut packet.0.content {
            Content::Segment(segment) => {
                segment.payload = Payload::Empty;
                keep(&mut self.free, packet);
            }
            Content::Datagram(_) => keep(&mut self.free_datagrams, packet),
            Content::Raw(_) => {}
        }
    }
}

#[inline]
fn keep(free: &mut Vec<Packet>, packet: Packet) {
    if free.len() < KEPT_MAX {
        free.push(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CLIENT, SERVER, ecn_packet, is_marked, packet, segment};
    use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};

    #[test]
    fn only_ecn_capable_segments_are_marked() {
        let (mut capable, mut other) = (ecn_packet(100), packet(100));
        assert!(capable.mark_congestion() && is_marked(&capable));
        assert!(!other.mark_congestion() && !is_marked(&other));
    }

    #[test]
    fn raw_marks_keep_the_header_checksum() {
        // A known example header: checksum b861 at traffic class 00, b85f with ECT(0), b85e with CE.
        let header =
            [0x45, 0x02, 0x00, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x5f, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        let mut packet = Packet::from_raw(header.to_vec().into());
        assert!(packet.mark_congestion());
        let octets = packet.raw().unwrap();
        assert_eq!((octets[1], octets[10], octets[11]), (0x03, 0xb8, 0x5e));
        let mut v6 = Packet::from_raw([&[0x60, 0x10][..], &[0; 38]].concat().into());
        assert!(v6.mark_congestion());
        assert_eq!(v6.raw().unwrap()[1], 0x30);
        assert!(!Packet::from_raw(vec![0x45].into()).mark_congestion());
        assert!(!Packet::from_raw(Bytes::new()).mark_congestion());
    }

    #[test]
    fn addresses_of_raw_octets() {
        let mut v4 = vec![0; 20];
        v4[0] = 0x45;
        v4[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let packet = Packet::from_raw(v4.into());
        assert_eq!((packet.source(), packet.destination()), (Some(CLIENT.ip()), Some(SERVER.ip())));
        let cut = Packet::from_raw(vec![0x60; 30].into());
        assert_eq!(cut.source(), Some("6060:6060:6060:6060:6060:6060:6060:6060".parse().unwrap()));
        assert_eq!(cut.destination(), None);
    }

    #[test]
    fn options_count_on_the_wire() {
        let mapping = Some(Mapping { dsn: DataSeq::Long(1), ssn: 1, len: 100, checksum: Some(0) });
        let dss = Dss { data_ack: Some(DataSeq::Short(1)), mapping, data_fin: false };
        let mut segment = segment(100);
        segment.options.mptcp.push(MptcpOption::Dss(dss));
        // 4 + 4 + 8 + 4 + 2 + 2 octets of DSS.
        assert_eq!(Packet::from_segment(segment).wire_len(), 40 + 24 + 100);
    }

    #[test]
    fn raw_tcp_becomes_a_segment_when_edited() {
        let mut octets = Vec::new();
        packet(140).emit(&mut octets);
        let mut raw = Packet::from_raw(octets.clone().into());
        assert!(raw.edit(|segment| segment.window = 7));
        assert_eq!((raw.wire_len(), raw.segment().unwrap().window), (140, 7));
        octets[30] ^= 1;
        let mut damaged = Packet::from_raw(octets.clone().into());
        assert!(!damaged.edit(|_| unreachable!("a damaged segment is none")));
        let mut emitted = Vec::new();
        damaged.emit(&mut emitted);
        assert_eq!(emitted, octets);
    }

    #[test]
    fn a_segment_leaves_with_the_hop_limit_of_its_octets() {
        let hop_limit = |packet: &Packet| {
            let mut octets = Vec::new();
            packet.emit(&mut octets);
            assert!(Segment::parse(&octets.clone().into()).is_ok());
            wire::hop_limit(&octets)
        };
        let mut octets = Vec::new();
        packet(140).emit(&mut octets);
        wire::set_hop_limit(&mut octets, 5);
        let mut read = Packet::from_raw(octets.into());
        read.edit(|segment| segment.window = 7);
        assert_eq!(hop_limit(&read), Some(5));
        assert_eq!(hop_limit(&read.remade(packet(100))), Some(5), "as for a piece of it");
        let mut pool = PacketPool::new();
        pool.recycle(read);
        assert_eq!(hop_limit(&pool.segment(|_| true).unwrap()), Some(64), "its memory is used again");
    }

    #[test]
    fn what_is_remade_has_come_as_far_and_stays_a_copy() {
        let mut original = packet(140).duplicate();
        original.0.hops = u8::MAX - 1;
        let mut remade = original.remade(packet(100));
        assert!(remade.is_copy() && remade.count_hop() && !remade.count_hop());
        assert_eq!(remade.wire_len(), 100);
    }

    #[test]
    fn the_pool_hands_out_the_same_memory_again() {
        let mut pool = PacketPool::new();
        let fill = |with: Segment| {
            move |place: &mut Segment| {
                *place = with;
                true
            }
        };
        let first = pool.segment(fill(segment(10))).unwrap();
        let address = core::ptr::from_ref(first.segment().unwrap());
        assert_eq!(pool.take_segment(first), Some(segment(10)));
        let second = pool.segment(fill(segment(20))).unwrap();
        assert_eq!(core::ptr::from_ref(second.segment().unwrap()), address);
        assert_eq!(second.wire_len(), 60);
        pool.recycle(second);
        assert!(pool.segment(|_| false).is_none());
        assert_eq!(pool.free.len(), MADE_AT_ONCE);
    }

    /// A caller that makes packets elsewhere, for example by reading them from a device, lets all of them end here.
    #[test]
    fn no_more_packets_are_kept_than_are_worth_it() {
        let mut pool = PacketPool::new();
        (0..KEPT_MAX + 10).for_each(|_| pool.recycle(packet(100)));
        assert_eq!(pool.free.len(), KEPT_MAX);
    }
}
