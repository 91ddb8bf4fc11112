//! Evaluation of ACKs: delivery, round-trip time, loss (RFC 9293 section 3.10.7.4 fifth step, RFC 8985, RFC 6675).

use units::narrow::precedes;
use units::{Duration, Instant, SeqNr};
use wire::{Flags, SackBlock, Segment};

use super::probing::DeliveredSizes;
use super::rack::RackContext;
use super::scoreboard::{Delivered, Sent};
use super::timestamp::ECHO_ERROR;
use super::window::Phase;
use super::{Due, Eifel, Persist, Tcb, Timer};
use crate::congestion::CongestionSignal;
use crate::era::{PartialAcks, RecoveryEnd, RepairTimer};
use crate::exceptions;
use crate::observation::CongestionCause;

/// Duplicate ACKs that indicate a loss (RFC 5681 section 3.2).
const DUP_ACK_THRESHOLD: u32 = 3;

/// Result of an ACK, for the connection to act on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AckOutcome {
    /// Payload octets newly acknowledged, cumulatively.
    pub(crate) acked_payload_bytes: u64,
    /// Our FIN was acknowledged.
    pub(crate) fin_acked: bool,
    /// Octets for which the controller may grow the window; zero in recovery.
    pub(crate) growth_bytes: u64,
    /// Round-trip time sample.
    pub(crate) rtt: Option<Duration>,
    /// Whether the window was fully used.
    pub(crate) cwnd_limited: bool,
    /// A congestion event: the connection must answer with [`Tcb::begin_recovery`].
    pub(crate) congestion: Option<CongestionSignal>,
    /// Octets newly deemed lost.
    pub(crate) lost_bytes: u64,
    /// Octets newly delivered, in order or not.
    pub(crate) delivered_bytes: u64,
    /// Whether all data in flight at the start of the round are acknowledged.
    pub(crate) round_ended: bool,
    /// Whether this is the first new acknowledgement after time-outs.
    pub(crate) revived: bool,
    /// Time in which nothing was outstanding before the data that this ACK is the first to acknowledge; zero for other
    /// ACKs.
    pub(crate) idle: Duration,
}

impl AckOutcome {
    /// Whether a controller can ignore it. True of nearly all ACKs that a pure receiver gets.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        (self.delivered_bytes | self.growth_bytes) == 0
            && self.rtt.is_none()
            && self.congestion.is_none()
            && !self.round_ended
    }
}

impl Tcb {
    /// Takes the acknowledgement field of an acceptable segment; `snd_una <= ack <= snd_nxt` was checked.
    #[inline]
    pub(super) fn on_ack(&mut self, segment: &Segment, now: Instant, outcome: &mut AckOutcome) {
        if self.has_nothing_to_learn(segment) {
            self.learn_nothing(segment, now);
        } else {
            self.learn(segment, now, outcome);
        }
    }

    /// Handles an ACK for which [`Self::has_nothing_to_learn`] holds.
    #[inline]
    pub(super) fn learn_nothing(&mut self, segment: &Segment, now: Instant) {
        self.update_window(segment);
        self.timers.stop(Timer::Reorder);
        self.rearm_after_ack(false, now);
    }

    #[inline(never)]
    fn learn(&mut self, segment: &Segment, now: Instant, outcome: &mut AckOutcome) {
        let in_flight_before = self.in_flight();
        let phase_before = self.window.phase();
        let advanced = segment.ack.after(self.snd_una);
        let is_duplicate = !advanced && self.is_duplicate_ack(segment);
        if advanced {
            self.judge_echo(segment);
        }
        let delivered = self.collect_delivered(segment, now);
        self.update_window(segment);
        outcome.acked_payload_bytes = delivered.acked_payload_bytes;
        outcome.delivered_bytes = delivered.delivered_bytes;
        outcome.fin_acked = delivered.fin_acked;
        // Data behind a filled hole were not in transit all that time. Earlier SACKs for them may be lost or forgotten.
        let tells_time = !delivered.fills_hole;
        outcome.rtt = delivered
            .rtt_sent_at
            .filter(|_| tells_time)
            .map(|sent_at| now.saturating_since(sent_at))
            .or_else(|| self.echoed_rtt(segment, now).filter(|_| advanced));
        if let Some(rtt) = outcome.rtt {
            self.rtt.sample(rtt, now);
        }
        if advanced {
            self.on_advance(segment, delivered.acked_bytes, now, outcome);
        }
        if !self.negotiated.sack {
            self.count_duplicate_acks(is_duplicate, advanced, outcome);
        }
        self.detect_losses(segment, advanced, now, outcome);
        let growing = self.judge_congestion(segment, advanced, outcome);
        if growing && advanced {
            self.judge_growth(phase_before, in_flight_before, &delivered, outcome);
        }
        if self.delivers_from_before_the_repair(&delivered) {
            self.timers.set(Timer::Retransmit, now + self.rtt.rto());
        }
        self.rearm_after_ack(advanced, now);
    }

