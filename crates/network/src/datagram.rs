//! A UDP datagram whose payload is only counted.

use core::net::{IpAddr, SocketAddr};

/// A UDP datagram (RFC 768) of which only the length of the payload matters: local traffic costs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it comes from.
    pub src: SocketAddr,
    /// Where it goes.
    pub dst: SocketAddr,
    /// Octets of payload; zeros on the wire.
    pub payload_len: u16,
}

impl Datagram {
    /// Octets on the wire: IP header, UDP header, payload.
    pub const fn wire_len(&self) -> u32 {
        let ip = if self.dst.is_ipv4() { 20 } else { 40 };
        ip + 8 + self.payload_len as u32
    }

    /// Appends the octets on the wire to `out`. The UDP checksum is not used in IPv4 and computed in IPv6 (RFC 8200
    /// section 8.1).
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
        out.resize(out.len() + usize::from(self.payload_len), 0);
    }

    fn checksum(&self, udp_len: u16) -> u16 {
        let words = [v6_octets(self.src.ip()), v6_octets(self.dst.ip())];
        let addresses = words.as_flattened().chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
        // The length counts twice: in the pseudo-header and in the header.
        let sum = addresses.chain([udp_len, udp_len, 17, self.src.port(), self.dst.port()]).map(u32::from).sum();
        match !fold(sum) {
            0 => u16::MAX,
            checksum => checksum,
        }
    }
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
    fn ipv4_as_worked_by_hand() {
        let datagram =
            Datagram { src: "10.0.0.1:7".parse().unwrap(), dst: "10.0.0.2:9".parse().unwrap(), payload_len: 2 };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        assert_eq!(octets.len() as u32, datagram.wire_len());
        // 4500 + 001e + 4000 + 4011 + 0a00 + 0001 + 0a00 + 0002 = d932; its complement is 26cd.
        assert_eq!(octets[..12], [0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcd]);
        assert_eq!(octets[20..], [0, 7, 0, 9, 0, 10, 0, 0, 0, 0]);
    }

    #[test]
    fn ipv6_as_worked_by_hand() {
        let datagram = Datagram { src: "[::1]:7".parse().unwrap(), dst: "[::2]:9".parse().unwrap(), payload_len: 2 };
        let mut octets = Vec::new();
        datagram.emit(&mut octets);
        assert_eq!(octets.len() as u32, datagram.wire_len());
        // 1 + 2 + 10 + 10 + 17 + 7 + 9 = 56 = 0038; its complement is ffc7.
        assert_eq!(octets[40..], [0, 7, 0, 9, 0, 10, 0xff, 0xc7, 0, 0]);
    }
}
