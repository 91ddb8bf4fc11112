//! In steady state, measuring a packet allocates nothing.

use lab::measure::metrics::{Arrival, Collector, Delivered, Sent, Settings};
use units::{Duration, Instant, Rate};

use crate::live;

const PACKET_BYTES: u32 = 1000;
/// Packets that are sent before the first of them arrives; of each of these groups, the last overtakes the others.
const GROUP: u64 = 20;

/// Sends, receives and delivers a group of packets over two subflows.
fn group(collector: &mut Collector, number: u64) {
    let begun = Instant::from_millis(number * 10);
    let packets = number * GROUP..(number + 1) * GROUP;
    let at = |packet: u64| (packet % 2) as usize;
    for packet in packets.clone() {
        let dsn = packet * u64::from(PACKET_BYTES);
        collector.sent(&Sent { at: begun, subflow: at(packet), dsn, len: PACKET_BYTES });
    }
    let last = packets.end - 1;
    for packet in [last].into_iter().chain(packets.start..last) {
        let (now, dsn) = (begun + Duration::from_millis(5), packet * u64::from(PACKET_BYTES));
        let before = collector.in_order_bytes();
        collector.arrival(&Arrival { at: now, subflow: at(packet), dsn, len: PACKET_BYTES });
        collector.delivered(&Delivered { at: now, bytes: collector.in_order_bytes() - before });
    }
}

#[test]
fn the_metrics_of_a_connection() {
    // The values of a window are kept; all of this happens in one.
    let settings = Settings::papers(Duration::from_secs(1000), Rate::from_mbps(3), PACKET_BYTES);
    let mut collector = Collector::new(settings);
    (0..100).for_each(|number| group(&mut collector, number));
    let before = live::allocations();
    (100..10_000).for_each(|number| group(&mut collector, number));
    assert_eq!(live::allocations() - before, 0);
    assert_eq!(collector.delivery_delay().unwrap().bytes, 10_000 * GROUP * u64::from(PACKET_BYTES));
}