    /// Whether nothing is outstanding that this ACK could cover. True of nearly all ACKs that a pure receiver gets.
    #[inline]
    pub(super) fn has_nothing_to_learn(&self, segment: &Segment) -> bool {
        self.board.is_empty()
            && segment.ack == self.snd_una
            && segment.options.sack.is_empty()
            && self.window.phase() == Phase::Open
            && self.tail_probe.is_none()
            && self.reno_sacked == 0
    }

    /// Returns the round-trip time from an ACK's timestamp echo (RFC 7323 section 4), the only measure if all
    /// acknowledged data were sent more than once.
    fn echoed_rtt(&self, segment: &Segment, now: Instant) -> Option<Duration> {
        self.timestamps.as_ref()?.since(self.echo_of(segment)?, now)
    }

    /// Returns an ACK's timestamp echo, if it tells which transmission is answered.
    fn echo_of(&self, segment: &Segment) -> Option<u32> {
        self.timestamps.as_ref()?.echo_of(segment.options.timestamps?)
    }

    /// Judges the timestamp echo of an ACK that advances SND.UNA.
    fn judge_echo(&mut self, segment: &Segment) {
        let Some((state, stamp)) = self.timestamps.as_mut().zip(segment.options.timestamps) else { return };
        if let Some(front) = self.board.iter().next().filter(|front| !front.retransmitted) {
            state.judge_echo(stamp, front.sent_at);
        }
    }

    /// Whether it is a duplicate acknowledgement (RFC 5681 section 2), unless it carries information of its own.
    fn is_duplicate_ack(&self, segment: &Segment) -> bool {
        segment.payload.is_empty()
            && !segment.flags.intersects(Flags::SYN | Flags::FIN)
            && segment.ack == self.snd_una
            && !self.board.is_empty()
            && !exceptions::speaks_for_itself(segment)
            && self.window_of(segment) == self.snd_wnd
    }

    fn collect_delivered(&mut self, segment: &Segment, now: Instant) -> Delivered {
        let mut sizes = self.delivered_sizes();
        let mut delivered = Delivered::default();
        // State before this ACK: segments delivered together show no order.
        let highest = self.board.highest_delivered();
        let mut is_all = !segment.ack.after(self.snd_una);
        if !is_all && !sizes.seeks_probe() {
            let (newest, nothing_is_left) = self.board.acknowledge_plain(segment.ack, &mut delivered);
            newest.into_iter().for_each(|newest| self.rack.on_newest(newest, now));
            sizes.note_largest(delivered.largest_packet);
            is_all = nothing_is_left;
        }
        if !is_all || !segment.options.sack.is_empty() {
            self.collect_one_by_one(segment, highest, now, &mut sizes, &mut delivered);
        }
        self.note_delivered_sizes(&sizes);
        delivered
    }

