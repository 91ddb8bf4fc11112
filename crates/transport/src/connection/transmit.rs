//! Segments out: scheduling data onto subflows, and the options they carry.

use arrayvec::ArrayVec;
use units::narrow::{low_u32, u16_from, usize_from};
use units::{Dsn, Instant};
use wire::mptcp::{DataLen, Dss, Mapping, MpFail, MpJoin, MpPrio, MptcpOption};
use wire::{Flags, Payload, Segment};

use super::burst::Next;
use super::subflow::{Handshake, Subflow};
use super::{Connection, Protocol, Receiver, SUBFLOWS_CAP};
use crate::SubflowId;
use crate::era::{Binding, FRAGMENT_BYTES};
use crate::host::Host;
use crate::label::Label;
use crate::observation::Occurrence;
use crate::scheduler::{Marks, ScheduleContext, SubflowView};
use crate::sent_once::{carry, carry_at_the_end};
use crate::tcp::{Chunk, OutgoingKind, SendLimits, Tcb};

/// Data that wait for a subflow.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    dsn: Dsn,
    len: u64,
    /// Data that another subflow failed to deliver.
    again: bool,
}

/// A subflow that may carry the next data.
struct Candidate {
    id: SubflowId,
    mss: u32,
    is_shut: bool,
    has_room: bool,
}

/// Subflows that may carry the next data.
#[derive(Default)]
pub(super) struct Candidates {
    list: ArrayVec<Candidate, SUBFLOWS_CAP>,
}

impl Candidates {
    /// Returns the smallest payload limit of all.
    pub(super) fn mss(&self) -> u64 {
        self.list.iter().map(|candidate| u64::from(candidate.mss)).min().unwrap_or(1)
    }
}

/// The scheduler's view of the candidates.
type Views = ArrayVec<SubflowView, SUBFLOWS_CAP>;

/// The result of asking a connection for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// There is no segment.
    Nothing,
    /// A segment was produced; there may be more.
    Segment,
    /// A segment was produced; there is no other, and nothing else to do until something happens.
    LastSegment,
}

/// Completes a segment that lacks only SACK blocks: they fill the remaining room, and the segment's window counts as
/// promised, unless the peer does not read it.
#[inline]
pub(super) fn note_sent(receiver: &mut Receiver, tcb: &mut Tcb, segment: &mut Segment) {
    tcb.add_sack_blocks(segment);
    if !segment.flags.contains(Flags::SYN) && !tcb.is_unread(segment) {
        let announced = u64::from(segment.window) << tcb.rcv_wscale();
        receiver.edge = receiver.edge.max(receiver.stream.next() + announced);
    }
}

impl Connection {
    /// Writes the next segment to send into `segment`, if there is one.
    pub(crate) fn poll_transmit(&mut self, segment: &mut Segment, host: &mut Host, now: Instant) -> Polled {
        loop {
            let burst = self.burst.take();
            if burst.is_none() && self.transmit_any(segment, now) {
                return if self.is_at_rest() { self.rest(host) } else { Polled::Segment };
            }
            let next = match burst.map_or_else(|| self.begin_burst(), Ok) {
                Ok(burst) => self.go_on(burst, segment, now),
                Err(next) => next,
            };
            match next {
                Next::Sent => return Polled::Segment,
                Next::Last => return self.rest(host),
                Next::Unclear if self.schedule(host, now) => {}
                Next::Unclear | Next::Nothing => {
                    self.turn = None;
                    self.settle(host, now);
                    self.tell_writable_after_sending(host);
                    return Polled::Nothing;
                }
            }
        }
    }

    fn rest(&mut self, host: &mut Host) -> Polled {
        self.turn = None;
        self.tell_writable_after_sending(host);
        Polled::LastSegment
    }

    fn transmit_any(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let wants = |subflow: &Subflow| subflow.tcb.has_something_to_send();
        let mut asked = 0;
        while let Some((now_asked, id)) = self.subflows.next_around(self.turn, asked, wants) {
            asked = now_asked;
            if self.transmit_on(id, segment, now) {
                self.turn = Some(id);
                return true;
            }
        }
        self.turn = None;
        false
    }

