//! ICMP errors (RFC 792, RFC 4443): the packet that they quote, and their translation by a NAT (RFC 5508 section 4).
//!
//! ```text
//! IP header to the sender | type, code, checksum | four octets by type | quoted: IP header, 8 octets of TCP or more
//! ```

use core::net::{IpAddr, SocketAddr};

use units::narrow::u32_from;

use crate::ParseError;
use crate::checksum::Sum;
use crate::ip::{self, ICMP, ICMP_V6, IpHeader, TCP, V4_HEADER_BYTES, V6_HEADER_BYTES};

/// Octets of an ICMP header.
pub(crate) const ICMP_HEADER_BYTES: usize = 8;
/// Octets of TCP that every error quotes: ports and sequence number (RFC 792).
const QUOTED_TCP_BYTES: usize = 8;
/// Offsets of the checksums in an IPv4 header, an ICMP header and a TCP header.
const V4_CHECKSUM_AT: usize = 10;
const ICMP_CHECKSUM_AT: usize = 2;
const TCP_CHECKSUM_AT: usize = 16;
/// Offsets of source and destination in an IP header, by family.
const V4_ADDRESSES_AT: [usize; 2] = [12, 16];
const V6_ADDRESSES_AT: [usize; 2] = [8, 24];

/// An ICMP message whose checksum is right.
pub(crate) struct Message<'a> {
    pub ip: IpHeader,
    pub header: [u8; ICMP_HEADER_BYTES],
    /// Octets after the header; in errors, the packet that they are about.
    pub quote: &'a [u8],
}

/// What an error quotes of a packet: its addresses, and octets from the TCP header on.
pub(crate) struct Quoted<'a> {
    pub addresses: [IpAddr; 2],
    pub packet_bytes: u32,
    /// At least eight octets.
    pub tcp: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads an IP packet.
    pub fn parse(packet: &'a [u8]) -> Result<Self, ParseError> {
        let ip = ip::parse_carrying(packet, [ICMP, ICMP_V6])?;
        let message = &packet[ip.segment.clone()];
        let header = *first_chunk(message, "ICMP header")?;
        let mut sum = sum_before(ip.src, ip.dst, message.len());
        sum.add(message);
        if !sum.is_valid() {
            return Err(ParseError::BadChecksum { field: "ICMP" });
        }
        Ok(Self { ip, header, quote: &message[ICMP_HEADER_BYTES..] })
    }

    /// Returns whether the message is an error about a packet, not a question or an answer.
    fn is_error(&self) -> bool {
        match self.ip.src {
            // Unreachable, source quench, time exceeded, parameter problem. A redirect concerns only the next router.
            IpAddr::V4(_) => matches!(self.header[0], 3 | 4 | 11 | 12),
            // RFC 4443 section 2.1.
            IpAddr::V6(_) => self.header[0] < 128,
        }
    }
}

/// Returns the sum over what the checksum covers besides the message: nothing in ICMP, the pseudo-header in ICMPv6.
pub(crate) fn sum_before(src: IpAddr, dst: IpAddr, message_len: usize) -> Sum {
    match src {
        IpAddr::V4(_) => Sum::new(),
        IpAddr::V6(_) => ip::pseudo_header_sum_of(ICMP_V6, src, dst, message_len),
    }
}

/// Reads the quoted packet. Its checksum is not verified, because routers may have changed fields that are not needed
/// here.
pub(crate) fn quoted(packet: &[u8]) -> Result<Quoted<'_>, ParseError> {
    let quoted = match packet.first().map(|first| first >> 4) {
        Some(4) => quoted_v4(packet),
        Some(6) => quoted_v6(packet),
        _ => Err(ParseError::NotOurs),
    }?;
    first_chunk::<QUOTED_TCP_BYTES>(quoted.tcp, "quoted TCP header")?;
    Ok(quoted)
}

fn quoted_v4(packet: &[u8]) -> Result<Quoted<'_>, ParseError> {
    let header: &[u8; V4_HEADER_BYTES] = first_chunk(packet, "quoted IPv4 header")?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let is_later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    if header[9] != TCP || header_bytes < V4_HEADER_BYTES || is_later_fragment {
        return Err(ParseError::NotOurs);
    }
    Ok(Quoted {
        addresses: ip::addresses_v4(header),
        packet_bytes: u16::from_be_bytes([header[2], header[3]]).into(),
        tcp: packet.get(header_bytes..).unwrap_or_default(),
    })
}

