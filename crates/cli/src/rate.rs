//! Rates as people type them.

use units::Rate;
use units::parse::QuantityError;

/// Parses a rate, with the usual abbreviations: 0.5M, 500k, and bare digits for bit/s.
///
/// # Errors
/// The reason, in one line.
pub fn rate(text: &str) -> Result<Rate, String> {
    let text = text.trim();
    let long = match text.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(number) => format!("{number} {}bit/s", text[number.len()..].replace('K', "k")),
        None if !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit()) => format!("{text} bit/s"),
        None => text.into(),
    };
    long.parse().map_err(|error| match error {
        QuantityError::TooLarge { .. } => format!("{text:?} is too large"),
        _ => format!("{text:?} is not a rate: write a number and a unit, like 0.5M or \"0.5 Mbit/s\""),
    })
}

/// Parses a target rate with a unit: a bare number more likely means Mbit/s than bit/s.
///
/// # Errors
/// The correct spelling.
pub fn target(text: &str) -> Result<Rate, String> {
    let rate = rate(text)?;
    match rate.as_bps() {
        0 => Err("write a bit rate above 0, like 4M".into()),
        _ if text.trim().bytes().all(|octet| octet.is_ascii_digit()) => {
            Err("write a bit rate with its unit, like 4M".into())
        }
        _ => Ok(rate),
    }
}
