//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, as far as TCP and errors about its packets need them.
//!
//! Parsing returns the range of the payload within the packet. The payload is a TCP segment or an ICMP message;
//! options, extension headers and the padding that links add lie outside. Emission writes plain headers: IPv4 with DF
//! set and identification 0 (an atomic datagram, RFC 6864 section 4.1), IPv6 without extension headers; hop limit 64,
//! DSCP and flow label 0.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use units::narrow::u16_from;

use crate::ParseError;
use crate::checksum::Sum;

/// TCP's protocol number.
pub(crate) const TCP: u8 = 6;
/// ICMP's protocol number, over IPv4.
pub(crate) const ICMP: u8 = 1;
/// ICMPv6's protocol number.
pub(crate) const ICMP_V6: u8 = 58;
/// Octets of an IPv4 header without options.
pub(crate) const V4_HEADER_BYTES: usize = 20;
/// Octets of an IPv6 header without extension headers.
pub(crate) const V6_HEADER_BYTES: usize = 40;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable = 0b00,
    /// ECN-capable, codepoint ECT(1).
    Capable1 = 0b01,
    /// ECN-capable, codepoint ECT(0).
    Capable0 = 0b10,
    /// Congestion experienced.
    CongestionExperienced = 0b11,
}

impl Ecn {
    /// Returns the codepoint in the low two bits of `traffic_class`.
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}

/// Returns the destination of an IP packet; `None` if the octets are not one.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    address(packet, 16, 24)
}

/// Returns the source of an IP packet; `None` if the octets are not one.
pub fn source(packet: &[u8]) -> Option<IpAddr> {
    address(packet, 12, 8)
}

fn address(packet: &[u8], v4_at: usize, v6_at: usize) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(v4_at..v4_at + 4)?.try_into().ok().map(|octets: [u8; 4]| octets.into()),
        6 => packet.get(v6_at..v6_at + 16)?.try_into().ok().map(|octets: [u8; 16]| octets.into()),
        _ => None,
    }
}

/// Returns the hop limit of an IP packet, in IPv4 its time to live; `None` if the octets are not one.
pub fn hop_limit(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => packet.get(8).copied(),
        6 => packet.get(7).copied(),
        _ => None,
    }
}

