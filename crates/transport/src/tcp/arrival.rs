//! Segment arrival, in the order of RFC 9293 section 3.10.7, with the checks of RFC 5961.

use units::{Duration, Instant};
use wire::{Ecn, Flags, Segment};

use super::{AckOutcome, Tcb, Timer};
use crate::state::{State, Step};

/// Challenge ACKs and answers to unacceptable segments are at least this far apart (RFC 5961 section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(50);

/// What became of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not acceptable: its options mean nothing.
    #[default]
    Dropped,
    /// Acceptable: its options count.
    Accepted,
    /// The peer reset the connection.
    Reset,
    /// The peer refused our SYN.
    Refused,
    /// It acknowledges what was never sent to it: answer with a RST (RFC 9293 section 3.10.7.3).
    Unacceptable,
}

/// What a segment did, for the connection to act upon.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) verdict: Verdict,
    /// It completed the handshake.
    pub(crate) established: bool,
    /// What its ACK told.
    pub(crate) ack: AckOutcome,
    /// Data came in order: [`Tcb::take_ready`] has them.
    pub(crate) data: bool,
    /// The peer's FIN is in order.
    pub(crate) fin: bool,
}

impl Arrival {
    fn verdict(verdict: Verdict) -> Self {
        Self { verdict, ..Self::default() }
    }
}

