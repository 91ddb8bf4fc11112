//! Choice of the next segment: handshake, retransmissions, new data, FIN, probes, ACKs (RFC 9293 sections 3.8 and
//! 3.10).

use bytes::Bytes;
use units::Instant;
use units::narrow::u32_from;
use wire::{Ecn, Flags, Options, Payload, Segment};

use super::scoreboard::Sent;
use super::{Chunk, Due, Eifel, Tcb, Timer};
use crate::era::RepairTimer;
use crate::label::Label;
use crate::state::{State, Step};

/// Limits that the connection sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Receive window to announce, octets.
    pub(crate) receive_window: u32,
    /// Largest payload of one segment handed to the driver; the MSS without offload.
    pub(crate) offload_max: u32,
    /// Whether more data will follow, so that a push is unnecessary.
    pub(crate) more: bool,
}

/// Purpose of a segment, by which the connection adds its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutgoingKind {
    /// SYN or SYN/ACK.
    Syn,
    /// Data with their label.
    Data(Label),
    /// An ACK, a probe or a FIN without data.
    Control,
    /// RST.
    Reset,
}

/// Effect of a segment with new data on the tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailProbe {
    /// The probe follows this segment.
    Moves,
    /// The probe follows a segment that left at the same time, and nothing has happened since.
    Stays,
}

/// Marks on the last octet of a segment.
#[derive(Clone, Copy, Debug)]
struct Ending {
    push: bool,
    fin: bool,
}

impl Tcb {
    /// Whether [`Self::transmit`] may have a segment. Usually false, and cheap to check.
    #[inline]
    pub(crate) fn has_something_to_send(&self) -> bool {
        self.has_more_than_acks() | self.ack_policy.is_due()
    }

    #[inline]
    fn has_more_than_acks(&self) -> bool {
        // Evaluate all conditions without a branch: a short fixed sequence instead of the likely ones first.
        !self.unsent.is_empty()
            | self.board.waits_for_resend()
            | !self.due.is_empty()
            | (self.fin_requested & !self.fin_sent)
    }

    /// Builds the next segment in `segment`, if one is due and allowed. Otherwise the contents of `segment` are
    /// meaningless.
    pub(crate) fn transmit(
        &mut self,
        segment: &mut Segment,
        limits: &SendLimits,
        now: Instant,
    ) -> Option<OutgoingKind> {
        if self.due.has(Due::RESET) {
            return Some(self.send_reset(segment, now));
        }
        if self.due.has(Due::SYN) {
            self.build_syn(segment, limits.receive_window, now);
            return Some(OutgoingKind::Syn);
        }
        // Data would displace the SACK blocks that are due.
        let report_first = self.ack_policy.is_due() && self.has_blocks_to_report();
        let data = match self.state {
            State::SynSent | State::Closed => return None,
            State::SynReceived | State::TimeWait | State::FinWait2 => None,
            _ if report_first || !self.has_more_than_acks() => None,
            _ => self.next_data(segment, limits, now),
        };
        let kind = match data {
            Some(kind) => kind,
            None => self.next_control(segment)?,
        };
        self.finish(segment, limits.receive_window, now);
        Some(kind)
    }

    fn send_reset(&mut self, segment: &mut Segment, now: Instant) -> OutgoingKind {
        self.due.take(Due::RESET);
        self.begin(segment);
        segment.flags = Flags::RST | Flags::ACK;
        // RFC 7323 section 3.2: a RST should carry timestamps, once agreed on.
        let agreed = self.timestamps.as_ref().filter(|state| state.is_agreed());
        segment.options.timestamps = agreed.map(|state| state.stamp(now));
        OutgoingKind::Reset
    }

    fn next_data(&mut self, segment: &mut Segment, limits: &SendLimits, now: Instant) -> Option<OutgoingKind> {
        if let Some(kind) = self.resend_lost(segment, now) {
            return Some(kind);
        }
        if self.due.take(Due::TAIL_PROBE) {
            // An ACK may have left nothing to probe. What waits then must not: no timer would send it later.
            if let Some(kind) = self.send_tail_probe(segment, limits, now) {
                return Some(kind);
            }
        }
        self.send_new(segment, limits, now).or_else(|| self.send_fin(segment, now))
    }

    /// Retransmits the first segment deemed lost, if the window allows.
    fn resend_lost(&mut self, segment: &mut Segment, now: Instant) -> Option<OutgoingKind> {
        let forced = self.due.take(Due::FIRST_AGAIN);
        let position = self.board.next_to_resend()?;
        if !forced && self.in_flight() >= self.window.cwnd() {
            return None;
        }
        if !forced && self.waits_for_pace(now) {
            return None;
        }
        Some(self.resend(position, segment, now))
    }