/// Packets of [`crate::Segment::emit`] have no extension headers, so their quotes have none either.
fn quoted_v6(packet: &[u8]) -> Result<Quoted<'_>, ParseError> {
    let header: &[u8; V6_HEADER_BYTES] = first_chunk(packet, "quoted IPv6 header")?;
    if header[6] != TCP {
        return Err(ParseError::NotOurs);
    }
    Ok(Quoted {
        addresses: ip::addresses_v6(header),
        packet_bytes: u32_from(V6_HEADER_BYTES as u64) + u32::from(u16::from_be_bytes([header[4], header[5]])),
        tcp: &packet[V6_HEADER_BYTES..],
    })
}

pub(crate) fn first_chunk<'a, const N: usize>(
    octets: &'a [u8],
    field: &'static str,
) -> Result<&'a [u8; N], ParseError> {
    octets.first_chunk().ok_or(ParseError::Truncated { field, need: N, have: octets.len() })
}

/// Returns source and destination port from the first octets of TCP.
pub(crate) fn ports(tcp: &[u8]) -> [u16; 2] {
    [0, 2].map(|at| u16::from_be_bytes([tcp[at], tcp[at + 1]]))
}

/// An ICMP error about a TCP packet, as a NAT sees it: it yields the addresses of the quoted packet and the translated
/// error.
#[derive(Clone, Debug, PartialEq)]
pub struct IcmpError<'a> {
    packet: &'a [u8],
    ip: IpHeader,
    /// Offset of the quoted TCP header in the packet.
    tcp_at: usize,
    ends: [SocketAddr; 2],
}

impl<'a> IcmpError<'a> {
    /// Reads an IP packet, and verifies the checksums that RFC 5508 names (REQ-3): ICMP's and that of a quoted IPv4
    /// header.
    ///
    /// # Errors
    /// [`ParseError`]: the packet is damaged or is something else.
    pub fn parse(packet: &'a [u8]) -> Result<Self, ParseError> {
        let message = Message::parse(packet)?;
        let quoted = quoted(message.quote)?;
        if !message.is_error() || quoted.addresses[0].is_ipv4() != message.ip.src.is_ipv4() {
            return Err(ParseError::NotOurs);
        }
        let header_bytes = message.quote.len() - quoted.tcp.len();
        if message.ip.src.is_ipv4() && !Sum::of(&message.quote[..header_bytes]).is_valid() {
            return Err(ParseError::BadChecksum { field: "quoted IPv4 header" });
        }
        let ([src, dst], [src_port, dst_port]) = (quoted.addresses, ports(quoted.tcp));
        let ends = [SocketAddr::new(src, src_port), SocketAddr::new(dst, dst_port)];
        let tcp_at = message.ip.segment.start + ICMP_HEADER_BYTES + header_bytes;
        Ok(Self { packet, ip: message.ip, tcp_at, ends })
    }

    /// Returns the host that the error is sent to.
    pub fn destination(&self) -> IpAddr {
        self.ip.dst
    }

    /// Returns source and destination of the quoted packet.
    pub fn quoted(&self) -> [SocketAddr; 2] {
        self.ends
    }

    /// Returns the error as the sender of the quoted packet must read it, which knows that packet's source as `sender`:
    /// the quote names `sender`, and the error is sent there (RFC 5508 section 4.2, REQ-4). `None` if `sender` is of
    /// another address family.
    pub fn told_to(&self, sender: SocketAddr) -> Option<Vec<u8>> {
        self.rewritten(0, sender, [self.ip.src, sender.ip()])
    }

    /// Returns the error as a sender must read it that knows the destination of the quoted packet as `receiver`: the
    /// quote names `receiver`, and the error comes from its address (RFC 5508 section 4.2, REQ-5). `None` if `receiver`
    /// is of another address family.
    pub fn told_of(&self, receiver: SocketAddr) -> Option<Vec<u8>> {
        self.rewritten(1, receiver, [receiver.ip(), self.ip.dst])
    }

