//! A UDP datagram whose payload is counted but not stored.

use core::net::{IpAddr, SocketAddr};

/// Octets of the datagram's number in the payload.
const NUMBER_BYTES: u16 = 8;

/// A UDP datagram (RFC 768). It stores only a number and the length of the payload, so local traffic costs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// Octets of payload. On the wire, those after the number are zeros.
    pub payload_len: u16,
    /// Position in its flow, from 1 on, by which a receiver recognises copies that a link made; 0 if the datagram has
    /// no number. On the wire the payload begins with the number if it is long enough.
    pub number: u64,
}

impl Datagram {
    /// Reads an IP packet; `None` unless it is a whole UDP datagram without IP options or extension headers. The
    /// checksum and the payload after the number are not checked.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (src, dst, udp) = match packet.first()? >> 4 {
            4 => split_ipv4(packet)?,
            6 => split_ipv6(packet)?,
            _ => return None,
        };
        let field = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
        let (from, to, len) = (field(0)?, field(2)?, field(4)?);
        let payload_len = len.checked_sub(8).filter(|_| udp.len() == usize::from(len))?;
        let number = udp.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |octets| u64::from_be_bytes(*octets));
        Some(Self { src: SocketAddr::new(src, from), dst: SocketAddr::new(dst, to), payload_len, number })
    }

    /// Returns the octets on the wire: IP header, UDP header, payload.
    pub const fn wire_len(&self) -> u32 {
        let ip = if self.dst.is_ipv4() { 20 } else { 40 };
        ip + 8 + self.payload_len as u32
    }

    /// Appends the octets on the wire to `out`. The UDP checksum is zero in IPv4 and computed in IPv6 (RFC 8200 section
    /// 8.1).
    pub fn emit(&self, out: &mut Vec<u8>) {
        let udp_len = 8 + self.payload_len;
        match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => emit_ipv4(out, udp_len, src.octets(), dst.octets()),
            (src, dst) => emit_ipv6(out, udp_len, v6_octets(src), v6_octets(dst)),
        }
        let checksum = if self.dst.is_ipv4() { 0 } else { self.checksum(udp_len) };
        for field in [self.src.port(), self.dst.port(), udp_len, checksum] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        let end = out.len() + usize::from(self.payload_len);
        out.extend_from_slice(&self.number_on_the_wire().to_be_bytes());
        out.resize(end, 0);
    }

    /// The number as the payload carries it; 0 if the payload is too short.
    const fn number_on_the_wire(&self) -> u64 {
        if self.payload_len < NUMBER_BYTES { 0 } else { self.number }
    }

    fn checksum(&self, udp_len: u16) -> u16 {
        let words = [v6_octets(self.src.ip()), v6_octets(self.dst.ip())];
        let addresses = words.as_flattened().chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
        // The length counts twice: in the pseudo-header and in the UDP header.
        let number = self.number_on_the_wire();
        let payload = [48, 32, 16, 0].map(|shift| (number >> shift) as u16);
        let header = [udp_len, udp_len, 17, self.src.port(), self.dst.port()];
        let sum = addresses.chain(header).chain(payload).map(u32::from).sum();
        match !fold(sum) {
            0 => u16::MAX,
            checksum => checksum,
        }
    }
}

/// Splits an IPv4 packet into addresses and UDP payload; `None` for fragments and other protocols.
fn split_ipv4(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (header, _) = packet.split_first_chunk::<20>()?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    let address = |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let is_udp = header[0] == 0x45 && header[9] == 17 && is_whole;
    is_udp.then_some((address(12), address(16), packet.get(20..total)?))
}

/// Splits an IPv6 packet into addresses and UDP payload.
fn split_ipv6(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (header, payload) = packet.split_first_chunk::<40>()?;
    let total = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(&header[at..at + 16]).ok()?));
    if header[6] != 17 {
        return None;
    }
    Some((address(8)?, address(24)?, payload.get(..total)?))
}

fn emit_ipv4(out: &mut Vec<u8>, udp_len: u16, src: [u8; 4], dst: [u8; 4]) {
    let [high, low] = (20 + udp_len).to_be_bytes();
    let mut header = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[12..16].copy_from_slice(&src);
    header[16..].copy_from_slice(&dst);
    let sum = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    header[10..12].copy_from_slice(&(!fold(sum)).to_be_bytes());
    out.extend_from_slice(&header);
}

fn emit_ipv6(out: &mut Vec<u8>, udp_len: u16, src: [u8; 16], dst: [u8; 16]) {
    let [high, low] = udp_len.to_be_bytes();
    out.extend_from_slice(&[0x60, 0, 0, 0, high, low, 17, 64]);
    out.extend_from_slice(&src);
    out.extend_from_slice(&dst);
}

fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// One's complement addition (RFC 1071).
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (src, dst) in [("10.0.0.1:7", "10.0.0.2:9"), ("[fd00::1]:7", "[fd00::2]:9")] {
            let datagram =
                Datagram { src: src.parse().unwrap(), dst: dst.parse().unwrap(), payload_len: 100, number: 1 << 40 };
            let mut octets = Vec::new();
            datagram.emit(&mut octets);
            assert_eq!(Datagram::parse(&octets), Some(datagram));
            for len in 0..octets.len() {
                assert_eq!(Datagram::parse(&octets[..len]), None, "cut to {len}");
            }
            octets[if datagram.dst.is_ipv4() { 9 } else { 6 }] = 6;
            assert_eq!(Datagram::parse(&octets), None, "TCP");
        }
    }

    #[test]
    fn a_fragment_is_no_datagram() {
        let datagram = Datagram {
            src: "10.0.0.1:7".parse().unwrap(),
            dst: "10.0.0.2:9".parse().unwrap(),
            payload_len: 2,
            number: 2,
        };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        octets[6] |= 0x20;
        assert_eq!(Datagram::parse(&octets), None);
    }

    #[test]
    fn ipv4_as_worked_by_hand() {
        let datagram = Datagram {
            src: "10.0.0.1:7".parse().unwrap(),
            dst: "10.0.0.2:9".parse().unwrap(),
            payload_len: 2,
            number: 2,
        };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        assert_eq!(octets.len() as u32, datagram.wire_len());
        // 4500 + 001e + 4000 + 4011 + 0a00 + 0001 + 0a00 + 0002 = d932; its complement is 26cd.
        assert_eq!(octets[..12], [0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcd]);
        assert_eq!(octets[20..], [0, 7, 0, 9, 0, 10, 0, 0, 0, 0]);
        assert_eq!(Datagram::parse(&octets), Some(Datagram { number: 0, ..datagram }), "there is no room for it");
    }

    #[test]
    fn ipv6_as_worked_by_hand() {
        let datagram =
            Datagram { src: "[::1]:7".parse().unwrap(), dst: "[::2]:9".parse().unwrap(), payload_len: 2, number: 2 };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        assert_eq!(octets.len() as u32, datagram.wire_len());
        // 1 + 2 + 10 + 10 + 17 + 7 + 9 = 56 = 0038; its complement is ffc7.
        assert_eq!(octets[40..], [0, 7, 0, 9, 0, 10, 0xff, 0xc7, 0, 0]);
        // The length counts twice and the number once: 56 + 6 + 6 + 2 = 70 = 0046; its complement is ffb9.
        octets.clear();
        Datagram { payload_len: 8, ..datagram }.emit(&mut octets);
        assert_eq!(octets[40..], [0, 7, 0, 9, 0, 16, 0xff, 0xb9, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
