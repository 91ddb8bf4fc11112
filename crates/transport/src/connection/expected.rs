//! The most common segments: one that brings the next data of its subflow with their mapping, or an ACK with a
//! DATA_ACK.
//!
//! They take the fast path through `tcp/expected.rs` and bypass the queues of subflow and mappings. All other segments
//! take the slow path in `arrival.rs`, which would leave the same state.

use units::Instant;
use wire::mptcp::{DataSeq, Dss, Mapping, MptcpOption};
use wire::{Payload, Segment};

use super::subflow::{Handshake, Subflow};
use super::{Connection, Protocol};
use crate::SubflowId;
use crate::host::Host;
use crate::tcp::AckOutcome;

/// The result of taking a segment.
enum Taken {
    /// The segment takes the slow path.
    Not,
    /// The segment brings no data.
    Ack,
    /// The segment's data belong here.
    Data(DataSeq),
}

impl Subflow {
    /// Takes data that are exactly those of `mapping`, without moving them. Returns false if there is anything special
    /// about them.
    #[inline]
    fn take_mapped(&mut self, segment: &Segment, mapping: &Mapping, now: Instant) -> bool {
        let is_whole = u32::from(mapping.len) == segment.payload.sequence_len()
            && self.absolute_received(mapping.ssn) == segment.seq;
        let is_simple = is_whole && self.unverified_fin.is_none();
        // Tables are asked only about the next data: they forget what comes before.
        if !is_simple || !self.tcb.expects_data(segment) || !self.mappings.is_clear_at(segment.seq) {
            return false;
        }
        self.tcb.take_expected_data(segment, now);
        self.mappings.pass_by(self.tcb.next_expected());
        true
    }
}

impl Connection {
    /// Takes a segment of subflow `id` if it is of the most common kind. Returns false otherwise; then it takes the
    /// slow path.
    #[inline]
    pub(super) fn take_expected(
        &mut self,
        id: SubflowId,
        segment: &mut Segment,
        host: &mut Host,
        now: Instant,
    ) -> bool {
        match (&self.protocol, segment.options.mptcp.as_slice()) {
            (Protocol::Mptcp { fully_established: true, .. }, [MptcpOption::Dss(dss)])
                if self.rate_control.is_none() =>
            {
                match self.take_with_dss(id, segment, dss, host, now) {
                    Taken::Not => return false,
                    Taken::Ack => {}
                    Taken::Data(dsn) => self.place_expected(id, dsn, core::mem::take(&mut segment.payload), host, now),
                }
                true
            }
            (Protocol::Tcp { fell_back: false }, []) => self.take_without_options(id, segment, host, now),
            _ => false,
        }
    }

    /// Takes everything but the data, which stay in the segment.
    #[inline(always)]
    fn take_with_dss(&mut self, id: SubflowId, segment: &Segment, dss: &Dss, host: &mut Host, now: Instant) -> Taken {
        let promised = self.promised_window();
        // Properties that matter to mappings: see `on_mapping`.
        let is_plain = |mapping: &Mapping| {
            let is_wider = matches!(mapping.dsn, DataSeq::Long(_)) && !self.sender.long_data_ack;
            !dss.data_fin && !is_wider && !self.checksum && mapping.checksum.is_none()
        };
        let is_mapped = dss.mapping.as_ref().is_some_and(is_plain);
        let Some(subflow) = self.subflows.get_mut(id) else { return Taken::Not };
        // Before a DSS has arrived on this subflow, a missing one would be significant.
        if !matches!(subflow.handshake, Handshake::Complete) || !subflow.dss_seen {
            return Taken::Not;
        }
        if promised > 0 {
            subflow.tcb.promise_window(promised);
        }
        let window_bytes = subflow.tcb.announced_window(segment);
        let is_taken = match &dss.mapping {
            Some(mapping) => is_mapped && subflow.take_mapped(segment, mapping, now),
            None => self.take_ack(id, segment, now).is_some(),
        };
        if !is_taken {
            return Taken::Not;
        }
        if let Some(ack) = dss.data_ack {
            self.on_data_ack(ack, window_bytes, host, now);
        }
        dss.mapping.as_ref().map_or(Taken::Ack, |mapping| Taken::Data(mapping.dsn))
    }

    /// Places data that were taken where their mapping says.
    #[inline(always)]
    fn place_expected(&mut self, id: SubflowId, dsn: DataSeq, payload: Payload, host: &mut Host, now: Instant) {
        let (dsn, edge) = (dsn.expand(self.receiver.stream.next()), self.receivable_edge());
        self.totals.duplicate_bytes += self.receiver.stream.insert(id, dsn, payload, edge).duplicate_bytes;
        self.note_received(host);
        self.check_data_fin(host, now);
    }

    /// Handles an ACK on the subflow; returns the octets that it acknowledges.
    #[inline]
    fn take_ack(&mut self, id: SubflowId, segment: &Segment, now: Instant) -> Option<u64> {
        let tcb = &mut self.subflows[id].tcb;
        if !tcb.expects_ack(segment) {
            return None;
        }
        let mut ack = AckOutcome::default();
        tcb.take_expected_ack(segment, now, &mut ack);
        self.on_ack(id, &ack, now);
        Some(ack.acked_payload_bytes)
    }

    /// In plain TCP the subflow's octets and ACKs are those of the stream.
    #[inline]
    fn take_without_options(&mut self, id: SubflowId, segment: &mut Segment, host: &mut Host, now: Instant) -> bool {
        let Some(subflow) = self.subflows.get_mut(id) else { return false };
        if !matches!(subflow.handshake, Handshake::Complete) || self.receiver.finished {
            return false;
        }
        if segment.payload.is_empty() {
            let Some(acked_bytes) = self.take_ack(id, segment, now) else { return false };
            self.on_tcp_ack(id, acked_bytes, false, host, now);
            return true;
        }
        if !subflow.tcb.expects_data(segment) {
            return false;
        }
        subflow.tcb.take_expected_data(segment, now);
        // The segment acknowledges nothing, but may widen the window.
        let window = subflow.tcb.peer_window();
        self.note_window(self.sender.buffer.start(), window.into());
        self.append_in_order(core::mem::take(&mut segment.payload));
        self.note_received(host);
        self.check_data_fin(host, now);
        true
    }
}