    /// Returns the error with one end of the quoted packet replaced, and with other addresses in the outer header.
    fn rewritten(&self, end: usize, to: SocketAddr, [src, dst]: [IpAddr; 2]) -> Option<Vec<u8>> {
        if to.is_ipv4() != self.ip.src.is_ipv4() {
            return None;
        }
        let is_v4 = to.is_ipv4();
        let at = if is_v4 { V4_ADDRESSES_AT } else { V6_ADDRESSES_AT };
        // Leaves out the padding of a link.
        let mut packet = self.packet[..self.ip.segment.end].to_vec();
        let message_at = self.ip.segment.start;
        let quote_at = message_at + ICMP_HEADER_BYTES;
        let (old, new) = (address_and_port(self.ends[end]), address_and_port(to));
        let old_header_sum = Sum::of(&packet[quote_at..self.tcp_at]);
        put_address(&mut packet[quote_at + at[end]..], to.ip());
        packet[self.tcp_at + 2 * end..][..2].copy_from_slice(&to.port().to_be_bytes());
        if is_v4 {
            debug_assert!(old_header_sum.is_valid(), "looked at when it was read");
            adjust(&mut packet[quote_at + V4_CHECKSUM_AT..], &old[..4], &new[..4]);
        }
        // Many routers quote only TCP's ports and sequence number.
        if let Some(checksum) = packet.get_mut(self.tcp_at + TCP_CHECKSUM_AT..).filter(|rest| rest.len() >= 2) {
            adjust(checksum, &old, &new);
        }
        put_address(&mut packet[at[0]..], src);
        put_address(&mut packet[at[1]..], dst);
        if is_v4 {
            packet[V4_CHECKSUM_AT..][..2].fill(0);
            let sum = Sum::of(&packet[..message_at]);
            packet[V4_CHECKSUM_AT..][..2].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        packet[message_at + ICMP_CHECKSUM_AT..][..2].fill(0);
        let mut sum = sum_before(src, dst, packet.len() - message_at);
        sum.add(&packet[message_at..]);
        packet[message_at + ICMP_CHECKSUM_AT..][..2].copy_from_slice(&sum.checksum().to_be_bytes());
        Some(packet)
    }
}

fn address_and_port(end: SocketAddr) -> Vec<u8> {
    let mut octets = match end.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets.extend(end.port().to_be_bytes());
    octets
}

fn put_address(at: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => at[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => at[..16].copy_from_slice(&address.octets()),
    }
}

/// Adjusts a checksum for a change from `old` to `new` in the octets it covers: RFC 1624 equation 3, HC' = ~(~HC + ~m +
/// m').
fn adjust(checksum: &mut [u8], old: &[u8], new: &[u8]) {
    let inverted = |octets: &[u8]| -> Vec<u8> { octets.iter().map(|octet| !octet).collect() };
    let mut sum = Sum::of(&inverted(&checksum[..2]));
    sum.add(&inverted(old));
    sum.add(new);
    checksum[..2].copy_from_slice(&sum.checksum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Payload, Segment, TooBig};
    use bytes::Bytes;

    const INSIDE: [&str; 2] = ["10.0.0.1:1000", "[fd00::1]:1000"];
    const OUTSIDE: [&str; 2] = ["192.0.2.1:20000", "[fd00::fe]:20000"];
    const SERVER: [&str; 2] = ["10.9.0.2:80", "[fd09::2]:80"];
    const ROUTER: [&str; 2] = ["10.5.0.1", "fd05::1"];

    fn end(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn packet(src: &str, dst: &str, payload: usize) -> Vec<u8> {
        let segment = Segment { payload: Payload::from(vec![7; payload]), ..Segment::new(end(src), end(dst)) };
        let mut packet = Vec::new();
        segment.emit(&mut packet);
        packet
    }

    fn error(router: &str, about: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        assert!(TooBig::emit(router.parse().unwrap(), about, 1300, &mut octets));
        octets
    }

    /// A router outside reports a packet that left the NAT. The translated error equals the error about the packet that
    /// entered.
    #[test]
    fn told_to_the_sender_inside() {
        for family in [0, 1] {
            for payload in [100, 1400] {
                let outside = error(ROUTER[family], &packet(OUTSIDE[family], SERVER[family], payload));
                let read = IcmpError::parse(&outside).unwrap();
                assert_eq!(read.quoted(), [end(OUTSIDE[family]), end(SERVER[family])]);
                assert_eq!(read.destination(), end(OUTSIDE[family]).ip());
                let inside = error(ROUTER[family], &packet(INSIDE[family], SERVER[family], payload));
                assert_eq!(read.told_to(end(INSIDE[family])).unwrap(), inside);
            }
        }
    }

    /// The same for a packet that came in and about which a router inside complains: the error comes from the address
    /// outside.
    #[test]
    fn told_of_the_receiver_outside() {
        for family in [0, 1] {
            let inside = error(ROUTER[family], &packet(SERVER[family], INSIDE[family], 100));
            let read = IcmpError::parse(&inside).unwrap();
            let router = end(OUTSIDE[family]).ip().to_string();
            let outside = error(&router, &packet(SERVER[family], OUTSIDE[family], 100));
            assert_eq!(read.told_of(end(OUTSIDE[family])).unwrap(), outside);
        }
    }

    /// Many routers quote only eight octets of TCP; then there is no checksum to adjust.
    #[test]
    fn a_short_quote_is_enough() {
        let quote = packet(OUTSIDE[0], SERVER[0], 100)[..28].to_vec();
        let octets = error(ROUTER[0], &quote);
        let translated = IcmpError::parse(&octets).unwrap().told_to(end(INSIDE[0])).unwrap();
        assert_eq!(translated, error(ROUTER[0], &packet(INSIDE[0], SERVER[0], 100)[..28]));
        assert!(IcmpError::parse(&error(ROUTER[0], &quote[..27])).is_err());
    }

    #[test]
    fn what_is_no_intact_error_is_refused() {
        let octets = error(ROUTER[0], &packet(OUTSIDE[0], SERVER[0], 100));
        let mut damaged = octets.clone();
        damaged[60] ^= 1;
        assert_eq!(IcmpError::parse(&damaged), Err(ParseError::BadChecksum { field: "ICMP" }));
        let mut quote = packet(OUTSIDE[0], SERVER[0], 100);
        quote[8] -= 1;
        let refused = IcmpError::parse(&error(ROUTER[0], &quote)).map(drop);
        assert_eq!(refused, Err(ParseError::BadChecksum { field: "quoted IPv4 header" }));
        // A redirect (type 5).
        let mut redirect = octets.clone();
        redirect[20] = 5;
        adjust(&mut redirect[22..], &[3, 4], &[5, 4]);
        assert_eq!(IcmpError::parse(&redirect).map(drop), Err(ParseError::NotOurs));
        assert_eq!(IcmpError::parse(&packet(OUTSIDE[0], SERVER[0], 9)), Err(ParseError::NotTcp { protocol: 6 }));
        assert_eq!(IcmpError::parse(&octets).unwrap().told_to(end(INSIDE[1])), None);
    }

    #[test]
    fn padding_stays_behind() {
        let mut octets = error(ROUTER[0], &packet(OUTSIDE[0], SERVER[0], 0));
        let len = octets.len();
        octets.extend([0; 6]);
        let translated = IcmpError::parse(&octets).unwrap().told_to(end(INSIDE[0])).unwrap();
        assert_eq!(translated.len(), len);
        assert!(Segment::parse(&Bytes::from(translated[28..].to_vec())).is_ok(), "the quote is a whole, intact packet");
    }

    proptest::proptest! {
        /// Any octets, cut or damaged anywhere, are translated or refused.
        #[test]
        fn hostile_octets_are_survived(cut in 0..600_usize, at in 0..600_usize, with in 0..=255_u8) {
            for family in [0, 1] {
                let mut octets = error(ROUTER[family], &packet(OUTSIDE[family], SERVER[family], 1400));
                octets.truncate(cut);
                if let Some(octet) = octets.get_mut(at) {
                    *octet = with;
                }
                if let Ok(error) = IcmpError::parse(&octets) {
                    let _ = (error.told_to(end(INSIDE[family])), error.told_of(end(OUTSIDE[family])));
                }
            }
        }
    }
}
