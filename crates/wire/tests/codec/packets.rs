//! Whole packets, their octets and checksums worked out by hand.

use bytes::Bytes;
use units::SeqNr;
use wire::mptcp::{CapableFlags, DataSeq, Dss, Mapping, MpCapable, MptcpOption};
use wire::{Ecn, Flags, Options, ParseError, Pattern, Payload, Segment, TcpChecksum, Timestamps};

use crate::octets;

const V4_SYN: &str = "
    45000040 00004000 400626b6 0a000001 0a000002
    9c400050 01020304 00000000 b002ffff 645d0000
    020405b4 0402080a 00000001 00000000 01030307 1e040101";
/// Sum over the pseudo-header of `V4_SYN`: 0a00 + 0001 + 0a00 + 0002 + 0006 + 002c.
const V4_SYN_PSEUDO_HEADER: u16 = 0x1435;

const V6_DATA: &str = "
    60200000 00390640 20010db8000000000000000000000001 20010db8000000000000000000000002
    01bbc350 fffffffe 0a0b0c0d d0180200 0efb0000
    0101080a 00000002 00000001 1e142005 89abcdef 01234567 00000001 0005beef
    68656c6c6f";

fn v4_syn() -> Segment {
    let mut segment = Segment::new("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    segment.seq = SeqNr(0x0102_0304);
    segment.flags = Flags::SYN;
    segment.window = 0xffff;
    let flags = CapableFlags::HMAC_SHA256;
    let capable = MpCapable { version: 1, flags, sender_key: None, receiver_key: None, data: None };
    segment.options = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        mptcp: [MptcpOption::Capable(capable)].into(),
        ..Options::default()
    };
    segment
}

fn v6_data() -> Segment {
    let mut segment = Segment::new("[2001:db8::1]:443".parse().unwrap(), "[2001:db8::2]:50000".parse().unwrap());
    segment.seq = SeqNr(0xffff_fffe);
    segment.ack = SeqNr(0x0a0b_0c0d);
    segment.flags = Flags::ACK | Flags::PSH;
    segment.ecn = Ecn::Capable0;
    segment.window = 0x0200;
    segment.payload = Payload::from(b"hello".to_vec());
    let mapping = Mapping { dsn: DataSeq::Short(0x0123_4567), ssn: 1, len: 5, checksum: Some(0xbeef) };
    let dss = Dss { data_ack: Some(DataSeq::Short(0x89ab_cdef)), mapping: Some(mapping), data_fin: false };
    segment.options.timestamps = Some(Timestamps { value: 2, echo: 1 });
    segment.options.mptcp.push(MptcpOption::Dss(dss));
    segment
}

fn emitted(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    segment.emit(&mut out);
    assert_eq!(out.len(), segment.emitted_len());
    out
}

#[test]
fn hand_made_packets() {
    for (hex, segment) in [(V4_SYN, v4_syn()), (V6_DATA, v6_data())] {
        assert_eq!(emitted(&segment), octets(hex));
        assert_eq!(Segment::parse(&octets(hex).into()), Ok(segment));
    }
}

#[test]
fn the_payload_shares_the_packet() {
    let packet = Bytes::from(octets(V6_DATA));
    let Payload::Bytes(payload) = Segment::parse(&packet).unwrap().payload else { panic!("no payload") };
    assert_eq!(payload.as_ptr(), packet[packet.len() - 5..].as_ptr());
}

#[test]
fn emission_appends() {
    let mut out = vec![1, 2, 3];
    v4_syn().emit(&mut out);
    assert_eq!(out[..3], [1, 2, 3]);
    assert_eq!(out[3..], octets(V4_SYN));
}

#[test]
fn link_padding_is_trimmed() {
    let padded = [octets(V4_SYN), vec![0xee; 7]].concat();
    assert_eq!(Segment::parse(&padded.into()), Ok(v4_syn()));
}

#[test]
fn a_flipped_bit_in_any_octet_is_noticed() {
    for hex in [V4_SYN, V6_DATA] {
        let packet = octets(hex);
        let is_v6 = packet[0] >> 4 == 6;
        for at in 0..packet.len() {
            // No checksum covers the traffic class, flow label and hop limit of IPv6.
            if is_v6 && (at < 4 || at == 7) {
                continue;
            }
            let mut damaged = packet.clone();
            damaged[at] ^= 0x10;
            assert!(Segment::parse(&damaged.into()).is_err(), "octet {at} of {hex}");
        }
    }
}

