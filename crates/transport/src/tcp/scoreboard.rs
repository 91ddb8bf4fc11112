//! The data sent and not yet acknowledged, in order: the retransmission queue and SACK scoreboard (RFC 6675 section 2)
//! of one TCB.
//!
//! Segments are contiguous in sequence space, so a ring indexed by position replaces the usual tree. Every look-up is a
//! binary search, acknowledging pops from the front, and nothing allocates once the ring and the runs of SACKed segments
//! have grown.

use std::collections::VecDeque;

use units::{Instant, SeqNr};
use wire::{Payload, SackBlock, SackBlocks};

use crate::label::Label;
use crate::ordered_queue::{OrderedQueue, Place, work};

/// A segment in flight.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) seq: SeqNr,
    /// Octets of sequence space: the payload, and one for a FIN.
    pub(crate) len: u32,
    pub(crate) label: Label,
    pub(crate) payload: Payload,
    /// Octets of payload in each packet of the last transmission; the last packet may have less.
    pub(crate) piece: u32,
    /// Time of the last (re)transmission.
    pub(crate) sent_at: Instant,
    /// Whether its last octet carried PSH.
    pub(crate) push: bool,
    pub(crate) fin: bool,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// Lost because of its size, which is no sign of congestion.
    pub(crate) too_big: bool,
    /// Sent more than once, so it gives no round-trip time sample (Karn).
    pub(crate) retransmitted: bool,
    /// A retransmission of it is in flight.
    pub(crate) resent: bool,
}

// There is one per segment in flight.
const _: () = assert!(size_of::<Sent>() <= 128);

impl Sent {
    pub(crate) fn end(&self) -> SeqNr {
        self.seq + self.len
    }

    /// Returns the octets of payload in the largest packet of its transmission.
    pub(crate) fn packet_payload(&self) -> u32 {
        self.piece.min(self.payload.sequence_len())
    }

    /// Whether it was sent once and neither SACKed nor deemed lost.
    #[inline]
    fn is_plain(&self) -> bool {
        !(self.sacked | self.lost | self.retransmitted)
    }

    fn in_flight(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }
}

/// RACK's judgement of a segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Sent after everything delivered so far: not yet decided.
    Open,
    /// Overtaken; lost unless it arrives before this time.
    Overdue(Instant),
    /// Lost.
    Lost,
}

/// Data newly delivered by an ACK, cumulatively or selectively.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// Octets cumulatively acknowledged.
    pub(crate) acked_bytes: u64,
    /// Payload octets cumulatively acknowledged, without a FIN.
    pub(crate) acked_payload_bytes: u64,
    /// Octets newly delivered: by SACK, or cumulatively without those that had been SACKed.
    pub(crate) delivered_bytes: u64,
    /// Whether a FIN was acknowledged.
    pub(crate) fin_acked: bool,
    /// When the latest of these segments that were never retransmitted was sent.
    pub(crate) rtt_sent_at: Option<Instant>,
    /// Whether a retransmission was acknowledged cumulatively. The other segments may then have waited behind the hole.
    pub(crate) fills_hole: bool,
    /// Payload octets in the largest packet that [`Scoreboard::acknowledge_plain`] removed.
    pub(crate) largest_packet: u32,
}

/// The most recently sent of the segments that were delivered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) sent_at: Instant,
    pub(crate) end: SeqNr,
}

/// The ring of segments in flight, with running totals.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    ring: VecDeque<Sent>,
    outstanding: u64,
    sacked: u64,
    sacked_segments: u32,
    /// Octets of segments deemed lost and not SACKed since.
    lost: u64,
    /// Octets among `lost` that were lost because of their size.
    too_big: u64,
    /// Octets of lost segments whose retransmission is in flight.
    resent: u64,
    /// All segments before this position need no retransmission.
    resend_cursor: usize,
    /// All segments before this position are delivered, lost, or were sent more than once: RACK skips them.
    first_sent_cursor: usize,
    /// Retransmissions in sending order. Entries whose segment is gone or was sent again since are ignored.
    resends: VecDeque<(Instant, SeqNr)>,
    /// Runs of SACKed segments, ascending, with other segments between them: whatever blocks a peer repeats, and in
    /// whichever order, their segments are not walked again.
    runs: OrderedQueue<SackBlock>,
    /// Highest sequence number acknowledged or SACKed: RACK.fack (RFC 8985 section 5.3).
    highest_delivered: SeqNr,
}

