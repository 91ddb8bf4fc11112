//! Octets on the wire, worked out by hand from the layout. Frames read the same as they were written.

use cooperation::channel::codec::decode;
use cooperation::channel::secure::BODY_BYTES_MAX;
use cooperation::channel::to_destination::{Advert, Delay, Load, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::to_source::ToSource;
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::energy::EnergyPrice;
use proptest::prelude::*;
use units::{Dsn, Duration, Instant, Rate};
use wire::mptcp::{AddressId, Token};

use super::strategies::{to_destination, to_relay, to_source};
use super::support::encoded;

#[test]
fn advert() {
    let (capacity, local, energy) = (Rate::from_bps(0x0304), Rate::from_bps(5), EnergyPrice::new(1.5).unwrap());
    let advert = Advert { at: Instant::from_nanos(0x0102), capacity, local, energy };
    let mut expected = vec![5, 0x01, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5];
    // IEEE 754: 1.5 is 0x3ff8...
    expected.extend([0x3f, 0xf8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(&ToDestination::Advert(advert)), expected);
}

#[test]
fn load() {
    // IEEE 754: 1.5 is 0x3ff8..., 1 is 0x3ff0..., 0.5 is 0x3fe0...
    let load = Load { ratio: 1.5, increase: 1.0, decrease: 0.5, at: Instant::from_nanos(7) };
    let mut expected = vec![5, 0x02];
    for (first, second) in [(0x3f, 0xf8), (0x3f, 0xf0), (0x3f, 0xe0)] {
        expected.extend([first, second, 0, 0, 0, 0, 0, 0]);
    }
    expected.extend([0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(encoded(&ToDestination::Load(load)), expected);
}

#[test]
fn delay() {
    let delay = Delay { at: Instant::from_nanos(7), delay: Duration::from_millis(1) };
    let expected = [5, 0x03, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40];
    assert_eq!(encoded(&ToDestination::Delay(delay)), expected);
}

#[test]
fn load_and_delay_of_a_subflow() {
    let (connection, address_id, at) = (Token(0x0102_0304), AddressId(9), Instant::from_nanos(7));
    let load = Load { ratio: 1.5, increase: 1.0, decrease: 0.5, at };
    let told = encoded(&ToDestination::Load(load));
    let expected = [&[5, 0x81, 1, 2, 3, 4, 9], &told[2..]].concat();
    assert_eq!(encoded(&ToSource::Load { connection, address_id, load }), expected);
    let delay = Delay { at, delay: Duration::from_millis(1) };
    let told = encoded(&ToDestination::Delay(delay));
    let expected = [&[5, 0x82, 1, 2, 3, 4, 9], &told[2..]].concat();
    assert_eq!(encoded(&ToSource::Delay { connection, address_id, delay }), expected);
}

/// 125,000 octets at 1 Mbit/s take a second, and half of 40 ms is 20 ms.
#[test]
fn the_delay_of_a_leg() {
    let (at, srtt) = (Instant::ZERO, Duration::from_millis(40));
    let delay_ms = |stored_bytes, mbps| Delay::of_leg(at, stored_bytes, Rate::from_mbps(mbps), srtt).delay.as_millis();
    assert_eq!(delay_ms(125_000, 1), 1020);
    assert_eq!(delay_ms(0, 0), 20);
    // A leg that stands still: an hour, the largest value that can be sent.
    assert_eq!(delay_ms(1, 0), 3_600_000);
}

#[test]
fn what_no_peer_would_believe_is_told_as_the_most_that_it_would() {
    let advert = |bps| {
        let (capacity, local, energy) = (Rate::from_bps(bps), Rate::ZERO, EnergyPrice::default());
        ToDestination::Advert(Advert { at: Instant::ZERO, capacity, local, energy })
    };
    assert_eq!(encoded(&advert(u64::MAX)), encoded(&advert(1_000_000_000_000)));
    let delay = |delay| ToDestination::Delay(Delay { at: Instant::ZERO, delay });
    assert_eq!(encoded(&delay(Duration::MAX)), encoded(&delay(Duration::from_secs(3600))));
}

#[test]
fn range_and_acknowledgement() {
    let range = DsnRange { seq: 2, min: Dsn(1000), max: Dsn(1999) };
    let ack = CumAck { rcv_nxt: Dsn(950), window_bytes: 2000, widened_bytes: 500 };
    let connection = Token(0x0102_0304);
    let frame = |kind, numbers: &[u64]| {
        let mut octets = vec![5, kind, 1, 2, 3, 4];
        numbers.iter().for_each(|number| octets.extend(number.to_be_bytes()));
        // The destination's own window, and what relays add to it.
        octets.extend(1500_u32.to_be_bytes());
        octets.extend(500_u64.to_be_bytes());
        octets
    };
    let update = encoded(&ToRelay::Range { connection, update: RangeUpdate { range, ack } });
    assert_eq!(update, frame(0x41, &[2, 1000, 1999, 950]));
    assert_eq!(encoded(&ToRelay::CumAck { connection, ack }), frame(0x42, &[950]));
}

#[test]
fn a_window_larger_than_that_of_tcp_is_told_as_the_largest_that_fits() {
    let of = |window_bytes| {
        let ack = CumAck { rcv_nxt: Dsn(950), window_bytes, widened_bytes: 500 };
        encoded(&ToRelay::CumAck { connection: Token(7), ack })
    };
    assert_eq!(of(1 << 40), of(500 + u64::from(u32::MAX)));
}

proptest! {
    #[test]
    fn what_was_written_reads_the_same(up in to_destination(), down in to_relay(), on in to_source()) {
        prop_assert_eq!(decode(&encoded(&up)), Ok(up));
        prop_assert_eq!(decode(&encoded(&on)), Ok(on));
        prop_assert_eq!(decode(&encoded(&down)), Ok(down));
    }

    #[test]
    fn frames_fit_into_records(up in to_destination(), down in to_relay(), on in to_source()) {
        for len in [encoded(&up).len(), encoded(&down).len(), encoded(&on).len()] {
            prop_assert!(len <= BODY_BYTES_MAX, "{len}");
        }
    }
}
