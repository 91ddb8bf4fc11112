//! Octets that are not frames: each fault has its name.

use cooperation::channel::Fault;
use cooperation::channel::codec::decode;
use cooperation::channel::from_source::FromSource;
use cooperation::channel::to_destination::ToDestination;
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::to_source::ToSource;
use proptest::prelude::*;

fn fault_to_destination(octets: &[u8]) -> Fault {
    decode::<ToDestination>(octets).unwrap_err()
}

fn fault_to_relay(octets: &[u8]) -> Fault {
    decode::<ToRelay>(octets).unwrap_err()
}

fn fault_to_source(octets: &[u8]) -> Fault {
    decode::<ToSource>(octets).unwrap_err()
}

#[test]
fn heads() {
    assert_eq!(fault_to_destination(b""), Fault::Headless { octets: 0 });
    assert_eq!(fault_to_destination(&[5]), Fault::Headless { octets: 1 });
    assert_eq!(fault_to_destination(b"GET / HTTP/1.1"), Fault::Version { version: b'G' });
    assert_eq!(fault_to_destination(&[5, 0x3f]), Fault::UnknownKind { kind: 0x3f });
    assert_eq!(fault_to_relay(&[5, 0x7f]), Fault::UnknownKind { kind: 0x7f });
    assert_eq!(fault_to_destination(&[5, 0x41]), Fault::WrongWay { kind: 0x41 });
    assert_eq!(fault_to_relay(&[5, 0x01]), Fault::WrongWay { kind: 0x01 });
    assert_eq!(fault_to_source(&[5, 0x83]), Fault::UnknownKind { kind: 0x83 });
    assert_eq!(fault_to_source(&[5, 0x02]), Fault::WrongWay { kind: 0x02 });
    // A frame of a relay of the previous release.
    assert_eq!(fault_to_destination(&[4, 0x01]), Fault::Version { version: 4 });
}

#[test]
fn the_source_has_nothing_to_say() {
    for kind in [0xc0, 0xc1, 0xff] {
        assert_eq!(decode::<FromSource>(&[5, kind]), Err(Fault::UnknownKind { kind }));
    }
    assert_eq!(decode::<FromSource>(&[5, 0x81]), Err(Fault::WrongWay { kind: 0x81 }));
}

#[test]
fn lengths() {
    let mut advert = vec![5, 0x01];
    advert.extend([0; 31]);
    assert_eq!(fault_to_destination(&advert), Fault::Truncated { frame: "Advert", field: "energy" });
    advert.extend([0; 2]);
    assert_eq!(fault_to_destination(&advert), Fault::Trailing { frame: "Advert", octets: 1 });
}

#[test]
fn ranges_without_octets_and_windows_beyond_sense() {
    let frame = |kind: u8, numbers: &[u64]| {
        let mut octets = vec![5, kind, 0, 0, 0, 7];
        numbers.iter().for_each(|number| octets.extend(number.to_be_bytes()));
        octets
    };
    let empty = frame(0x41, &[1, 1000, 999, 0, 0, 0]);
    assert_eq!(fault_to_relay(&empty), Fault::Value { frame: "Range", field: "max", value: 999 });
    for (own_window_bytes, widened_bytes) in [(0_u32, 1_u64 << 63), (1, i64::MAX as u64), (u32::MAX, u64::MAX)] {
        let mut wide = frame(0x42, &[0]);
        wide.extend(own_window_bytes.to_be_bytes());
        wide.extend(widened_bytes.to_be_bytes());
        let beyond = Fault::Value { frame: "CumAck", field: "widened_bytes", value: widened_bytes };
        assert_eq!(fault_to_relay(&wide), beyond);
    }
    assert_eq!(fault_to_relay(&[5, 0x41, 0, 0, 0]), Fault::Truncated { frame: "Range", field: "connection" });
}

#[test]
fn numbers_that_are_none() {
    for ratio in [f64::NAN, f64::INFINITY, -1.0] {
        let mut load = vec![5, 0x02];
        load.extend(ratio.to_be_bytes());
        load.extend([0; 24]);
        let value = ratio.to_bits();
        assert_eq!(fault_to_destination(&load), Fault::Value { frame: "Load", field: "ratio", value });
    }
}

#[test]
fn rates_beyond_sense() {
    let mut advert = vec![5, 0x01];
    advert.extend([0; 16]);
    advert.extend(1_000_000_000_001_u64.to_be_bytes());
    advert.extend([0; 8]);
    let beyond = Fault::Value { frame: "Advert", field: "local", value: 1_000_000_000_001 };
    assert_eq!(fault_to_destination(&advert), beyond);
}

#[test]
fn delays_beyond_sense() {
    let hour_ns = 3_600_000_000_000_u64;
    let delay = |head: &[u8], nanos: u64| [head, &[0; 8], &nanos.to_be_bytes()].concat();
    let beyond = Fault::Value { frame: "Delay", field: "delay", value: hour_ns + 1 };
    assert_eq!(fault_to_destination(&delay(&[5, 0x03], hour_ns + 1)), beyond);
    assert_eq!(fault_to_source(&delay(&[5, 0x82, 0, 0, 0, 0, 0], hour_ns + 1)), beyond);
    assert!(decode::<ToDestination>(&delay(&[5, 0x03], hour_ns)).is_ok());
}

#[test]
fn fields_of_what_is_said_of_subflows() {
    let truncated = |field| Fault::Truncated { frame: "Delay", field };
    assert_eq!(fault_to_source(&[5, 0x82, 0, 0, 0]), truncated("connection"));
    assert_eq!(fault_to_source(&[5, 0x82, 0, 0, 0, 0]), truncated("address_id"));
    assert_eq!(fault_to_source(&[5, 0x82, 0, 0, 0, 0, 0, 0]), truncated("at"));
    for ratio in [f64::NAN, f64::NEG_INFINITY, -0.5] {
        let load = [&[5, 0x81, 0, 0, 0, 0, 0], ratio.to_be_bytes().as_slice(), &[0; 24]].concat();
        let value = ratio.to_bits();
        assert_eq!(fault_to_source(&load), Fault::Value { frame: "Load", field: "ratio", value });
    }
}

#[test]
fn energy_that_nobody_could_pay() {
    for nj_per_bit in [f64::NAN, f64::INFINITY, -1.0, 1.1e9] {
        let mut advert = vec![5, 0x01];
        advert.extend([0; 24]);
        advert.extend(nj_per_bit.to_be_bytes());
        let value = nj_per_bit.to_bits();
        assert_eq!(fault_to_destination(&advert), Fault::Value { frame: "Advert", field: "energy", value });
    }
}

proptest! {
    #[test]
    fn any_octets_are_a_frame_or_a_fault(kind: u8, fields in prop::collection::vec(any::<u8>(), 0..140)) {
        let octets = [&[5, kind], fields.as_slice()].concat();
        for octets in [&octets, &fields] {
            let _ = (decode::<ToDestination>(octets), decode::<ToRelay>(octets), decode::<ToSource>(octets));
            assert!(decode::<FromSource>(octets).is_err());
        }
    }
}