    /// Collects deliveries segment by segment.
    #[inline(never)]
    fn collect_one_by_one(
        &mut self,
        segment: &Segment,
        highest: SeqNr,
        now: Instant,
        sizes: &mut DeliveredSizes,
        delivered: &mut Delivered,
    ) {
        let context = self.rack_context(now);
        let echo = self.echo_of(segment);
        let (rack, board, stamps) = (&mut self.rack, &mut self.board, &self.timestamps);
        // RFC 7323 section 4.3: a receiver does not echo a segment beyond a hole, so a SACK's timestamp says nothing
        // about it.
        let echoes_earlier = |sent: &Sent| {
            sent.end().before_or_at(segment.ack)
                && echo.zip(stamps.as_ref()).is_some_and(|(echo, stamps)| precedes(echo, stamps.ticks(sent.sent_at)))
        };
        if segment.ack.after(self.snd_una) {
            board.acknowledge(segment.ack, delivered, |sent| {
                sizes.note(sent);
                rack.on_delivered(sent, &context, highest, sent.retransmitted && echoes_earlier(sent));
            });
        }
        if self.negotiated.sack && !segment.options.sack.is_empty() {
            board.sack(&segment.options.sack, delivered, |sent| {
                sizes.note(sent);
                rack.on_delivered(sent, &context, highest, sent.retransmitted && echoes_earlier(sent));
            });
        }
    }

    pub(super) fn rack_context(&self, now: Instant) -> RackContext {
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        RackContext {
            now,
            min_rtt: self.rtt.min().unwrap_or(srtt),
            srtt,
            mss: self.payload_max(),
            in_recovery: self.window.is_repairing(),
        }
    }

    /// Updates the send window (RFC 9293 section 3.10.7.4), unless the ACK is older than the last one.
    fn update_window(&mut self, segment: &Segment) {
        // If the ACK advances, take its window even from a retransmission: it counts from that very ACK, and an older
        // window would be applied to the same ACK.
        let newer = segment.ack.after(self.snd_una)
            || self.snd_wl1.before(segment.seq)
            || (self.snd_wl1 == segment.seq && self.snd_wl2.before_or_at(segment.ack));
        if !newer || segment.ack.before(self.snd_una) {
            return;
        }
        let window = self.window_of(segment);
        self.snd_wnd = window;
        self.max_snd_wnd = self.max_snd_wnd.max(window);
        self.snd_wl1 = self.snd_wl1.max(segment.seq);
        self.snd_wl2 = segment.ack;
    }

    /// Returns the window that a segment announces, limited to what this side uses.
    fn window_of(&self, segment: &Segment) -> u32 {
        (u32::from(segment.window) << self.negotiated.snd_wscale).min(self.config.era.subflow_window_bytes)
    }

    fn on_advance(&mut self, segment: &Segment, acked_bytes: u64, now: Instant, outcome: &mut AckOutcome) {
        self.snd_una = segment.ack;
        self.counters.acked_bytes += outcome.acked_payload_bytes;
        self.drag_marks();
        self.detect_spurious(segment, acked_bytes, now);
        self.path_mtu.on_advance(segment.ack);
        outcome.revived = core::mem::take(&mut self.timeouts) > 0;
        outcome.idle = core::mem::take(&mut self.idle.before_data);
        if self.snd_una.at_or_after(self.round_end) && acked_bytes > 0 {
            outcome.round_ended = true;
            self.round_end = self.snd_nxt;
        }
        match self.window.phase() {
            Phase::Reduced(point) | Phase::Recovery(point) | Phase::Loss(point) if self.snd_una.at_or_after(point) => {
                // All data before the recovery point are acknowledged, and duplicate ACKs referred only to them.
                self.reno_sacked = 0;
                let (in_flight, was_repairing) = (self.in_flight(), self.window.is_repairing());
                self.window.exit_recovery(in_flight, self.config.era.recovery_end);
                if was_repairing {
                    self.rack.on_recovery_end();
                }
                self.eifel = Eifel::Idle;
                self.tell_congestion(Some(CongestionCause::Repaired));
            }
            _ => {}
        }
        if self.board.is_empty() {
            self.timers.stop(Timer::User);
            self.idle.since = now;
        } else {
            self.timers.set(Timer::User, now + self.config.user_timeout);
        }
    }

