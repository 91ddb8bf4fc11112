//! Segment arrival, in the order of RFC 9293 section 3.10.7, with the checks of RFC 5961.

use units::{Duration, Instant};
use wire::{Ecn, Flags, Segment};

use super::{AckOutcome, Due, Tcb, Timer};
use crate::state::{State, Step};

/// Minimum interval between challenge ACKs or answers to unacceptable segments (RFC 5961 section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(50);

/// Result of a segment's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not acceptable: ignore its options.
    Dropped,
    /// Acceptable: process its options.
    Accepted,
    /// The peer reset the connection.
    Reset,
    /// The peer refused our SYN.
    Refused,
    /// It acknowledges data that were never sent: answer with a RST (RFC 9293 section 3.10.7.3).
    Unacceptable,
}

/// Effects of an accepted segment, for the connection to act on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arrival {
    /// It completed the handshake.
    pub(crate) established: bool,
    /// Effects of its ACK.
    pub(crate) ack: AckOutcome,
    /// Data arrived in order: [`Tcb::take_ready`] returns them.
    pub(crate) data: bool,
    /// The peer's FIN is in order.
    pub(crate) fin: bool,
}

impl Tcb {
    /// Takes a segment and moves its payload out of it. If accepted, records its effects in `arrival`, which must be
    /// empty.
    #[inline]
    pub(crate) fn on_segment(&mut self, segment: &mut Segment, now: Instant, arrival: &mut Arrival) -> Verdict {
        match self.state {
            State::Closed => Verdict::Dropped,
            State::SynSent => self.arrive_syn_sent(segment, now, arrival),
            _ => self.arrive_synchronized(segment, now, arrival, true),
        }
    }

    /// As [`Self::on_segment`], for a segment with new data that the owner has no room for. They count as lost in the
    /// network, but the segment is answered, and its ACK and window count (RFC 9293 section 3.10.7.4).
    pub(crate) fn on_segment_without_room(
        &mut self,
        segment: &mut Segment,
        now: Instant,
        arrival: &mut Arrival,
    ) -> Verdict {
        match self.state {
            State::Closed | State::SynSent => self.on_segment(segment, now, arrival),
            _ => self.arrive_synchronized(segment, now, arrival, false),
        }
    }

    /// Handles a segment in SYN-SENT (RFC 9293 section 3.10.7.3).
    fn arrive_syn_sent(&mut self, segment: &Segment, now: Instant, arrival: &mut Arrival) -> Verdict {
        let has_ack = segment.flags.contains(Flags::ACK);
        let acks_syn = has_ack && segment.ack == self.iss + 1;
        if has_ack && !acks_syn {
            if segment.flags.contains(Flags::RST) {
                return Verdict::Dropped;
            }
            self.hurry_syn();
            return Verdict::Unacceptable;
        }
        if segment.flags.contains(Flags::RST) {
            return if acks_syn { Verdict::Refused } else { Verdict::Dropped };
        }
        if !segment.flags.contains(Flags::SYN) {
            return Verdict::Dropped;
        }
        self.last_heard_at = now;
        self.negotiate(segment, now);
        if acks_syn {
            self.establish(now);
            self.demand_ack();
            arrival.established = true;
        } else {
            self.step(Step::ReceiveSyn);
            self.timers.stop(Timer::Retransmit);
            self.due.add(Due::SYN);
        }
        Verdict::Accepted
    }

