//! Departure times of packets: in order, at a rate or at the opportunities of a trace.

use units::{Duration, Instant, Rate};

use crate::trace::TraceCursor;

#[derive(Clone, Debug)]
pub(crate) enum Service {
    Fixed {
        rate: Rate,
        free_at: Instant,
        /// Length and serialisation time of the previous packet: most lengths repeat, and a division is slow.
        before: (u32, Duration),
    },
    Trace(TraceCursor),
}

impl Service {
    pub(crate) const fn fixed(rate: Rate) -> Self {
        Self::Fixed { rate, free_at: Instant::ZERO, before: (0, Duration::ZERO) }
    }

    /// Returns when a packet of `wire_len` octets that arrives at `now` has been sent. Calls must follow the order of
    /// arrival.
    #[inline]
    pub(crate) fn departure(&mut self, now: Instant, wire_len: u32) -> Instant {
        match self {
            Self::Fixed { rate, free_at, before } => {
                if before.0 != wire_len {
                    *before = (wire_len, rate.time_to_send(u64::from(wire_len)));
                }
                *free_at = now.max(*free_at) + before.1;
                *free_at
            }
            Self::Trace(cursor) => cursor.departure(now, wire_len),
        }
    }
}
