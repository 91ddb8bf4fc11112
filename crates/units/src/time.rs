//! Time as integer nanoseconds. The caller always passes it in: the sans-IO crates own no clock.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::narrow::u64_from;

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run (simulator) or of the process (Linux).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(u64);

/// A span of time in nanoseconds. Never negative: a subtraction that would go below zero is a bug. Debug builds panic;
/// release builds return zero. Use [`Duration::saturating_sub`] where this may happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any instant a run reaches.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * NANOS_PER_MICRO)
    }

    /// The instant `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * NANOS_PER_MILLI)
    }

    /// The instant `secs` seconds after the start.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SEC)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Whole milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Seconds since the start, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Time passed since `earlier`; zero if `earlier` lies ahead.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` earlier, or the start if that was later.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// The empty span.
    pub const ZERO: Self = Self(0);
    /// The longest possible span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * NANOS_PER_MICRO)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * NANOS_PER_MILLI)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SEC)
    }

    /// A span of `secs` seconds, rounded to nanoseconds; negative and NaN give zero.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that does not fit gives the nearest integer that does"
    )]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * NANOS_PER_SEC as f64).round() as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The span from `other` up to `self`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * factor`, at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// `self * numerator / denominator` without intermediate overflow, at most [`Duration::MAX`].
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn mul_div(self, numerator: u64, denominator: u64) -> Self {
        Self(u64_from(u128::from(self.0) * u128::from(numerator) / u128::from(denominator)))
    }

    /// The distance between two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    /// # Panics
    /// In debug builds, if the result would lie before the start.
    fn sub(self, span: Duration) -> Instant {
        debug_assert!(self.0 >= span.0, "before the start: {self:?} - {span:?}");
        self.saturating_sub(span)
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    /// # Panics
    /// In debug builds, if `earlier` is later.
    fn sub(self, earlier: Instant) -> Duration {
        debug_assert!(self >= earlier, "time ran backwards: {self:?} - {earlier:?}");
        self.saturating_since(earlier)
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    /// # Panics
    /// In debug builds, if `other` is longer.
    fn sub(self, other: Duration) -> Duration {
        debug_assert!(self >= other, "negative: {self:?} - {other:?}");
        self.saturating_sub(other)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, factor: u64) -> Duration {
        self.saturating_mul(factor)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= NANOS_PER_SEC => write!(f, "{:.3}s", self.as_secs_f64()),
            n if n >= NANOS_PER_MILLI => write!(f, "{:.3}ms", n as f64 / NANOS_PER_MILLI as f64),
            n => write!(f, "{:.3}us", n as f64 / NANOS_PER_MICRO as f64),
        }
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturation_is_asked_for() {
        let (short, long) = (Duration::from_millis(1), Duration::from_millis(2));
        assert_eq!((long - short, short.saturating_sub(long)), (short, Duration::ZERO));
        assert_eq!(Instant::from_millis(1).saturating_sub(long), Instant::ZERO);
        assert_eq!(Instant::from_millis(1).saturating_since(Instant::from_millis(2)), Duration::ZERO);
    }

    #[test]
    #[should_panic(expected = "negative: 1.000ms - 2.000ms")]
    #[cfg(debug_assertions)]
    fn a_negative_span_is_a_bug() {
        let _ = Duration::from_millis(1) - Duration::from_millis(2);
    }

    #[test]
    #[should_panic(expected = "before the start")]
    #[cfg(debug_assertions)]
    fn an_instant_before_the_start_is_a_bug() {
        let _ = Instant::from_millis(1) - Duration::from_millis(2);
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    #[cfg(debug_assertions)]
    fn a_later_instant_is_not_subtracted() {
        let _ = Instant::from_millis(1) - Instant::from_millis(2);
    }
}
