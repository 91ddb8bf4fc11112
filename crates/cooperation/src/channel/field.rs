//! The fields of frames: numbers in network byte order.

use bytes::BytesMut;
use units::narrow::u32_from;
use units::{Dsn, Duration, Instant, Rate};

use super::fault::Fault;
use crate::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use crate::relay_selection::energy::EnergyPrice;

/// Upper limit of rates: higher than any link's. Sums over all relays of a destination are far below 2^64 bit/s.
pub(crate) const RATE_MAX: Rate = Rate::from_bps(1_000_000_000_000);
/// Upper limit of delays: longer than any finite wait.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(3600);

/// The octets that are still unread.
pub(crate) struct Octets<'a>(pub(crate) &'a [u8]);

impl Octets<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(Unread::SHORT)?;
        self.0 = rest;
        Ok(*front)
    }
}

/// The reason why octets are not a field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread {
    /// The innermost named field.
    field: Option<&'static str>,
    /// The invalid value; `None` if there are too few octets.
    value: Option<u64>,
}

impl Unread {
    const SHORT: Self = Self { field: None, value: None };

    /// Reports an invalid value.
    pub(crate) fn value(value: impl Into<u64>) -> Self {
        Self { field: None, value: Some(value.into()) }
    }

    /// Attributes the fault to `field`, unless a field inside it already has a more specific name.
    pub(crate) fn within(self, field: &'static str) -> Self {
        Self { field: self.field.or(Some(field)), ..self }
    }

    /// Converts to the fault of a frame.
    pub(crate) fn of_frame(self, frame: &'static str) -> Fault {
        let field = self.field.unwrap_or("body");
        match self.value {
            Some(value) => Fault::Value { frame, field, value },
            None => Fault::Truncated { frame, field },
        }
    }
}

/// A value that a frame carries.
pub(crate) trait Field: Sized {
    fn put(&self, out: &mut BytesMut);
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread>;
}

/// Implements [`Field`] for a struct as the sequence of its fields.
macro_rules! fields {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::channel::field::Field for $name {
            fn put(&self, out: &mut bytes::BytesMut) {
                $($crate::channel::field::Field::put(&self.$field, out);)+
            }

            fn take(
                octets: &mut $crate::channel::field::Octets<'_>,
            ) -> Result<Self, $crate::channel::field::Unread> {
                $(let $field = $crate::channel::field::Field::take(octets)
                    .map_err(|unread| unread.within(stringify!($field)))?;)+
                Ok(Self { $($field),+ })
            }
        }
    };
}
pub(crate) use fields;

/// Implements [`Field`] for integers.
macro_rules! integers {
    ($($integer:ty),+) => {
        $(impl Field for $integer {
            fn put(&self, out: &mut BytesMut) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
                octets.array().map(Self::from_be_bytes)
            }
        })+
    };
}

integers!(u8, u32, u64);

impl Field for Dsn {
    fn put(&self, out: &mut BytesMut) {
        self.0.put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        u64::take(octets).map(Self)
    }
}

/// A factor or share: finite and not negative, as IEEE 754 binary64.
impl Field for f64 {
    fn put(&self, out: &mut BytesMut) {
        self.to_bits().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let bits = u64::take(octets)?;
        let number = Self::from_bits(bits);
        if number.is_finite() && number.is_sign_positive() { Ok(number) } else { Err(Unread::value(bits)) }
    }
}

/// Nanojoules per bit, as IEEE 754 binary64.
impl Field for EnergyPrice {
    fn put(&self, out: &mut BytesMut) {
        self.nj_per_bit().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let nj_per_bit = f64::take(octets)?;
        Self::new(nj_per_bit).ok_or_else(|| Unread::value(nj_per_bit.to_bits()))
    }
}

/// bit/s. A rate above the maximum is written as the maximum, because the peer would refuse the frame otherwise.
impl Field for Rate {
    fn put(&self, out: &mut BytesMut) {
        (*self).min(RATE_MAX).as_bps().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let bps = u64::take(octets)?;
        Some(Self::from_bps(bps)).filter(|rate| *rate <= RATE_MAX).ok_or(Unread::value(bps))
    }
}

/// Nanoseconds. A delay above the maximum is written as the maximum.
impl Field for Duration {
    fn put(&self, out: &mut BytesMut) {
        (*self).min(DELAY_MAX).as_nanos().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let nanos = u64::take(octets)?;
        Some(Self::from_nanos(nanos)).filter(|span| *span <= DELAY_MAX).ok_or(Unread::value(nanos))
    }
}

/// Nanoseconds on the sender's clock.
impl Field for Instant {
    fn put(&self, out: &mut BytesMut) {
        self.as_nanos().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        u64::take(octets).map(Self::from_nanos)
    }
}

impl Field for DsnRange {
    fn put(&self, out: &mut BytesMut) {
        self.seq.put(out);
        self.min.put(out);
        self.max.put(out);
    }

    /// A range has at least one octet.
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let range = Self { seq: u64::take(octets)?, min: Dsn::take(octets)?, max: Dsn::take(octets)? };
        if range.max.before(range.min) {
            return Err(Unread::value(range.max.0).within("max"));
        }
        Ok(range)
    }
}

/// The window is written as its two parts. The destination's own is at most that of TCP, below 2^30 octets (RFC 7323
/// section 2.3); a larger one is written as the largest that four octets hold.
impl Field for CumAck {
    fn put(&self, out: &mut BytesMut) {
        let own_window_bytes = self.window_bytes.saturating_sub(self.widened_bytes);
        self.rcv_nxt.put(out);
        u32_from(own_window_bytes).put(out);
        self.widened_bytes.put(out);
    }

    /// A window of 2^63 octets or more would put its right edge behind its left edge.
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let (rcv_nxt, own_window_bytes) = (Dsn::take(octets)?, u32::take(octets)?);
        let widened_bytes = u64::take(octets)?;
        let window_bytes = widened_bytes.checked_add(own_window_bytes.into()).filter(|bytes| *bytes <= i64::MAX as u64);
        let window_bytes = window_bytes.ok_or(Unread::value(widened_bytes).within("widened_bytes"))?;
        Ok(Self { rcv_nxt, window_bytes, widened_bytes })
    }
}

fields!(RangeUpdate { range, ack });
