//! ICMP errors about packets that are too big for their path: type 3 code 4 of ICMP (RFC 792, RFC 1191 section 4), type
//! 2 of ICMPv6 (RFC 4443 section 3.2).
//!
//! ```text
//! IP header to the sender | type, code, checksum | unused, next-hop MTU | quoted: IP header, 8 octets of TCP or more
//! ```

use core::net::{IpAddr, SocketAddr};

use units::SeqNr;

use crate::ParseError;
use crate::icmp::{self, ICMP_HEADER_BYTES, Message, ports, quoted};
use crate::ip;

/// Maximum size of an ICMP packet in octets: RFC 1812 section 4.3.2.3, RFC 4443 section 2.4 (c).
const PACKET_BYTES_MAX: [usize; 2] = [576, 1280];

/// A router could not forward a TCP segment, because its packet was too big for the next hop.
///
/// Anyone who knows the four-tuple and a sequence number in flight can forge one; nothing else authenticates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Sender of the segment.
    pub src: SocketAddr,
    /// Receiver of the segment.
    pub dst: SocketAddr,
    /// The segment's sequence number.
    pub seq: SeqNr,
    /// Octets of the packet, including its IP header; for a super-segment that a host has not cut yet, of the whole.
    pub packet_bytes: u32,
    /// Octets of the largest packet that fits; zero from routers older than RFC 1191.
    pub next_hop_mtu: u32,
}

impl TooBig {
    /// Reads an IP packet and verifies its checksums.
    ///
    /// # Errors
    /// [`ParseError`]: the packet is damaged, is something else, or quotes no TCP segment of the host that received it.
    pub fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        let Message { ip, header, quote } = Message::parse(packet)?;
        let (kind, mtu) = match ip.src {
            IpAddr::V4(_) => ((3, 4), u32::from(u16::from_be_bytes([header[6], header[7]]))),
            IpAddr::V6(_) => ((2, header[1]), u32::from_be_bytes([header[4], header[5], header[6], header[7]])),
        };
        if (header[0], header[1]) != kind {
            return Err(ParseError::NotTooBig { icmp_type: header[0], code: header[1] });
        }
        let quoted = quoted(quote)?;
        let ([src, dst], [src_port, dst_port], tcp) = (quoted.addresses, ports(quoted.tcp), quoted.tcp);
        if src != ip.dst {
            return Err(ParseError::NotOurs);
        }
        Ok(Self {
            src: SocketAddr::new(src, src_port),
            dst: SocketAddr::new(dst, dst_port),
            seq: SeqNr(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
            packet_bytes: quoted.packet_bytes,
            next_hop_mtu: mtu,
        })
    }

