//! The data sequence signal (RFC 8684 section 3.3), in and out.

use units::narrow::{u16_from, u32_from};
use units::{Dsn, Instant};
use wire::checksum::{dss_checksum, dss_checksum_is_valid};
use wire::mptcp::{DataLen, DataSeq, Dss, Mapping};
use wire::{Payload, Segment};

use super::mapping::{MappingChecksum, ReceivedMapping};
use super::{Connection, SUBFLOWS_CAP};
use crate::SubflowId;
use crate::era::Binding;
use crate::error::Violation;
use crate::host::Host;

impl Connection {
    /// Handles a DSS of an acceptable segment; `window_bytes` is the segment's window, scaled.
    pub(super) fn on_dss(
        &mut self,
        id: SubflowId,
        dss: &Dss,
        window_bytes: u64,
        host: &mut Host,
        now: Instant,
    ) -> Result<(), Violation> {
        if let Some(ack) = dss.data_ack {
            // At the least it acknowledges our MP_CAPABLE with both keys (RFC 8684 section 3.1).
            self.confirm_mptcp(host, now);
            self.on_data_ack(ack, window_bytes, host, now);
        }
        match dss.mapping {
            Some(mapping) => self.on_mapping(id, &mapping, dss.data_fin, host, now),
            None => Ok(()),
        }
    }

    /// Handles a DATA_ACK and the window relative to it (RFC 8684 sections 3.3.2 and 3.3.5). An ACK of data that were
    /// never sent means nothing.
    #[inline]
    pub(super) fn on_data_ack(&mut self, ack: DataSeq, window_bytes: u64, host: &mut Host, now: Instant) {
        let una = self.sender.buffer.start();
        let ack = ack.expand(una);
        let sent_end = self.sender.data_fin.map_or(self.sender.next, |fin| fin + 1);
        if ack.after(sent_end) || ack.before(una) {
            return;
        }
        self.note_window(ack, window_bytes);
        self.acknowledge_data(ack, host, now);
    }

    /// Everything before `ack` has arrived at the peer.
    #[inline]
    pub(super) fn acknowledge_data(&mut self, ack: Dsn, host: &mut Host, now: Instant) {
        let una = self.sender.buffer.start();
        let data_ack = ack.min(self.sender.next);
        if data_ack.after(una) {
            self.forget_acknowledged(data_ack, host, now);
        }
        if self.sender.data_fin.is_some_and(|fin| ack == fin + 1) {
            self.on_data_fin_acked(host, now);
        }
    }

    /// Releases data because the peer has acknowledged more than before, up to `data_ack`. Separate from
    /// [`Self::acknowledge_data`], because most segments acknowledge nothing new.
    #[inline(never)]
    fn forget_acknowledged(&mut self, data_ack: Dsn, host: &mut Host, now: Instant) {
        let una = self.sender.buffer.start();
        self.totals.acked_bytes += data_ack.since(una);
        self.sender.buffer.acknowledge(data_ack);
        self.reinjection.acknowledge(data_ack);
        self.carriers.acknowledge(data_ack);
        self.forget_suspensions(data_ack);
        // Linux's subflows send the data they were given, even if another subflow has delivered them since.
        let takes_back = self.config.era.binding != Binding::Autotuned;
        for subflow in self.subflows.iter_mut().filter(|_| takes_back) {
            subflow
                .tcb
                .drop_unsent_while(|chunk| (chunk.label.dsn() + chunk.payload.len() as u64).before_or_at(data_ack));
        }
        self.widen_numbers(una);
        self.sender.backoff = 0;
        self.sender.is_doubtful = false;
        self.tell_writable(host);
        self.limit_wait(now);
        self.rearm_data_timer(now);
        self.rearm_idle_timer(now);
    }

