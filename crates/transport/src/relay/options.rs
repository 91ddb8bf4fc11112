//! Options of outgoing segments: the other host's information, with this leg's sequence numbers.

use units::Dsn;
use units::narrow::u16_from;
use wire::Segment;
use wire::checksum::dss_checksum;
use wire::mptcp::{Dss, Mapping, MpJoin, MptcpOption};

use super::Side;
use super::splice::{NO_DATA, Splice};
use crate::label::Label;
use crate::sent_once::carry_at_the_end;
use crate::tcp::OutgoingKind;

impl Splice {
    /// Adds options to a segment towards `side`.
    pub(super) fn add_options(&mut self, side: Side, kind: OutgoingKind, segment: &mut Segment) {
        let Some(leg) = &mut self.legs[side] else { return };
        match kind {
            OutgoingKind::Syn => segment.options.mptcp.push(MptcpOption::Join(leg.join)),
            OutgoingKind::Reset => carry_at_the_end(leg.reset_options.drain(..), segment),
            OutgoingKind::Data(label) => self.add_mapping(side, label, segment),
            OutgoingKind::Control => self.add_signals(side, segment),
        }
    }

    /// Returns a signal with the opposite host's DATA_ACK. Until that host has sent one the signal is empty, but still
    /// shows that options get through.
    fn ack_signal(&self, side: Side) -> Dss {
        Dss { data_ack: self.flows[side.opposite()].data_ack(), mapping: None, data_fin: false }
    }

    fn add_mapping(&mut self, side: Side, label: Label, segment: &mut Segment) {
        let mut signal = self.ack_signal(side);
        let known = label.first_mapping();
        let (mapping, data_fin) = match known {
            Some((mapping, data_fin)) => (self.mapped_again(side, mapping, label.dsn()), data_fin),
            None => self.map(side, label.dsn(), segment),
        };
        if let (None, Some(leg)) = (known, &mut self.legs[side]) {
            leg.tcb.relabel(label.sent_with(mapping, data_fin));
        }
        (signal.mapping, signal.data_fin) = (Some(mapping), data_fin);
        segment.options.mptcp.push(MptcpOption::Dss(signal));
    }

    /// Returns the mapping for a repetition: the first one, of octets near `dsn`, with its number in the present width.
    fn mapped_again(&self, side: Side, mapping: Mapping, dsn: Dsn) -> Mapping {
        Mapping { dsn: self.flows[side].written(mapping.dsn.expand(dsn)), ..mapping }
    }

    /// Maps data to this leg's sequence numbers, including the end of the stream if they reach it.
    fn map(&self, side: Side, dsn: Dsn, segment: &Segment) -> (Mapping, bool) {
        let data_len = segment.payload.len();
        let data_fin = self.flows[side].fin == Some(dsn + data_len as u64);
        let len = u16_from(data_len as u64 + u64::from(data_fin));
        let ssn = self.legs[side].as_ref().map_or(0, |leg| segment.seq.since(leg.tcb.iss()));
        let checksum = self.checksum.then(|| dss_checksum(dsn, ssn, len, core::iter::once(&segment.payload)));
        (Mapping { dsn: self.flows[side].written(dsn), ssn, len, checksum }, data_fin)
    }

    fn add_signals(&mut self, side: Side, segment: &mut Segment) {
        let mut signal = self.ack_signal(side);
        let Some(leg) = &mut self.legs[side] else { return };
        if let Some(hmac) = leg.proof() {
            segment.options.mptcp.push(MptcpOption::Join(MpJoin::Ack { hmac }));
            return;
        }
        let is_fresh = leg.tcb.is_fresh(segment);
        let flow = &mut self.flows[side];
        // If the first checksum of the data is still incomplete, the end of the stream waits and goes with the data.
        let is_ready = flow.fin_due && (!self.checksum || flow.can_be_summed());
        if let Some(fin) = flow.fin.filter(|_| is_ready && is_fresh) {
            flow.fin_due = false;
            let checksum = self.checksum.then(|| dss_checksum(fin, 0, 1, NO_DATA));
            signal.mapping = Some(Mapping { dsn: flow.written(fin), ssn: 0, len: 1, checksum });
            signal.data_fin = true;
        }
        segment.options.mptcp.push(MptcpOption::Dss(signal));
        leg.pass_on(segment);
    }
}