    /// Appends the error with which `router` answers `packet`, a whole IP packet of the router's address family that is
    /// larger than `mtu`. Returns false and appends nothing if `packet` is no IP packet of that family.
    pub fn emit(router: IpAddr, packet: &[u8], mtu: u16, out: &mut Vec<u8>) -> bool {
        let header_bytes = ip::header_len(&router);
        let sender = match (router, packet.first().map(|first| first >> 4)) {
            (IpAddr::V4(_), Some(4)) => packet.first_chunk().map(|header| ip::addresses_v4(header)[0]),
            (IpAddr::V6(_), Some(6)) => packet.first_chunk().map(|header| ip::addresses_v6(header)[0]),
            _ => None,
        };
        let Some(sender) = sender else { return false };
        let room = PACKET_BYTES_MAX[usize::from(router.is_ipv6())] - header_bytes - ICMP_HEADER_BYTES;
        let quoted = &packet[..packet.len().min(room)];
        let message_bytes = ICMP_HEADER_BYTES + quoted.len();
        let mut header = [0; ICMP_HEADER_BYTES];
        header[6..].copy_from_slice(&mtu.to_be_bytes());
        (header[0], header[1]) = if router.is_ipv4() { (3, 4) } else { (2, 0) };
        let mut sum = icmp::sum_before(router, sender, message_bytes);
        sum.add(&header);
        sum.add(quoted);
        header[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        ip::emit_for_icmp(router, sender, message_bytes, out);
        out.extend_from_slice(&header);
        out.extend_from_slice(quoted);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Sum;
    use crate::{Payload, Segment};

    fn packet(src: &str, dst: &str) -> Vec<u8> {
        let mut segment = Segment::new(src.parse().unwrap(), dst.parse().unwrap());
        segment.seq = SeqNr(0x0102_0304);
        segment.payload = Payload::from(vec![7; 1460]);
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        packet
    }

    fn answer(router: &str, packet: &[u8], mtu: u16) -> Vec<u8> {
        let mut answer = Vec::new();
        assert!(TooBig::emit(router.parse().unwrap(), packet, mtu, &mut answer));
        answer
    }

    /// An error written by hand from RFC 792, with the next-hop MTU of RFC 1191: 10.0.0.9 tells 10.0.0.1 that its
    /// packet of 1500 octets does not fit 1400.
    #[test]
    fn a_router_of_ipv4_by_hand() {
        let mut octets = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1];
        let header_sum = Sum::of(&octets).checksum();
        octets[10..12].copy_from_slice(&header_sum.to_be_bytes());
        let mut message = vec![3, 4, 0, 0, 0, 0, 0x05, 0x78];
        message.extend([0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 63, 6, 0xaa, 0xaa, 10, 0, 0, 1, 10, 0, 0, 2]);
        message.extend([0x9c, 0x40, 0, 80, 1, 2, 3, 4]);
        let sum = Sum::of(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        octets.extend(&message);
        let expected = TooBig {
            src: "10.0.0.1:40000".parse().unwrap(),
            dst: "10.0.0.2:80".parse().unwrap(),
            seq: SeqNr(0x0102_0304),
            packet_bytes: 1500,
            next_hop_mtu: 1400,
        };
        assert_eq!(TooBig::parse(&octets), Ok(expected));
        octets[27] ^= 1;
        assert_eq!(TooBig::parse(&octets), Err(ParseError::BadChecksum { field: "ICMP" }));
    }

    #[test]
    fn what_is_emitted_is_read() {
        for (src, dst, router, longest) in [
            ("10.0.0.1:1", "10.0.0.2:2", "10.0.0.9", 576),
            ("[fd00::1]:1", "[fd00::2]:2", "[fd00::9]".trim_matches(['[', ']']), 1280),
        ] {
            let answer = answer(router, &packet(src, dst), 1300);
            assert_eq!(answer.len(), longest);
            let read = TooBig::parse(&answer).unwrap();
            assert_eq!((read.src, read.dst), (src.parse().unwrap(), dst.parse().unwrap()));
            let packet_bytes = packet(src, dst).len() as u32;
            assert_eq!((read.seq, read.packet_bytes, read.next_hop_mtu), (SeqNr(0x0102_0304), packet_bytes, 1300));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let packet = packet("10.0.0.1:1", "10.0.0.2:2");
        assert_eq!(TooBig::parse(&packet), Err(ParseError::NotTcp { protocol: 6 }));
        assert!(!TooBig::emit("fd00::9".parse().unwrap(), &packet, 1300, &mut Vec::new()));
        // A quoted packet of another host.
        let mut foreign = Vec::new();
        let message = answer("10.0.0.9", &packet, 1300)[20..].to_vec();
        ip::emit_for_icmp("10.0.0.9".parse().unwrap(), "10.0.0.7".parse().unwrap(), message.len(), &mut foreign);
        foreign.extend(&message);
        assert_eq!(TooBig::parse(&foreign), Err(ParseError::NotOurs));
        // An echo request (type 8).
        let mut echo = Vec::new();
        let mut message = [8, 0, 0, 0, 0, 1, 0, 1];
        let sum = Sum::of(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        ip::emit_for_icmp("10.0.0.9".parse().unwrap(), "10.0.0.1".parse().unwrap(), message.len(), &mut echo);
        echo.extend(message);
        assert_eq!(TooBig::parse(&echo), Err(ParseError::NotTooBig { icmp_type: 8, code: 0 }));
    }

    proptest::proptest! {
        /// Any octets, cut or damaged anywhere, are read or refused.
        #[test]
        fn hostile_octets_are_survived(cut in 0..600_usize, at in 0..600_usize, with in 0..=255_u8) {
            for router in ["10.0.0.9", "fd00::9"] {
                let ends = if router.contains(':') { ("[fd00::1]:1", "[fd00::2]:2") } else { ("10.0.0.1:1", "10.0.0.2:2") };
                let mut octets = answer(router, &packet(ends.0, ends.1), 1300);
                octets.truncate(cut);
                if let Some(octet) = octets.get_mut(at) {
                    *octet = with;
                }
                let _ = TooBig::parse(&octets);
                let _ = quoted(octets.get(28..).unwrap_or_default());
            }
        }
    }
}
