//! Decibels as small integers: link adaptation only compares them, and eight fit into a register.

/// Units per dB.
const UNIT: f64 = 64.0;

/// Converts a ratio of powers to dB.
pub(crate) fn to_db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// Converts dB to a ratio of powers.
pub(crate) fn from_db(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

/// A ratio of powers in 1/64 dB. Conversions limit it to -250 dB to 250 dB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Decibel(pub i16);

impl Decibel {
    pub(crate) const ZERO: Self = Self(0);

    /// No power.
    pub(crate) const NOTHING: Self = Self(-16_000);

    /// Converts from dB; values out of range become the nearest one in range.
    pub(crate) fn from_db(db: f64) -> Self {
        // Half of the range stays free, so the sum of two values cannot overflow. Rounds by truncation, which needs no
        // library.
        Self(((db * UNIT).clamp(-16_000.0, 16_000.0) + 32_768.5) as u16 as i16 ^ i16::MIN)
    }

    pub(crate) fn from_linear(ratio: f64) -> Self {
        Self::from_db(to_db(ratio))
    }

    pub(crate) fn db(self) -> f64 {
        f64::from(self.0) / UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredfold_is_20_db() {
        assert_eq!(Decibel::from_linear(100.0).db(), 20.0);
        assert_eq!(Decibel::from_db(-3.5), Decibel(-224));
        assert_eq!(Decibel::from_linear(0.0), Decibel(-16_000));
    }
}
