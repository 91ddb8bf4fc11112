//! Segments in: TCP first, then the options, then the data (RFC 8684 section 3).

use units::narrow::u32_from;
use units::{Dsn, Instant, SeqNr};
use wire::mptcp::{MpJoin, MptcpOption, ResetReason};
use wire::{Flags, Payload, Segment};

use super::mapping::Unresolved;
use super::subflow::Handshake;
use super::{Connection, Protocol};
use crate::SubflowId;
use crate::control_loop;
use crate::error::{CloseReason, Violation};
use crate::host::Host;
use crate::state::Step;
use crate::tcp::{AckOutcome, Arrival, Verdict};

impl Connection {
    /// Handles a segment of subflow `id`. Returns false if nothing needs sending or settling; a timer may have changed.
    #[inline]
    pub(crate) fn handle_segment(
        &mut self,
        id: SubflowId,
        segment: &mut Segment,
        host: &mut Host,
        now: Instant,
    ) -> bool {
        if self.take_expected(id, segment, host, now) {
            if !self.queued && self.is_at_rest() {
                return false;
            }
            self.settle(host, now);
        } else {
            self.examine(id, segment, host, now);
        }
        true
    }

    /// Handles a segment on the slow path.
    #[inline(never)]
    fn examine(&mut self, id: SubflowId, segment: &mut Segment, host: &mut Host, now: Instant) {
        let Some(subflow) = self.subflows.get(id) else { return };
        if self.must_wait_for_keys(subflow, segment) {
            return;
        }
        let had_payload = !segment.payload.is_empty();
        let tagged = self.tagged_data(id, segment);
        let promised = self.promised_window();
        let subflow = &mut self.subflows[id];
        if promised > 0 && subflow.handshake == Handshake::Complete {
            subflow.tcb.promise_window(promised);
        }
        let mut arrival = Arrival::default();
        match subflow.tcb.on_segment(segment, now, &mut arrival) {
            // A loss before the RST must not hide an MP_FASTCLOSE: the key proves more than an exact sequence number.
            Verdict::Dropped if segment.flags.contains(Flags::RST) => {
                if self.has_our_fastclose(segment) && self.subflows[id].tcb.is_in_window(segment.seq) {
                    self.on_fastclose(host, now);
                }
            }
            Verdict::Dropped => {}
            Verdict::Unacceptable => host.reply_reset(segment),
            Verdict::Refused => self.on_reset(id, segment, CloseReason::Refused, host, now),
            Verdict::Reset => self.on_reset(id, segment, CloseReason::Reset, host, now),
            Verdict::Accepted => {
                if let Some(data) = tagged {
                    self.on_tagged_data(id, &data, now);
                }
                self.on_accepted(id, segment, had_payload, &arrival, host, now);
            }
        }
        self.settle(host, now);
    }

    fn on_accepted(
        &mut self,
        id: SubflowId,
        segment: &Segment,
        had_payload: bool,
        arrival: &Arrival,
        host: &mut Host,
        now: Instant,
    ) {
        if arrival.established {
            if !self.on_handshake(id, segment, host, now) {
                return;
            }
        } else if let Handshake::JoinUnconfirmed(_) = self.subflows[id].handshake {
            self.confirm_join(id, host, now);
        }
        if !self.subflows[id].is_proven() {
            // A SYN without ACK has answered our join (RFC 9293 figure 8).
            return;
        }
        self.on_ack(id, &arrival.ack, now);
        let mut acked_bytes = arrival.ack.acked_payload_bytes;
        if self.lacks_expected_option(id, segment, had_payload, arrival) {
            if !self.do_without_options(id, host, now) {
                return;
            }
            // The fallback has accounted for all data that the subflow has delivered.
            acked_bytes = 0;
        }
        match self.protocol {
            Protocol::Mptcp { .. } => {
                if let Err(violation) = self.on_options(id, segment, host, now) {
                    self.reset_subflow(id, ResetReason::MptcpSpecific, false, CloseReason::Violation(violation));
                    return;
                }
                if self.is_cut_off() {
                    return;
                }
            }
            Protocol::Tcp { fell_back } => {
                if fell_back && self.refuses_mapping(id, segment) {
                    return;
                }
                self.on_tcp_ack(id, acked_bytes, arrival.ack.fin_acked, host, now);
                self.note_late_data_fin(id, segment);
            }
            Protocol::Negotiating => {}
        }
        if arrival.data {
            self.pull_data(id, host, now);
        }
        self.check_data_fin(host, now);
    }

