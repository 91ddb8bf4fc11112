//! Formats numbers for people.

/// `value` with three significant digits and an SI prefix: 1.23 Mbit/s.
pub fn quantity(value: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let reached = prefixes.into_iter().find(|(size, _)| value.abs() >= *size * 0.9995);
    let (size, prefix) = reached.unwrap_or((1.0, ""));
    let scaled = value / size;
    let decimals = match scaled.abs() {
        _ if prefix.is_empty() && scaled.fract() == 0.0 => 0,
        magnitude if magnitude >= 99.95 => 0,
        magnitude if magnitude >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$} {prefix}{unit}")
}

/// A ratio as a percentage, with decimals where they matter.
pub(super) fn percent(ratio: f64) -> String {
    let decimals = if ratio > 0.0 && ratio < 0.0995 { 2 } else { 1 };
    format!("{:.decimals$} %", ratio * 100.0)
}

/// Seconds as milliseconds.
pub(crate) fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1000.0)
}

/// Names `seeds`, which are in order and at least one: `seeds 1..3, 7`.
pub fn seeds_of(seeds: &[u64]) -> String {
    let one = |range: &[u64]| match range {
        [first, .., last] => format!("{first}..{last}"),
        range => range.iter().map(u64::to_string).collect(),
    };
    let ranges: Vec<String> = seeds.chunk_by(|one, next| one + 1 == *next).map(one).collect();
    format!("seed{} {}", if seeds.len() == 1 { "" } else { "s" }, ranges.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits() {
        for (value, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1000.0, "1.00 kB"),
            (12_345.0, "12.3 kB"),
            (999_600.0, "1.00 MB"),
            (123_456_789.0, "123 MB"),
            (8e9, "8.00 GB"),
        ] {
            assert_eq!(quantity(value, "B"), text);
        }
    }

    #[test]
    fn small_ratios_keep_their_digits() {
        assert_eq!(
            [percent(0.0), percent(0.0034), percent(0.5), percent(1.0)],
            ["0.0 %", "0.34 %", "50.0 %", "100.0 %"]
        );
    }

    #[test]
    fn seeds_are_named_in_ranges() {
        assert_eq!(seeds_of(&[7]), "seed 7");
        assert_eq!(seeds_of(&[1, 2, 3, 5, 8, 9]), "seeds 1..3, 5, 8..9");
    }
}