    fn transmit_on(&mut self, id: SubflowId, segment: &mut Segment, now: Instant) -> bool {
        let limits = SendLimits {
            receive_window: self.receive_window(),
            offload_max: self.config.super_segment_max(),
            more: self.sender.next != self.sender.buffer.end(),
        };
        let Some(kind) = self.subflows[id].tcb.transmit(segment, &limits, now) else { return false };
        self.add_options(id, kind, segment, now);
        note_sent(&mut self.receiver, &mut self.subflows[id].tcb, segment);
        true
    }

    fn add_options(&mut self, id: SubflowId, kind: OutgoingKind, segment: &mut Segment, now: Instant) {
        match kind {
            OutgoingKind::Syn => self.add_syn_options(id, segment),
            OutgoingKind::Reset => {
                carry_at_the_end(self.subflows[id].reset_options.drain(..), segment);
            }
            OutgoingKind::Data(label) => self.add_data_options(id, label, segment),
            OutgoingKind::Control => self.add_control_options(id, segment, now),
        }
    }

    fn add_syn_options(&self, id: SubflowId, segment: &mut Segment) {
        let option = self.syn_option(id);
        let is_capable = matches!(option, Some(MptcpOption::Capable(_)));
        segment.options.mptcp.extend(option);
        if is_capable {
            segment.options.mptcp.extend(self.receiver_centric_offer());
        }
    }

    fn add_data_options(&mut self, id: SubflowId, label: Label, segment: &mut Segment) {
        if !self.is_mptcp() {
            if let Some(from) = self.sender.infinite_mapping_due.take() {
                segment.options.mptcp.push(MptcpOption::Dss(self.infinite_mapping(from)));
                self.subflows[id].tcb.change_reserved_options(0);
            }
            return;
        }
        segment.options.round = self.round_of(id);
        let (dsn, known) = (label.dsn(), label.first_mapping());
        let signal = match known {
            Some((mapping, data_fin)) => {
                Dss { mapping: Some(self.sent_again(mapping, dsn)), data_fin, ..self.ack_signal() }
            }
            None => self.data_signal(id, dsn, segment),
        };
        if let (None, Some(mapping)) = (known, signal.mapping) {
            self.subflows[id].tcb.relabel(label.sent_with(mapping, signal.data_fin));
        }
        if dsn == self.first_dsn() && self.confirming_capable(None).is_some() {
            let data = self.capable_data(known, segment);
            if let Some(option) = self.confirming_capable(Some(data)) {
                segment.options.mptcp.push(option);
                if signal.data_fin {
                    // MP_CAPABLE has no room for the end of the stream.
                    self.sender.data_fin_due = true;
                    self.capable_due = false;
                    self.subflows[id].tcb.demand_fresh_ack();
                }
                return;
            }
        }
        segment.options.mptcp.push(MptcpOption::Dss(signal));
    }

    /// Returns the mapping of the first data for MP_CAPABLE. A retransmission that is cut smaller keeps its original
    /// mapping, as any other does.
    fn capable_data(&mut self, known: Option<(Mapping, bool)>, segment: &Segment) -> DataLen {
        let first = match known.map(|(mapping, data_fin)| mapping.len - u16::from(data_fin)) {
            Some(len) if !self.checksum => return DataLen { len, checksum: None },
            Some(len) if self.sender.buffer.start() == self.sender.first => {
                self.sender.buffer.read(self.sender.first, len.into())
            }
            _ => segment.payload.clone(),
        };
        let len = u16_from(first.len() as u64);
        let sum = || wire::checksum::dss_checksum(self.sender.first, 1, len, core::iter::once(&first));
        DataLen { len, checksum: self.checksum.then(sum) }
    }

    /// Returns the mapping that ends MPTCP (RFC 8684 section 3.7): length zero, and with a single subflow the data from
    /// `dsn` on are as far from its start as from the stream's.
    fn infinite_mapping(&self, dsn: Dsn) -> Dss {
        let checksum = self.checksum.then_some(0);
        let ssn = low_u32(dsn.since(self.first_dsn())).wrapping_add(1);
        let mapping = Mapping { dsn: self.sent_number(dsn), ssn, len: 0, checksum };
        Dss { mapping: Some(mapping), ..self.ack_signal() }
    }

