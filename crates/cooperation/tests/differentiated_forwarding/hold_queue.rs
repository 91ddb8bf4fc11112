//! The relay's side. Packets have 100 octets; their first DSN names them.

use cooperation::forwarding::hold_queue::{HoldLimits, HoldQueue};
use cooperation::forwarding::range::DsnRange;
use units::{Dsn, Duration, Instant};

const LEN: u32 = 100;

fn queue(size_bytes: u64) -> HoldQueue<u64> {
    HoldQueue::new(HoldLimits { size_bytes, stay: Duration::from_secs(4) })
}

fn range(seq: u64, min: u64, max: u64) -> DsnRange {
    DsnRange { seq, min: Dsn(min), max: Dsn(max) }
}

fn put(queue: &mut HoldQueue<u64>, at_ms: u64, dsns: &[u64]) {
    for &dsn in dsns {
        queue.on_packet(Instant::from_millis(at_ms), Dsn(dsn), LEN, dsn);
    }
}

fn forwarded(queue: &mut HoldQueue<u64>) -> Vec<u64> {
    std::iter::from_fn(|| queue.poll_forward()).collect()
}

#[test]
fn without_a_range_everything_is_forwarded() {
    let mut queue = queue(1000);
    put(&mut queue, 0, &[500, 0, 1_000_000]);
    assert_eq!(forwarded(&mut queue), [500, 0, 1_000_000]);
    assert_eq!(queue.poll_timeout(), None);
}

#[test]
fn both_ends_of_the_range_are_forwarded_and_the_next_octet_is_held() {
    let mut queue = queue(1000);
    queue.on_range(range(1, 1000, 1999));
    put(&mut queue, 0, &[1000, 1999, 2000]);
    assert_eq!(forwarded(&mut queue), [1000, 1999]);
    assert_eq!((queue.held_packets(), queue.held_bytes()), (1, 100));
}

#[test]
fn what_lies_below_the_range_is_urgent() {
    let mut queue = queue(1000);
    queue.on_range(range(2, 1000, 1999));
    put(&mut queue, 0, &[300]);
    assert_eq!(forwarded(&mut queue), [300]);
}

#[test]
fn a_later_range_releases_what_it_passed_too_in_order() {
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[1500, 2500, 1000, 3500]);
    assert_eq!(forwarded(&mut queue), []);
    // Range 2 was lost: 1000 and 1500 are below MIN of range 3 by now.
    queue.on_range(range(3, 2000, 2999));
    assert_eq!(forwarded(&mut queue), [1000, 1500, 2500]);
    assert_eq!((queue.held_packets(), queue.stats().held_packets), (1, 4));
}

#[test]
fn stale_ranges_change_nothing() {
    let mut queue = queue(1000);
    queue.on_range(range(7, 2000, 2999));
    put(&mut queue, 0, &[5000]);
    queue.on_range(range(6, 5000, 5999));
    queue.on_range(range(7, 5000, 5999));
    assert_eq!((forwarded(&mut queue), queue.range()), (vec![], Some(range(7, 2000, 2999))));
}

#[test]
fn an_overflow_forwards_the_lowest_until_the_rest_fits() {
    let mut queue = queue(300);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[3000, 1000, 2000]);
    assert_eq!(forwarded(&mut queue), []);
    put(&mut queue, 1, &[4000]);
    assert_eq!(forwarded(&mut queue), [1000]);
    // The packet itself may be the lowest; a large one displaces several.
    put(&mut queue, 2, &[1500]);
    assert_eq!(forwarded(&mut queue), [1500]);
    queue.on_packet(Instant::from_millis(3), Dsn(9000), 250, 9000);
    assert_eq!(forwarded(&mut queue), [2000, 3000, 4000]);
    assert_eq!((queue.held_bytes(), queue.stats().overflowed_packets), (250, 5));
    assert_eq!(queue.stats().peak_bytes, 300);
}

#[test]
fn a_packet_larger_than_the_queue_is_forwarded() {
    let mut queue = queue(99);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[1000]);
    assert_eq!((forwarded(&mut queue), queue.held_bytes()), (vec![1000], 0));
}

#[test]
fn a_queue_of_size_zero_holds_nothing() {
    let mut queue = queue(0);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[3000, 1000, 2000]);
    assert_eq!(forwarded(&mut queue), [3000, 1000, 2000]);
    assert_eq!((queue.poll_timeout(), queue.stats().peak_bytes), (None, 0));
}

