//! The third ACK of a join, with the HMAC that proves the keys: repeated until the peer answers it (RFC 8684 section
//! 3.2).

use units::Instant;

use crate::tcp::Tcb;

/// Repetitions after which the peer or a middlebox evidently rejects the join.
const TRIES_MAX: u32 = 6;

/// An HMAC that was sent and is not yet answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JoinProof {
    hmac: [u8; 20],
    resend_at: Instant,
    tries: u32,
}

impl JoinProof {
    /// Sends the HMAC on an ACK of `tcb`, for the first time.
    pub(crate) fn send(hmac: [u8; 20], tcb: &mut Tcb, now: Instant) -> Self {
        tcb.demand_ack();
        Self { hmac, resend_at: now + tcb.rto(), tries: 0 }
    }

    /// Returns the HMAC, for control segments.
    pub(crate) fn hmac(&self) -> [u8; 20] {
        self.hmac
    }

    /// Returns when to call [`Self::repeat_if_due`].
    pub(crate) fn resend_at(&self) -> Instant {
        self.resend_at
    }

    /// Repeats the HMAC if it is due. Returns false if it was repeated often enough.
    pub(crate) fn repeat_if_due(&mut self, tcb: &mut Tcb, now: Instant) -> bool {
        if self.resend_at > now {
            return true;
        }
        self.tries += 1;
        self.resend_at = now + tcb.rto().saturating_mul(1 << self.tries.min(TRIES_MAX));
        tcb.demand_ack();
        self.tries <= TRIES_MAX
    }
}
