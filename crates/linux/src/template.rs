//! The headers of a run's last packet, with which the next one is compared octet by octet instead of being parsed.
//!
//! In a run, all headers are the same except for the sequence number, the push flag, the checksums, and the
//! identification of IPv4. A packet that differs elsewhere, or is not certain to be valid, is left to the full parser.

use std::ops::Range;

use wire::{Flags, TcpChecksum};

/// Octets of an IPv4 header without options; packets with options have no template.
const IP_BYTES: usize = 20;
/// Maximum octets of IPv4 and TCP headers.
const BYTES_MAX: usize = IP_BYTES + 60;

/// Headers of an IPv4 packet with TCP.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    octets: [u8; BYTES_MAX],
    /// Octets of the headers, and of the packet; empty headers match no packet.
    len: usize,
    packet_len: usize,
}

impl Template {
    /// Creates the template of `packet`, which has valid headers of IP and TCP before its payload.
    pub(crate) fn of(packet: &[u8], payload: &Range<usize>) -> Self {
        let mut octets = [0; BYTES_MAX];
        let is_plain = packet.first() == Some(&0x45) && payload.start <= BYTES_MAX && payload.end == packet.len();
        let len = if is_plain { payload.start } else { 0 };
        octets[..len].copy_from_slice(&packet[..len]);
        Self { octets, len, packet_len: packet.len() }
    }

    /// Returns the flags of `packet` if it is as long as the template's packet, has sequence number `seq`, and differs
    /// in no other field except those that vary within a run. Returns `None` for a packet whose TCP checksum must be
    /// verified.
    #[inline]
    pub(crate) fn repeats(&self, packet: &[u8], checksum: TcpChecksum, seq: u32) -> Option<Flags> {
        if self.len == 0 || packet.len() != self.packet_len || checksum == TcpChecksum::Verify {
            return None;
        }
        let (own, other) = (self.octets.get(..self.len)?, packet.get(..self.len)?);
        let flags = Flags(other[33]);
        let is_same = |range: Range<usize>| own[range.clone()] == other[range];
        let is_repeated = is_same(0..4) // Version, service, length.
            && is_same(6..10) // Fragment, time to live, protocol.
            && is_same(12..24) // Addresses, ports.
            && other[24..28] == seq.to_be_bytes()
            && is_same(28..33) // Acknowledgement, length of the header.
            && flags.without(Flags::PSH) == Flags::ACK
            && is_same(34..36) // Window.
            && is_same(38..self.len) // Urgent pointer, options.
            && identified(own) == identified(other);
        is_repeated.then_some(flags)
    }
}

/// Returns the sum of identification and header checksum, their contribution to the header's sum (RFC 1624). If it and
/// all other fields are the same in two headers, the checksums are either both right or both wrong.
fn identified(header: &[u8]) -> u16 {
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (sum, carry) = word(4).overflowing_add(word(10));
    sum + u16::from(carry)
}

#[cfg(test)]
mod tests {
    use units::SeqNr;
    use wire::{Segment, Timestamps};

    use super::*;

    const LEN: usize = 20 + 20 + 12;

    fn packet(seq: u32) -> Vec<u8> {
        let mut segment = Segment::new("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        (segment.seq, segment.ack, segment.flags, segment.window) = (SeqNr(seq), SeqNr(7), Flags::ACK, 9);
        segment.options.timestamps = Some(Timestamps { value: 3, echo: 4 });
        segment.payload = vec![1; 100].into();
        let mut octets = Vec::new();
        segment.emit(&mut octets);
        octets
    }

    fn flags(packet: &[u8]) -> Option<Flags> {
        Template::of(&self::packet(1), &(LEN..LEN + 100)).repeats(packet, TcpChecksum::Trusted, 101)
    }

    /// Corrects the checksum of the IPv4 header.
    fn identify(packet: &mut [u8], identification: u16) {
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet[10..12].fill(0);
        let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&folded.to_be_bytes());
    }

    #[test]
    fn the_next_packet_repeats_the_headers() {
        assert_eq!(flags(&packet(101)), Some(Flags::ACK));
        let mut pushed = packet(101);
        pushed[33] |= Flags::PSH.0;
        assert_eq!(flags(&pushed), Some(Flags::ACK | Flags::PSH));
        for identification in [1, 0x7fff, 0x8000, 0xfffe] {
            let mut other = packet(101);
            identify(&mut other, identification);
            assert!(Segment::parse_headers(&other, TcpChecksum::Trusted).is_ok());
            assert_eq!(flags(&other), Some(Flags::ACK), "identification {identification}");
        }
    }

    /// Flips each bit of the headers outside the fields that may differ.
    #[test]
    fn any_other_difference_is_seen() {
        let free = [36, 37];
        for at in (0..LEN).filter(|at| !free.contains(at)) {
            for bit in 0..8 {
                let mut other = packet(101);
                other[at] ^= 1 << bit;
                let is_push = at == 33 && 1 << bit == Flags::PSH.0;
                assert_eq!(flags(&other).is_some(), is_push, "octet {at}, bit {bit}");
            }
        }
        let mut longer = packet(101);
        longer.push(0);
        assert_eq!(flags(&longer), None);
        let verify = Template::of(&packet(1), &(LEN..LEN + 100)).repeats(&packet(101), TcpChecksum::Verify, 101);
        assert_eq!(verify, None);
    }

    #[test]
    fn version_six_and_padding_have_no_template() {
        let mut segment = Segment::new("[fd00::1]:1".parse().unwrap(), "[fd00::2]:2".parse().unwrap());
        segment.payload = vec![1; 100].into();
        let mut octets = Vec::new();
        segment.emit(&mut octets);
        assert_eq!(Template::of(&octets, &(60..160)).repeats(&octets, TcpChecksum::Trusted, 0), None);
        let mut padded = packet(1);
        padded.push(0);
        assert_eq!(Template::of(&padded, &(LEN..LEN + 100)).repeats(&padded, TcpChecksum::Trusted, 1), None);
    }
}