    /// Moves sequence numbers along that later ACKs are compared with: once they are 2 GiB behind, they would seem to
    /// be ahead.
    #[inline]
    fn drag_marks(&mut self) {
        if self.snd_una.after(self.recover) {
            self.recover = self.snd_una - 1;
        }
        self.rack.on_advance(self.snd_una);
    }

    /// The Eifel detection algorithm (RFC 3522): if the ACK answers the original, nothing had been lost. So does one
    /// that comes after a time-out but before any retransmission, whether or not it has a timestamp. If it also echoes
    /// a mark, there is congestion nevertheless, and the window stays reduced (RFC 4015 section 3.4).
    fn detect_spurious(&mut self, segment: &Segment, acked_bytes: u64, now: Instant) {
        let echo = self.echo_of(segment);
        let answers_original = match (self.eifel, echo) {
            (Eifel::Stamped(stamp), Some(echo)) => precedes(echo, stamp),
            (Eifel::Armed, _) if matches!(self.window.phase(), Phase::Loss(_)) => true,
            _ => return,
        };
        self.eifel = Eifel::Idle;
        if answers_original && self.window.in_recovery() {
            self.undo_reduction(segment, acked_bytes, now);
        }
    }

    /// Takes back a reduction that this ACK shows to have been needless.
    #[cold]
    fn undo_reduction(&mut self, segment: &Segment, acked_bytes: u64, now: Instant) {
        self.board.unmark_lost();
        if let Some(rtt) = self.echoed_rtt(segment, now).filter(|_| matches!(self.window.phase(), Phase::Recovery(_))) {
            // Else this very ACK would show the loss of data that were overtaken with the original.
            self.rack.on_late_original(rtt + ECHO_ERROR);
        }
        // The ACK answers the duplicates that were counted.
        self.reno_sacked = 0;
        if self.echoes_mark(segment) {
            self.window.settle();
        } else {
            self.window.undo(self.in_flight(), acked_bytes, self.initial_window_segments());
            self.recover = match self.window.phase() {
                // There was no reduction, so duplicate ACKs and marks count at once: later segments may be lost all
                // the same.
                Phase::Open => self.snd_una - 1,
                // Only the time-out was needless.
                Phase::Reduced(point) | Phase::Recovery(point) | Phase::Loss(point) => point,
            };
        }
        self.tell_congestion(Some(CongestionCause::Spurious));
    }

    /// Whether the peer says that a packet was marked (RFC 3168 section 6.1.2).
    fn echoes_mark(&self, segment: &Segment) -> bool {
        self.negotiated.ecn && segment.flags.contains(Flags::ECE)
    }

    /// Counts duplicate ACKs as data that left the network, without SACK (RFC 5681 section 3.2, RFC 6582).
    fn count_duplicate_acks(&mut self, is_duplicate: bool, advanced: bool, outcome: &mut AckOutcome) {
        let mss = u64::from(self.payload_max());
        // After a time-out, duplicate ACKs may answer earlier segments and release no data (RFC 5681 section 3.1).
        let clocks = !matches!(self.window.phase(), Phase::Loss(_));
        if is_duplicate && clocks {
            let before = self.reno_sacked;
            self.duplicate_acks += 1;
            self.reno_sacked = (before + mss * self.segments_told_by_duplicate()).min(self.board.in_flight());
            outcome.delivered_bytes = self.reno_sacked.saturating_sub(before);
        } else if advanced {
            self.duplicate_acks = 0;
            // Duplicate ACKs already counted all segments but the one that filled the hole.
            let counted = outcome.delivered_bytes.saturating_sub(mss).min(self.reno_sacked);
            outcome.delivered_bytes -= counted;
            self.reno_sacked = if self.window.is_repairing() { self.reno_sacked - counted } else { 0 };
        }
        self.reno_sacked = self.reno_sacked.min(self.board.in_flight());
    }

    /// Returns the segments that a duplicate ACK shows to have left the network. Without limited transmit (RFC 3042)
    /// the first two count only with the third (RFC 5681 section 3.2 step 3).
    fn segments_told_by_duplicate(&self) -> u64 {
        if self.config.era.limited_transmit || self.window.is_repairing() {
            return 1;
        }
        match self.duplicate_acks {
            0..DUP_ACK_THRESHOLD => 0,
            DUP_ACK_THRESHOLD => DUP_ACK_THRESHOLD.into(),
            _ => 1,
        }
    }

