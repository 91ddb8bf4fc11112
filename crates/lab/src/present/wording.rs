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
}
