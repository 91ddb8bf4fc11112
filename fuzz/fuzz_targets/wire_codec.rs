//! Arbitrary octets through the codec: nothing panics, and what was read once reads the same again after writing.
//!
//! Input: any octets. They are tried as they are, as a packet whose IPv4 header checksum is made right (else hardly
//! any input would pass it), and as TCP options alone.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::checksum::Sum;
use wire::{Options, Segment, TcpChecksum};

fuzz_target!(|input: &[u8]| {
    let raw = Bytes::copy_from_slice(input);
    if let Ok(segment) = Segment::parse(&raw) {
        assert_eq!(Segment::parse_with(&raw, TcpChecksum::Trusted).as_ref(), Ok(&segment));
    }
    if let Ok(segment) = Segment::parse_with(&with_ipv4_checksum(input).into(), TcpChecksum::Trusted) {
        assert_survives(segment);
    }
    assert_options_survive(&input[..input.len().min(Options::MAX_BYTES)]);
});

fn assert_survives(mut segment: Segment) {
    tidy(&mut segment.options);
    // Headers grow when options get their padding: a packet at the limit may not be sendable again.
    if segment.emitted_len() > Segment::PACKET_BYTES_MAX {
        return;
    }
    let mut packet = Vec::new();
    segment.emit(&mut packet);
    assert_eq!(packet.len(), segment.emitted_len());
    assert_eq!(Segment::parse(&packet.into()).as_ref(), Ok(&segment));
    let mut packet = Vec::new();
    segment.emit_for_offload(&mut packet);
    assert_eq!(Segment::parse_with(&packet.into(), TcpChecksum::Trusted).as_ref(), Ok(&segment));
}

fn assert_options_survive(octets: &[u8]) {
    let mut options = Options::parse(octets);
    tidy(&mut options);
    let mut out = Vec::new();
    options.emit(&mut out);
    assert_eq!(out.len(), options.encoded_len());
    assert!(out.len() <= Options::MAX_BYTES);
    assert_eq!(Options::parse(&out), options);
}

/// Leaves what a round trip keeps: options that fit, without the counts of those that could not be read.
fn tidy(options: &mut Options) {
    options.fit();
    (options.malformed_mptcp, options.malformed_tcp) = (0, 0);
}

/// The input with the header checksum of an IPv4 packet made right.
fn with_ipv4_checksum(input: &[u8]) -> Vec<u8> {
    let mut packet = input.to_vec();
    let header_len = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    if header_len >= 20 && packet.len() >= header_len && packet[0] >> 4 == 4 {
        packet[10..12].fill(0);
        let checksum = Sum::of(&packet[..header_len]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    packet
}