#[test]
fn a_wrong_tcp_checksum_may_be_trusted() {
    let mut packet = octets(V4_SYN);
    packet[36] ^= 1;
    let packet = Bytes::from(packet);
    assert_eq!(Segment::parse(&packet), Err(ParseError::BadChecksum { field: "TCP" }));
    assert_eq!(Segment::parse_with(&packet, TcpChecksum::Trusted), Ok(v4_syn()));
}

#[test]
fn offload_leaves_the_pseudo_header_sum() {
    let mut out = vec![0; 10];
    let offload = v4_syn().emit_for_offload(&mut out);
    let mut expected = octets(V4_SYN);
    expected[36..38].copy_from_slice(&V4_SYN_PSEUDO_HEADER.to_be_bytes());
    assert_eq!(out[10..], expected);
    assert_eq!((offload.start, offload.offset, offload.header_len), (20, 16, 64));
    let offload = v6_data().emit_for_offload(&mut out);
    assert_eq!((offload.start, offload.offset, offload.header_len), (40, 16, 92));
}

#[test]
fn tcp_header_verdicts() {
    let trusted = |edit: fn(&mut Vec<u8>)| {
        let mut packet = octets(V6_DATA);
        edit(&mut packet);
        Segment::parse_with(&packet.into(), TcpChecksum::Trusted)
    };
    let field = "TCP data offset";
    assert_eq!(trusted(|p| p[52] = 0x40), Err(ParseError::BadLength { field, value: 16, min: 20 }));
    assert!(trusted(|p| p[52] = 0xe0).is_ok(), "56 of 57 octets");
    assert_eq!(trusted(|p| p[52] = 0xf0), Err(ParseError::Truncated { field: "TCP options", need: 100, have: 97 }));
    assert_eq!(trusted(|p| p[5] = 19), Err(ParseError::Truncated { field: "TCP header", need: 60, have: 59 }));
}

#[test]
fn reserved_bits_of_the_tcp_header_are_ignored() {
    let mut packet = octets(V4_SYN);
    packet[32] |= 0x0f;
    assert_eq!(Segment::parse_with(&packet.into(), TcpChecksum::Trusted), Ok(v4_syn()));
}

#[test]
fn a_pattern_is_sent_as_its_octets() {
    let mut segment = v6_data();
    segment.payload = Payload::Pattern(Pattern { stream: 1, offset: 3, len: 1001 });
    let read = Segment::parse(&emitted(&segment).into()).unwrap();
    assert_eq!(read.payload, Payload::Bytes(segment.payload.to_bytes()));
}

#[test]
fn super_segments_up_to_the_limit_of_ip() {
    for mut segment in [v4_syn(), v6_data()] {
        let headers = segment.emitted_len() - segment.payload.len();
        segment.payload = Payload::from(vec![0xa5; Segment::PACKET_BYTES_MAX - headers]);
        assert_eq!(Segment::parse(&emitted(&segment).into()), Ok(segment));
    }
}

/// A sender may leave out the padding: timestamps, three SACK blocks and MP_PRIO are 39 octets, and 44 with padding.
#[test]
fn options_that_were_read_fit_again() {
    let blocks = "05 1a 00000001 00000002 00000003 00000004 00000005 00000006";
    let options = octets(&format!("08 0a 00000007 00000008 {blocks} 1e 03 50 01"));
    let mut segment = v6_data();
    segment.options = wire::Options::parse(&options);
    assert_eq!((segment.options.sack.len(), segment.options.encoded_len()), (3, 44));
    let packet = emitted(&segment);
    assert_eq!(packet.len(), segment.emitted_len());
    assert_eq!(packet[60..100], options);
    assert_eq!(Segment::parse(&packet.into()), Ok(segment));
}

#[test]
#[should_panic(expected = "octets of options")]
fn options_that_cannot_fit_are_the_callers_mistake() {
    let mut segment = v6_data();
    let extra = segment.options.mptcp[0].clone();
    segment.options.mptcp.push(extra);
    emitted(&segment);
}

/// Simulations move millions of segments per second.
#[test]
fn a_segment_stays_small() {
    let size_bytes = size_of::<Segment>();
    println!("a segment has {size_bytes} octets");
    assert!(size_bytes <= 256, "{size_bytes} octets");
}
