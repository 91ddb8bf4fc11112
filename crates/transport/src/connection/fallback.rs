//! Fallback to plain TCP when a middlebox interferes (RFC 8684 section 3.7).

use units::narrow::low_u32;
use units::{Dsn, Instant};
use wire::mptcp::{Dss, MpFail, MpTcpRst, MptcpOption, ResetReason};
use wire::{Payload, Segment};

use super::{Connection, Protocol};
use crate::SubflowId;
use crate::error::{CloseReason, Violation};
use crate::event::Event;
use crate::host::Host;

/// Consecutive data-level time-outs after which a peer in doubt counts as fallen back: at least 1 + 2 + 4 s, time to
/// join through another relay.
pub(super) const DOUBT_TIMEOUTS: u32 = 3;

impl Connection {
    /// There has only ever been one subflow, and both streams coincide on it.
    pub(super) fn can_fall_back(&self) -> bool {
        !self.joined && self.streams_coincide()
    }

    /// As [`Self::can_fall_back`], and the peer can follow: after our SYN/ACK it may regard a join as established, and
    /// would not fall back.
    fn can_fall_back_first(&self) -> bool {
        self.can_fall_back() && !self.is_being_joined()
    }

    /// Neither side has ever begun a join.
    fn has_been_alone(&self) -> bool {
        self.subflows.len() == 1 && self.next_subflow <= 1
    }

