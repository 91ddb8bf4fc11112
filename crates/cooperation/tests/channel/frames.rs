//! Octets on the wire, worked out by hand from the layout; and what was written reads the same.

use cooperation::channel::authenticated::BODY_BYTES_MAX;
use cooperation::channel::codec::decode;
use cooperation::channel::to_destination::{Load, Offer, ToDestination};
use cooperation::channel::to_relay::ToRelay;
use cooperation::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use cooperation::relay_selection::energy::EnergyPrice;
use proptest::prelude::*;
use units::{Dsn, Instant, Rate};

use super::encoded;
use super::strategies::{to_destination, to_relay};

#[test]
fn offer() {
    let (capacity, local, energy) = (Rate::from_bps(0x0304), Rate::from_bps(5), EnergyPrice::new(1.5).unwrap());
    let offer = Offer { at: Instant::from_nanos(0x0102), capacity, local, energy };
    let mut expected = vec![3, 0x01, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5];
    // IEEE 754: 1.5 is 0x3ff8...
    expected.extend([0x3f, 0xf8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(&ToDestination::Offer(offer)), expected);
}

#[test]
fn load() {
    // IEEE 754: 1.5 is 0x3ff8..., 1 is 0x3ff0..., 0.5 is 0x3fe0...
    let load = Load { ratio: 1.5, increase: 1.0, decrease: 0.5, at: Instant::from_nanos(7) };
    let mut expected = vec![3, 0x02];
    for (first, second) in [(0x3f, 0xf8), (0x3f, 0xf0), (0x3f, 0xe0)] {
        expected.extend([first, second, 0, 0, 0, 0, 0, 0]);
    }
    expected.extend([0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(encoded(&ToDestination::Load(load)), expected);
}

#[test]
fn range_and_acknowledgement() {
    let range = DsnRange { seq: 2, min: Dsn(1000), max: Dsn(1999) };
    let ack = CumAck { rcv_nxt: Dsn(950), window_bytes: 2000, widened_bytes: 500 };
    let frame = |kind, numbers: &[u64]| {
        let mut octets = vec![3, kind];
        numbers.iter().for_each(|number| octets.extend(number.to_be_bytes()));
        octets
    };
    let update = encoded(&ToRelay::Range(RangeUpdate { range, ack }));
    assert_eq!(update, frame(0x41, &[2, 1000, 1999, 950, 2000, 500]));
    assert_eq!(encoded(&ToRelay::CumAck(ack)), frame(0x42, &[950, 2000, 500]));
}

proptest! {
    #[test]
    fn what_was_written_reads_the_same(up in to_destination(), down in to_relay()) {
        prop_assert_eq!(decode(&encoded(&up)), Ok(up));
        prop_assert_eq!(decode(&encoded(&down)), Ok(down));
    }

    #[test]
    fn frames_fit_into_records(up in to_destination(), down in to_relay()) {
        prop_assert!(encoded(&up).len() <= BODY_BYTES_MAX && encoded(&down).len() <= BODY_BYTES_MAX);
    }
}
