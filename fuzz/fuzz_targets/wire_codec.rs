//! Feeds arbitrary octets to the codec: nothing panics, and a parsed value reads the same again after writing.
//!
//! Input: any octets. They are tried unchanged, as a packet whose IPv4 header checksum is corrected (otherwise hardly
//! any input would pass it), as TCP options alone, and as an experimental option alone.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use units::Dsn;
use wire::checksum::{Sum, dss_checksum, dss_checksum_is_valid};
use wire::mptcp::{DataSeq, Experimental, MptcpOption, RateReport};
use wire::{Options, Segment, TcpChecksum, TooBig};

/// Maximum number of octets in an experimental option.
const EXPERIMENT_BYTES_MAX: usize = 37;

fuzz_target!(|input: &[u8]| {
    let raw = Bytes::copy_from_slice(input);
    if let Ok(segment) = Segment::parse(&raw) {
        assert_eq!(Segment::parse_with(&raw, TcpChecksum::Trusted).as_ref(), Ok(&segment));
    }
    if let Ok(segment) = Segment::parse_with(&with_ipv4_checksum(input).into(), TcpChecksum::Trusted) {
        assert_survives(segment);
    }
    for octets in [input, &with_ipv4_checksum(input)] {
        let _ = TooBig::parse(octets);
    }
    assert_options_survive(&input[..input.len().min(Options::MAX_BYTES)]);
    if let Some((&flags, data)) = input.split_first() {
        let len = data.len().min(EXPERIMENT_BYTES_MAX);
        assert_experiment_survives(&Experimental { flags, data: data[..len].iter().copied().collect() });
    }
});

fn assert_survives(mut segment: Segment) {
    tidy(&mut segment.options);
    assert_checksums_hold(&segment);
    // Padded options make headers grow: a packet at the limit may be too large to send again.
    if segment.emitted_len() > Segment::PACKET_BYTES_MAX {
        return;
    }
    let mut packet = Vec::new();
    segment.emit(&mut packet);
    assert_eq!(packet.len(), segment.emitted_len());
    assert_eq!(Segment::parse(&packet.into()).as_ref(), Ok(&segment));
    let mut packet = Vec::new();
    segment.emit_for_offload(&mut packet);
    let mut headers = Vec::new();
    segment.emit_headers_for_offload(&mut headers);
    segment.payload.append_to(&mut headers);
    assert_eq!(headers, packet);
    assert_eq!(Segment::parse_with(&packet.into(), TcpChecksum::Trusted).as_ref(), Ok(&segment));
}

/// A mapping with a corrected checksum is valid, whatever it maps and however the data are cut.
fn assert_checksums_hold(segment: &Segment) {
    let (data, middle) = (&segment.payload, segment.payload.len() / 2);
    let pieces = [data.slice(0..middle), data.slice(middle..data.len())];
    for option in &segment.options.mptcp {
        let MptcpOption::Dss(dss) = option else { continue };
        let Some(mapping) = dss.mapping else { continue };
        let dsn = match mapping.dsn {
            DataSeq::Short(low) => Dsn(low.into()),
            DataSeq::Long(whole) => Dsn(whole),
        };
        let checksum = dss_checksum(dsn, mapping.ssn, mapping.len, [data]);
        assert!(dss_checksum_is_valid(checksum, dsn, mapping.ssn, mapping.len, &pieces));
    }
}

fn assert_options_survive(octets: &[u8]) {
    let mut options = Options::parse(octets);
    tidy(&mut options);
    for option in &options.mptcp {
        if let MptcpOption::Experimental(option) = option {
            assert_experiment_survives(option);
        }
    }
    let mut out = Vec::new();
    options.emit(&mut out);
    assert_eq!(out.len() == options.encoded_len(), options.fits());
    assert!(out.len() <= Options::MAX_BYTES);
    assert_eq!(Options::parse(&out), options);
}

/// An experimental option that MPTCP-rec can read is written the same again.
fn assert_experiment_survives(option: &Experimental) {
    if let Some(report) = RateReport::read(option) {
        assert_eq!(report.option(), *option);
        let option_len = MptcpOption::Experimental(option.clone()).encoded_len();
        assert_eq!(option_len, RateReport::len_with(report.held.len()));
    }
    if option.is_receiver_centric_offer() {
        assert_eq!(*option, Experimental::receiver_centric_offer());
    }
}

/// Keeps what survives a round trip: all but the counts of malformed options.
fn tidy(options: &mut Options) {
    (options.malformed_mptcp, options.malformed_tcp) = (0, 0);
}

/// Returns the input with the header checksum of an IPv4 packet corrected.
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
