//! When packets depart: after those before them, at a rate or at the opportunities of a trace.

use units::{Instant, Rate};

use crate::trace::TraceCursor;

#[derive(Clone, Debug)]
pub(crate) enum Service {
    Fixed { rate: Rate, free_at: Instant },
    Trace(TraceCursor),
}

impl Service {
    pub(crate) const fn fixed(rate: Rate) -> Self {
        Self::Fixed { rate, free_at: Instant::ZERO }
    }

    /// When a packet of `wire_len` octets that arrives `now` has been sent; calls go in order of arrival.
    #[inline]
    pub(crate) fn departure(&mut self, now: Instant, wire_len: u32) -> Instant {
        match self {
            Self::Fixed { rate, free_at } => {
                *free_at = now.max(*free_at) + rate.time_to_send(u64::from(wire_len));
                *free_at
            }
            Self::Trace(cursor) => cursor.departure(now, wire_len),
        }
    }
}
