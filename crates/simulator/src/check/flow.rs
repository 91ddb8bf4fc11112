//! One TCP flow, as one host sees it.

use core::ops::Range;

use units::narrow::low_u32;
use units::{Instant, SeqNr};
use wire::{Flags, Segment};

use super::Rule;
use super::connection::Nonces;
use super::received::Received;

/// The MPTCP connection of a flow, and the flow's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) connection: usize,
    pub(super) flow: usize,
}

/// The model of a flow. Positions count from the SYN, which is number 0; the first octet of data is number 1.
#[derive(Debug, Default)]
pub(super) struct Flow {
    local_isn: Option<SeqNr>,
    remote_isn: Option<SeqNr>,
    /// Window scale that each side offered.
    local_scale: Option<u8>,
    remote_scale: Option<u8>,
    /// Shift of the peer's windows: nonzero only if both sides offered a scale (RFC 7323 section 2.2).
    scale: u8,
    pub(super) arrived: Received,
    /// Position after the last octet sent.
    sent_end: u64,
    /// Sent data that the peer has acknowledged or selectively acknowledged.
    acked: Received,
    /// Later ACKs that acknowledge nothing new.
    duplicates: u64,
    /// Until this is acknowledged, a loss may be under repair: data before it were retransmitted.
    repaired_up_to: u64,
    /// Segments of new data since flight and window were last compared. A FIN does not count: it needs no window.
    new_segments: u32,
    /// Whether a tail loss probe was sent since the peer was last heard, and when the peer was last heard.
    has_probed: bool,
    heard_at: Instant,
    /// Highest right edge of the peer's windows; used only without MPTCP.
    edge: u64,
    /// The nonces of its MP_JOIN.
    pub(super) nonces: Nonces,
    /// Its place in an MPTCP connection, if any.
    pub(super) member: Option<Member>,
}