/// Writes another hop limit into an IP packet that this crate has emitted, and corrects the header's checksum.
///
/// # Panics
/// If the octets are shorter than an IP header.
pub fn set_hop_limit(packet: &mut [u8], hop_limit: u8) {
    if packet[0] >> 4 == 6 {
        packet[7] = hop_limit;
        return;
    }
    let header = &mut packet[..V4_HEADER_BYTES];
    header[8] = hop_limit;
    header[10..12].fill(0);
    let checksum = Sum::of(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The fields of an IP header that are needed here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IpHeader {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ecn: Ecn,
    /// Range of the payload in the packet.
    pub segment: Range<usize>,
}

/// Reads the IP header of `packet`, of either version, which must carry TCP.
pub(crate) fn parse(packet: &[u8]) -> Result<IpHeader, ParseError> {
    parse_carrying(packet, [TCP, TCP])
}

/// Reads the IP header of `packet`, which must carry the first of `protocols` over IPv4, the second over IPv6.
pub(crate) fn parse_carrying(packet: &[u8], protocols: [u8; 2]) -> Result<IpHeader, ParseError> {
    let first = packet.first().ok_or(ParseError::Truncated { field: "IP version", need: 1, have: 0 })?;
    match first >> 4 {
        4 => parse_v4(packet, protocols[0]),
        6 => parse_v6(packet, protocols[1]),
        version => Err(ParseError::UnknownVersion { version }),
    }
}

fn parse_v4(packet: &[u8], protocol: u8) -> Result<IpHeader, ParseError> {
    let fixed: &[u8; V4_HEADER_BYTES] = first_chunk(packet, "IPv4 header")?;
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < V4_HEADER_BYTES {
        return Err(ParseError::BadLength { field: "IPv4 IHL", value: header_len, min: V4_HEADER_BYTES });
    }
    let header = first_slice(packet, header_len, "IPv4 options")?;
    if !Sum::of(header).is_valid() {
        return Err(ParseError::BadChecksum { field: "IPv4 header" });
    }
    let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if total_len < header_len {
        return Err(ParseError::BadLength { field: "IPv4 total length", value: total_len, min: header_len });
    }
    first_slice(packet, total_len, "IPv4 total length")?;
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    if fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
        return Err(ParseError::Fragment);
    }
    if fixed[9] != protocol {
        return Err(ParseError::NotTcp { protocol: fixed[9] });
    }
    let [src, dst] = addresses_v4(fixed);
    Ok(IpHeader { src, dst, ecn: Ecn::from_bits(fixed[1]), segment: header_len..total_len })
}

fn parse_v6(packet: &[u8], protocol: u8) -> Result<IpHeader, ParseError> {
    let fixed: &[u8; V6_HEADER_BYTES] = first_chunk(packet, "IPv6 header")?;
    let [src, dst] = addresses_v6(fixed);
    let end = V6_HEADER_BYTES + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let datagram = first_slice(packet, end, "IPv6 payload length")?;
    let start = skip_extension_headers(datagram, fixed[6], protocol)?;
    Ok(IpHeader {
        src,
        dst,
        // The traffic class straddles the first two octets; its low two bits are ECN.
        ecn: Ecn::from_bits(fixed[1] >> 4),
        segment: start..end,
    })
}

/// Source and destination of an IPv4 header.
pub(crate) fn addresses_v4(header: &[u8; V4_HEADER_BYTES]) -> [IpAddr; 2] {
    [12, 16].map(|at| Ipv4Addr::from(core::array::from_fn::<u8, 4, _>(|octet| header[at + octet])).into())
}

/// Source and destination of an IPv6 header.
pub(crate) fn addresses_v6(header: &[u8; V6_HEADER_BYTES]) -> [IpAddr; 2] {
    [8, 24].map(|at| Ipv6Addr::from(core::array::from_fn::<u8, 16, _>(|octet| header[at + octet])).into())
}

/// Returns where `protocol` starts after the extension headers of `datagram` (RFC 8200 section 4).
fn skip_extension_headers(datagram: &[u8], first: u8, protocol: u8) -> Result<usize, ParseError> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    let mut next_header = first;
    let mut at = V6_HEADER_BYTES;
    while next_header != protocol {
        if !matches!(next_header, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            return Err(ParseError::NotTcp { protocol: next_header });
        }
        let need = at + 8;
        let have = datagram.len();
        let truncated = ParseError::Truncated { field: "IPv6 extension header", need, have };
        let header: &[u8; 8] = datagram.get(at..).and_then(<[u8]>::first_chunk).ok_or(truncated)?;
        match next_header {
            ROUTING if header[3] != 0 => return Err(ParseError::SourceRoute { segments_left: header[3] }),
            // Offset and more-fragments bit zero: an atomic fragment, which is a whole packet (RFC 6946).
            FRAGMENT if u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0 => return Err(ParseError::Fragment),
            FRAGMENT => at += 8,
            _ => at += 8 + 8 * usize::from(header[1]),
        }
        next_header = header[0];
    }
    if at > datagram.len() {
        return Err(ParseError::Truncated { field: "IPv6 extension header", need: at, have: datagram.len() });
    }
    Ok(at)
}

/// Returns the first `len` octets of `packet`, which `field` needs.
fn first_slice<'a>(packet: &'a [u8], len: usize, field: &'static str) -> Result<&'a [u8], ParseError> {
    packet.get(..len).ok_or(ParseError::Truncated { field, need: len, have: packet.len() })
}

fn first_chunk<'a, const N: usize>(packet: &'a [u8], field: &'static str) -> Result<&'a [u8; N], ParseError> {
    packet.first_chunk().ok_or(ParseError::Truncated { field, need: N, have: packet.len() })
}

/// Octets of the header that [`emit`] writes for the family of `address`.
pub(crate) const fn header_len(address: &IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => V4_HEADER_BYTES,
        IpAddr::V6(_) => V6_HEADER_BYTES,
    }
}

/// Appends an IP header for a TCP segment of `segment_len` octets.
///
/// # Panics
/// If the addresses are of different families or the packet would exceed 65535 octets.
pub(crate) fn emit(src: IpAddr, dst: IpAddr, ecn: Ecn, segment_len: usize, out: &mut Vec<u8>) {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => emit_v4([src, dst], ecn as u8, TCP, segment_len, out),
        (IpAddr::V6(src), IpAddr::V6(dst)) => emit_v6([src, dst], ecn as u8, TCP, segment_len, out),
        _ => panic!("{src} and {dst} are of different address families"),
    }
}

/// Appends an IP header for an ICMP message of `message_len` octets.
///
/// # Panics
/// As [`emit`].
pub(crate) fn emit_for_icmp(src: IpAddr, dst: IpAddr, message_len: usize, out: &mut Vec<u8>) {
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => emit_v4([src, dst], 0, ICMP, message_len, out),
        (IpAddr::V6(src), IpAddr::V6(dst)) => emit_v6([src, dst], 0, ICMP_V6, message_len, out),
        _ => panic!("{src} and {dst} are of different address families"),
    }
}

