//! Back to plain TCP when a middlebox interferes (RFC 8684 section 3.7).

use units::{Dsn, Instant, SeqNr};
use wire::Payload;
use wire::mptcp::{MpFail, MpTcpRst, MptcpOption, ResetReason};

use super::{Connection, Protocol};
use crate::error::{CloseReason, Violation};
use crate::event::Event;
use crate::host::Host;

impl Connection {
    /// Only with a single subflow, which has delivered everything in order, do subflow and data stream coincide.
    fn can_fall_back(&self) -> bool {
        self.is_mptcp() && self.next_subflow == 1 && self.ended.is_empty() && self.receiver.stream.waiting_bytes() == 0
    }

    /// Goes on as plain TCP.
    pub(super) fn fall_back(&mut self, host: &mut Host, now: Instant) {
        if !self.is_mptcp() {
            return;
        }
        host.release_token(self.local_token(), self.id.slot);
        self.protocol = Protocol::Tcp { fell_back: true };
        host.events.push_back(Event::FellBack(self.id));
        let sent_end = self.sender.next;
        let Some(subflow) = self.subflows.first_mut() else { return };
        if !self.sender.infinite_mapping_due {
            subflow.tcb.change_reserved_options(0);
        }
        let una = subflow.tcb.unacknowledged().map(|(dsn, _)| dsn).next().unwrap_or(sent_end);
        if self.sender.data_fin.is_some() {
            subflow.tcb.request_fin();
        }
        self.acknowledge_data(una, host, now);
    }

    /// Data came without a mapping. True if they were taken nevertheless.
    pub(super) fn on_unmapped_data(
        &mut self,
        i: usize,
        _seq: SeqNr,
        payload: Payload,
        host: &mut Host,
        now: Instant,
    ) -> bool {
        if !self.can_fall_back() {
            let reason = CloseReason::Violation(Violation::UnmappedData);
            self.reset_subflow(i, ResetReason::MiddleboxInterference, false, reason);
            return false;
        }
        self.fall_back(host, now);
        self.deliver_unmapped(i, payload);
        true
    }

    /// A DSS checksum failed: the middlebox changes data. True if they were taken nevertheless, as TCP would.
    pub(super) fn on_bad_checksum(&mut self, i: usize, dsn: Dsn, host: &mut Host, now: Instant) -> bool {
        if !self.can_fall_back() {
            let reason = CloseReason::Violation(Violation::Checksum);
            self.reset_subflow(i, ResetReason::MiddleboxInterference, false, reason);
            self.subflows[i].reset_options.push(MptcpOption::Fail(MpFail { dsn }));
            return false;
        }
        self.receiver.fail_due = Some(dsn);
        self.sender.infinite_mapping_due = true;
        self.subflows[i].tcb.demand_ack();
        let pending: Vec<Payload> = self.subflows[i].mappings.take_pending().collect();
        self.fall_back(host, now);
        pending.into_iter().for_each(|payload| self.deliver_unmapped(i, payload));
        true
    }

    /// Without mappings the subflow's order is the stream's.
    fn deliver_unmapped(&mut self, i: usize, payload: Payload) {
        let next = self.receiver.stream.next();
        let end = next + payload.len() as u64;
        self.receiver.stream.insert(i, next, payload, end);
    }

    /// The peer's checksum failed (MP_FAIL): with a single subflow both go on without MPTCP. With several the peer
    /// also resets the subflow, and its data are reinjected.
    pub(super) fn on_fail(&mut self, host: &mut Host, now: Instant) {
        if self.can_fall_back() {
            self.sender.infinite_mapping_due = true;
            self.fall_back(host, now);
        }
    }

    /// The peer has fallen back.
    pub(super) fn on_infinite_mapping(&mut self, host: &mut Host, now: Instant) {
        if self.can_fall_back() {
            self.fall_back(host, now);
        }
    }

    /// Resets subflow `i` and says why (MP_TCPRST).
    pub(super) fn reset_subflow(&mut self, i: usize, reason: ResetReason, transient: bool, close_reason: CloseReason) {
        let subflow = &mut self.subflows[i];
        subflow.close_reason.get_or_insert(close_reason);
        subflow.reset_options.push(MptcpOption::TcpRst(MpTcpRst { transient, reason }));
        subflow.tcb.request_reset();
    }
}