    /// Adds the options of a segment without data. A host that has proved nothing yet learns nothing of the connection,
    /// and takes away nothing that is sent once.
    fn add_control_options(&mut self, id: SubflowId, segment: &mut Segment, now: Instant) {
        if !self.subflows[id].is_proven() {
            return;
        }
        let fresh = self.subflows[id].tcb.is_fresh(segment);
        let tcb = &mut self.subflows[id].tcb;
        self.receiver.fail_due.take_if(|dsn| carry(&MptcpOption::Fail(MpFail { dsn: *dsn }), segment, tcb));
        if !self.is_mptcp() {
            if self.receiver.acknowledges_data {
                // A peer that has not heard of the fallback takes a mere FIN for the end of the subflow, and an
                // acknowledged FIN of its own, too: the DATA_ACK counts the end of its stream.
                let is_unheard = self.sender.infinite_mapping_due.is_some();
                let fin = self.sender.data_fin.filter(|_| is_unheard && self.ends_with(segment));
                let signal = fin.map_or_else(|| self.ack_signal(), |fin| self.data_fin_signal(fin));
                segment.options.mptcp.push(MptcpOption::Dss(signal));
            }
            return;
        }
        if let Handshake::JoinUnconfirmed(proof) = self.subflows[id].handshake {
            segment.options.mptcp.push(MptcpOption::Join(MpJoin::Ack { hmac: proof.hmac() }));
        } else if fresh {
            self.add_signals(id, segment);
            self.add_rate_report(id, segment, now);
        } else if let Some(fin) = self.sender.data_fin.filter(|_| self.ends_with(segment)) {
            segment.options.mptcp.push(MptcpOption::Dss(self.data_fin_signal(fin)));
        } else {
            segment.options.mptcp.push(MptcpOption::Dss(self.ack_signal()));
        }
    }

    /// Whether a segment that ends its subflow ends the stream too, and the peer does not know of that end.
    fn ends_with(&self, segment: &Segment) -> bool {
        segment.flags.contains(Flags::FIN) && self.is_data_fin_outstanding()
    }

    fn add_signals(&mut self, id: SubflowId, segment: &mut Segment) {
        if self.capable_due || !self.sender.data_fin_due {
            if let Some(option) = self.confirming_capable(None) {
                segment.options.mptcp.push(option);
                if core::mem::take(&mut self.capable_due) && self.sender.data_fin_due {
                    self.subflows[id].tcb.demand_fresh_ack();
                }
                return;
            }
        }
        let ends = self.sender.data_fin_due && self.subflows[id].can_end_stream();
        let signal = match self.sender.data_fin.filter(|_| ends) {
            Some(fin) => self.data_fin_signal(fin),
            None => self.ack_signal(),
        };
        self.sender.data_fin_due &= !ends;
        segment.options.mptcp.push(MptcpOption::Dss(signal));
        let subflow = &mut self.subflows[id];
        if subflow.prio_due {
            let prio = MptcpOption::Prio(MpPrio { backup: subflow.backup_here });
            subflow.prio_due = !carry(&prio, segment, &mut subflow.tcb);
        }
        self.add_address_option(id, segment);
    }