    /// Returns the window promised to the peer. The window belongs to the connection (RFC 8684 section 3.3.4): a
    /// promise on one subflow holds on all. Zero in plain TCP, where only the subflow's own window counts.
    #[inline]
    pub(super) fn promised_window(&self) -> u32 {
        let (edge, next) = (self.receiver.edge, self.receiver.stream.next());
        if self.is_mptcp() && edge.after(next) { u32_from(edge.since(next)).min(u32::MAX >> 2) } else { 0 }
    }

    /// RFC 8684 section 3.7: an answer to our data without a DSS shows that the path strips options, or that the peer
    /// has fallen back. The same holds for a first segment with data, a FIN, or an answer to our FIN. After a first
    /// DSS, or while a join of the peer waits for its third ACK, an answer without a DSS proves less: a relay that
    /// acknowledges data without passing them on looks the same, and a peer that fell back has no other path left
    /// ([`Self::is_in_doubt`]). The outcome of the join decides.
    fn lacks_expected_option(
        &mut self,
        id: SubflowId,
        segment: &Segment,
        had_payload: bool,
        arrival: &Arrival,
    ) -> bool {
        if !self.is_mptcp() || !segment.options.mptcp.is_empty() {
            return false;
        }
        let subflow = &self.subflows[id];
        if subflow.handshake != Handshake::Complete {
            return false;
        }
        let answers_data = arrival.ack.acked_payload_bytes > 0;
        if subflow.dss_seen {
            self.sender.is_doubtful |= answers_data && !self.joined;
            return false;
        }
        let ends = (arrival.fin || arrival.ack.fin_acked) && !self.joined;
        if had_payload || ends {
            return true;
        }
        let may_be_forged = answers_data && !self.joined && self.is_being_joined();
        self.sender.is_doubtful |= may_be_forged;
        answers_data && !may_be_forged
    }

    /// Passes an ACK to the controller, and its round-trip time to schedulers.
    #[inline]
    pub(super) fn on_ack(&mut self, id: SubflowId, ack: &AckOutcome, now: Instant) {
        if ack.is_silent() {
            return;
        }
        control_loop::on_ack(self, id, ack, now);
        if ack.revived {
            self.on_revival(now);
        }
        let subflow = &mut self.subflows[id];
        subflow.grow_send_buffer();
        if let Some(rtt) = ack.rtt.filter(|_| subflow.admitted) {
            subflow.note_rtt(rtt, now);
        }
    }

    /// A subflow shows signs of life again: it takes over from those that show none, and the data-level time-out
    /// restarts from the subflows that are alive. This happens once per time-out: a subflow that comes and goes must
    /// not postpone it for ever.
    #[cold]
    fn on_revival(&mut self, now: Instant) {
        self.reinject_from_stale();
        if !self.sender.is_put_off {
            self.rearm_data_timer(now);
            self.sender.is_put_off = true;
        }
    }

    /// In plain TCP the subflow's ACK is also the data level's.
    #[inline]
    pub(super) fn on_tcp_ack(
        &mut self,
        id: SubflowId,
        acked_bytes: u64,
        fin_acked: bool,
        host: &mut Host,
        now: Instant,
    ) {
        let una = self.sender.buffer.start() + acked_bytes;
        self.acknowledge_data(una, host, now);
        let window = self.subflows[id].tcb.peer_window();
        self.note_window(self.sender.buffer.start(), u64::from(window));
        if fin_acked && self.sender.finished {
            self.on_data_fin_acked(host, now);
        }
    }

