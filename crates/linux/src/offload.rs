//! The header before each packet on a TUN device with offload: `struct virtio_net_hdr` (virtio 1.2 section 5.1.6).

use wire::{ChecksumOffload, Flags, Segment, TcpChecksum};

/// What the kernel, or this process, has left undone in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Offload {
    /// The TCP checksum holds only the pseudo-header's sum (`VIRTIO_NET_HDR_F_NEEDS_CSUM`): it starts at this octet.
    pub checksum_start: Option<u16>,
    /// The packet is a super-segment, to be cut into TCP segments with this many octets of data.
    pub segment_bytes: Option<u16>,
    /// The receiver need not check the checksum again (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub checksum_valid: bool,
}

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// The first segment alone carries CWR (RFC 3168 section 6.1.2).
const GSO_ECN: u8 = 0x80;

impl Offload {
    /// Octets of this header.
    pub const LEN: usize = 10;

    /// Reads the header.
    pub fn decode(octets: &[u8; Self::LEN]) -> Self {
        let field = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
        let [flags, gso_type] = [octets[0], octets[1]];
        Self {
            checksum_start: (flags & NEEDS_CSUM != 0).then(|| field(6)),
            segment_bytes: (gso_type != GSO_NONE).then(|| field(4)),
            checksum_valid: flags & (DATA_VALID | NEEDS_CSUM) != 0,
        }
    }

    /// Returns what is left to do about the packet's TCP checksum.
    pub fn tcp_checksum(self) -> TcpChecksum {
        if self.checksum_valid { TcpChecksum::Trusted } else { TcpChecksum::Verify }
    }

    /// Encodes the header for `segment`. The kernel completes the segment's checksum and, if it carries more data than
    /// `mss` octets, cuts it into pieces of `mss`.
    pub fn encode(segment: &Segment, headers: ChecksumOffload, mss: u16) -> [u8; Self::LEN] {
        let mut octets = [0; Self::LEN];
        octets[0] = NEEDS_CSUM;
        if segment.payload.len() > usize::from(mss) {
            let gso_type = if segment.dst.is_ipv4() { GSO_TCPV4 } else { GSO_TCPV6 };
            octets[1] = gso_type | if segment.flags.contains(Flags::CWR) { GSO_ECN } else { 0 };
            octets[4..6].copy_from_slice(&mss.to_ne_bytes());
        }
        octets[2..4].copy_from_slice(&headers.header_len.to_ne_bytes());
        octets[6..8].copy_from_slice(&headers.start.to_ne_bytes());
        octets[8..10].copy_from_slice(&headers.offset.to_ne_bytes());
        octets
    }
}

#[cfg(test)]
mod tests {
    use wire::Payload;

    use super::*;

    const HEADERS: ChecksumOffload = ChecksumOffload { start: 20, offset: 16, header_len: 40 };

    fn segment(len: usize) -> Segment {
        let mut segment = Segment::new("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        segment.payload = Payload::from(vec![0; len]);
        segment
    }

    #[test]
    fn a_super_segment_is_cut_and_a_small_one_is_not() {
        let large = Offload::encode(&segment(3000), HEADERS, 1460);
        assert_eq!(large[..2], [NEEDS_CSUM, GSO_TCPV4]);
        assert_eq!(Offload::decode(&large).segment_bytes, Some(1460));
        assert_eq!(Offload::decode(&large).checksum_start, Some(20));
        let small = Offload::encode(&segment(1460), HEADERS, 1460);
        assert_eq!(Offload::decode(&small).segment_bytes, None);
    }

    #[test]
    fn a_plain_header_says_nothing() {
        assert_eq!(Offload::decode(&[0; Offload::LEN]), Offload::default());
    }
}