    fn resend(&mut self, position: usize, segment: &mut Segment, now: Instant) -> OutgoingKind {
        self.board.trim_to(position, self.payload_max());
        let sent = self.board.resend(position, now);
        let (seq, len, payload, fin, push) = (sent.seq, sent.len, sent.payload.clone(), sent.fin, sent.push);
        let data = OutgoingKind::Data(sent.label);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += payload.len() as u64;
        self.counters.sent_segments += u64::from(!payload.is_empty());
        self.window.on_sent(u64::from(len));
        self.pacer.on_sent(len, self.payload_max(), self.rtt.rto_max(), now);
        self.last_sent_at = now;
        self.note_use_of_window();
        if self.eifel == Eifel::Armed {
            // RFC 3522 concerns the oldest outstanding segment: only the next ACK that advances answers it.
            let state = self.timestamps.as_ref().filter(|_| position == 0);
            self.eifel = state.map_or(Eifel::Idle, |state| Eifel::Stamped(state.ticks(now)));
        }
        self.time_repair(position, now);
        self.begin(segment);
        segment.seq = seq;
        if fin {
            segment.flags |= Flags::FIN;
        }
        if push {
            segment.flags |= Flags::PSH;
        }
        let kind = if payload.is_empty() { OutgoingKind::Control } else { data };
        segment.payload = payload;
        kind
    }

    /// Sends a tail loss probe (RFC 8985 section 7.3): new data if there are any, else the last segment again.
    fn send_tail_probe(&mut self, segment: &mut Segment, limits: &SendLimits, now: Instant) -> Option<OutgoingKind> {
        if self.board.is_empty() || self.tail_probe.is_some() {
            return None;
        }
        let usable = self.usable_window();
        let has_new = self.unsent.front().is_some_and(|chunk| chunk.payload.sequence_len() <= usable);
        if has_new {
            let piece = self.payload_max();
            let kind = self.send_chunk(piece, piece, segment, limits, now);
            self.tail_probe = Some((self.snd_nxt, false));
            // What follows a probe is the time-out, not another probe.
            self.timers.stop(Timer::TailProbe);
            return Some(kind);
        }
        // Only the last piece of a super-segment.
        let position = self.board.last_piece(self.payload_max())?;
        self.tail_probe = Some((self.snd_nxt, true));
        Some(self.resend(position, segment, now))
    }

    /// Returns the octets that the peer's window still takes.
    pub(crate) fn usable_window(&self) -> u32 {
        let edge = self.snd_una + self.snd_wnd;
        if edge.after(self.snd_nxt) { edge.since(self.snd_nxt) } else { 0 }
    }

    /// Sends queued data within the congestion window and receive window.
    fn send_new(&mut self, segment: &mut Segment, limits: &SendLimits, now: Instant) -> Option<OutgoingKind> {
        if !self.state.can_send() {
            return None;
        }
        let waiting = self.unsent.front()?.payload.sequence_len();
        let in_flight = self.in_flight();
        if in_flight == 0 && now.saturating_since(self.last_sent_at) > self.rtt.rto() {
            self.window.restart(self.initial_window_segments());
        }
        if let Some(kind) = self.send_probe(waiting, segment, limits, now) {
            return Some(kind);
        }
        let wanted = waiting.min(self.super_segment_max(limits.offload_max).max(self.payload_max()));
        let by_cwnd = self.allowed_by_cwnd(wanted, in_flight)?;
        let by_window = self.allowed_by_window(by_cwnd, now)?;
        if self.waits_for_pace(now) {
            return None;
        }
        Some(self.send_chunk(by_window, self.payload_max(), segment, limits, now))
    }

    /// Allows whole segments as long as they fit; with an empty network, always one.
    fn allowed_by_cwnd(&mut self, wanted: u32, in_flight: u64) -> Option<u32> {
        let mss = self.payload_max();
        let room = self.window.cwnd().saturating_sub(in_flight);
        if u64::from(wanted) <= room {
            return Some(wanted);
        }
        let whole = u32_from(room / u64::from(mss) * u64::from(mss));
        match whole {
            0 if in_flight == 0 => Some(wanted.min(mss)),
            0 => {
                self.cwnd_limited = true;
                None
            }
            whole => Some(whole.min(wanted)),
        }
    }

    /// Avoids silly windows as sender (RFC 9293 section 3.8.6.2.1).
    fn allowed_by_window(&mut self, wanted: u32, now: Instant) -> Option<u32> {
        let usable = self.usable_window();
        if wanted <= usable {
            return Some(wanted);
        }
        let mss = self.payload_max();
        if usable >= mss {
            return Some(usable - usable % mss);
        }
        if usable > 0 && (usable >= self.least_worth_sending() || self.due.has(Due::SMALL_SEGMENT)) {
            return Some(usable);
        }
        if self.board.is_empty() {
            self.arm_persist(now);
        }
        None
    }