    fn on_options(&mut self, id: SubflowId, segment: &Segment, host: &mut Host, now: Instant) -> Result<(), Violation> {
        for option in &segment.options.mptcp {
            match option {
                MptcpOption::Dss(dss) => {
                    let subflow = &mut self.subflows[id];
                    subflow.dss_seen = true;
                    let window_bytes = subflow.tcb.announced_window(segment);
                    self.on_dss(id, dss, window_bytes, host, now)?;
                }
                MptcpOption::Capable(capable) => self.on_capable_again(id, capable)?,
                // The peer has not received our fourth segment (RFC 8684 section 3.2).
                MptcpOption::Join(MpJoin::Ack { .. }) => self.subflows[id].tcb.demand_ack(),
                MptcpOption::AddAddr(add) if add.is_echo() => self.addresses.on_echo(add.address_id),
                MptcpOption::AddAddr(add) => self.on_add_addr(id, add, host, now),
                MptcpOption::RemoveAddr(remove) => self.on_remove_addr(remove, host, now),
                MptcpOption::Prio(prio) => self.on_prio(id, *prio, host),
                MptcpOption::Fail(_) => self.on_fail(id, host, now),
                MptcpOption::Fastclose(fastclose) if fastclose.receiver_key == self.local_key => {
                    self.on_fastclose(host, now);
                }
                MptcpOption::Experimental(option) => {
                    let window_bytes = self.subflows[id].tcb.announced_window(segment);
                    self.on_experimental(option, segment, window_bytes, now);
                }
                _ => {}
            }
            if self.is_cut_off() {
                // The owner has been told of the end: nothing may follow.
                break;
            }
        }
        Ok(())
    }

    /// Moves data from the subflow to the data stream.
    pub(super) fn pull_data(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        while let Some((seq, payload)) = self.place_ready(id) {
            let result = match self.protocol {
                Protocol::Mptcp { .. } => self.place_in_pieces(id, seq, payload),
                // The stream had ended while there were mappings.
                _ if self.receiver.finished => Ok(()),
                _ => {
                    self.append_in_order(payload);
                    Ok(())
                }
            };
            match result {
                Ok(()) => {}
                // A middlebox merged these data with the last segment of the stream, and their mapping was lost.
                Err(Unresolved::NoMapping(_)) if self.has_whole_stream() => {}
                Err(Unresolved::NoMapping(payload)) => {
                    if !self.on_unmapped_data(id, payload, host, now) {
                        break;
                    }
                }
                Err(Unresolved::BadChecksum(dsn, rest)) => {
                    if !self.on_bad_checksum(id, dsn, rest, host, now) {
                        break;
                    }
                }
            }
        }
        self.note_received(host);
    }

    /// In plain TCP, data that the subflow accepted come next in the stream, and its own test has put them within the
    /// window.
    #[inline]
    pub(super) fn append_in_order(&mut self, payload: Payload) {
        let receiver = &mut self.receiver;
        let end = receiver.stream.next() + payload.len() as u64;
        receiver.edge = receiver.edge.max(end);
        receiver.stream.append(payload);
    }

    /// Tells the owner about data that have arrived.
    #[inline]
    pub(super) fn note_received(&mut self, host: &mut Host) {
        if self.receiver.discard || self.receiver.shut {
            self.receiver.stream.discard_ready();
        } else if self.receiver.stream.ready_bytes() > 0 {
            self.tell_readable(host);
        }
        self.totals.received_bytes = self.receiver.stream.received_bytes();
    }