    fn detect_losses(&mut self, segment: &Segment, advanced: bool, now: Instant, outcome: &mut AckOutcome) {
        let dsack = self.note_dsack(segment);
        if self.board.is_empty() {
            self.timers.stop(Timer::Reorder);
        } else if self.negotiated.rack {
            outcome.lost_bytes = self.detect_losses_by_time(now);
        } else if self.negotiated.sack {
            outcome.lost_bytes = self.board.mark_lost_below_sacks(DUP_ACK_THRESHOLD, self.payload_max());
        } else {
            outcome.lost_bytes = self.detect_losses_by_count();
        }
        self.tell_lost(outcome.lost_bytes);
        self.note_lost_probe();
        self.judge_losses(&mut outcome.congestion);
        if self.tail_probe_repaired_a_loss(segment, advanced, dsack) && self.window.phase() == Phase::Open {
            outcome.congestion = outcome.congestion.or(Some(CongestionSignal::Loss));
        }
    }

    /// Whether the losses found so far are a congestion event. Those of data sent during a recovery outlive it: they
    /// are a separate event. Those found while the window is reduced for a mark are only repaired.
    pub(super) fn judge_losses(&mut self, congestion: &mut Option<CongestionSignal>) {
        if !self.board.has_congestive_loss() {
            return;
        }
        if self.window.phase() == Phase::Open {
            *congestion = Some(CongestionSignal::Loss);
        } else if self.window.repair_while_reduced() {
            self.end_tail_probing();
        }
    }

    /// RFC 8985 section 7.1: a probing episode ends with the recovery, which takes over its losses.
    fn end_tail_probing(&mut self) {
        self.tail_probe = None;
        self.due.take(Due::TAIL_PROBE);
        self.timers.stop(Timer::TailProbe);
    }

    /// Runs RACK, after an ACK or when its timer fires. Returns the octets newly lost.
    #[inline]
    pub(super) fn detect_losses_by_time(&mut self, now: Instant) -> u64 {
        if self.rack.has_overtaken_nothing(&self.board) {
            self.timers.stop(Timer::Reorder);
            return 0;
        }
        let context = self.rack_context(now);
        let (lost_bytes, recheck) = self.rack.detect_loss(&mut self.board, &context);
        match recheck {
            Some(at) => self.timers.set(Timer::Reorder, at.max(now + Duration::from_nanos(1))),
            None => self.timers.stop(Timer::Reorder),
        }
        lost_bytes
    }

    /// Three duplicate ACKs, or a partial ACK in recovery, mean that the first segment is lost (RFC 6582). Returns the
    /// octets newly lost.
    fn detect_losses_by_count(&mut self) -> u64 {
        let wanted = match self.window.phase() {
            // Needless retransmissions after a time-out or recovery also cause duplicate ACKs (RFC 6582 section 3.2
            // step 1).
            Phase::Open => self.duplicate_acks >= DUP_ACK_THRESHOLD && self.snd_una.after(self.recover),
            // A mark is echoed by an ACK behind all repetitions.
            Phase::Reduced(_) => self.duplicate_acks >= DUP_ACK_THRESHOLD,
            Phase::Recovery(_) => true,
            Phase::Loss(_) => false,
        };
        if !wanted || self.board.iter().next().is_none_or(|front| front.retransmitted) {
            return 0;
        }
        self.board.trim_to(0, self.payload_max());
        // The retransmission leaves even if the window is full (RFC 6582 section 3.2 step 3).
        self.due.add(Due::FIRST_AGAIN);
        let first = self.snd_una;
        self.board.mark_lost(|sent| sent.seq == first && !sent.retransmitted, |sent| sent.seq != first)
    }