impl Tcb {
    /// Takes a segment; its payload is moved out of it.
    pub(crate) fn on_segment(&mut self, segment: &mut Segment, now: Instant) -> Arrival {
        match self.state {
            State::Closed => Arrival::default(),
            State::SynSent => self.arrive_syn_sent(segment, now),
            _ => self.arrive_synchronized(segment, now),
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn arrive_syn_sent(&mut self, segment: &Segment, now: Instant) -> Arrival {
        let has_ack = segment.flags.contains(Flags::ACK);
        let acks_syn = has_ack && segment.ack == self.iss + 1;
        if has_ack && !acks_syn {
            let reset = segment.flags.contains(Flags::RST);
            return Arrival::verdict(if reset { Verdict::Dropped } else { Verdict::Unacceptable });
        }
        if segment.flags.contains(Flags::RST) {
            return Arrival::verdict(if acks_syn { Verdict::Refused } else { Verdict::Dropped });
        }
        if !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        let sent_at = self.last_sent_at;
        self.last_heard_at = now;
        self.negotiate(segment, now);
        let mut arrival = Arrival::verdict(Verdict::Accepted);
        if acks_syn {
            self.snd_una = segment.ack;
            if self.rtt.backoff() == 0 {
                self.rtt.sample(now.saturating_since(sent_at), now);
            }
            self.state = self.state.after(Step::SynAcked);
            self.establish(now);
            self.demand_ack();
            arrival.established = true;
        } else {
            self.state = self.state.after(Step::ReceiveSyn);
            self.timers.stop(Timer::Retransmit);
            self.due.syn = true;
        }
        arrival
    }

    /// RFC 9293 section 3.10.7.4.
    fn arrive_synchronized(&mut self, segment: &mut Segment, now: Instant) -> Arrival {
        if !self.check_sequence(segment, now) {
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) {
            return self.arrive_reset(segment, now);
        }
        if segment.flags.contains(Flags::SYN) {
            // RFC 5961 section 4: never believe a SYN inside a connection.
            self.challenge(now);
            return Arrival::default();
        }
        if !segment.flags.contains(Flags::ACK) {
            return Arrival::default();
        }
        let mut arrival = Arrival::verdict(Verdict::Accepted);
        if let Some(verdict) = self.check_ack(segment, now, &mut arrival) {
            return Arrival::verdict(verdict);
        }
        self.last_heard_at = now;
        self.keep_alive_probes = 0;
        if let (Some(state), Some(stamp)) = (&mut self.timestamps, segment.options.timestamps) {
            state.update(stamp, segment.seq, now);
        }
        self.note_ecn(segment);
        arrival.ack = self.on_ack(segment, now);
        if arrival.ack.fin_acked {
            self.on_fin_acked(now);
        }
        self.arrive_data(segment, now, &mut arrival);
        arrival
    }

    /// First step: PAWS (RFC 7323 section 5.3) and the window test. Whatever fails is answered with an ACK.
    fn check_sequence(&mut self, segment: &Segment, now: Instant) -> bool {
        let is_reset = segment.flags.contains(Flags::RST);
        if self.state == State::SynReceived && segment.flags.contains(Flags::SYN) && segment.seq == self.receive.irs() {
            // The peer repeats its SYN, or both opened at once: our SYN/ACK answers.
            let both_opened = segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1;
            if both_opened {
                return true;
            }
            self.due.syn = true;
            return false;
        }
        let old = self
            .timestamps
            .as_ref()
            .zip(segment.options.timestamps)
            .is_some_and(|(state, stamp)| state.is_old(stamp, now));
        let acceptable = self.receive.is_acceptable(segment.seq, segment.sequence_len());
        if (old || !acceptable) && !is_reset {
            // A repeated FIN or old data: the peer missed our ACK.
            self.answer_unacceptable(segment, now);
        }
        if is_reset { acceptable } else { acceptable && !old }
    }

    fn answer_unacceptable(&mut self, segment: &Segment, now: Instant) {
        if segment.sequence_len() > 0 && segment.seq.before(self.receive.nxt()) {
            self.counters.received_segments += u64::from(!segment.payload.is_empty());
            self.counters.received_bytes += segment.payload.len() as u64;
            self.counters.duplicate_bytes += segment.payload.len() as u64;
            self.demand_ack();
            if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
                self.timers.set(Timer::Linger, now + self.config.time_wait);
            }
        } else {
            self.challenge(now);
        }
    }

    /// Second step, as RFC 5961 section 3 has it: only an exact match resets.
    fn arrive_reset(&mut self, segment: &Segment, now: Instant) -> Arrival {
        if segment.seq != self.receive.nxt() {
            self.challenge(now);
            return Arrival::default();
        }
        let refused = self.state == State::SynReceived;
        self.close();
        Arrival::verdict(if refused { Verdict::Refused } else { Verdict::Reset })
    }

    /// An ACK that tells a confused or forging peer where we are.
    fn challenge(&mut self, now: Instant) {
        if now >= self.challenge_allowed_at {
            self.challenge_allowed_at = now + CHALLENGE_INTERVAL;
            self.demand_ack();
        }
    }

    /// Fifth step: is the ACK field credible? `Some` ends the processing.
    fn check_ack(&mut self, segment: &Segment, now: Instant, arrival: &mut Arrival) -> Option<Verdict> {
        let ack = segment.ack;
        if self.state == State::SynReceived {
            if ack != self.iss + 1 && !(ack.after(self.iss) && ack.before_or_at(self.snd_nxt)) {
                return Some(Verdict::Unacceptable);
            }
            self.snd_una = self.iss + 1;
            if self.rtt.backoff() == 0 {
                self.rtt.sample(now.saturating_since(self.last_sent_at), now);
            }
            self.state = self.state.after(Step::SynAcked);
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

    /// RFC 3168 sections 6.1.2 and 6.1.3.
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
        self.state = self.state.after(Step::FinAcked);
        match self.state {
            State::TimeWait => self.enter_time_wait(now),
            State::Closed => self.close(),
            // The peer may never close: do not wait for it longer than for anything else.
            State::FinWait2 => self.timers.set(Timer::Linger, now + self.config.user_timeout),
            _ => {}
        }
    }

    /// Seventh and eighth step: text and FIN.
    fn arrive_data(&mut self, segment: &mut Segment, now: Instant, arrival: &mut Arrival) {
        let fin = segment.flags.contains(Flags::FIN);
        if !self.state.can_receive() || (segment.payload.is_empty() && !fin) {
            return;
        }
        let payload = core::mem::take(&mut segment.payload);
        let bytes = payload.len() as u32;
        let accepted = self.receive.accept(segment.seq, payload, fin);
        if bytes > 0 {
            self.counters.received_segments += 1;
            self.counters.received_bytes += u64::from(bytes);
            self.counters.duplicate_bytes += u64::from(accepted.duplicate_bytes);
            let full_segment = self.payload_max();
            self.ack_policy.on_data(bytes, full_segment);
        }
        if accepted.out_of_order || fin || self.config.delayed_ack.is_zero() {
            self.demand_ack();
        } else if self.ack_policy.is_owed() && !self.timers.is_set(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, now + self.config.delayed_ack);
        }
        arrival.data = self.receive.has_ready();
        if accepted.fin {
            arrival.fin = true;
            self.state = self.state.after(Step::ReceiveFin);
            if self.state == State::TimeWait {
                self.enter_time_wait(now);
            }
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.timers.stop_all();
        self.timers.set(Timer::Linger, now + self.config.time_wait);
    }
}