impl Scoreboard {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            ring: VecDeque::new(),
            outstanding: 0,
            sacked: 0,
            sacked_segments: 0,
            lost: 0,
            too_big: 0,
            resent: 0,
            resend_cursor: 0,
            first_sent_cursor: 0,
            resends: VecDeque::new(),
            runs: OrderedQueue::default(),
            highest_delivered: iss,
        }
    }

    /// Prefetches the segment to be acknowledged next, and the end of the ring, where the next segment is added.
    pub(crate) fn prefetch(&self) {
        self.ring.front().into_iter().for_each(units::prefetch);
        self.ring.back().into_iter().for_each(units::prefetch);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the number of segments outstanding; a super-segment is one.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether what is outstanding left in a single packet. A super-segment leaves in several.
    #[inline]
    pub(crate) fn is_one_packet(&self) -> bool {
        self.len() == 1 && self.ring.front().is_some_and(|sent| sent.payload.sequence_len() <= sent.piece)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.ring.iter()
    }

    /// RFC 6675's pipe: octets believed to be in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        self.outstanding - self.sacked - self.lost + self.resent
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Whether anything is deemed lost and not yet delivered.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether any of the lost data were lost for a reason other than size.
    pub(crate) fn has_congestive_loss(&self) -> bool {
        self.lost > self.too_big
    }

    /// RACK.segs_sacked (RFC 8985 section 5.3).
    pub(crate) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Whether the first segment was SACKed but not acknowledged: the peer has discarded it (RFC 2018 section 8).
    pub(crate) fn is_reneged(&self) -> bool {
        self.ring.front().is_some_and(|front| front.sacked)
    }

    pub(crate) fn highest_delivered(&self) -> SeqNr {
        self.highest_delivered
    }

    /// Adds a segment just sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, sent: Sent) {
        debug_assert!(self.ring.back().is_none_or(|last| last.end() == sent.seq), "segments are contiguous");
        self.outstanding += u64::from(sent.len);
        self.ring.push_back(sent);
    }

    /// Removes segments before `una` from the front that were sent once, neither SACKed nor deemed lost, and not
    /// overtaken. Such segments differ only in size, so the most recently sent one stands for all. Returns that one,
    /// and whether nothing remains for [`Self::acknowledge`], which is nearly always the case.
    #[inline]
    pub(crate) fn acknowledge_plain(&mut self, una: SeqNr, delivered: &mut Delivered) -> (Option<Newest>, bool) {
        let (mut newest, mut count, mut bytes) = (None, 0, 0);
        while let Some(front) = self.ring.front() {
            let is_whole = front.end().before_or_at(una) && self.highest_delivered.before_or_at(front.seq);
            if !is_whole || !front.is_plain() {
                break;
            }
            bytes += u64::from(front.len);
            delivered.acked_payload_bytes += front.payload.len() as u64;
            delivered.fin_acked |= front.fin;
            delivered.largest_packet = delivered.largest_packet.max(front.packet_payload());
            newest = Some(Newest { sent_at: front.sent_at, end: front.end() });
            count += 1;
            self.ring.pop_front();
        }
        self.outstanding -= bytes;
        delivered.acked_bytes += bytes;
        delivered.delivered_bytes += bytes;
        delivered.rtt_sent_at = newest.map(|newest| newest.sent_at);
        self.resend_cursor = self.resend_cursor.saturating_sub(count);
        self.first_sent_cursor = self.first_sent_cursor.saturating_sub(count);
        self.highest_delivered = self.highest_delivered.max(una);
        let is_all = self.ring.front().is_none_or(|front| front.seq.at_or_after(una));
        (newest, is_all && self.resends.is_empty() && self.runs.is_empty())
    }

    /// Removes everything before `una`. Calls `each` for every segment newly delivered.
    pub(crate) fn acknowledge(&mut self, una: SeqNr, delivered: &mut Delivered, mut each: impl FnMut(&Sent)) {
        self.highest_delivered = self.highest_delivered.max(una);
        while let Some(front) = self.ring.front() {
            if front.end().after(una) {
                if !front.seq.before(una) {
                    break;
                }
                self.split(0, una);
            }
            self.deliver_front(delivered, &mut each);
        }
        while self.resends.front().is_some_and(|(_, seq)| seq.before(una)) {
            self.resends.pop_front();
        }
        while self.runs.front().is_some_and(|run| run.end.before_or_at(una)) {
            self.runs.pop_front();
        }
        if let Some(first) = self.runs.front_mut() {
            first.start = first.start.max(una);
        }
    }

    /// Removes the acknowledged first segment. Reads it in place because it is too large to move.
    #[inline]
    fn deliver_front(&mut self, delivered: &mut Delivered, each: &mut impl FnMut(&Sent)) {
        let Some(sent) = self.ring.front() else { return };
        let len = u64::from(sent.len);
        self.outstanding -= len;
        delivered.acked_bytes += len;
        delivered.acked_payload_bytes += sent.payload.len() as u64;
        delivered.fin_acked |= sent.fin;
        let loss = (sent.lost && !sent.sacked).then_some((sent.too_big, sent.resent));
        if sent.sacked {
            self.sacked -= len;
            self.sacked_segments -= 1;
        } else {
            note_delivery(sent, delivered);
            delivered.fills_hole |= sent.retransmitted;
            each(sent);
        }
        self.ring.pop_front();
        self.resend_cursor = self.resend_cursor.saturating_sub(1);
        self.first_sent_cursor = self.first_sent_cursor.saturating_sub(1);
        if let Some((too_big, resent)) = loss {
            self.forget_loss(too_big, resent, len);
        }
    }

    /// Takes a segment of `len` octets out of the totals of lost data.
    fn forget_loss(&mut self, too_big: bool, resent: bool, len: u64) {
        self.lost -= len;
        if too_big {
            self.too_big -= len;
        }
        if resent {
            self.resent -= len;
        }
    }

    /// Marks the data that `blocks` report (RFC 6675's Update). Calls `each` for every segment newly delivered.
    /// Super-segments left in pieces, and are split only at the ends of these pieces: a peer that SACKs small pieces must not
    /// make the ring grow.
    pub(crate) fn sack(&mut self, blocks: &SackBlocks, delivered: &mut Delivered, mut each: impl FnMut(&Sent)) {
        for block in blocks {
            let Some(first) = self.ring.front().map(|front| front.seq) else { return };
            let limit = self.ring.back().map_or(first, Sent::end);
            // Compare distances from the first segment, because three comparisons modulo 2^32 could hold in a circle.
            let end = block.end.since(first);
            let sane = block.start.since(first) < end && end <= limit.since(first);
            if sane {
                self.sack_range(block, delivered, &mut each);
            }
        }
    }

    /// Marks the segments of one block. Costs time in proportion to the segments that it newly marks.
    fn sack_range(&mut self, block: &SackBlock, delivered: &mut Delivered, each: &mut impl FnMut(&Sent)) {
        let mut position = self.position_of(block.start);
        let sent = &self.ring[position];
        if sent.seq.before(block.start) && !sent.sacked {
            self.split_at_piece(position, block.start, true);
            position += 1;
        }
        while let Some(sent) = self.ring.get(position).filter(|sent| sent.seq.before(block.end)) {
            work(1);
            if sent.sacked {
                position = self.position_of(self.end_of_run(sent));
                continue;
            }
            if sent.end().after(block.end) && !self.split_at_piece(position, block.end, false) {
                break;
            }
            self.sack_one(position, delivered, each);
            position += 1;
        }
    }

    /// Returns the place of the first run that ends at or after `seq`, which must not be before the first segment.
    fn run_at(&self, seq: SeqNr) -> Place {
        let first = self.ring[0].seq;
        let distance = seq.since(first);
        self.runs.partition_point(|run| run.end.since(first) < distance)
    }

    /// Returns the end of the run that a SACKed segment belongs to.
    fn end_of_run(&self, sent: &Sent) -> SeqNr {
        let run = self.runs.get(self.run_at(sent.end()));
        run.filter(|run| run.start.before_or_at(sent.seq)).map_or(sent.end(), |run| run.end)
    }

    /// Adds a segment just SACKed to the run that it continues, or joins the two runs on either side of it.
    fn extend_runs(&mut self, start: SeqNr, end: SeqNr) {
        let at = self.run_at(start);
        let continues = self.runs.get(at).is_some_and(|before| before.end == start);
        let next = if continues { self.runs.next(at) } else { at };
        let behind = self.runs.get(next).filter(|behind| behind.start == end).map(|behind| behind.end);
        if continues {
            self.runs.get_mut(at).into_iter().for_each(|before| before.end = behind.unwrap_or(end));
            if behind.is_some() {
                self.runs.remove_run(next, 1, drop);
            }
        } else if behind.is_some() {
            self.runs.get_mut(next).into_iter().for_each(|behind| behind.start = start);
        } else {
            self.runs.insert(at, SackBlock { start, end });
        }
    }

    /// Splits the segment at `position` at the end of a transmitted piece: at or after `at` if `up`, else at or before
    /// it. Returns false if there is no such place.
    fn split_at_piece(&mut self, position: usize, at: SeqNr, up: bool) -> bool {
        let sent = &self.ring[position];
        let into = at.since(sent.seq);
        let fin_alone = sent.fin && at + 1 == sent.end();
        let cut = match up {
            _ if fin_alone => into,
            true => into.next_multiple_of(sent.piece),
            false => into - into % sent.piece,
        };
        if sent.sacked || cut == 0 || cut >= sent.len {
            return false;
        }
        self.split(position, sent.seq + cut);
        true
    }

    fn sack_one(&mut self, position: usize, delivered: &mut Delivered, each: &mut impl FnMut(&Sent)) {
        let sent = &mut self.ring[position];
        sent.sacked = true;
        let (lost, too_big, resent, len) = (sent.lost, sent.too_big, sent.resent, u64::from(sent.len));
        (sent.lost, sent.too_big, sent.resent) = (false, false, false);
        self.sacked += len;
        self.sacked_segments += 1;
        if lost {
            self.forget_loss(too_big, resent, len);
        }
        let sent = &self.ring[position];
        self.highest_delivered = self.highest_delivered.max(sent.end());
        note_delivery(sent, delivered);
        each(sent);
        let (start, end) = (sent.seq, sent.end());
        self.extend_runs(start, end);
    }

    /// Returns the position of the segment that holds `seq`, which must be outstanding.
    fn position_of(&self, seq: SeqNr) -> usize {
        let first = self.ring[0].seq;
        let distance = seq.since(first);
        self.ring.partition_point(|sent| sent.end().since(first) <= distance)
    }

    /// Splits the segment at `position` in two at `at`, strictly inside it.
    fn split(&mut self, position: usize, at: SeqNr) {
        let sent = &mut self.ring[position];
        let front_len = at.since(sent.seq);
        let mut rest = core::mem::take(&mut sent.payload);
        let front = rest.split_to((front_len as usize).min(rest.len()));
        let back =
            Sent { seq: at, len: sent.len - front_len, label: sent.label.behind(front_len), payload: rest, ..*sent };
        sent.len = front_len;
        sent.payload = front;
        sent.push = false;
        sent.fin = false;
        self.sacked_segments += u32::from(back.sacked);
        self.ring.insert(position + 1, back);
    }

    /// Deems segments lost that lie below `threshold` SACKed runs, or below more SACKed octets than `threshold` - 1
    /// segments of `mss` octets (IsLost of RFC 6675 section 4). Does not judge retransmissions, whose loss only a
    /// time-out shows. Returns the octets newly lost.
    pub(crate) fn mark_lost_below_sacks(&mut self, threshold: u32, mss: u32) -> u64 {
        let enough_bytes = u64::from((threshold - 1) * mss);
        let (mut runs, mut bytes, mut in_run, mut judged) = (0, 0, false, 0);
        for (position, sent) in self.ring.iter().enumerate().rev() {
            if !sent.sacked && (runs >= threshold || bytes > enough_bytes) {
                judged = position + 1;
                break;
            }
            runs += u32::from(sent.sacked && !in_run);
            bytes += if sent.sacked { u64::from(sent.len) } else { 0 };
            in_run = sent.sacked;
        }
        let Some(end) = self.ring.get(judged).map(|sent| sent.seq).filter(|_| judged > 0) else { return 0 };
        self.mark_lost(|sent| !sent.retransmitted, |sent| sent.seq == end)
    }

    /// Deems lost every segment in flight that satisfies `is_lost`, up to the first that satisfies `stop`. Returns the
    /// octets newly lost.
    pub(crate) fn mark_lost(
        &mut self,
        mut is_lost: impl FnMut(&Sent) -> bool,
        mut stop: impl FnMut(&Sent) -> bool,
    ) -> u64 {
        let mut newly_lost = 0;
        for position in 0..self.ring.len() {
            let sent = &self.ring[position];
            if stop(sent) {
                break;
            }
            if !sent.in_flight() || !is_lost(sent) {
                continue;
            }
            newly_lost += self.lose(position);
        }
        newly_lost
    }

    /// Whether [`Self::mark_overdue`] has nothing to judge, or its first segment was sent once, is in flight, and
    /// satisfies `is_open`.
    #[inline]
    pub(crate) fn first_to_judge_is(&self, is_open: impl FnOnce(&Sent) -> bool) -> bool {
        self.resends.is_empty()
            && self.ring.get(self.first_sent_cursor).is_none_or(|sent| sent.is_plain() && is_open(sent))
    }

    /// Deems segments lost as `fate` decides. Returns the octets newly lost, and when the next may be lost.
    ///
    /// Segments are judged in sending order, first transmissions and retransmissions separately. Each list therefore
    /// ends at the first segment that is not lost, and a cursor saves the next ACK from walking it again.
    pub(crate) fn mark_overdue(&mut self, mut fate: impl FnMut(&Sent) -> Fate) -> (u64, Option<Instant>) {
        let (mut newly_lost, mut recheck) = (0, None);
        while let Some(sent) = self.ring.get(self.first_sent_cursor) {
            if !(sent.sacked || sent.lost || sent.retransmitted) {
                match fate(sent) {
                    Fate::Open => break,
                    Fate::Overdue(at) => {
                        recheck = Some(at);
                        break;
                    }
                    Fate::Lost => newly_lost += self.lose(self.first_sent_cursor),
                }
            }
            self.first_sent_cursor += 1;
        }
        while let Some((sent_at, seq)) = self.resends.front().copied() {
            match self.resend_in_flight(sent_at, seq).map(|position| (position, fate(&self.ring[position]))) {
                Some((_, Fate::Open)) => break,
                Some((_, Fate::Overdue(at))) => {
                    recheck = Some(recheck.map_or(at, |other: Instant| other.min(at)));
                    break;
                }
                Some((position, Fate::Lost)) => newly_lost += self.lose(position),
                None => {}
            }
            self.resends.pop_front();
        }
        (newly_lost, recheck)
    }

    /// Returns the position of the segment at `seq` if its last transmission was at `sent_at` and is in flight.
    fn resend_in_flight(&self, sent_at: Instant, seq: SeqNr) -> Option<usize> {
        let first = self.ring.front()?;
        if seq.before(first.seq) {
            return None;
        }
        let position = self.position_of(seq);
        let sent = self.ring.get(position)?;
        (sent.seq == seq && sent.sent_at == sent_at && sent.in_flight()).then_some(position)
    }

    fn lose(&mut self, position: usize) -> u64 {
        let sent = &mut self.ring[position];
        let len = u64::from(sent.len);
        if sent.lost {
            self.resent -= len;
        } else {
            self.lost += len;
        }
        if sent.too_big {
            self.too_big -= len;
        }
        (sent.lost, sent.too_big, sent.resent) = (true, false, false);
        self.resend_cursor = self.resend_cursor.min(position);
        len
    }

    /// Deems segments lost that are in flight in packets with more than `payload_max` octets of payload: they do not
    /// fit the path.
    pub(crate) fn lose_too_big(&mut self, payload_max: u32) {
        for position in 0..self.ring.len() {
            let sent = &self.ring[position];
            if sent.in_flight() && sent.packet_payload() > payload_max {
                self.lose(position);
                self.excuse(position);
            }
        }
    }

    /// If the segment that starts at `seq` is deemed lost, attributes the loss to its size. Returns whether it did.
    pub(crate) fn excuse_lost(&mut self, seq: SeqNr) -> bool {
        let Some(first) = self.ring.front().map(|front| front.seq) else { return false };
        if seq.before(first) {
            return false;
        }
        let position = self.position_of(seq);
        let is_lost = self.ring.get(position).is_some_and(|sent| sent.seq == seq && sent.lost && !sent.too_big);
        if is_lost {
            self.excuse(position);
        }
        is_lost
    }

    fn excuse(&mut self, position: usize) {
        let sent = &mut self.ring[position];
        sent.too_big = true;
        self.too_big += u64::from(sent.len);
    }

    /// Whether any segment waits for retransmission.
    pub(crate) fn waits_for_resend(&self) -> bool {
        self.lost != self.resent
    }

    /// Returns the first segment that waits for retransmission.
    pub(crate) fn next_to_resend(&mut self) -> Option<usize> {
        if !self.waits_for_resend() {
            return None;
        }
        let waiting = self.ring.iter().skip(self.resend_cursor).position(|sent| sent.lost && !sent.resent)?;
        self.resend_cursor += waiting;
        Some(self.resend_cursor)
    }

    /// Returns the last segment not SACKed, or its last piece of at most `mss` octets: a tail loss probe.
    pub(crate) fn last_piece(&mut self, mss: u32) -> Option<usize> {
        let position = self.ring.iter().rposition(|sent| !sent.sacked)?;
        let sent = &self.ring[position];
        let payload_bytes = sent.payload.sequence_len();
        if payload_bytes <= mss {
            return Some(position);
        }
        self.split(position, sent.seq + (payload_bytes - 1) / mss * mss);
        Some(position + 1)
    }

    /// Splits the segment at `position` after `max_bytes` of payload, to fit a retransmission into the limits.
    pub(crate) fn trim_to(&mut self, position: usize, max_bytes: u32) {
        let sent = &self.ring[position];
        if sent.payload.sequence_len() > max_bytes {
            let at = sent.seq + max_bytes;
            self.split(position, at);
        }
    }

    /// Replaces all labels.
    pub(crate) fn relabel_all(&mut self, change: impl Fn(Label) -> Label) {
        self.ring.iter_mut().for_each(|sent| sent.label = change(sent.label));
    }

    /// Replaces the label of the latest segment.
    pub(crate) fn relabel_last(&mut self, label: Label) {
        if let Some(sent) = self.ring.back_mut() {
            sent.label = label;
        }
    }

    /// Records that the segment at `position` is sent again at `now` in a single packet, and returns it.
    pub(crate) fn resend(&mut self, position: usize, now: Instant) -> &Sent {
        let sent = &mut self.ring[position];
        if sent.lost && !sent.resent {
            sent.resent = true;
            self.resent += u64::from(sent.len);
        }
        sent.retransmitted = true;
        sent.piece = sent.payload.sequence_len().max(1);
        sent.sent_at = now;
        self.resends.push_back((now, sent.seq));
        sent
    }

    /// Undoes all losses (RFC 4015): data deemed lost count as in flight.
    pub(crate) fn unmark_lost(&mut self) {
        for sent in &mut self.ring {
            (sent.lost, sent.too_big, sent.resent) = (false, false, false);
        }
        self.lost = 0;
        self.too_big = 0;
        self.resent = 0;
        self.first_sent_cursor = 0;
    }

    /// Forgets all SACKs after a time-out because the peer may have discarded the data (RFC 2018 section 8).
    pub(crate) fn forget_sacks(&mut self) {
        for sent in &mut self.ring {
            sent.sacked = false;
        }
        self.sacked = 0;
        self.sacked_segments = 0;
        self.first_sent_cursor = 0;
        self.runs = OrderedQueue::default();
        // What is delivered next has been overtaken by nothing that still counts.
        if let Some(front) = self.ring.front() {
            self.highest_delivered = front.seq;
        }
    }
}

fn note_delivery(sent: &Sent, delivered: &mut Delivered) {
    delivered.delivered_bytes += u64::from(sent.len);
    if !sent.retransmitted && delivered.rtt_sent_at.is_none_or(|at| at < sent.sent_at) {
        delivered.rtt_sent_at = Some(sent.sent_at);
    }
}

#[cfg(test)]
mod tests;
