//! Quantities as people write them: `"10 Mbit/s"`, `"20 ms"`, `"1400 B"`, `"1 %"`.
//!
//! Parsing is exact in integers, without floating point. [`Display`](fmt::Display) writes the largest unit that gives a
//! number of at least one, so the written text parses to the same value.

use core::fmt;
use core::str::FromStr;

use crate::{ByteCount, Duration, Probability, Rate};

/// Unit names with their size in the smallest unit, largest first; the first name of a size is the one written.
type Units = &'static [(&'static str, u64)];

const RATE_UNITS: Units = &[
    ("Gbit/s", 1_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("Mbps", 1_000_000),
    ("kbit/s", 1_000),
    ("kbps", 1_000),
    ("bit/s", 1),
    ("bps", 1),
];

const DURATION_UNITS: Units = &[
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

const BYTE_UNITS: Units = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A text that is not a valid quantity of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number followed by a unit.
    #[error("{text:?} is not {kind}: write a number and a unit, like {example:?} (units: {units})")]
    Form {
        /// The given text.
        text: String,
        /// The wanted kind of quantity.
        kind: &'static str,
        /// A text that would be accepted.
        example: &'static str,
        /// Every accepted unit.
        units: String,
    },
    /// The value does not fit.
    #[error("{text:?} is too large for {kind}")]
    TooLarge {
        /// The given text.
        text: String,
        /// The wanted kind of quantity.
        kind: &'static str,
    },
    /// Not a probability.
    #[error("{text:?} is not a share from 0 to 100 %: write \"1 %\", or in quotes a number from 0 to 1, like \"0.01\"")]
    Probability {
        /// The given text.
        text: String,
    },
}

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, "a rate", "10 Mbit/s", RATE_UNITS).map(Self::from_bps)
    }
}

impl FromStr for Duration {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, "a duration", "20 ms", DURATION_UNITS).map(Self::from_nanos)
    }
}

impl FromStr for ByteCount {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, "an amount of data", "64 kB", BYTE_UNITS).map(Self)
    }
}

impl FromStr for Probability {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError::Probability { text: text.into() };
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let value: f64 = number.parse().map_err(|_| error())?;
        Self::new(value / scale).ok_or_else(error)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.as_bps(), RATE_UNITS)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Minutes and hours have no finite decimal fractions of nanoseconds.
        write_quantity(f, self.as_nanos(), &DURATION_UNITS[2..])
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary =
            BYTE_UNITS.iter().find(|(name, size)| name.ends_with("iB") && self.0 >= *size && self.0 % size == 0);
        match binary {
            Some((name, size)) if self.0 % 1000 != 0 => write!(f, "{} {name}", self.0 / size),
            _ => write_quantity(f, self.0, &[1, 3, 5, 7, 9].map(|decimal| BYTE_UNITS[decimal])),
        }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest decimal that reads back as the same number; a percentage would be rounded twice.
        write!(f, "{}", self.value())
    }
}

/// Parses a number and one of `units`. The value counts the smallest unit and is rounded to the nearest.
fn parse(text: &str, kind: &'static str, example: &'static str, units: Units) -> Result<u64, QuantityError> {
    let form = || QuantityError::Form {
        text: text.into(),
        kind,
        example,
        units: units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim_start();
    let size = units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size).ok_or_else(form)?;
    match scale(number, size) {
        Some(value) => value.ok_or_else(|| QuantityError::TooLarge { text: text.into(), kind }),
        None => Err(form()),
    }
}

/// Returns `number * size`, rounded. `None`: not a decimal number; `Some(None)`: the result does not fit.
fn scale(number: &str, size: u64) -> Option<Option<u64>> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return None;
    }
    // Eighteen decimals of the largest unit are far below the smallest one; further decimals have no effect.
    let fraction = &fraction[..fraction.len().min(18)];
    let denominator = fraction.bytes().fold(1_u128, |power, _| power * 10);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let Ok(whole) = whole.parse::<u64>() else { return Some(None) };
    let value = u128::from(whole) * u128::from(size) + (fraction * u128::from(size) + denominator / 2) / denominator;
    Some(u64::try_from(value).ok())
}

/// Writes `value` in the largest of `units` that it reaches, with all its decimals.
fn write_quantity(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let reached = value.max(1);
    let (name, size) = units.iter().copied().find(|(_, size)| reached >= *size).expect("the smallest unit is one");
    let (whole, rest) = (value / size, value % size);
    if rest == 0 {
        return f.pad(&format!("{whole} {name}"));
    }
    let decimals = format!("{rest:0width$}", width = size.ilog10() as usize);
    f.pad(&format!("{whole}.{} {name}", decimals.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::from_mbps(10)));
        assert_eq!("1.5Gbps".parse(), Ok(Rate::from_mbps(1500)));
        assert_eq!(" 300 kbit/s ".parse(), Ok(Rate::from_bps(300_000)));
        assert_eq!("20 ms".parse(), Ok(Duration::from_millis(20)));
        assert_eq!("0.5 us".parse(), Ok(Duration::from_nanos(500)));
        assert_eq!("1.5 min".parse(), Ok(Duration::from_secs(90)));
        assert_eq!("1_400 B".parse(), Ok(ByteCount(1400)));
        assert_eq!("64 KiB".parse(), Ok(ByteCount(65536)));
        assert_eq!("1.5TB".parse(), Ok(ByteCount(1_500_000_000_000)));
        assert_eq!("1 %".parse(), Ok(Probability::new(0.01).unwrap()));
        assert_eq!("0.25".parse(), Ok(Probability::new(0.25).unwrap()));
    }

    #[test]
    fn refuses_with_a_remedy() {
        let error = "10".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("\"10\"") && error.contains("10 Mbit/s") && error.contains("kbit/s"), "{error}");
        for text in ["", "ms", "-1 ms", "1e3 ms", "1.2.3 ms", ".5 ms", "5 parsecs", "5 m s"] {
            assert!(text.parse::<Duration>().is_err(), "{text:?}");
        }
        for text in ["", "%", "101 %", "1.5", "-0.1", "NaN", "5 percent"] {
            assert!(text.parse::<Probability>().is_err(), "{text:?}");
        }
        let huge = "99999999999999999999 GB";
        assert_eq!(
            huge.parse::<ByteCount>(),
            Err(QuantityError::TooLarge { text: huge.into(), kind: "an amount of data" })
        );
    }

    #[test]
    fn writes_the_plainest_unit() {
        assert_eq!(Rate::from_bps(1_500_000).to_string(), "1.5 Mbit/s");
        assert_eq!(Rate::ZERO.to_string(), "0 bit/s");
        assert_eq!(Duration::from_micros(1200).to_string(), "1.2 ms");
        assert_eq!(Duration::from_secs(90).to_string(), "90 s");
        assert_eq!(ByteCount(65536).to_string(), "64 KiB");
        assert_eq!(ByteCount(64_000).to_string(), "64 kB");
        assert_eq!(ByteCount(1_048_577).to_string(), "1.048577 MB");
        assert_eq!(Probability::new(0.01).unwrap().to_string(), "0.01");
    }

    #[test]
    fn what_is_written_reads_back() {
        for value in [0, 1, 999, 1000, 1024, 1_234_567, 123_456_789_012_345, u64::MAX] {
            assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
            assert_eq!(Duration::from_nanos(value).to_string().parse(), Ok(Duration::from_nanos(value)));
            assert_eq!(ByteCount(value).to_string().parse(), Ok(ByteCount(value)));
        }
        let probability = Probability::new(1.0 / 3.0).unwrap();
        assert_eq!(probability.to_string().parse(), Ok(probability));
    }
}
