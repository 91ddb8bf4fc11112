//! Compares numbers of 128 bits made of two words with those of Rust.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::program::ask;

/// Words of every length: otherwise half of them would have their highest bit set.
fn word() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..=64_u32).prop_map(|(word, shift)| word.checked_shr(shift).unwrap_or(0))
}

fn capped(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

fn wide(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

proptest! {
    // One program answers many questions.
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quotients_of_products(cases in prop::collection::vec([word(), word(), word()], 5000)) {
        let (mut questions, mut expected) = (String::new(), Vec::new());
        for [a, b, c] in cases {
            writeln!(questions, "product {a} {b} {c}").unwrap();
            expected.push(capped(u128::from(a) * u128::from(b) / u128::from(c.max(1))).to_string());
        }
        prop_assert_eq!(ask(&questions), expected);
    }

    #[test]
    fn ratios_of_wide_numbers(cases in prop::collection::vec(([word(), word(), word(), word()], 0..=32_u32), 5000)) {
        let (mut questions, mut expected) = (String::new(), Vec::new());
        for ([a_high, a_low, b_high, b_low], shift) in cases {
            writeln!(questions, "ratio {a_high} {a_low} {b_high} {b_low} {shift}").unwrap();
            expected.push(capped((wide(a_high, a_low) / wide(b_high, b_low).max(1)) >> shift).to_string());
        }
        prop_assert_eq!(ask(&questions), expected);
    }
}

/// Cases in which an estimated digit is off by two, and by one beyond the word (Hacker's Delight, section 9-2).
#[test]
fn digits_that_are_corrected() {
    let half = u64::from(u32::MAX);
    let cases = [
        (u64::MAX - 1, u64::MAX, u64::MAX),
        (1 << 63, 1 << 63, (1 << 63) + half),
        ((1 << 63) - 1, u64::MAX, 1 << 63),
        (0x8000_0000_ffff_fffe, u64::MAX, 0x8000_0000_ffff_ffff),
    ];
    for (a, b, c) in cases {
        let found = ask(&format!("product {a} {b} {c}"));
        assert_eq!(found, [capped(u128::from(a) * u128::from(b) / u128::from(c)).to_string()], "{a} * {b} / {c}");
    }
}