    /// The peer has begun a join, which it does only after receiving a DSS of ours, and has not yet proved its
    /// identity.
    pub(super) fn is_being_joined(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.half_open_until().is_some())
    }

    /// Subflow and data stream are the same in both directions: nothing was sent or received on another subflow, or out
    /// of data order. A peer that has fallen back can be followed.
    fn streams_coincide(&self) -> bool {
        let Some(subflow) = self.subflows.first().filter(|subflow| subflow.admitted && !subflow.is_retired()) else {
            return false;
        };
        let sent = self.sender.next.since(self.sender.first);
        let stream = &self.receiver.stream;
        let received = stream.received_bytes() + u64::from(subflow.mappings.pending_bytes());
        let taken = subflow.mappings.resolved_to().map_or(0, |seq| seq.since(subflow.tcb.irs() + 1));
        self.is_mptcp()
            && self.reinjection.next().is_none()
            && subflow.tcb.octets_taken() == sent
            && stream.waiting_bytes() == 0
            && taken == low_u32(received)
    }

    /// Continues as plain TCP, unless both streams have ended; the caller has checked [`Self::streams_coincide`].
    pub(super) fn fall_back(&mut self, host: &mut Host, now: Instant) {
        if !self.is_mptcp() || self.is_closed() {
            return;
        }
        host.release_token(self.local_token(), self.id.slot);
        self.protocol = Protocol::Tcp { fell_back: true };
        self.addresses.stop();
        self.data_timer = Instant::FAR_FUTURE;
        self.idle_timer = Instant::FAR_FUTURE;
        host.events.push_back(Event::FellBack(self.id));
        for id in self.subflows.ids().into_iter().skip(1) {
            self.reset_subflow(id, ResetReason::MptcpSpecific, false, CloseReason::Aborted);
        }
        let sent_end = self.sender.next;
        let mapped_distance = self.mapped_distance();
        let Some(subflow) = self.subflows.first_mut() else { return };
        subflow.mapped_distance = Some(mapped_distance);
        if self.sender.infinite_mapping_due.is_none() {
            subflow.tcb.change_reserved_options(0);
        }
        let pending: Vec<Payload> = subflow.mappings.take_pending().collect();
        let data = subflow.tcb.unacknowledged().find(|(_, payload)| !payload.is_empty());
        let una = data.map_or(sent_end, |(label, _)| label.dsn());
        if self.sender.data_fin.is_some() {
            subflow.tcb.request_fin();
        }
        // A FIN that was acknowledged before has ended the subflow only; now it ends the stream.
        let is_end_acked = self.sender.data_fin.is_some() && subflow.tcb.is_fin_acked();
        let unverified_fin = subflow.unverified_fin.take();
        self.acknowledge_data(una, host, now);
        unverified_fin.into_iter().for_each(|fin| self.note_data_fin(fin));
        pending.into_iter().for_each(|payload| self.deliver_unmapped(payload));
        if is_end_acked {
            self.on_data_fin_acked(host, now);
        }
    }

    /// Returns how far data sequence numbers are ahead of the relative sequence numbers of the only subflow (RFC 8684
    /// section 3.3.1).
    fn mapped_distance(&self) -> u32 {
        let stream = &self.receiver.stream;
        stream.next().low().wrapping_sub(low_u32(stream.received_bytes())).wrapping_sub(1)
    }

    /// Falls back because a checksum failed here, or the peer sent MP_FAIL, as it does when one failed there.
    fn fall_back_for_a_checksum(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        self.fall_back_aloud(host, now);
        // A middlebox may have changed the mapping and not the data: later mappings agree with one another, not with
        // the stream.
        self.subflows[id].mapped_distance = None;
    }

    /// Falls back and announces it: an infinite mapping goes with the next data, retroactive from the last octet known
    /// to have arrived intact.
    pub(super) fn fall_back_aloud(&mut self, host: &mut Host, now: Instant) {
        self.sender.infinite_mapping_due = Some(self.sender.buffer.start());
        self.fall_back(host, now);
    }

    /// Handles segments on subflow `id` that lack options. Returns true if the connection continues as plain TCP;
    /// otherwise the subflow is reset.
    ///
    /// Our options may still reach the peer, and while we have no data to carry the infinite mapping, nothing tells the
    /// peer of the fallback. DATA_ACKs therefore continue: without them the peer would stop after a window, and send
    /// unacknowledged data again as new octets of the subflow. MP_FAIL would tell the peer, but Linux 6.18 then puts
    /// its own infinite mapping on the next segment, and a segment as long as the path allows without options never
    /// leaves.
    pub(super) fn do_without_options(&mut self, id: SubflowId, host: &mut Host, now: Instant) -> bool {
        if self.can_fall_back() {
            let has_been_alone = self.has_been_alone();
            self.fall_back_aloud(host, now);
            // A peer that has begun a join may send its outstanding data on either subflow.
            self.receiver.acknowledges_data = has_been_alone;
            return true;
        }
        self.reset_for_interference(id);
        false
    }

    /// The only established subflow acknowledges data without any DATA_ACK. This happens if the peer has fallen back
    /// and its announcement was lost, or if the path has changed and now strips options. A relay that swallows data
    /// looks the same: the peer gets time to join over another path, which a peer that fell back does not do
    /// ([`DOUBT_TIMEOUTS`]).
    pub(super) fn is_in_doubt(&self) -> bool {
        self.sender.is_doubtful && self.can_fall_back()
    }

    fn reset_for_interference(&mut self, id: SubflowId) {
        let reason = CloseReason::Violation(Violation::UnmappedData);
        self.reset_subflow(id, ResetReason::MiddleboxInterference, false, reason);
    }

    /// Handles data without a mapping. Returns true if they were accepted nevertheless.
    pub(super) fn on_unmapped_data(&mut self, id: SubflowId, payload: Payload, host: &mut Host, now: Instant) -> bool {
        if !self.can_fall_back_first() {
            self.reset_for_interference(id);
            return false;
        }
        self.fall_back_aloud(host, now);
        // Options may still pass in the other direction.
        self.report_failure(id, self.receiver.stream.next());
        self.deliver_unmapped(payload);
        true
    }

    /// Handles a failed DSS checksum: a middlebox changes data. With a single subflow we accept the data and `rest`
    /// behind them, as TCP would. Otherwise the subflow is reset and others bring the data again. Once both streams have
    /// ended, the data are dropped, like all that have no place in the stream.
    pub(super) fn on_bad_checksum(
        &mut self,
        id: SubflowId,
        dsn: Dsn,
        rest: Payload,
        host: &mut Host,
        now: Instant,
    ) -> bool {
        if self.is_closed() {
            drop(self.subflows[id].mappings.take_pending());
            return true;
        }
        if !self.can_fall_back_first() {
            let reason = CloseReason::Violation(Violation::Checksum);
            self.reset_subflow(id, ResetReason::MiddleboxInterference, false, reason);
            self.subflows[id].reset_options.push(MptcpOption::Fail(MpFail { dsn }));
            return false;
        }
        self.report_failure(id, dsn);
        self.fall_back_for_a_checksum(id, host, now);
        self.deliver_unmapped(rest);
        true
    }

    fn report_failure(&mut self, id: SubflowId, dsn: Dsn) {
        self.receiver.fail_due = Some(dsn);
        self.subflows[id].tcb.demand_fresh_ack();
    }

    /// Appends data to the stream: without mappings the subflow's order is the stream's.
    fn deliver_unmapped(&mut self, payload: Payload) {
        if self.receiver.finished {
            return;
        }
        let next = self.receiver.stream.next();
        let end = next + payload.len() as u64;
        self.receiver.edge = self.receiver.edge.max(end);
        self.receiver.stream.append(payload);
    }

    /// The peer could not use our data (MP_FAIL). With a single subflow both sides continue without MPTCP, and both
    /// announce it. With several, the peer resets the subflow. A peer that does not has fallen back, whatever became of
    /// pending joins: we follow it, or the next data on the subflow would have no place.
    pub(super) fn on_fail(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        let failed_at = self.data_ack();
        if self.streams_coincide() {
            self.report_failure(id, failed_at);
            self.fall_back_for_a_checksum(id, host, now);
        } else {
            let reason = CloseReason::Violation(Violation::Checksum);
            self.reset_subflow(id, ResetReason::MiddleboxInterference, false, reason);
            self.subflows[id].reset_options.push(MptcpOption::Fail(MpFail { dsn: failed_at }));
        }
    }

    /// The peer has fallen back.
    pub(super) fn on_infinite_mapping(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        if self.streams_coincide() {
            self.fall_back(host, now);
        } else {
            // The data that follow could not be placed.
            let reason = CloseReason::Violation(Violation::MappingMismatch);
            self.reset_subflow(id, ResetReason::MptcpSpecific, false, reason);
        }
    }

    /// A peer that does not know of the fallback yet ends its stream with a DATA_FIN.
    pub(super) fn note_late_data_fin(&mut self, id: SubflowId, segment: &Segment) {
        if !self.subflows[id].dss_seen || self.receiver.data_fin.is_some() {
            return;
        }
        let data_fin = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(Dss { data_fin: true, mapping, .. }) => *mapping,
            _ => None,
        });
        if let Some(mapping) = data_fin.filter(|mapping| mapping.len > 0) {
            self.note_data_fin(mapping.dsn.expand(self.receiver.stream.next()) + u64::from(mapping.len - 1));
        }
    }

    /// After a fallback, a peer that still speaks MPTCP may map data (RFC 8684 section 3.3.1) to a place that differs
    /// from the subflow's order: it has sent octets again behind later ones (Linux 6.18 does, even on the same
    /// subflow). Returns true if subflow `id` was reset for this: taken in order, the octets would be in the stream
    /// twice.
    pub(super) fn refuses_mapping(&mut self, id: SubflowId, segment: &Segment) -> bool {
        let mapping = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(Dss { mapping: Some(mapping), data_fin, .. }) => {
                (mapping.len > u16::from(*data_fin)).then_some(mapping)
            }
            _ => None,
        });
        let Some(mapping) = mapping else { return false };
        let distance = mapping.dsn.expand(Dsn(0)).low().wrapping_sub(mapping.ssn);
        if *self.subflows[id].mapped_distance.get_or_insert(distance) == distance {
            return false;
        }
        let reason = CloseReason::Violation(Violation::MappingMismatch);
        self.reset_subflow(id, ResetReason::MptcpSpecific, false, reason);
        true
    }

    /// Resets subflow `id` and states the reason (MP_TCPRST).
    pub(super) fn reset_subflow(
        &mut self,
        id: SubflowId,
        reason: ResetReason,
        transient: bool,
        close_reason: CloseReason,
    ) {
        let subflow = &mut self.subflows[id];
        subflow.close_reason.get_or_insert(close_reason);
        subflow.reset_options.clear();
        subflow.reset_options.push(MptcpOption::TcpRst(MpTcpRst { transient, reason }));
        subflow.tcb.request_reset();
    }
}
