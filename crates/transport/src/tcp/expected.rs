//! Fast path for nearly all segments: on an established connection, next in order, and with only data or an ACK.
//!
//! This file checks at once what `arrival.rs` checks step by step (header prediction), and omits all checks that cannot
//! apply. Other segments go through `arrival.rs`, which would handle an expected segment with the same result.

use units::Instant;
use wire::{Flags, Segment};

use super::{AckOutcome, Tcb, Timer};
use crate::state::State;

impl Tcb {
    /// Whether the segment brings the next data and no news about ours, which are all acknowledged, and nothing is held
    /// behind the data.
    #[inline]
    pub(crate) fn expects_data(&self, segment: &Segment) -> bool {
        self.is_next(segment)
            && self.has_nothing_to_learn(segment)
            && !self.receive.has_ready()
            && self.receive.is_plain(segment.seq, &segment.payload, false)
    }

    /// Whether the segment is an ACK of outstanding data, with or without SACK blocks.
    #[inline]
    pub(crate) fn expects_ack(&self, segment: &Segment) -> bool {
        let ahead = segment.ack.since(self.snd_una);
        self.is_next(segment) && segment.payload.is_empty() && ahead <= self.snd_nxt.since(self.snd_una)
    }

    /// Whether the segment is next in order on an established connection, with no old timestamp and without relevant
    /// control bits.
    #[inline]
    fn is_next(&self, segment: &Segment) -> bool {
        let is_in_time = match (&self.timestamps, segment.options.timestamps) {
            (Some(state), Some(stamp)) => state.is_up_to_date(stamp),
            _ => true,
        };
        is_in_time
            && self.state == State::Established
            && segment.seq == self.receive.nxt()
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && !self.negotiated.ecn
    }

    /// Takes a segment for which [`Self::expects_data`] holds, except its payload: the caller has the payload, which is
    /// next in order.
    #[inline]
    pub(crate) fn take_expected_data(&mut self, segment: &Segment, now: Instant) {
        self.note_heard(segment, now);
        self.learn_nothing(segment, now);
        let bytes = segment.payload.sequence_len();
        self.receive.pass_by(bytes);
        self.ack_policy.on_next(now, self.rtt.rto());
        self.count_data(bytes, 0);
        if self.config.delayed_ack.is_zero() {
            self.demand_ack();
        } else if !self.timers.is_set(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, now + self.ack_policy.delay(self.config.delayed_ack, self.rtt.srtt()));
        }
    }

    /// Takes a segment for which [`Self::expects_ack`] holds.
    #[inline]
    pub(crate) fn take_expected_ack(&mut self, segment: &Segment, now: Instant, outcome: &mut AckOutcome) {
        self.note_heard(segment, now);
        self.on_ack(segment, now, outcome);
    }
}
