//! Speed of reading and writing packets, and of summing checksums.
//!
//! `cargo bench -p wire`

use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use wire::checksum::Sum;
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Flags, Options, Pattern, Payload, Segment, TcpChecksum, Timestamps};

fn main() {
    divan::main();
}

/// Payload octets of an empty ACK, a packet of MTU 1500, and a super-segment.
const PAYLOADS: [usize; 3] = [0, 1400, 64_000];

/// A segment of a bulk transfer: timestamps and a DSS with DATA_ACK and mapping.
fn data_segment(payload: Payload) -> Segment {
    let mut segment = Segment::new("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    segment.flags = Flags::ACK;
    let mapping = Mapping { dsn: DataSeq::Long(1 << 40), ssn: 1, len: payload.len() as u16, checksum: None };
    let dss = Dss { data_ack: Some(DataSeq::Long(1 << 41)), mapping: Some(mapping), data_fin: false };
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
    segment.options.mptcp.push(MptcpOption::Dss(dss));
    segment.payload = payload;
    segment
}

fn octets(len: usize) -> Payload {
    Payload::from(vec![0xa5; len])
}

#[divan::bench(args = PAYLOADS)]
fn parse(bencher: Bencher, payload: usize) {
    let mut packet = Vec::new();
    data_segment(octets(payload)).emit(&mut packet);
    let packet = Bytes::from(packet);
    let bencher = bencher.counter(BytesCount::new(packet.len())).counter(ItemsCount::new(1_usize));
    bencher.bench_local(|| Segment::parse(black_box(&packet)));
}

#[divan::bench]
fn parse_trusted(bencher: Bencher) {
    let mut packet = Vec::new();
    data_segment(octets(64_000)).emit(&mut packet);
    let packet = Bytes::from(packet);
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| Segment::parse_with(black_box(&packet), TcpChecksum::Trusted));
}

#[divan::bench(args = PAYLOADS)]
fn emit(bencher: Bencher, payload: usize) {
    let segment = data_segment(octets(payload));
    let mut out = Vec::with_capacity(Segment::PACKET_BYTES_MAX);
    let bencher = bencher.counter(BytesCount::new(segment.emitted_len())).counter(ItemsCount::new(1_usize));
    bencher.bench_local(|| {
        out.clear();
        black_box(&segment).emit(&mut out);
        out.len()
    });
}

#[divan::bench(args = PAYLOADS)]
fn emit_for_offload(bencher: Bencher, payload: usize) {
    let segment = data_segment(octets(payload));
    let mut out = Vec::with_capacity(Segment::PACKET_BYTES_MAX);
    let bencher = bencher.counter(BytesCount::new(segment.emitted_len())).counter(ItemsCount::new(1_usize));
    bencher.bench_local(|| {
        out.clear();
        black_box(&segment).emit_for_offload(&mut out)
    });
}

#[divan::bench]
fn emitted_len(bencher: Bencher) {
    let segment = data_segment(octets(1400));
    bencher.bench_local(|| black_box(&segment).emitted_len());
}

#[divan::bench]
fn parse_options(bencher: Bencher) {
    let mut out = Vec::new();
    data_segment(Payload::Empty).options.emit(&mut out);
    bencher.bench_local(|| Options::parse(black_box(&out)));
}

#[divan::bench(args = [20, 1460, 65_535])]
fn checksum(bencher: Bencher, len: usize) {
    let octets = vec![0xa5_u8; len];
    bencher.counter(BytesCount::new(len)).bench_local(|| Sum::of(black_box(&octets)).checksum());
}

#[divan::bench]
fn checksum_of_a_pattern(bencher: Bencher) {
    let pattern = Payload::Pattern(Pattern { stream: 1, offset: 0, len: 65_535 });
    bencher.counter(BytesCount::new(65_535_usize)).bench_local(|| {
        let mut sum = Sum::new();
        sum.add_payload(black_box(&pattern));
        sum.checksum()
    });
}
