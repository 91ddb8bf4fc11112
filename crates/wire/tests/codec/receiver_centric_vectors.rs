//! The options of MPTCP-rec, octet by octet as in the table of `wire::mptcp::receiver_centric`.

use proptest::prelude::*;
use wire::mptcp::{Experimental, HeldBlock, MptcpOption, PathId, RateReport, Round};
use wire::{Options, Timestamps};

use crate::strategies::rate_report;
use crate::{emitted, octets};

fn round(path: u8, id: u8) -> Round {
    Round { path: PathId::new(path).unwrap(), id }
}

fn experimental(hex: &str) -> Option<Experimental> {
    match Options::parse(&octets(hex)).mptcp.as_slice() {
        [MptcpOption::Experimental(option)] => Some(option.clone()),
        _ => None,
    }
}

#[test]
fn a_round_has_a_place_of_its_own() {
    let options = Options { round: Some(round(0xa, 7)), ..Options::default() };
    assert_eq!(emitted(&options), octets("1e 04 fa 07"));
    assert_eq!(Options::parse(&octets("1e 04 fa 07")), options);
    assert_eq!(Options::parse(&octets("1e 04 f1 01 1e 04 f2 02")).round, Some(round(2, 2)), "the last counts");
    assert_eq!(Options::parse(&octets("1e 04 50 02")).round, None, "MP_PRIO with an address identifier");
    assert_eq!(PathId::new(16), None);
}

#[test]
fn a_report_names_path_round_time_rate_and_what_is_held() {
    let report = RateReport {
        path: PathId::new(3).unwrap(),
        round: 0x11,
        timestamp_ms: 0x0102_0304,
        desired_bytes_per_s: 1_250_000,
        held: [HeldBlock { start: 1400, end: 2800 }].into_iter().collect(),
    };
    let hex = "1e 14 f3 11 01020304 001312d0 00000578 00000af0";
    let options = Options { mptcp: [MptcpOption::Experimental(report.option())].into(), ..Options::default() };
    assert_eq!(emitted(&options), octets(hex));
    assert_eq!(RateReport::read(&experimental(hex).unwrap()), Some(report));
    assert_eq!((RateReport::len_with(0), RateReport::len_with(1)), (12, 20));
}

#[test]
fn what_is_no_report_is_not_read_as_one() {
    for hex in [
        "1e 07 f0 72656331",                               // the offer
        "1e 0b f3 11 01020304 001312",                     // cut off
        "1e 0d f3 11 01020304 001312d0 00",                // half a block
        "1e 14 f3 11 01020304 001312d0 00000af0 00000578", // a block that ends before it starts
        "1e 14 f3 11 01020304 001312d0 00000578 00000578", // an empty one
        "1e 24 f0 00 00000000 00000000 0000000000000001 0000000000000001 0000000000000000",
    ] {
        assert_eq!(experimental(hex).and_then(|option| RateReport::read(&option)), None, "{hex}");
    }
}

#[test]
fn the_offer_is_known_by_its_octets() {
    let offer = Experimental::receiver_centric_offer();
    let options = Options { mptcp: [MptcpOption::Experimental(offer)].into(), ..Options::default() };
    assert_eq!(emitted(&options), octets("1e 07 f0 72656331 01"));
    let is_offer = |hex| experimental(hex).is_some_and(|option| option.is_receiver_centric_offer());
    assert!(is_offer("1e 07 f0 72656331 01"));
    for other in ["1e 07 f1 72656331 01", "1e 07 f0 72656332 01", "1e 06 f0 726563", "1e 08 f0 7265633100"] {
        assert!(!is_offer(other), "{other}");
    }
}

#[test]
fn a_round_fits_beside_the_longest_signal_with_a_short_number() {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    // A DATA_ACK of 64 bits, and a mapping with checksum: 12 + 24 + 4 = 40.
    let hex = "1e 18 20 07 0000000000000007 00000001 00000002 0003 0005 1e 04 f1 01";
    let options = Options { timestamps, ..Options::parse(&octets(hex)) };
    assert!(options.round.is_some() && options.mptcp.len() == 1);
    assert_eq!(options.encoded_len(), Options::MAX_BYTES);
}

proptest! {
    #[test]
    fn every_report_survives(report in rate_report()) {
        prop_assert_eq!(RateReport::read(&report.option()), Some(report));
    }

    #[test]
    fn any_octets_are_read_without_a_panic(flags in any::<u8>(), data in proptest::collection::vec(any::<u8>(), 0..=37)) {
        let option = Experimental { flags, data: data.into_iter().collect() };
        if let Some(report) = RateReport::read(&option) {
            prop_assert_eq!(report.option(), option);
        }
    }
}