impl Flow {
    /// Handles a segment that the host sends.
    #[inline(always)]
    pub(super) fn sent(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.begin_here(segment);
        }
        let len = u64::from(segment.sequence_len());
        let end = self.sent_position(segment.seq) + len;
        if end > self.sent_end {
            if !segment.payload.is_empty() {
                self.new_segments += 1;
            }
            self.sent_end = end;
        } else if len > 0 {
            self.repaired_up_to = self.sent_end;
        }
    }

    #[cold]
    fn begin_here(&mut self, syn: &Segment) {
        if self.local_isn != Some(syn.seq) {
            // A different SYN without ACK: the ports are used again.
            if !syn.flags.contains(Flags::ACK) && self.local_isn.is_some() {
                *self = Self::default();
            }
            self.local_isn = Some(syn.seq);
            self.local_scale = syn.options.window_scale;
            self.agree_on_scale();
        }
    }

    #[cold]
    fn begin_there(&mut self, syn: &Segment) {
        if self.remote_isn != Some(syn.seq) {
            if !syn.flags.contains(Flags::ACK) && self.remote_isn.is_some() {
                *self = Self::default();
            }
            self.remote_isn = Some(syn.seq);
            self.remote_scale = syn.options.window_scale;
            self.agree_on_scale();
        }
    }

    fn agree_on_scale(&mut self) {
        self.scale = match (self.local_scale, self.remote_scale) {
            (Some(_), Some(remote)) => remote.min(14),
            _ => 0,
        };
    }

    /// Handles a segment that the host receives.
    #[inline(always)]
    pub(super) fn received(&mut self, segment: &Segment, at: Instant) {
        if segment.flags.contains(Flags::SYN) {
            self.begin_there(segment);
        }
        (self.has_probed, self.heard_at) = (false, at);
        if let Some(range) = self.positions(segment) {
            self.arrived.insert(range);
        }
        if segment.flags.contains(Flags::ACK) {
            let ack = self.sent_position(segment.ack);
            self.edge = self.edge.max(ack + self.window(segment));
            self.note_acked(ack, segment);
        }
    }

    #[inline]
    fn note_acked(&mut self, ack: u64, segment: &Segment) {
        if ack > self.acked.next() {
            self.acked.advance(ack);
            self.duplicates = 0;
        } else if segment.payload.is_empty() {
            self.duplicates += 1;
        }
        if !segment.options.sack.is_empty() {
            self.note_sacked(segment);
        }
    }

    /// A separate function, to keep the path of all ACKs short: nearly none has a SACK block.
    #[inline(never)]
    fn note_sacked(&mut self, segment: &Segment) {
        for block in &segment.options.sack {
            let range = self.sent_position(block.start)..self.sent_position(block.end);
            self.acked.insert(range);
        }
    }

    /// Whether a segment that the host sends, without SYN, continues its data and acknowledges exactly what has
    /// arrived.
    #[inline]
    pub(super) fn is_next_sent(&self, segment: &Segment) -> bool {
        let (Some(local), Some(remote)) = (self.local_isn, self.remote_isn) else { return false };
        segment.seq == local + low_u32(self.sent_end) && segment.ack == remote + low_u32(self.arrived.next())
    }

    /// Applies such a segment with `len` octets of data and no flags that take sequence numbers.
    #[inline]
    pub(super) fn send_next(&mut self, len: u64) {
        if len > 0 {
            self.new_segments += 1;
            self.sent_end += len;
        }
    }

    /// Whether `len` more octets fit into the peer's window.
    #[inline]
    pub(super) fn is_within_window(&self, len: u64) -> bool {
        self.sent_end + len <= self.edge
    }

    /// If a segment that arrives, without SYN, is the next one, returns the octets that it newly acknowledges.
    #[inline]
    pub(super) fn is_next_received(&self, segment: &Segment) -> Option<u64> {
        let (Some(local), Some(remote)) = (self.local_isn, self.remote_isn) else { return None };
        let acked = segment.ack.since(local + low_u32(self.acked.next()));
        // The ACK must not cover more than was sent; this also excludes old numbers.
        let is_next = segment.seq == remote + low_u32(self.arrived.next())
            && self.acked.next() + u64::from(acked) <= self.sent_end;
        is_next.then_some(acked.into())
    }

    /// Applies such a segment: `len` octets of data, `acked` newly acknowledged octets, no SACK block.
    #[inline(always)]
    pub(super) fn receive_next(&mut self, segment: &Segment, len: u64, acked: u64, at: Instant) {
        (self.has_probed, self.heard_at) = (false, at);
        let ack = self.acked.next() + acked;
        self.edge = self.edge.max(ack + self.window_of_data(segment));
        if acked > 0 {
            self.acked.advance(ack);
            self.duplicates = 0;
        } else if len == 0 {
            self.duplicates += 1;
        }
        if len > 0 {
            self.arrived.advance(self.arrived.next() + len);
        }
    }

    /// Octets sent that, according to ACKs, have not arrived. Each duplicate ACK stands for one segment of `mss_bytes`.
    #[inline]
    pub(super) fn flight(&self, mss_bytes: u64) -> u64 {
        let unacked = self.sent_end.saturating_sub(self.acked.next());
        let out = unacked - self.acked.beyond_up_to(self.sent_end);
        out.saturating_sub(self.duplicates * mss_bytes)
    }

    /// Whether new data were sent since flight and window were last compared.
    pub(super) fn has_new_data(&self) -> bool {
        self.new_segments > 0
    }

    /// Returns the number of segments with such data and resets it.
    #[inline]
    pub(super) fn take_new_segments(&mut self) -> u32 {
        core::mem::take(&mut self.new_segments)
    }

    /// Whether a single segment of new data, sent at `at`, may be a tail loss probe: it comes some time after the peer
    /// was heard, and is the only one since. It may be sent even if the window has fallen below the flight (RFC 8985
    /// section 7.3).
    pub(super) fn probes(&mut self, at: Instant) -> bool {
        at > self.heard_at && !core::mem::replace(&mut self.has_probed, true)
    }

    /// Returns the positions of an arriving segment.
    fn positions(&self, segment: &Segment) -> Option<Range<u64>> {
        let start = self.arrived_position(segment.seq)?;
        Some(start..start + u64::from(segment.sequence_len()))
    }

    /// Returns the positions of an arriving segment's data.
    pub(super) fn data_positions(&self, segment: &Segment) -> Option<Range<u64>> {
        let start = self.arrived_position(segment.seq)? + u64::from(segment.flags.contains(Flags::SYN));
        Some(start..start + segment.payload.len() as u64)
    }

    /// Returns the position of a relative subflow sequence number, of 32 bits, in a mapping of the peer (RFC 8684
    /// section 3.3.1).
    pub(super) fn mapped_position(&self, ssn: u32) -> u64 {
        unwrap(SeqNr(ssn), SeqNr(0), self.arrived.next())
    }

    /// Returns the peer's window in an arriving segment, octets. Windows in SYNs are not scaled.
    #[inline]
    pub(super) fn window(&self, segment: &Segment) -> u64 {
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { self.scale };
        u64::from(segment.window) << scale
    }

    /// As [`Self::window`], for a segment without SYN.
    #[inline]
    pub(super) fn window_of_data(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.scale
    }

    /// Checks that an ACK, and each SACK block, covers only what has arrived.
    #[inline]
    pub(super) fn check_acks(&self, segment: &Segment, fault: &mut dyn FnMut(Rule)) {
        if !segment.flags.contains(Flags::ACK) || self.remote_isn.is_none() {
            return;
        }
        let arrived = self.arrived.next();
        match self.arrived_position(segment.ack) {
            Some(ack) if ack > arrived => fault(Rule::AckOfUnreceived { ack, arrived }),
            _ => {}
        }
        for block in &segment.options.sack {
            let positions = (self.arrived_position(block.start), self.arrived_position(block.end));
            let (Some(start), Some(end)) = positions else { continue };
            if !self.arrived.contains(&(start..end)) {
                fault(Rule::SackOfUnreceived { start, end });
            }
        }
    }

    /// Checks that data stay within the peer's window; a probe of one octet may exceed it (RFC 9293 section 3.8.6.1).
    pub(super) fn check_window(&self, segment: &Segment, fault: &mut dyn FnMut(Rule)) {
        let len = segment.payload.len() as u64;
        let start = self.sent_position(segment.seq) + u64::from(segment.flags.contains(Flags::SYN));
        let (end, edge) = (start + len, self.edge);
        if len > 1 && end > edge && !segment.flags.contains(Flags::SYN) {
            fault(Rule::BeyondWindow { end, edge });
        }
    }

    /// Whether a repair is in progress, in which only the host knows what is lost.
    pub(super) fn is_repairing(&self) -> bool {
        self.acked.next() < self.repaired_up_to
    }

    /// Unwraps a sequence number of this side near the last one sent.
    fn sent_position(&self, seq: SeqNr) -> u64 {
        self.local_isn.map_or(0, |isn| unwrap(seq, isn, self.sent_end))
    }

    /// Unwraps a sequence number of the peer near the last one that arrived.
    fn arrived_position(&self, seq: SeqNr) -> Option<u64> {
        self.remote_isn.map(|isn| unwrap(seq, isn, self.arrived.next()))
    }
}

/// The position nearest to `near` that `seq` can stand for; at least zero.
#[inline]
fn unwrap(seq: SeqNr, isn: SeqNr, near: u64) -> u64 {
    let distance = seq.0.wrapping_sub(isn.0.wrapping_add(near as u32)) as i32;
    // No stream is long enough for the conversion to i64 to change the sign.
    (near as i64 + i64::from(distance)).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_unwrap_near_the_last_one() {
        let isn = SeqNr(u32::MAX);
        assert_eq!(unwrap(SeqNr(0), isn, 0), 1);
        assert_eq!(unwrap(SeqNr(u32::MAX - 5), isn, 3), 0);
        assert_eq!(unwrap(SeqNr(4), isn, (1 << 32) + 3), (1 << 32) + 5);
    }
}
