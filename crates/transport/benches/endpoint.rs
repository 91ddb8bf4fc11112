//! What the engine costs a packet, both ends included, on a network that costs nothing.
//!
//! `cargo bench -p transport`: packets per second of a bulk transfer over two paths, and whether many connections in
//! one endpoint make each packet dearer.

#[path = "../tests/steady/mod.rs"]
mod steady;

use divan::Bencher;
use divan::counter::ItemsCount;
use steady::Steady;
use transport::ConnectionConfig;

const PACKETS: u64 = 100_000;
/// A burst of about ten segments.
const BURST_BYTES: u64 = 14_000;
/// Data segments measured for the ratio.
const RATIO_PACKETS: u64 = 400_000;

fn main() {
    divan::main();
    let filtered = std::env::args().skip(1).any(|argument| !argument.starts_with('-'));
    if !filtered {
        print_ratio();
    }
}

/// One connection, two paths, a window's worth in flight: an item is a data packet with its share of ACKs.
#[divan::bench(args = ["lowest-rtt", "round-robin", "redundant"])]
fn bulk(bencher: Bencher, scheduler: &str) {
    let config = ConnectionConfig { scheduler: scheduler.into(), ..ConnectionConfig::default() };
    let mut world = Steady::bulk(&config);
    world.run(PACKETS);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| world.run(PACKETS));
}

/// Nanoseconds per data packet when `count` connections send bursts in turn.
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