    /// Returns the smallest window into which it sends before the peer's window has room for everything.
    pub(crate) fn least_worth_sending(&self) -> u32 {
        self.payload_max().min(self.max_snd_wnd / 2).max(1)
    }

    /// Schedules a probe of the peer's shut window (RFC 9293 section 3.8.6.1).
    pub(crate) fn arm_persist(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Persist) {
            self.probing_since = now;
            self.timers.set(Timer::Persist, now + self.persist_interval());
        }
    }

    /// Probes as early as if the window had only just been shut, once until it opens.
    pub(crate) fn hurry_persist(&mut self, now: Instant) {
        if self.persist.backoff > 0 && !core::mem::replace(&mut self.persist.hurried, true) {
            self.persist.backoff = 0;
            let at = (now + self.persist_interval()).min(self.timers.deadline(Timer::Persist));
            self.timers.set(Timer::Persist, at);
        }
    }

    /// Whether the window has been too small for so long that any fitting amount may go.
    pub(crate) fn may_send_small(&self) -> bool {
        self.due.has(Due::SMALL_SEGMENT)
    }

    #[inline]
    fn take_chunk(&mut self, max: u32) -> Chunk {
        let front = self.unsent.front_mut().expect("the caller saw a chunk");
        let chunk = if front.payload.sequence_len() > max {
            let payload = front.payload.split_to(max as usize);
            let label = front.label;
            front.label = label.behind(max);
            Chunk { label, payload }
        } else {
            self.unsent.pop_front().expect("the caller saw a chunk")
        };
        self.unsent_bytes -= chunk.payload.len() as u64;
        chunk
    }

    /// Sends at most `max` octets of the front of the queue for the first time, in packets of `piece` octets of
    /// payload.
    pub(super) fn send_chunk(
        &mut self,
        max: u32,
        piece: u32,
        segment: &mut Segment,
        limits: &SendLimits,
        now: Instant,
    ) -> OutgoingKind {
        let chunk = self.take_chunk(max);
        let label = chunk.label;
        let last = self.unsent.is_empty();
        let fits = chunk.payload.sequence_len() != self.usable_window();
        let fin = last && fits && self.fin_requested && !self.fin_sent;
        self.fill(chunk, piece, Ending { push: last && !limits.more, fin }, segment, now);
        self.arm_tail_probe(now);
        OutgoingKind::Data(label)
    }

    /// Whether data can bypass the queue, in a segment of at most [`Self::payload_max`] that no other rule affects. The
    /// caller has checked that there is room, and that nothing waits ([`Self::has_something_to_send`]).
    #[inline]
    pub(crate) fn is_free_for_data(&mut self, now: Instant) -> bool {
        self.in_flight() > 0 && !self.is_paced() && !self.wants_probe(now)
    }

    /// Builds a segment in `segment` with these data, which more data follow at once. The result equals that of
    /// [`Self::transmit`] for pushed data, provided that [`Self::is_free_for_data`] holds.
    #[inline]
    pub(crate) fn transmit_at_once(
        &mut self,
        data: Chunk,
        probe: TailProbe,
        segment: &mut Segment,
        receive_window: u32,
        now: Instant,
    ) {
        self.fill(data, self.payload_max(), Ending { push: false, fin: false }, segment, now);
        if probe == TailProbe::Moves {
            self.arm_tail_probe(now);
        }
        self.finish(segment, receive_window, now);
    }

    /// Builds a segment in `segment` with data sent for the first time, in packets of `piece` octets of payload. The
    /// caller handles the tail loss probe.
    #[inline(always)]
    fn fill(&mut self, chunk: Chunk, piece: u32, ending: Ending, segment: &mut Segment, now: Instant) {
        self.begin(segment);
        if ending.push {
            segment.flags |= Flags::PSH;
        }
        self.due.take(Due::SMALL_SEGMENT);
        if self.negotiated.ecn {
            segment.ecn = Ecn::Capable0;
            if core::mem::take(&mut self.ecn.cwr_due) {
                segment.flags |= Flags::CWR;
            }
        }
        segment.payload = chunk.payload.clone();
        self.counters.sent_segments += 1;
        self.counters.sent_bytes += chunk.payload.len() as u64;
        self.pacer.on_sent(chunk.payload.sequence_len(), self.payload_max(), self.rtt.rto_max(), now);
        self.record(chunk, piece, ending, now);
        if ending.fin {
            segment.flags |= Flags::FIN;
        }
        self.note_use_of_window();
    }

    /// Records whether the window has room for another segment, after a transmission or retransmission.
    fn note_use_of_window(&mut self) {
        self.cwnd_limited = self.in_flight() + u64::from(self.payload_max()) > self.window.cwnd();
    }

    /// Sends a separate FIN once everything before it is sent.
    fn send_fin(&mut self, segment: &mut Segment, now: Instant) -> Option<OutgoingKind> {
        if !self.fin_requested || self.fin_sent || !self.unsent.is_empty() || !self.state.can_send() {
            return None;
        }
        self.begin(segment);
        segment.flags |= Flags::FIN;
        self.record(Chunk { label: Label::NONE, payload: Payload::Empty }, 1, Ending { push: false, fin: true }, now);
        self.arm_tail_probe(now);
        Some(OutgoingKind::Control)
    }

    /// Replaces the labels of all data that it holds.
    pub(crate) fn relabel_all(&mut self, change: impl Fn(Label) -> Label) {
        self.board.relabel_all(&change);
        self.unsent.iter_mut().for_each(|chunk| chunk.label = change(chunk.label));
    }

    /// Replaces the label of the segment with data just sent for the first time.
    pub(crate) fn relabel(&mut self, label: Label) {
        self.board.relabel_last(label);
    }

    /// Records a first transmission at SND.NXT.
    #[inline(always)]
    fn record(&mut self, chunk: Chunk, piece: u32, ending: Ending, now: Instant) {
        let (Chunk { label, payload }, Ending { push, fin }) = (chunk, ending);
        let len = payload.sequence_len() + u32::from(fin);
        let seq = self.snd_nxt;
        self.snd_nxt += len;
        if fin {
            self.fin_sent = true;
            self.step(Step::SendFin);
        }
        let was_empty = self.board.is_empty();
        self.board.push(Sent {
            seq,
            len,
            label,
            payload,
            piece,
            sent_at: now,
            push,
            fin,
            sacked: false,
            lost: false,
            too_big: false,
            retransmitted: false,
            resent: false,
        });
        self.window.on_sent(u64::from(len));
        self.last_sent_at = now;
        if was_empty {
            self.timers.set(Timer::User, now + self.config.user_timeout);
            self.idle.before_data = now.saturating_since(self.idle.since);
        }
        self.arm_retransmit(now);
    }

    /// Sets the timers for the retransmission of the segment at `position`.
    fn time_repair(&mut self, position: usize, now: Instant) {
        let is_first = position == 0 && self.window.is_repairing();
        if is_first && self.has_sack() && self.config.era.repair_timer != RepairTimer::OnAck {
            self.timers.stop(Timer::Retransmit);
        }
        self.arm_retransmit(now);
    }

    /// Starts the retransmission timer (RFC 6298 section 5.1).
    fn arm_retransmit(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Retransmit) {
            self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
    }

    fn next_control(&mut self, segment: &mut Segment) -> Option<OutgoingKind> {
        let question = self.due.take(Due::QUESTION);
        let probe = self.due.take(Due::PROBE) | question;
        if !probe && !self.ack_policy.is_due() {
            return None;
        }
        self.begin(segment);
        if probe {
            segment.seq = self.snd_una - 1;
        }
        if question {
            segment.payload = Bytes::from_static(&[0]).into();
            (self.asked, self.has_asked) = (self.snd_una, true);
        }
        Some(OutgoingKind::Control)
    }

    /// Adds what every segment of a synchronised connection carries.
    #[inline(always)]
    fn finish(&mut self, segment: &mut Segment, receive_window: u32, now: Instant) {
        segment.ack = self.receive.nxt();
        let scale = self.negotiated.rcv_wscale;
        segment.window = (receive_window >> scale).min(0xffff) as u16;
        self.receive.announce(u32::from(segment.window) << scale);
        if self.ecn.echo {
            segment.flags |= Flags::ECE;
        }
        if let Some(state) = &mut self.timestamps {
            segment.options.timestamps = Some(state.stamp(now));
        }
        if !self.is_unread(segment) {
            if let Some(state) = &mut self.timestamps {
                state.on_ack_sent(segment.ack);
            }
            self.ack_policy.on_sent(self.is_fresh(segment));
            self.timers.stop(Timer::DelayedAck);
        }
    }

    /// Whether SACK blocks wait for an ACK.
    #[inline]
    pub(crate) fn has_blocks_to_report(&self) -> bool {
        self.negotiated.sack && self.receive.has_sack_blocks()
    }

    /// Fills the option space that is left with SACK blocks, if the peer will read them.
    #[inline]
    pub(crate) fn add_sack_blocks(&mut self, segment: &mut Segment) {
        if self.has_blocks_to_report() && !self.is_unread(segment) {
            self.add_blocks(segment);
        }
    }

    #[inline(never)]
    fn add_blocks(&mut self, segment: &mut Segment) {
        let used = segment.options.encoded_len();
        let by_mtu = (self.mss() as usize).saturating_sub(segment.payload.len());
        let blocks = Options::sack_blocks_in(segment.options.room().min(by_mtu.saturating_sub(used)));
        if blocks > 0 {
            segment.options.sack = self.receive.take_sack_blocks(blocks);
        }
    }
}
