//! Options that are unknown, malformed or cut off: the segment is kept, the option is not.

use wire::Options;

use crate::octets;

/// What reading keeps of the options in `hex`: MSS, number of MPTCP options, malformed MPTCP options, malformed others.
fn read(hex: &str) -> (Option<u16>, usize, u8, u8) {
    let options = Options::parse(&octets(hex));
    (options.mss, options.mptcp.len(), options.malformed_mptcp, options.malformed_tcp)
}

#[test]
fn unknown_kinds_are_skipped() {
    // Kind 34 (TCP Fast Open) of 6 octets and kind 254 (experiments) of 2.
    assert_eq!(read("22 06 01020304 fe 02 02 04 05b4"), (Some(1460), 0, 0, 0));
}

#[test]
fn unknown_mptcp_subtypes_are_skipped() {
    assert_eq!(read("1e 04 90 00 1e 03 e0 02 04 05b4"), (Some(1460), 0, 0, 0));
}

#[test]
fn a_wrong_length_costs_only_its_option() {
    assert_eq!(read("02 03 05 02 04 05b4"), (Some(1460), 0, 0, 1), "MSS of 3");
    assert_eq!(read("02 04 0200 02 05 05b4 00"), (Some(512), 0, 0, 1), "MSS of 5 after a good one");
    assert_eq!(read("03 02 03 04 0101 04 03 00 08 09 00000000000000"), (None, 0, 0, 4));
    assert_eq!(read("05 02"), (None, 0, 0, 1), "SACK without blocks");
    assert_eq!(read("05 09 00000000000000"), (None, 0, 0, 1), "SACK of 7 octets");
    assert_eq!(read(&format!("05 22 {} 01 01", "00".repeat(32))), (None, 0, 0, 0), "four blocks");
    let five = Options::parse(&octets(&format!("05 2a {}", "00".repeat(40))));
    assert_eq!((five.sack.len(), five.malformed_tcp), (0, 1), "five blocks, in more space than a header has");
}

#[test]
fn a_length_that_leads_nowhere_ends_the_list() {
    assert_eq!(read("02 04 0200 08 00 02 04 05b4"), (Some(512), 0, 0, 1), "zero");
    assert_eq!(read("02 04 0200 08 01 02 04 05b4"), (Some(512), 0, 0, 1), "one");
    assert_eq!(read("02 04 0200 08 0a 00000000"), (Some(512), 0, 0, 1), "past the end");
    assert_eq!(read("02 04 0200 08"), (Some(512), 0, 0, 1), "no length");
    assert_eq!(read("02 04 0200 1e 00 02 04 05b4"), (Some(512), 0, 1, 0), "of an MPTCP option");
    assert_eq!(read("02 04 0200 1e"), (Some(512), 0, 1, 0), "MPTCP without length");
}

#[test]
fn malformed_mptcp_options_are_left_out_and_counted() {
    let malformed = [
        ("no subtype", "1e 02"),
        ("MP_CAPABLE of 3", "1e 03 01"),
        ("MP_CAPABLE of 5", "1e 05 01 01 00"),
        ("MP_CAPABLE of 13", "1e 0d 01 01 0102030405060708 00"),
        ("MP_CAPABLE of 21", "1e 15 01 01 01020304050607081112131415161718 00"),
        ("MP_CAPABLE of 26", "1e 1a 01 01 01020304050607081112131415161718 000500000000"),
        ("MP_JOIN of 4", "1e 04 10 00"),
        ("MP_JOIN of 13", "1e 0d 10 00 000000000000000000"),
        ("DSS of 3", "1e 03 20"),
        ("DSS with DATA_ACK, too short", "1e 07 20 01 000000"),
        ("DSS with DATA_ACK, too long", "1e 09 20 01 0000000000"),
        ("DSS with 64-bit DATA_ACK in 32", "1e 08 20 03 00000000"),
        ("DSS with DATA_ACK and a checksum of nothing", "1e 0a 20 01 00000000 0000"),
        ("DSS with half a checksum", "1e 0f 20 04 00000000 00000000 0000 00"),
        ("DSS beyond its checksum", "1e 11 20 04 00000000 00000000 0000 0000 00"),
        ("ADD_ADDR without HMAC nor flag E", "1e 08 30 01 c0000201"),
        ("ADD_ADDR echo with HMAC", "1e 10 31 01 c0000201 0000000000000000"),
        ("ADD_ADDR of 3", "1e 03 31"),
        ("REMOVE_ADDR of nothing", "1e 03 40"),
        ("MP_PRIO of version 0", "1e 04 51 01"),
        ("MP_FAIL of 11", "1e 0b 60 00 00000000000000"),
        ("MP_FASTCLOSE of 13", "1e 0d 70 00 000000000000000000"),
        ("MP_TCPRST of 3", "1e 03 80"),
        ("MP_TCPRST of 5", "1e 05 80 00 00"),
    ];
    for (what, hex) in malformed {
        assert_eq!(read(&format!("{hex} 02 04 05b4")), (Some(1460), 0, 1, 0), "{what}");
    }
}

#[test]
fn of_several_options_the_last_counts_but_mptcp_keeps_all() {
    assert_eq!(read("02 04 0200 02 04 05b4"), (Some(1460), 0, 0, 0));
    assert_eq!(read("1e 03 50 1e 08 20 01 00000000 1e 03 51"), (None, 3, 0, 0));
}