    /// RFC 2883 section 4: a first block below the ACK, or inside the second, reports a duplicate.
    fn note_dsack(&mut self, segment: &Segment) -> Option<SackBlock> {
        let blocks = &segment.options.sack;
        let first = blocks.first().filter(|_| self.negotiated.sack)?;
        let inside = blocks
            .get(1)
            .is_some_and(|second| first.start.at_or_after(second.start) && first.end.before_or_at(second.end));
        if !first.end.before_or_at(segment.ack) && !inside {
            return None;
        }
        // A duplicate caused by a tail loss probe is no sign of reordering, nor is the octet of a question.
        if self.tail_probe != Some((first.end, true)) && !(self.has_asked && self.asked == first.end) {
            self.rack.on_dsack(self.snd_una, self.snd_nxt);
        }
        Some(*first)
    }

    /// RFC 8985 section 7.4.2: whether an ACK shows that a retransmitted tail loss probe repaired a loss.
    fn tail_probe_repaired_a_loss(&mut self, segment: &Segment, advanced: bool, dsack: Option<SackBlock>) -> bool {
        let Some((end, is_retransmission)) = self.tail_probe.filter(|(end, _)| segment.ack.at_or_after(*end)) else {
            return false;
        };
        let original_arrived = dsack.is_some_and(|block| block.end == end);
        let duplicate = !advanced && segment.options.sack.is_empty() && segment.payload.is_empty();
        if !is_retransmission || original_arrived {
            self.tail_probe = None;
        } else if segment.ack.after(end) {
            self.tail_probe = None;
            return true;
        } else if duplicate {
            self.tail_probe = None;
        }
        false
    }

    /// Handles ECN congestion, and the window of a recovery. Returns false if the window must not grow.
    fn judge_congestion(&mut self, segment: &Segment, advanced: bool, outcome: &mut AckOutcome) -> bool {
        let echo = self.echoes_mark(segment);
        // Once per window of data; echoes continue until the peer has seen CWR.
        let afresh = self.window.phase() == Phase::Open && segment.ack.after(self.recover);
        if echo && advanced && afresh && outcome.congestion.is_none() {
            outcome.congestion = Some(CongestionSignal::EcnEcho);
        }
        if outcome.congestion.is_some() {
            return false;
        }
        if self.window.is_reducing() {
            let in_flight = self.in_flight();
            let progress = advanced && outcome.lost_bytes == 0;
            self.window.on_ack_in_recovery(outcome.delivered_bytes, in_flight, progress);
            return false;
        }
        true
    }

    /// Determines how far the controller may let the window grow.
    fn judge_growth(&mut self, before: Phase, in_flight_before: u64, delivered: &Delivered, outcome: &mut AckOutcome) {
        let acked_bytes = match (before, self.config.era.recovery_end) {
            // The ACK that ends a recovery has already set the window.
            (Phase::Reduced(_) | Phase::Recovery(_), RecoveryEnd::Flight) => return,
            // Most of the acknowledged data were SACKed before.
            (Phase::Reduced(_) | Phase::Recovery(_), RecoveryEnd::Threshold) => delivered.delivered_bytes,
            (Phase::Open | Phase::Loss(_), _) => delivered.acked_bytes,
        };
        let slow_start_limited = self.window.in_slow_start() && self.window.cwnd() < 2 * in_flight_before;
        outcome.cwnd_limited = self.cwnd_limited || slow_start_limited;
        // After a time-out an ACK may cover much data that arrived long ago (RFC 3465 section 2.3: L = 1), above all
        // the ACK that ends the repair.
        let repairs_timeout = matches!(before, Phase::Loss(_));
        let limit = if repairs_timeout { u64::from(self.payload_max()) } else { acked_bytes };
        outcome.growth_bytes = acked_bytes.min(limit);
    }