    /// The peer accepts `window_bytes` octets from `base` on. A right edge never moves left.
    pub(super) fn note_window(&mut self, base: Dsn, window_bytes: u64) {
        self.sender.edge = self.sender.edge.max(base + window_bytes);
        self.sender.window_max = self.sender.window_max.max(window_bytes);
    }

    fn on_mapping(
        &mut self,
        id: SubflowId,
        mapping: &Mapping,
        data_fin: bool,
        host: &mut Host,
        now: Instant,
    ) -> Result<(), Violation> {
        if mapping.len == 0 {
            self.on_infinite_mapping(id, host, now);
            return Ok(());
        }
        let checksum = self.agreed_checksum(mapping.checksum)?;
        if matches!(mapping.dsn, DataSeq::Long(_)) && !self.sender.long_data_ack {
            self.sender.long_data_ack = true;
            let room = self.data_option_room(true);
            self.subflows.iter_mut().for_each(|subflow| subflow.tcb.change_reserved_options(room));
        }
        let dsn = mapping.dsn.expand(self.receiver.stream.next());
        let data_len = mapping.len - u16::from(data_fin);
        if data_fin {
            // If this ACK were lost, the peer would wait for its own time-out.
            self.subflows[id].tcb.demand_ack();
            let fin = dsn + u64::from(data_len);
            match checksum {
                None => self.note_data_fin(fin),
                // The data and the DATA_FIN are verified together.
                Some(_) if data_len > 0 => self.subflows[id].unverified_fin = Some(fin),
                Some(value) if dss_checksum_is_valid(value, dsn, mapping.ssn, mapping.len, []) => {
                    self.note_data_fin(fin)
                }
                Some(_) => {
                    self.on_bad_checksum(id, dsn, Payload::Empty, host, now);
                }
            }
        }
        if data_len == 0 {
            return Ok(());
        }
        let checksum = checksum.map(|value| MappingChecksum { value, ssn: mapping.ssn, len: mapping.len });
        let subflow = &mut self.subflows[id];
        let seq = subflow.absolute_received(mapping.ssn);
        let received = ReceivedMapping { seq, len: u32::from(data_len), dsn, checksum };
        subflow.mappings.insert(received, subflow.tcb.ranges_max())
    }

    /// Checks that a mapping has a checksum if and only if the handshake agreed on checksums (RFC 8684 section 3.3).
    fn agreed_checksum(&self, checksum: Option<u16>) -> Result<Option<u16>, Violation> {
        if checksum.is_some() == self.checksum { Ok(checksum) } else { Err(Violation::Checksum) }
    }

    /// Records that the peer's stream ends at `fin`, which must lie inside the window and not before received data. The
    /// first value stands.
    pub(super) fn note_data_fin(&mut self, fin: Dsn) {
        let next = self.receiver.stream.next();
        if self.receiver.data_fin.is_none() && fin.at_or_after(next) && fin.before_or_at(self.receiver.edge.max(next)) {
            self.receiver.data_fin = Some(fin);
        }
    }

    /// Handles the mapping of data that came with MP_CAPABLE: the first of the stream (RFC 8684 section 3.1).
    pub(super) fn on_capable_data(&mut self, id: SubflowId, data: DataLen) -> Result<(), Violation> {
        let dsn = self.remote_key().map(|key| super::keys::initial_dsn(key) + 1).ok_or(Violation::UnmappedData)?;
        let checksum = self.agreed_checksum(data.checksum)?;
        let checksum = checksum.map(|value| MappingChecksum { value, ssn: 1, len: data.len });
        let subflow = &mut self.subflows[id];
        let seq = subflow.absolute_received(1);
        let received = ReceivedMapping { seq, len: u32::from(data.len), dsn, checksum };
        subflow.mappings.insert(received, subflow.tcb.ranges_max())
    }

    /// Returns the next data sequence number expected, counting a DATA_FIN.
    pub(super) fn data_ack(&self) -> Dsn {
        let next = self.receiver.stream.next();
        if self.receiver.finished { next + 1 } else { next }
    }

