//! The options of plain TCP, written by hand from their RFCs, in Linux's order and alignment.

use units::SeqNr;
use wire::{Options, SackBlock, Timestamps};

use crate::{emitted, octets};

#[track_caller]
fn assert_octets(hex: &str, options: Options) {
    assert_eq!(emitted(&options), octets(hex), "emitted");
    assert_eq!(Options::parse(&octets(hex)), options, "parsed");
}

const TIMESTAMPS: Timestamps = Timestamps { value: 0x0102_0304, echo: 0x0506_0708 };

fn block(start: u32, end: u32) -> SackBlock {
    SackBlock { start: SeqNr(start), end: SeqNr(end) }
}

#[test]
fn single_options() {
    assert_octets("", Options::default());
    assert_octets("02 04 05b4", Options { mss: Some(1460), ..Options::default() });
    assert_octets("01 03 03 0e", Options { window_scale: Some(14), ..Options::default() });
    assert_octets("01 01 04 02", Options { sack_permitted: true, ..Options::default() });
    assert_octets("01 01 08 0a 01020304 05060708", Options { timestamps: Some(TIMESTAMPS), ..Options::default() });
}

#[test]
fn sack_blocks() {
    let one = [block(1, 2)].into_iter().collect();
    assert_octets("01 01 05 0a 00000001 00000002", Options { sack: one, ..Options::default() });
    let four = [block(0xffff_fff0, 0x10), block(0x20, 0x30), block(0x40, 0x50), block(0x60, 0x70)];
    assert_octets(
        "01 01 05 22 fffffff0 00000010 00000020 00000030 00000040 00000050 00000060 00000070",
        Options { sack: four.into_iter().collect(), ..Options::default() },
    );
}

#[test]
fn the_options_of_a_linux_syn() {
    assert_octets(
        "02 04 05b4  04 02  08 0a 01020304 00000000  01 03 03 07",
        Options {
            mss: Some(1460),
            sack_permitted: true,
            timestamps: Some(Timestamps { echo: 0, ..TIMESTAMPS }),
            window_scale: Some(7),
            ..Options::default()
        },
    );
}

#[test]
fn any_order_and_padding_is_read() {
    let read = Options::parse(&octets("03 03 07 08 0a 01020304 05060708 01 02 04 05b4 04 02 00 ff ff"));
    let expected = Options {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: Some(TIMESTAMPS),
        window_scale: Some(7),
        ..Options::default()
    };
    assert_eq!(read, expected, "octets after the end of the list are not looked at");
}

/// RFC 7323 section 2.3.
#[test]
fn window_scale_is_at_most_14() {
    assert_eq!(Options::parse(&octets("03 03 ff")).window_scale, Some(14));
    assert_eq!(emitted(&Options { window_scale: Some(15), ..Options::default() }), octets("01 03 03 0e"));
}