    /// Places the next data of a subflow where its mappings say, up to the first data that do not belong wholly to one
    /// mapping, which it returns.
    #[inline]
    fn place_ready(&mut self, id: SubflowId) -> Option<(SeqNr, Payload)> {
        let edge = self.receivable_edge();
        let Self { subflows, receiver, totals, .. } = self;
        let subflow = &mut subflows[id];
        let is_simple = self.protocol.is_mptcp() && subflow.unverified_fin.is_none();
        while let Some((seq, payload)) = subflow.tcb.take_ready() {
            let place = if is_simple { subflow.mappings.place_whole(seq, payload.sequence_len()) } else { None };
            let Some(dsn) = place else { return Some((seq, payload)) };
            totals.duplicate_bytes += receiver.stream.insert(id, dsn, payload, edge).duplicate_bytes;
        }
        None
    }

    /// Places data of a subflow that belong to several mappings, or to mappings with checksums.
    fn place_in_pieces(&mut self, id: SubflowId, seq: SeqNr, payload: Payload) -> Result<(), Unresolved> {
        let edge = self.receivable_edge();
        let Self { subflows, receiver, totals, .. } = self;
        let subflow = &mut subflows[id];
        let (unverified_fin, mut is_verified) = (subflow.unverified_fin, false);
        let result = subflow.mappings.resolve(seq, payload, |dsn, piece| {
            is_verified |= unverified_fin == Some(dsn + piece.len() as u64);
            totals.duplicate_bytes += receiver.stream.insert(id, dsn, piece, edge).duplicate_bytes;
        });
        if let Some(fin) = unverified_fin.filter(|_| is_verified) {
            subflow.unverified_fin = None;
            self.note_data_fin(fin);
        }
        result
    }

    /// Returns the end of the window or of the stream: nothing beyond it is accepted.
    pub(super) fn receivable_edge(&self) -> Dsn {
        let edge = self.receiver.edge;
        self.receiver.data_fin.map_or(edge, |fin| fin.min(edge))
    }

    /// The peer's stream has arrived up to its DATA_FIN: nothing can follow.
    fn has_whole_stream(&self) -> bool {
        self.receiver.finished || self.receiver.data_fin == Some(self.receiver.stream.next())
    }

    /// The peer's DATA_FIN counts once everything before it has arrived. After a fallback this holds if the stream ends
    /// exactly there: a peer that does not know of the fallback yet may repeat data beyond the end. Otherwise a
    /// middlebox has changed the length of the stream, and the FIN marks the end.
    #[inline]
    pub(super) fn check_data_fin(&mut self, host: &mut Host, now: Instant) {
        if self.has_whole_stream() {
            self.on_peer_finished(host, now);
        }
    }

    pub(super) fn on_peer_finished(&mut self, host: &mut Host, now: Instant) {
        if self.receiver.finished {
            return;
        }
        self.step(Step::ReceiveFin);
        self.receiver.finished = true;
        host.events.push_back(crate::Event::PeerFinished(self.id));
        self.tell_readable(host);
        self.on_state_change(host, now);
    }

    /// Whether a segment has MP_FASTCLOSE with our key (RFC 8684 section 3.5).
    fn has_our_fastclose(&self, segment: &Segment) -> bool {
        let is_ours = |option: &MptcpOption| matches!(option, MptcpOption::Fastclose(fastclose) if fastclose.receiver_key == self.local_key);
        segment.options.mptcp.iter().any(is_ours)
    }

    /// Handles a RST, which may end the whole connection. A failed checksum (MP_FAIL) needs no answer of its own: the
    /// subflow's outstanding data go to the others, as after any RST.
    fn on_reset(&mut self, id: SubflowId, segment: &Segment, reason: CloseReason, host: &mut Host, now: Instant) {
        if self.has_our_fastclose(segment) {
            return self.on_fastclose(host, now);
        }
        let subflow = &mut self.subflows[id];
        subflow.tcb.close();
        subflow.close_reason.get_or_insert(reason);
        debug_assert!(segment.flags.contains(Flags::RST));
    }
}