#[test]
fn a_packet_waits_no_longer_than_its_stay() {
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 100, &[1000]);
    put(&mut queue, 500, &[2000]);
    assert_eq!(queue.poll_timeout(), Some(Instant::from_millis(4100)));
    queue.handle_timeout(Instant::from_millis(4099));
    assert_eq!(forwarded(&mut queue), []);
    queue.handle_timeout(Instant::from_millis(4100));
    assert_eq!(forwarded(&mut queue), [1000]);
    assert_eq!(queue.poll_timeout(), Some(Instant::from_millis(4500)));
    assert_eq!(queue.stats().expired_packets, 1);
}

#[test]
fn a_latecomer_leaves_with_what_follows_it() {
    // 3000 is the oldest. Everything before it in the stream leaves before it, and 1000, which arrived three seconds
    // later, does not delay 3000.
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[3000]);
    put(&mut queue, 3000, &[1000, 5000]);
    assert_eq!(queue.poll_timeout(), Some(Instant::from_millis(4000)));
    queue.handle_timeout(Instant::from_millis(4000));
    assert_eq!(forwarded(&mut queue), [1000, 3000]);
    assert_eq!(queue.poll_timeout(), Some(Instant::from_millis(7000)));
}

#[test]
fn a_shorter_stay_holds_for_what_waits() {
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[1000]);
    put(&mut queue, 1000, &[2000]);
    let limits = HoldLimits { size_bytes: 100, stay: Duration::from_secs(1) };
    queue.set_limits(Instant::from_millis(1000), limits);
    assert_eq!((forwarded(&mut queue), queue.poll_timeout()), (vec![1000], Some(Instant::from_millis(2000))));
}

#[test]
fn a_relay_that_leaves_keeps_nothing() {
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[3000, 1000]);
    queue.leave();
    assert_eq!(forwarded(&mut queue), [1000, 3000]);
    put(&mut queue, 1, &[4000]);
    assert_eq!((forwarded(&mut queue), queue.held_bytes()), (vec![4000], 0));
}

#[test]
fn dsns_wrap() {
    let mut queue = queue(1000);
    queue.on_range(range(1, u64::MAX - 999, u64::MAX - 200));
    put(&mut queue, 0, &[50, u64::MAX - 199, u64::MAX - 500, u64::MAX - 99]);
    assert_eq!(forwarded(&mut queue), [u64::MAX - 500]);
    queue.on_range(range(2, u64::MAX - 199, 10));
    assert_eq!(forwarded(&mut queue), [u64::MAX - 199, u64::MAX - 99]);
    queue.on_range(range(3, 11, 110));
    assert_eq!(forwarded(&mut queue), [50]);
}

#[test]
fn copies_wait_side_by_side() {
    // Each may belong to another subflow, which ends only when its packet has left.
    let mut queue = queue(1000);
    queue.on_range(range(1, 0, 999));
    put(&mut queue, 0, &[2000, 3000, 2000]);
    assert_eq!((queue.held_packets(), queue.held_bytes()), (3, 300));
    queue.flush();
    assert_eq!(forwarded(&mut queue), [2000, 2000, 3000]);
    // Only a relay that leaves forwards everything afterwards.
    put(&mut queue, 1, &[4000]);
    assert_eq!(forwarded(&mut queue), []);
}

#[test]
fn small_pieces_fill_the_queue_sooner_and_no_data_never_wait() {
    let mut queue = queue(640);
    queue.on_range(range(1, 0, 999));
    for dsn in 1000..1011 {
        queue.on_packet(Instant::ZERO, Dsn(dsn), 1, dsn);
    }
    assert_eq!((forwarded(&mut queue), queue.held_packets()), (vec![1000], 10));
    queue.on_packet(Instant::ZERO, Dsn(5000), 0, 5000);
    assert_eq!(forwarded(&mut queue), [5000]);
}

#[test]
fn the_usual_limits_are_two_ranges_and_two_periods() {
    let limits = HoldLimits::of(750_000, Duration::from_secs(2));
    assert_eq!(limits, HoldLimits { size_bytes: 1_500_000, stay: Duration::from_secs(4) });
}