fn emit_v4([src, dst]: [Ipv4Addr; 2], tos: u8, protocol: u8, segment_len: usize, out: &mut Vec<u8>) {
    let mut header = [0; V4_HEADER_BYTES];
    header[0] = 0x45;
    header[1] = tos;
    header[2..4].copy_from_slice(&length_field(V4_HEADER_BYTES + segment_len).to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOP_LIMIT;
    header[9] = protocol;
    header[12..16].copy_from_slice(&src.octets());
    header[16..20].copy_from_slice(&dst.octets());
    let checksum = Sum::of(&header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&header);
}

fn emit_v6([src, dst]: [Ipv6Addr; 2], traffic_class: u8, protocol: u8, segment_len: usize, out: &mut Vec<u8>) {
    let mut header = [0; V6_HEADER_BYTES];
    header[0..4].copy_from_slice(&(6 << 28 | u32::from(traffic_class) << 20).to_be_bytes());
    let payload_len = length_field(V6_HEADER_BYTES + segment_len) - u16_from(V6_HEADER_BYTES as u64);
    header[4..6].copy_from_slice(&payload_len.to_be_bytes());
    header[6] = protocol;
    header[7] = HOP_LIMIT;
    header[8..24].copy_from_slice(&src.octets());
    header[24..40].copy_from_slice(&dst.octets());
    out.extend_from_slice(&header);
}

fn length_field(len: usize) -> u16 {
    u16::try_from(len).unwrap_or_else(|_| panic!("an IP packet holds at most 65535 octets, not {len}"))
}

/// Returns the sum over the pseudo-header of a TCP segment (RFC 9293 section 3.1, RFC 8200 section 8.1).
pub(crate) fn pseudo_header_sum(src: IpAddr, dst: IpAddr, segment_len: usize) -> Sum {
    pseudo_header_sum_of(TCP, src, dst, segment_len)
}

/// Returns the same for any protocol: ICMPv6 has one too (RFC 4443 section 2.3).
pub(crate) fn pseudo_header_sum_of(protocol: u8, src: IpAddr, dst: IpAddr, segment_len: usize) -> Sum {
    let mut sum = Sum::new();
    for address in [src, dst] {
        match address {
            IpAddr::V4(address) => sum.add(&address.octets()),
            IpAddr::V6(address) => sum.add(&address.octets()),
        }
    }
    sum.add(&u64::from(protocol).to_be_bytes());
    sum.add(&(segment_len as u64).to_be_bytes());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A widely published IPv4 header (UDP, 115 octets), whose checksum is 0xb861.
    const UDP_V4: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];

    /// `UDP_V4` changed by `edit`, with its checksum corrected and padded to its total length.
    fn edited_v4(edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut packet = UDP_V4.to_vec();
        packet.resize(0x73, 0);
        edit(&mut packet);
        packet[10..12].fill(0);
        let header_len = usize::from(packet[0] & 0xf) * 4;
        let checksum = Sum::of(&packet[..header_len.min(0x73)]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn v6(next_header: u8, after: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0x20, 0, 0, 0, after.len() as u8, next_header, 64];
        packet.extend([0x20; 16]);
        packet.extend([0x21; 16]);
        packet.extend(after);
        packet
    }

    #[test]
    fn v4_verdicts() {
        let protocol = 17;
        let published = [&UDP_V4[..], &[0; 95]].concat();
        assert_eq!(parse(&published), Err(ParseError::NotTcp { protocol }), "the published checksum is right");
        let damaged = [&UDP_V4[..19], &[0xc6], &[0; 95]].concat();
        assert_eq!(parse(&damaged), Err(ParseError::BadChecksum { field: "IPv4 header" }));
        assert_eq!(parse(&edited_v4(|p| p[6] = 0x20)), Err(ParseError::Fragment), "more fragments");
        assert_eq!(parse(&edited_v4(|p| p[7] = 1)), Err(ParseError::Fragment), "offset");
        let short_ihl = ParseError::BadLength { field: "IPv4 IHL", value: 16, min: 20 };
        assert_eq!(parse(&edited_v4(|p| p[0] = 0x44)), Err(short_ihl));
        let short_total = ParseError::BadLength { field: "IPv4 total length", value: 19, min: 20 };
        assert_eq!(parse(&edited_v4(|p| p[3] = 19)), Err(short_total));
        let cut = ParseError::Truncated { field: "IPv4 total length", need: 0x74, have: 0x73 };
        assert_eq!(parse(&edited_v4(|p| p[3] = 0x74)), Err(cut));
        assert_eq!(parse(&[0x50]), Err(ParseError::UnknownVersion { version: 5 }));
        assert!(matches!(parse(&[]), Err(ParseError::Truncated { need: 1, .. })));
        assert!(matches!(parse(&UDP_V4[..19]), Err(ParseError::Truncated { need: 20, have: 19, .. })));
    }

    #[test]
    fn v4_options_are_skipped_and_padding_is_trimmed() {
        let packet = edited_v4(|p| {
            p[0] = 0x46; // one word of options: NOPs
            p[1] = 0xb9; // DSCP 46, ECT(1)
            p[3] = 0x64; // shorter than the 0x73 octets there are
            p[9] = TCP;
            p[20..24].fill(1);
        });
        let header = parse(&packet).unwrap();
        assert_eq!(header.segment, 24..0x64);
        assert_eq!(header.ecn, Ecn::Capable1);
        assert_eq!(header.src, "192.168.0.1".parse::<IpAddr>().unwrap());
        assert_eq!(header.dst, "192.168.0.199".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn v6_extension_headers_are_skipped() {
        let plain = parse(&v6(TCP, &[0; 20])).unwrap();
        assert_eq!((plain.segment, plain.ecn), (40..60, Ecn::Capable0));
        // Hop-by-hop of 8 octets, destination options of 16, atomic fragment (its reserved bits set), finished routing
        // header, TCP.
        let chain: [&[u8]; 5] = [
            &[60, 0, 1, 4, 0, 0, 0, 0],
            &[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[43, 0xff, 0, 6, 0, 0, 0, 7],
            &[TCP, 0, 4, 0, 0, 0, 0, 0],
            &[0; 20],
        ];
        assert_eq!(parse(&v6(0, &chain.concat())).unwrap().segment, 80..100);
    }

    #[test]
    fn v6_verdicts() {
        assert_eq!(parse(&v6(17, &[0; 8])), Err(ParseError::NotTcp { protocol: 17 }));
        assert_eq!(parse(&v6(59, &[])), Err(ParseError::NotTcp { protocol: 59 }));
        assert_eq!(parse(&v6(44, &[6, 0, 0, 1, 0, 0, 0, 0])), Err(ParseError::Fragment), "more fragments");
        assert_eq!(parse(&v6(44, &[6, 0, 0, 8, 0, 0, 0, 0])), Err(ParseError::Fragment), "offset 1");
        let left = ParseError::SourceRoute { segments_left: 2 };
        assert_eq!(parse(&v6(43, &[6, 0, 4, 2, 0, 0, 0, 0])), Err(left));
        let cut = |need, have| Err(ParseError::Truncated { field: "IPv6 extension header", need, have });
        assert_eq!(parse(&v6(0, &[6, 0, 0, 0])), cut(48, 44));
        assert_eq!(parse(&v6(0, &[6, 9, 0, 0, 0, 0, 0, 0])), cut(120, 48));
    }

    #[test]
    fn the_hop_limit_of_an_emitted_header_can_be_another_one() {
        for [src, dst] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
            let mut out = Vec::new();
            emit(src.parse().unwrap(), dst.parse().unwrap(), Ecn::Capable0, 20, &mut out);
            out.extend([0; 20]);
            assert_eq!(hop_limit(&out), Some(HOP_LIMIT));
            set_hop_limit(&mut out, 5);
            assert_eq!(hop_limit(&out), Some(5));
            assert!(parse(&out).is_ok(), "the header's checksum is right");
        }
        assert_eq!([hop_limit(&[]), hop_limit(&[0x45; 8]), hop_limit(&[0; 40])], [None; 3]);
    }

    #[test]
    fn emitted_headers_by_hand() {
        let mut out = Vec::new();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        emit(address("192.168.0.1"), address("192.168.0.199"), Ecn::NotCapable, 95, &mut out);
        // UDP_V4 with protocol 6 instead of 17: the sum is 11 less, the checksum 11 more.
        let expected = [&UDP_V4[..9], &[6, 0xb8, 0x6c], &UDP_V4[12..]].concat();
        assert_eq!(out, expected);
        out.clear();
        emit(address("2001:db8::1"), address("::2"), Ecn::CongestionExperienced, 20, &mut out);
        let mut expected = vec![0x60, 0x30, 0, 0, 0, 20, 6, 64, 0x20, 0x01, 0x0d, 0xb8];
        expected.extend([0; 11]);
        expected.push(1);
        expected.extend([0; 15]);
        expected.push(2);
        assert_eq!(out, expected);
    }
}