    /// Gives the next data to the subflows that the scheduler marks. Returns false if nothing can move.
    fn schedule(&mut self, host: &mut Host, now: Instant) -> bool {
        let Some(waiting) = self.next_waiting() else { return false };
        // Nearly every second time all windows are full: no need to look closer.
        let binding = self.config.era.binding;
        let has_room = |subflow: &Subflow| subflow.takes_more(binding) && subflow.is_usable();
        let Some(first_with_room) = self.subflows.iter().position(has_room) else { return false };
        let (mut candidates, mut views) = (Candidates::default(), Views::new());
        self.find_candidates(&mut candidates, first_with_room, waiting.again);
        let window_bytes = self.window_left();
        if candidates.list.is_empty() {
            return false;
        }
        if !waiting.again && !self.may_send(waiting.len, window_bytes, &candidates, now) {
            if window_bytes >= waiting.len {
                return false;
            }
            self.look_at(&candidates, &mut views, now);
            return self.relieve_window(&views, now);
        }
        self.probe_shut_windows(&candidates, now);
        if !candidates.list.iter().any(|candidate| candidate.has_room) {
            return false;
        }
        self.look_at(&candidates, &mut views, now);
        let context = ScheduleContext {
            subflows: &views,
            waiting_bytes: waiting.len,
            fragment_bytes: self.fragment_rest(waiting.dsn),
            window_bytes,
            unacknowledged_bytes: self.sender.next.since(self.sender.buffer.start()),
        };
        // An answer that moves nothing must count as a wait: the next answer might be the same, endlessly.
        let mut marks = self.policies.scheduler.schedule(&context, &mut host.prng).below(views.len());
        if marks.is_empty() && !self.is_any_subflow_driven() {
            // Nothing would ever end this wait.
            marks = context.with_room().next().map_or(Marks::NONE, |(position, _)| Marks::one(position));
        }
        if marks.is_empty() {
            return false;
        }
        self.assign(waiting, window_bytes, marks, &candidates, &views, now);
        true
    }

    /// Collects the scheduler's view of the candidates.
    fn look_at(&self, candidates: &Candidates, views: &mut Views, now: Instant) {
        let wants_full = self.policies.scheduler.wants_full();
        for candidate in candidates.list.iter().filter(|candidate| wants_full || candidate.has_room) {
            views.push(self.subflows[candidate.id].scheduler_view(candidate.has_room, now));
        }
    }

    /// A window that is open for the connection may be shut for a subflow that missed the update. If others that could
    /// carry the data wait for such subflows, it must soon show whether these are alive.
    fn probe_shut_windows(&mut self, candidates: &Candidates, now: Instant) {
        let is_open = |subflow: &Subflow| subflow.is_usable() && !subflow.is_shut();
        let is_urgent = candidates.list.iter().all(|candidate| candidate.is_shut) && self.subflows.iter().any(is_open);
        for candidate in candidates.list.iter().filter(|candidate| candidate.is_shut) {
            let tcb = &mut self.subflows[candidate.id].tcb;
            tcb.arm_persist(now);
            if is_urgent {
                tcb.hurry_persist(now);
            }
        }
    }

    /// Returns the waiting data: reinjections first, then new data.
    fn next_waiting(&mut self) -> Option<Waiting> {
        if !self.is_established() {
            return None;
        }
        if let Some((dsn, len)) = self.reinjection.next() {
            return Some(Waiting { dsn, len, again: true });
        }
        let dsn = self.sender.next;
        let len = self.sender.buffer.end().since(dsn);
        (len > 0).then_some(Waiting { dsn, len, again: false })
    }

    /// Returns the octets that the peer's connection-level window still accepts.
    pub(super) fn window_left(&self) -> u64 {
        if self.sender.edge.after(self.sender.next) { self.sender.edge.since(self.sender.next) } else { 0 }
    }

    /// Finds the best class of usable subflows: those with signs of life before those without, those that deliver
    /// before those that swallow, among these the least suspended first, and regular before backup. No subflow before
    /// position `first_with_room` has room; the one there has.
    fn find_candidates(&self, candidates: &mut Candidates, first_with_room: usize, again: bool) {
        let mut best = (true, u64::MAX, true);
        let (una, binding) = (self.sender.buffer.start(), self.config.era.binding);
        let is_better = |subflow: &Subflow| subflow.is_usable() && !subflow.is_stale();
        let avoid = self.reinjection.avoid().filter(|_| again);
        let avoid = avoid.filter(|id| self.subflows.others(*id).any(is_better));
        for (position, subflow) in self.subflows.iter().enumerate().filter(|(_, subflow)| subflow.is_usable()) {
            let class = (subflow.is_stale(), subflow.suspension_rank(una), subflow.is_backup());
            if class > best || Some(subflow.id) == avoid {
                continue;
            }
            if class < best {
                best = class;
                candidates.list.clear();
            }
            let is_shut = subflow.is_shut();
            let is_full = position < first_with_room || (position > first_with_room && !subflow.takes_more(binding));
            let has_room = !is_shut && !is_full;
            candidates.list.push(Candidate { id: subflow.id, mss: subflow.tcb.payload_max(), is_shut, has_room });
        }
        if self.rate_control.is_some() {
            self.leave_out_unused(candidates);
        }
    }