    /// Returns the DATA_ACK for any segment.
    pub(super) fn ack_signal(&self) -> Dss {
        let ack = self.data_ack();
        let data_ack = if self.sender.long_data_ack { DataSeq::Long(ack.0) } else { DataSeq::Short(ack.low()) };
        Dss { data_ack: Some(data_ack), mapping: None, data_fin: false }
    }

    /// Returns the DSS of a segment with data that start at `dsn`.
    pub(super) fn data_signal(&self, id: SubflowId, dsn: Dsn, segment: &Segment) -> Dss {
        let mut signal = self.ack_signal();
        let data_len = segment.payload.len();
        let ends_stream = self.sender.data_fin == Some(dsn + data_len as u64);
        let len = u16_from(data_len as u64 + u64::from(ends_stream));
        let ssn = self.subflows[id].relative_sent(segment.seq);
        let checksum = self.checksum.then(|| dss_checksum(dsn, ssn, len, core::iter::once(&segment.payload)));
        signal.mapping = Some(Mapping { dsn: self.sent_number(dsn), ssn, len, checksum });
        signal.data_fin = ends_stream;
        signal
    }

    /// Returns a DATA_FIN without data (RFC 8684 section 3.3.3): subflow sequence number zero, length one.
    pub(super) fn data_fin_signal(&self, fin: Dsn) -> Dss {
        let mut signal = self.ack_signal();
        let checksum = self.checksum.then(|| dss_checksum(fin, 0, 1, core::iter::empty::<&Payload>()));
        signal.mapping = Some(Mapping { dsn: self.sent_number(fin), ssn: 0, len: 1, checksum });
        signal.data_fin = true;
        signal
    }

    /// Returns the receive window to announce, in octets beyond the DATA_ACK.
    pub(super) fn receive_window(&self) -> u32 {
        let next = self.receiver.stream.next();
        let promised = if self.receiver.edge.after(next) { self.receiver.edge.since(next) } else { 0 };
        // RFC 9293 section 3.8.6.2.2: the right edge moves by at least a segment's worth, or peers send small pieces.
        let step = u64::from(self.config.mtu).min(self.config.receive_buffer_bytes / 2);
        let window = self.receiver.stream.window();
        let announced = if window >= promised + step { window } else { promised };
        u32_from(announced)
    }

    /// The application has read: tells the peer if that opens the window enough (RFC 9293 section 3.8.6.2.2). Returns
    /// whether it does.
    pub(crate) fn announce_window_if_worthwhile(&mut self) -> bool {
        let next = self.receiver.stream.next();
        let promised = if self.receiver.edge.after(next) { self.receiver.edge.since(next) } else { 0 };
        // Largest window that the field can express: without window scaling a large buffer is never announced whole.
        let sayable = self.subflows.iter().map(|subflow| 0xffff << subflow.tcb.rcv_wscale()).max().unwrap_or(0);
        let opened = self.receiver.stream.window().min(sayable).saturating_sub(promised);
        let threshold = if promised == 0 {
            self.config.receive_buffer_bytes.min(2 * 1460)
        } else {
            self.config.receive_buffer_bytes.min(sayable) / 4
        };
        if opened < threshold.max(1) {
            return false;
        }
        // Where both sides have ended, the peer may read no more.
        let ready =
            self.subflows.iter_mut().filter(|subflow| subflow.established_at.is_some() && !subflow.is_finished());
        if promised < threshold {
            // Other subflows of the peer may be blocked by the window they last received.
            ready.for_each(|subflow| subflow.tcb.demand_ack());
        } else if let Some(subflow) = ready.min_by_key(|subflow| (subflow.is_stale(), !subflow.tcb.state.can_receive()))
        {
            subflow.tcb.demand_ack();
        }
        true
    }
}

const _: () = assert!(SUBFLOWS_CAP <= 64, "scheduler marks are 64 bits wide");