    /// Reacts to a congestion event with the controller's threshold.
    pub(crate) fn begin_recovery(&mut self, ssthresh: u64, outcome: &AckOutcome) {
        self.counters.congestion_events += 1;
        let is_echo = outcome.congestion == Some(CongestionSignal::EcnEcho);
        // A probe that was the repair is past, and a later retransmission says nothing about its loss (RFC 3522
        // section 3.2).
        let repair_follows = !is_echo && self.board.waits_for_resend();
        self.eifel = if repair_follows { Eifel::Armed } else { Eifel::Idle };
        self.note_reduction();
        if is_echo {
            self.window.answer_mark(self.snd_nxt, ssthresh, self.board.outstanding());
        } else {
            self.window.enter_recovery(self.snd_nxt, ssthresh, self.board.outstanding());
        }
        if self.board.is_empty() {
            // Nothing to repair: a probe was the repair, or an echo came with the last ACK (RFC 8985 section 7.4.2).
            self.window.settle();
            self.eifel = Eifel::Idle;
        } else {
            self.window.on_ack_in_recovery(outcome.delivered_bytes, self.in_flight(), false);
        }
        if is_echo {
            // A loss that the probe repaired belongs to the same window of data.
            self.tail_probe = None;
        } else {
            self.end_tail_probing();
        }
        self.tell_congestion(Some(if is_echo { CongestionCause::EcnEcho } else { CongestionCause::Loss }));
    }

    /// Records a window reduction of any cause. The peer gets CWR (RFC 3168 section 6.1.2), and signals about data sent
    /// before this count as answered.
    pub(super) fn note_reduction(&mut self) {
        self.recover = self.snd_nxt;
        self.ecn.cwr_due = self.negotiated.ecn;
    }

    /// Whether the ACK delivered data sent before the last transmission of the first segment. Data that can show the
    /// loss of the repair are then still in flight ([`RepairTimer::OnSack`]).
    fn delivers_from_before_the_repair(&self, delivered: &Delivered) -> bool {
        let Some(front) = self.board.iter().next().filter(|front| front.retransmitted) else { return false };
        self.negotiated.sack
            && self.config.era.repair_timer == RepairTimer::OnSack
            && delivered.rtt_sent_at.is_some_and(|sent_at| sent_at < front.sent_at)
    }

    fn rearm_after_ack(&mut self, advanced: bool, now: Instant) {
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::TailProbe);
            self.due.take(Due::TAIL_PROBE);
        } else if advanced {
            if self.restarts_retransmission_timer() {
                self.timers.set(Timer::Retransmit, now + self.rtt.rto());
            }
            self.arm_tail_probe(now);
        }
        if advanced || self.usable_window() >= self.payload_max() {
            self.timers.stop(Timer::Persist);
            self.due.take(Due::SMALL_SEGMENT);
            self.persist = Persist::default();
        }
    }

    /// Whether an ACK that advanced restarts the timer. All do (RFC 6298 section 5.3), except some partial ACKs of a
    /// recovery if so configured (RFC 6582 section 4).
    fn restarts_retransmission_timer(&mut self) -> bool {
        if self.config.era.partial_acks == PartialAcks::Every || self.negotiated.sack {
            return true;
        }
        let is_partial = matches!(self.window.phase(), Phase::Recovery(_));
        let was_partial = std::mem::replace(&mut self.had_partial_ack, is_partial);
        !(is_partial && was_partial)
    }

    /// Schedules a tail loss probe (RFC 8985 section 7.2).
    pub(super) fn arm_tail_probe(&mut self, now: Instant) {
        /// Longest time that the peer may delay an ACK.
        const ACK_DELAY_MAX: Duration = Duration::from_millis(200);
        /// Lower bound for tiny round-trip times: hosts still need time to answer.
        const PROBE_TIMEOUT_MIN: Duration = Duration::from_millis(2);
        let wanted = self.negotiated.tail_probe
            && self.state.is_synchronized()
            && !self.window.is_repairing()
            && self.board.sacked() == 0
            && self.tail_probe.is_none();
        let Some(srtt) = self.rtt.srtt().filter(|_| wanted) else {
            return self.timers.stop(Timer::TailProbe);
        };
        let mut timeout = (srtt * 2).max(PROBE_TIMEOUT_MIN);
        if self.board.is_one_packet() {
            timeout += ACK_DELAY_MAX;
        }
        let at = (now + timeout).min(self.timers.deadline(Timer::Retransmit));
        self.timers.set(Timer::TailProbe, at);
    }
}

#[cfg(test)]
mod tests;