    /// Removes subflows that the peer's buffer can do without, unless that would remove all (MPTCP-rec).
    #[cold]
    fn leave_out_unused(&self, candidates: &mut Candidates) {
        if candidates.list.iter().all(|candidate| self.is_unused(candidate.id)) {
            return;
        }
        candidates.list.retain(|candidate| !self.is_unused(candidate.id));
    }

    /// Nagle's rule and silly-window avoidance, at the data level (RFC 9293 sections 3.7.4 and 3.8.6.2.1).
    fn may_send(&mut self, waiting: u64, window_bytes: u64, candidates: &Candidates, now: Instant) -> bool {
        let mss = candidates.mss();
        let sendable = waiting.min(window_bytes);
        if sendable >= mss {
            return true;
        }
        let outstanding = self.sender.next != self.sender.buffer.start();
        if sendable == waiting {
            if self.holds_back(waiting) {
                return false;
            }
            return !self.waits_for_small();
        }
        if sendable > 0 && sendable >= self.sender.window_max / 2 {
            return true;
        }
        let mut overdue = false;
        for candidate in &candidates.list {
            // Any of them may be dead: probe on all.
            let tcb = &mut self.subflows[candidate.id].tcb;
            if !outstanding {
                if window_bytes == 0 {
                    tcb.shut_window();
                }
                tcb.arm_persist(now);
            }
            overdue |= tcb.may_send_small();
        }
        sendable > 0 && overdue
    }

    /// Nagle's algorithm as modified by Minshall (RFC 9293 appendix A.3) and implemented in Linux: a segment that is
    /// not full waits while an earlier such one is unacknowledged, but not for full ones. The end of an answer thus
    /// leaves with the answer.
    pub(super) fn waits_for_small(&self) -> bool {
        self.config.nagle && !self.sender.finished && self.sender.small_end.after(self.sender.buffer.start())
    }

    fn assign(
        &mut self,
        waiting: Waiting,
        window_bytes: u64,
        marks: Marks,
        candidates: &Candidates,
        views: &Views,
        now: Instant,
    ) {
        let fits = marks.iter().filter_map(|at| views.get(at)).map(|view| self.chunk_max(view, now)).min();
        let Some(fits) = fits else { return };
        let limit = if waiting.again { waiting.len } else { waiting.len.min(window_bytes) };
        let len = limit.min(u64::from(fits).max(self.fragment_rest(waiting.dsn)));
        let len = if waiting.again || len < waiting.len { len } else { self.uncorked_part(len, candidates) };
        let payload = self.sender.buffer.read(waiting.dsn, usize_from(len));
        self.note_carriers(&waiting, len, marks, views);
        if waiting.again {
            self.tell_reinjection(&waiting, len, marks, views);
            self.reinjection.take(len);
            self.totals.reinjected_bytes += len;
        } else {
            self.sender.next += len;
            if len == waiting.len && len % candidates.mss() != 0 {
                self.sender.small_end = self.sender.next;
            }
            self.finish_stream_if_last(false);
        }
        self.hand_over_pieces(waiting.dsn, payload, fits, marks, views);
        self.arm_data_timers(now);
    }

    /// Returns the octets from `dsn` on that go to one subflow together; zero if a segment is the unit.
    fn fragment_rest(&self, dsn: Dsn) -> u64 {
        match self.config.era.binding {
            Binding::Autotuned => FRAGMENT_BYTES - dsn.since(self.sender.first) % FRAGMENT_BYTES,
            Binding::Early { .. } | Binding::Late => 0,
        }
    }

