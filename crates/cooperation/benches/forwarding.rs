//! The cost of forwarding a packet: ranges, hold queue, frames.
//!
//! `cargo bench -p cooperation --bench forwarding`

use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::{DestinationEnd, Identity, RelayEnd};
use cooperation::forwarding::hold_queue::{HoldLimits, HoldQueue};
use cooperation::forwarding::range::{CumAck, DsnRange};
use cooperation::forwarding::range_keeper::{RangeKeeper, RangeSettings};
use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use units::{Dsn, Duration, Instant, Prng};
use wire::mptcp::Token;
use wire::{Pattern, Payload};

/// Shows that forwarding allocates nothing per packet.
#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const PACKET_BYTES: u64 = 1400;
/// A range of the papers: 2 s of 3 Mbit/s.
const RANGE_PACKETS: u64 = 536;
const RANGE_BYTES: u64 = RANGE_PACKETS * PACKET_BYTES;

fn packet(number: u64) -> Payload {
    Payload::Pattern(Pattern { stream: 0, offset: number * PACKET_BYTES, len: PACKET_BYTES as u32 })
}

/// Packets of a range arrive in the given order while the previous range is wanted; then their own range follows.
fn hold_a_range(bencher: Bencher, order: &[u64]) {
    let mut queue = HoldQueue::new(HoldLimits::of(RANGE_BYTES, Duration::from_secs(2)));
    let mut first = Dsn(0);
    let mut seq = 1;
    queue.on_range(DsnRange { seq, min: first, max: first + (RANGE_BYTES - 1) });
    bencher.counter(ItemsCount::new(order.len())).bench_local(move || {
        first += RANGE_BYTES;
        seq += 1;
        for &number in order {
            let dsn = first + number * PACKET_BYTES;
            queue.on_packet(Instant::ZERO, dsn, PACKET_BYTES as u32, packet(number));
        }
        queue.on_range(DsnRange { seq, min: first, max: first + (RANGE_BYTES - 1) });
        while let Some(forward) = queue.poll_forward() {
            black_box(forward);
        }
    });
}

#[divan::bench]
fn hold_in_order(bencher: Bencher) {
    hold_a_range(bencher, &(0..RANGE_PACKETS).collect::<Vec<_>>());
}

/// The worst possible order, which no subflow has.
#[divan::bench]
fn hold_in_any_order(bencher: Bencher) {
    let mut order: Vec<u64> = (0..RANGE_PACKETS).collect();
    let mut prng = Prng::new(1);
    for at in (1..order.len()).rev() {
        order.swap(at, prng.below(at as u64 + 1) as usize);
    }
    hold_a_range(bencher, &order);
}

#[divan::bench]
fn forward_at_once(bencher: Bencher) {
    let mut queue = HoldQueue::new(HoldLimits::of(RANGE_BYTES, Duration::from_secs(2)));
    queue.on_range(DsnRange { seq: 1, min: Dsn(0), max: Dsn(RANGE_BYTES - 1) });
    bencher.counter(ItemsCount::new(1_usize)).bench_local(move || {
        queue.on_packet(Instant::ZERO, black_box(Dsn(0)), PACKET_BYTES as u32, packet(0));
        queue.poll_forward()
    });
}

#[divan::bench]
fn keep_the_range(bencher: Bencher) {
    let mut keeper = RangeKeeper::new(RangeSettings::new(RANGE_BYTES), Dsn(0));
    let mut next = Dsn(0);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(move || {
        let dsn = next;
        next += PACKET_BYTES;
        keeper.on_packet(Instant::ZERO, black_box(dsn), PACKET_BYTES, next, 0);
        keeper.poll_announcement()
    });
}

/// Returns both ends after their handshake.
fn open_channel(seed: u8) -> (DestinationEnd, RelayEnd) {
    let (of_destination, of_relay) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
    let mut destination = DestinationEnd::initiator(&of_destination, of_relay.public(), [seed; 32]);
    let mut relay = RelayEnd::responder(&of_relay, [seed ^ 1; 32]);
    relay.receive(&mut destination.take_octets()).expect("the first message");
    destination.receive(&mut relay.take_octets()).expect("the answer");
    relay.receive(&mut destination.take_octets()).expect("the confirmation");
    (destination, relay)
}

/// The cost of opening a channel, for both ends together.
#[divan::bench]
fn handshake() -> (DestinationEnd, RelayEnd) {
    open_channel(black_box(1))
}

/// Sends an acknowledgement through the channel, from one end to the other.
#[divan::bench]
fn frame_to_a_relay(bencher: Bencher) {
    let (mut destination, mut relay) = open_channel(1);
    let ack = CumAck { rcv_nxt: Dsn(7), window_bytes: 1 << 20, widened_bytes: 0 };
    bencher.counter(ItemsCount::new(1_usize)).bench_local(move || {
        destination.send(&ToRelay::CumAck { connection: Token(7), ack: black_box(ack) });
        relay.receive(&mut destination.take_octets()).expect("a frame")
    });
}
