//! Segments as nearly all are: on an established connection, next in order, with nothing but data or an ACK in them.
//!
//! What `arrival.rs` asks of a segment step by step is asked here at once (header prediction), and what is out of the question
//! then is not asked. A segment that is not expected goes through `arrival.rs`; one that is would end there with the same state.

use units::Instant;
use wire::{Flags, Segment};

use super::{AckOutcome, Tcb, Timer};
use crate::state::State;

impl Tcb {
    /// The segment brings the next data and no news about ours, which are all acknowledged; nothing is held behind them.
    #[inline]
    pub(crate) fn expects_data(&self, segment: &Segment) -> bool {
        self.is_next(segment)
            && self.has_nothing_to_learn(segment)
            && !self.receive.has_ready()
            && self.receive.is_plain(segment.seq, &segment.payload, false)
    }

    /// The segment is an ACK, with or without SACK blocks, of what is outstanding.
    #[inline]
    pub(crate) fn expects_ack(&self, segment: &Segment) -> bool {
        let ahead = segment.ack.since(self.snd_una);
        self.is_next(segment) && segment.payload.is_empty() && ahead <= self.snd_nxt.since(self.snd_una)
    }

    /// Established, next in order, with the options agreed upon and without control bits that mean anything.
    #[inline]
    fn is_next(&self, segment: &Segment) -> bool {
        let is_stamped = match (&self.timestamps, segment.options.timestamps) {
            (Some(state), Some(stamp)) => state.is_up_to_date(stamp),
            (None, None) => true,
            _ => false,
        };
        is_stamped
            && self.state == State::Established
            && segment.seq == self.receive.nxt()
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && !self.negotiated.ecn
    }

    /// Takes a segment of which [`Self::expects_data`] holds, but not its payload: that is next in order, and the caller's.
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

    /// Takes a segment of which [`Self::expects_ack`] holds.
    #[inline]
    pub(crate) fn take_expected_ack(&mut self, segment: &Segment, now: Instant, outcome: &mut AckOutcome) {
        self.note_heard(segment, now);
        self.on_ack(segment, now, outcome);
    }
}
