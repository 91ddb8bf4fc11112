//! The engine's cost per packet, both ends included, on a network without cost.
//!
//! `cargo bench -p transport`: packets per second of a bulk transfer over two paths, and whether many connections in
//! one endpoint increase the cost per packet.

#[path = "../tests/steady/mod.rs"]
mod steady;

use std::net::SocketAddr;

use divan::Bencher;
use divan::counter::ItemsCount;
use steady::Steady;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::Instant;
use wire::mptcp::{CapableFlags, MpCapable, MptcpOption};
use wire::{Flags, Segment, Timestamps};

const PACKETS: u64 = 100_000;
/// A burst of about ten segments.
const BURST_BYTES: u64 = 14_000;
/// Number of data segments measured for the ratio.
const RATIO_PACKETS: u64 = 400_000;

fn main() {
    divan::main();
    let filtered = std::env::args().skip(1).any(|argument| !argument.starts_with('-'));
    if !filtered {
        print_ratio();
    }
}

/// One connection, two paths, a window in flight. An item is a data packet with its share of ACKs.
#[divan::bench(args = ["lowest-rtt", "round-robin", "redundant"])]
fn bulk(bencher: Bencher, scheduler: &str) {
    let config = ConnectionConfig { scheduler: scheduler.into(), ..ConnectionConfig::default() };
    let mut world = Steady::bulk(&config);
    world.run(PACKETS);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| world.run(PACKETS));
}

/// Cost of an item of a SYN flood: a SYN to a listener with a full backlog, or an ACK without a cookie.
#[divan::bench(args = ["SYN", "ACK"])]
fn flood(bencher: Bencher, kind: &str) {
    let mut endpoint = Endpoint::with_seed(EndpointConfig { backlog: 1, ..EndpointConfig::default() }, 1);
    let local = SocketAddr::from(([10, 0, 0, 1], 80));
    endpoint.listen(local, ConnectionConfig::default()).expect("a listener");
    let flags = CapableFlags::HMAC_SHA256;
    let capable = MpCapable { version: 1, flags, sender_key: None, receiver_key: None, data: None };
    let mut segment = Segment::new(local, local);
    segment.flags = Flags::SYN;
    segment.options.mss = Some(1460);
    segment.options.window_scale = Some(7);
    segment.options.sack_permitted = true;
    segment.options.timestamps = Some(Timestamps { value: 1, echo: 0 });
    segment.options.mptcp.push(MptcpOption::Capable(capable));
    let mut port = 0_u32;
    let mut inject = |flags| {
        port = port.wrapping_add(1);
        let [a, b, c, d] = port.to_be_bytes();
        let src = SocketAddr::from(([198, 18, a, b], u16::from_be_bytes([c, d])));
        let segment = Segment { src, flags, ..segment.clone() };
        endpoint.handle_segment(segment, Instant::ZERO);
        while endpoint.poll_transmit(Instant::ZERO).is_some() {}
    };
    // The first takes the place; the second makes the listener expect cookies.
    (0..2).for_each(|_| inject(Flags::SYN));
    let flags = if kind == "SYN" { Flags::SYN } else { Flags::ACK };
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| inject(flags));
}

/// Measures nanoseconds per data packet when `count` connections send bursts in turn.
#[expect(clippy::disallowed_methods, reason = "a bench looks at the wall clock; the engine does not")]
fn nanos_per_packet(count: usize) -> f64 {
    let mut world = Steady::new(count, 1, &ConnectionConfig::default());
    world.round(BURST_BYTES);
    let (start, before) = (std::time::Instant::now(), world.packets);
    while world.packets - before < RATIO_PACKETS {
        world.round(BURST_BYTES);
    }
    start.elapsed().as_nanos() as f64 / (world.packets - before) as f64
}

fn print_ratio() {
    let (few, many) = (nanos_per_packet(10), nanos_per_packet(10_000));
    println!("10 connections: {few:.0} ns a packet; 10,000: {many:.0} ns; ratio {:.2}", many / few);
}