    /// Hands over one segment's worth at a time; a fragment contains several.
    fn hand_over_pieces(&mut self, mut dsn: Dsn, mut payload: Payload, piece: u32, marks: Marks, views: &Views) {
        let piece = usize_from(piece.into());
        while payload.len() > piece {
            let first = payload.split_to(piece);
            self.hand_over(dsn, first, marks, views);
            dsn += piece as u64;
        }
        self.hand_over(dsn, payload, marks, views);
    }

    fn hand_over(&mut self, dsn: Dsn, payload: Payload, marks: Marks, views: &Views) {
        let mut marked = marks.iter().filter_map(|at| views.get(at)).map(|view| view.id);
        let Some(first) = marked.next() else { return };
        for id in marked {
            self.subflows[id].take_over(Chunk { label: Label::new(dsn), payload: payload.clone() });
        }
        self.subflows[first].take_over(Chunk { label: Label::new(dsn), payload });
    }

    /// Records that the next `len` octets go to the marked subflows. If several carry the same octets, one may swallow
    /// them unnoticed.
    fn note_carriers(&mut self, waiting: &Waiting, len: u64, marks: Marks, views: &Views) {
        let mut marked = marks.iter().filter_map(|at| views.get(at)).map(|view| view.id);
        let carrier = marked.next().filter(|_| marked.next().is_none());
        match carrier {
            Some(carrier) if waiting.again => self.carriers.note_again(waiting.dsn, waiting.dsn + len, carrier),
            _ if waiting.again => {}
            _ => self.carriers.note(waiting.dsn, carrier),
        }
    }

    /// Tells the observer that the next `len` octets are sent again.
    fn tell_reinjection(&self, waiting: &Waiting, len: u64, marks: Marks, views: &Views) {
        let Some(cause) = self.reinjection.cause().filter(|_| self.watch.is_on()) else { return };
        let (offset, instead_of) = (waiting.dsn.since(self.sender.first), self.reinjection.avoid());
        for view in marks.iter().filter_map(|at| views.get(at)) {
            let what = || Occurrence::DataReinjected { offset, bytes: len, instead_of, cause };
            self.watch.tell_of(view.id, what);
        }
    }

    /// Returns the octets of one segment or one probe of the path MTU; if the driver cuts super-segments, as many as
    /// fit the windows.
    fn chunk_max(&mut self, view: &SubflowView, now: Instant) -> u32 {
        let subflow = &mut self.subflows[view.id];
        let probe = subflow.tcb.probe_bytes(now).unwrap_or(0);
        subflow.segment_bytes(self.config.super_segment_max()).max(probe)
    }

    /// Ends the stream if its last octet has been handed over: that octet's segment ends the stream too. `alone` if no
    /// data are left to carry the end.
    pub(super) fn finish_stream_if_last(&mut self, alone: bool) {
        let ready = self.sender.finished
            && self.sender.data_fin.is_none()
            && self.sender.next == self.sender.buffer.end()
            && self.is_established();
        if !ready {
            return;
        }
        self.sender.data_fin = Some(self.sender.next);
        self.step(crate::state::Step::SendFin);
        match self.protocol {
            Protocol::Tcp { .. } => self.subflows.iter_mut().for_each(|subflow| subflow.tcb.request_fin()),
            _ if alone => self.send_data_fin(),
            _ => {}
        }
    }

    /// Sends the DATA_FIN on its own, on the subflow most likely to deliver it; on repetition, subflows take turns.
    pub(super) fn send_data_fin(&mut self) {
        let able = self.subflows.iter_mut().filter(|subflow| subflow.can_end_stream());
        if let Some(subflow) = able.min_by_key(|subflow| {
            let is_suspect = subflow.suspension.is_some();
            (subflow.is_stale(), subflow.data_fins, is_suspect, !subflow.is_usable(), subflow.is_backup())
        }) {
            subflow.data_fins += 1;
            self.sender.data_fin_due = true;
            subflow.tcb.demand_fresh_ack();
        }
    }
}