    /// Handles a segment in a later state (RFC 9293 section 3.10.7.4).
    fn arrive_synchronized(
        &mut self,
        segment: &mut Segment,
        now: Instant,
        arrival: &mut Arrival,
        takes_data: bool,
    ) -> Verdict {
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::RST) {
            return self.arrive_another_syn(segment, now, arrival);
        }
        let bytes = segment.payload.sequence_len();
        if !self.check_sequence(segment, bytes, now) {
            return Verdict::Dropped;
        }
        if segment.flags.contains(Flags::RST) {
            return self.arrive_reset(segment, now);
        }
        if takes_data && bytes > 0 && !self.receive.has_room_for(segment.seq, bytes) {
            self.demand_ack();
            return Verdict::Dropped;
        }
        if !segment.flags.contains(Flags::ACK) {
            return Verdict::Dropped;
        }
        if let Some(verdict) = self.check_ack(segment, now, arrival) {
            return verdict;
        }
        self.note_heard(segment, now);
        self.note_ecn(segment);
        self.on_ack(segment, now, &mut arrival.ack);
        if arrival.ack.fin_acked {
            self.on_fin_acked(now);
        }
        if takes_data {
            self.arrive_data(segment, bytes, now, arrival);
        } else {
            self.demand_ack();
        }
        Verdict::Accepted
    }

    /// Records that the peer lives, and its clock.
    #[inline]
    pub(super) fn note_heard(&mut self, segment: &Segment, now: Instant) {
        self.last_heard_at = now;
        self.keep_alive_probes = 0;
        self.persist.unanswered = 0;
        if let (Some(state), Some(stamp)) = (&mut self.timestamps, segment.options.timestamps) {
            state.update(stamp, segment.seq, now);
        }
    }

    /// Handles another SYN. Within a connection no SYN is ever believed, whatever its sequence number (RFC 5961 section
    /// 4).
    fn arrive_another_syn(&mut self, segment: &Segment, now: Instant, arrival: &mut Arrival) -> Verdict {
        if self.state != State::SynReceived || segment.seq != self.receive.irs() {
            self.challenge(now);
            return Verdict::Dropped;
        }
        if !segment.flags.contains(Flags::ACK) || segment.ack != self.iss + 1 {
            // The peer repeats its SYN: our SYN/ACK was lost.
            self.due.add(Due::SYN);
            return Verdict::Dropped;
        }
        // Simultaneous open: this is the peer's SYN/ACK (RFC 9293 figure 8). Its window is not scaled.
        self.establish(now);
        self.last_heard_at = now;
        self.snd_wnd = u32::from(segment.window);
        self.snd_wl2 = segment.ack;
        self.demand_ack();
        arrival.established = true;
        Verdict::Accepted
    }

    /// First step: PAWS (RFC 7323 section 5.3) and the window test. Answers failures with an ACK.
    fn check_sequence(&mut self, segment: &Segment, bytes: u32, now: Instant) -> bool {
        if segment.flags.contains(Flags::RST) {
            // RFC 9293 MUST-66: even if the window is shut.
            return self.receive.is_acceptable(segment.seq, 0);
        }
        // A segment without the agreed timestamps passes (docs/rfc-deviations.md): a network may have removed them.
        let old = self
            .timestamps
            .as_ref()
            .zip(segment.options.timestamps)
            .is_some_and(|(state, stamp)| state.is_old(stamp, now));
        let len = bytes.saturating_add(segment.flags.contains(Flags::FIN).into());
        let acceptable =
            self.receive.is_acceptable(segment.seq, len) || (len == 0 && self.receive.is_right_edge(segment.seq));
        if old || !acceptable {
            self.answer_unacceptable(segment, old, now);
        }
        acceptable && !old
    }

    fn answer_unacceptable(&mut self, segment: &Segment, is_old: bool, now: Instant) {
        if segment.sequence_len() > 0 && segment.seq.before(self.receive.nxt()) {
            self.counters.received_segments += u64::from(!segment.payload.is_empty());
            self.counters.received_bytes += segment.payload.len() as u64;
            self.counters.duplicate_bytes += segment.payload.len() as u64;
            // A repeated FIN or old data: the peer missed our ACK.
            self.demand_ack();
            if !segment.payload.is_empty() && !is_old {
                self.ack_policy.on_again();
                self.receive.note_duplicate(segment.seq, segment.seq + segment.payload.sequence_len());
            }
            if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
                self.timers.set(Timer::Linger, now + self.config.time_wait);
            }
        } else {
            self.challenge(now);
        }
    }

    /// Second step, by RFC 5961 section 3: only an exact match resets.
    fn arrive_reset(&mut self, segment: &Segment, now: Instant) -> Verdict {
        if segment.seq != self.receive.nxt() {
            self.challenge(now);
            return Verdict::Dropped;
        }
        let refused = self.state == State::SynReceived;
        self.close();
        if refused { Verdict::Refused } else { Verdict::Reset }
    }

    /// Sends an ACK that tells a confused or forging peer our state.
    fn challenge(&mut self, now: Instant) {
        if now >= self.challenge_allowed_at {
            self.challenge_allowed_at = now + CHALLENGE_INTERVAL;
            self.demand_ack();
        }
    }

    /// Fifth step: checks the ACK field. `Some` ends the processing.
    fn check_ack(&mut self, segment: &Segment, now: Instant, arrival: &mut Arrival) -> Option<Verdict> {
        let ack = segment.ack;
        if self.state == State::SynReceived {
            if ack != self.iss + 1 {
                return Some(Verdict::Unacceptable);
            }
            self.establish(now);
            // RFC 9293: SND.WND, SND.WL1 and SND.WL2 start from the segment that completes the handshake.
            self.snd_wl1 = segment.seq - 1;
            arrival.established = true;
        }
        let too_new = ack.after(self.snd_nxt);
        let too_old = ack.before(self.snd_una - self.max_snd_wnd);
        if too_new || too_old {
            self.challenge(now);
            return Some(Verdict::Dropped);
        }
        None
    }

    /// Handles ECN (RFC 3168 sections 6.1.2 and 6.1.3).
    fn note_ecn(&mut self, segment: &Segment) {
        if !self.negotiated.ecn {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.ecn.echo = false;
        }
        if segment.ecn == Ecn::CongestionExperienced {
            self.ecn.echo = true;
            self.demand_ack();
        }
    }

    fn on_fin_acked(&mut self, now: Instant) {
        self.step(Step::FinAcked);
        match self.state {
            State::TimeWait => self.enter_time_wait(now),
            State::Closed => self.close(),
            State::FinWait2 => self.bound_fin_wait(now),
            _ => {}
        }
    }

    /// Limits FIN-WAIT-2 with a peer that is not waited for, whatever the peer sends.
    pub(crate) fn bound_fin_wait(&mut self, now: Instant) {
        if self.abandoned && self.state == State::FinWait2 && !self.timers.is_set(Timer::Linger) {
            self.timers.set(Timer::Linger, now + self.config.user_timeout);
        }
    }

    /// Seventh and eighth steps: text and FIN.
    fn arrive_data(&mut self, segment: &mut Segment, bytes: u32, now: Instant, arrival: &mut Arrival) {
        let fin = segment.flags.contains(Flags::FIN);
        if !self.state.can_receive() || (bytes == 0 && !fin) {
            return;
        }
        let payload = core::mem::take(&mut segment.payload);
        let next = self.receive.nxt();
        let accepted = self.receive.accept(segment.seq, payload, fin);
        if bytes > 0 {
            if self.receive.nxt() != next {
                self.ack_policy.on_next(now, self.rtt.rto());
            }
            self.count_data(bytes, accepted.duplicate_bytes);
            self.bound_fin_wait(now);
        }
        if accepted.out_of_order || fin || self.config.delayed_ack.is_zero() {
            self.demand_ack();
        } else if self.ack_policy.is_owed() && !self.timers.is_set(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, now + self.ack_policy.delay(self.config.delayed_ack, self.rtt.srtt()));
        }
        arrival.data = self.receive.has_ready();
        if accepted.fin {
            arrival.fin = true;
            self.step(Step::ReceiveFin);
            if self.state == State::TimeWait {
                self.enter_time_wait(now);
            }
        }
    }

    #[inline]
    pub(super) fn count_data(&mut self, bytes: u32, duplicate_bytes: u32) {
        self.counters.received_segments += 1;
        self.counters.received_bytes += u64::from(bytes);
        self.counters.duplicate_bytes += u64::from(duplicate_bytes);
        let full_segment = self.payload_max();
        self.ack_policy.on_data(bytes, full_segment);
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.timers.stop_all();
        self.timers.set(Timer::Linger, now + self.config.time_wait);
    }
}
