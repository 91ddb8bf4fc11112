//! Fields of frames: numbers in network byte order, addresses, flags.

use core::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use units::{Dsn, Instant, Rate};
use wire::mptcp::{AddressId, Key, Token};

use super::SubflowNr;
use super::fault::Fault;
use crate::forwarding::range::{CumAck, DsnRange, RangeUpdate};
use crate::relay_selection::RelayId;

/// Octets not read yet.
pub(super) struct Octets<'a>(pub(super) &'a [u8]);

impl Octets<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(Unread::SHORT)?;
        self.0 = rest;
        Ok(*front)
    }
}

/// Why octets are not a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    /// The innermost field that has a name.
    field: Option<&'static str>,
    /// The value, which means nothing; none if there are too few octets.
    value: Option<u64>,
}

impl Unread {
    const SHORT: Self = Self { field: None, value: None };

    /// A value that means nothing.
    pub(super) fn value(value: impl Into<u64>) -> Self {
        Self { field: None, value: Some(value.into()) }
    }

    /// The fault is in `field`, or in a field of it, whose own name says more.
    pub(super) fn within(self, field: &'static str) -> Self {
        Self { field: self.field.or(Some(field)), ..self }
    }

    /// As the fault of a frame.
    pub(super) fn of_frame(self, frame: &'static str) -> Fault {
        let field = self.field.unwrap_or("body");
        match self.value {
            Some(value) => Fault::Value { frame, field, value },
            None => Fault::Truncated { frame, field },
        }
    }
}

/// Something that a frame carries.
pub(super) trait Field: Sized {
    fn put(&self, out: &mut BytesMut);
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread>;
}

/// Makes a struct the sequence of its fields.
macro_rules! fields {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::forwarding::channel::field::Field for $name {
            fn put(&self, out: &mut bytes::BytesMut) {
                $($crate::forwarding::channel::field::Field::put(&self.$field, out);)+
            }

            fn take(
                octets: &mut $crate::forwarding::channel::field::Octets<'_>,
            ) -> Result<Self, $crate::forwarding::channel::field::Unread> {
                $(let $field = $crate::forwarding::channel::field::Field::take(octets)
                    .map_err(|unread| unread.within(stringify!($field)))?;)+
                Ok(Self { $($field),+ })
            }
        }
    };
}
pub(super) use fields;

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
integers!(u8, u16, u32, u64);

/// Types that are an integer by another name.
macro_rules! newtypes {
    ($($newtype:ident($integer:ty)),+) => {
        $(impl Field for $newtype {
            fn put(&self, out: &mut BytesMut) {
                self.0.put(out);
            }

            fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
                <$integer>::take(octets).map($newtype)
            }
        })+
    };
}
newtypes!(Dsn(u64), Key(u64), Token(u32), AddressId(u8), RelayId(u16), SubflowNr(u16));

impl<const N: usize> Field for [u8; N] {
    fn put(&self, out: &mut BytesMut) {
        out.extend_from_slice(self);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        octets.array()
    }
}

impl Field for bool {
    fn put(&self, out: &mut BytesMut) {
        u8::from(*self).put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        match u8::take(octets)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Unread::value(other)),
        }
    }
}

/// Whether there is a value, then the value.
impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut BytesMut) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        if bool::take(octets)? { T::take(octets).map(Some) } else { Ok(None) }
    }
}

/// Factors and shares: finite and not negative, as IEEE 754 binary64.
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

/// bit/s.
impl Field for Rate {
    fn put(&self, out: &mut BytesMut) {
        self.as_bps().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        u64::take(octets).map(Self::from_bps)
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

/// 4 or 6, the address, the port. Flow label and scope are not carried: both ends see different links.
impl Field for SocketAddr {
    fn put(&self, out: &mut BytesMut) {
        match self.ip() {
            IpAddr::V4(address) => {
                4_u8.put(out);
                address.octets().put(out);
            }
            IpAddr::V6(address) => {
                6_u8.put(out);
                address.octets().put(out);
            }
        }
        self.port().put(out);
    }

    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let ip = match u8::take(octets)? {
            4 => IpAddr::from(octets.array::<4>()?),
            6 => IpAddr::from(octets.array::<16>()?),
            other => return Err(Unread::value(other)),
        };
        Ok(Self::new(ip, u16::take(octets)?))
    }
}

impl Field for DsnRange {
    fn put(&self, out: &mut BytesMut) {
        self.seq.put(out);
        self.min.put(out);
        self.max.put(out);
    }

    /// A range has an octet at least.
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let range = Self { seq: u64::take(octets)?, min: Dsn::take(octets)?, max: Dsn::take(octets)? };
        if range.max.before(range.min) {
            return Err(Unread::value(range.max.0).within("max"));
        }
        Ok(range)
    }
}

impl Field for CumAck {
    fn put(&self, out: &mut BytesMut) {
        self.rcv_nxt.put(out);
        self.window_bytes.put(out);
        self.widened_bytes.put(out);
    }

    /// A window that reaches half around the sequence space has its edge behind it.
    fn take(octets: &mut Octets<'_>) -> Result<Self, Unread> {
        let (rcv_nxt, window_bytes) = (Dsn::take(octets)?, u64::take(octets)?);
        let ack = Self { rcv_nxt, window_bytes, widened_bytes: u64::take(octets)? };
        if ack.window_bytes > i64::MAX as u64 {
            return Err(Unread::value(ack.window_bytes).within("window_bytes"));
        }
        if ack.widened_bytes > ack.window_bytes {
            return Err(Unread::value(ack.widened_bytes).within("widened_bytes"));
        }
        Ok(ack)
    }
}

fields!(RangeUpdate { range, ack });
