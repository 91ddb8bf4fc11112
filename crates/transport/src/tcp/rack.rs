//! RACK: loss detection by time (RFC 8985 sections 5 and 6). Names follow the RFC.

use units::{Duration, Instant, SeqNr};

use super::scoreboard::{Fate, Newest, Scoreboard, Sent};

/// RFC 8985 section 6.2 step 4: without reordering, three SACKed segments mean a loss (RFC 5681's DupThresh).
const DUP_THRESH: u32 = 3;
/// RFC 8985 section 6.2 step 4: a widened window lasts this many recoveries.
const REO_WND_PERSIST: u32 = 16;

/// RACK's state of one TCB.
#[derive(Debug)]
pub(crate) struct Rack {
    /// RACK.xmit_ts: sending time of the most recently sent delivered segment.
    xmit_ts: Instant,
    /// RACK.end_seq: end of that segment.
    end_seq: SeqNr,
    /// RACK.rtt: round-trip time of that segment.
    rtt: Duration,
    /// RACK.reordering_seen.
    reordering_seen: bool,
    /// RACK.reo_wnd_mult.
    reo_wnd_mult: u32,
    /// RACK.reo_wnd_persist.
    reo_wnd_persist: u32,
    /// RACK.dsack_round: the window widens at most once per round.
    dsack_round: Option<SeqNr>,
}

/// The round-trip times and state that RACK's window depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackContext {
    pub(crate) now: Instant,
    pub(crate) min_rtt: Duration,
    pub(crate) srtt: Duration,
    pub(crate) mss: u32,
    pub(crate) in_recovery: bool,
}

impl Rack {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            xmit_ts: Instant::ZERO,
            end_seq: iss,
            rtt: Duration::ZERO,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_round: None,
        }
    }

    /// Performs steps 1 to 3 of RFC 8985 section 6.2 for one delivered segment. `echo_before_resend` states that the
    /// ACK's timestamp echoes an earlier transmission.
    #[inline]
    pub(crate) fn on_delivered(
        &mut self,
        sent: &Sent,
        context: &RackContext,
        highest_delivered: SeqNr,
        echo_before_resend: bool,
    ) {
        let rtt = context.now.saturating_since(sent.sent_at);
        if sent.retransmitted && (echo_before_resend || rtt < context.min_rtt) {
            return;
        }
        self.on_newest(Newest { sent_at: sent.sent_at, end: sent.end() }, context.now);
        if sent.end().before(highest_delivered) && !sent.retransmitted {
            self.reordering_seen = true;
        }
    }

    /// A segment had been sent again, but its original arrived, `rtt` after it was sent: performs the parts of steps 2
    /// and 3 that [`Self::on_delivered`] leaves out for a segment sent again.
    pub(super) fn on_late_original(&mut self, rtt: Duration) {
        self.rtt = rtt;
        self.reordering_seen = true;
    }

    /// Performs steps 1 and 2 for segments that were sent once and not overtaken. `newest` was sent last: it would have
    /// replaced the state that each earlier segment left.
    #[inline]
    pub(super) fn on_newest(&mut self, newest: Newest, now: Instant) {
        self.rtt = now.saturating_since(newest.sent_at);
        if sent_after(newest.sent_at, newest.end, self.xmit_ts, self.end_seq) {
            self.xmit_ts = newest.sent_at;
            self.end_seq = newest.end;
        }
    }

    /// Performs the part of step 4 for an advanced SND.UNA: the round of the last DSACK may be over.
    #[inline]
    pub(crate) fn on_advance(&mut self, snd_una: SeqNr) {
        if self.dsack_round.is_some_and(|round| snd_una.at_or_after(round)) {
            self.dsack_round = None;
        }
    }

    /// Performs the DSACK part of step 4: the last window was too small.
    pub(crate) fn on_dsack(&mut self, snd_una: SeqNr, snd_nxt: SeqNr) {
        if self.dsack_round.is_some_and(|round| snd_una.before(round)) {
            return;
        }
        self.dsack_round = Some(snd_nxt);
        self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(16);
        self.reo_wnd_persist = REO_WND_PERSIST;
    }

    /// Wears a widened window off at the end of a recovery.
    pub(crate) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// RACK_update_reo_wnd (section 6.2 step 4).
    fn reo_wnd(&self, board: &Scoreboard, context: &RackContext) -> Duration {
        let enough = board.sacked_segments() >= DUP_THRESH || board.sacked() >= u64::from(DUP_THRESH * context.mss);
        if !self.reordering_seen && (context.in_recovery || enough) {
            return Duration::ZERO;
        }
        (context.min_rtt * u64::from(self.reo_wnd_mult) / 4).min(context.srtt)
    }

    /// Whether [`Self::detect_loss`] would find nothing, as nearly always: everything in flight was sent after all
    /// delivered data.
    #[inline]
    pub(crate) fn has_overtaken_nothing(&self, board: &Scoreboard) -> bool {
        board.first_to_judge_is(|sent| !sent_after(self.xmit_ts, self.end_seq, sent.sent_at, sent.end()))
    }

    /// RACK_detect_loss (section 6.2 step 5): marks losses. Returns the octets newly lost and when to check again.
    pub(crate) fn detect_loss(&self, board: &mut Scoreboard, context: &RackContext) -> (u64, Option<Instant>) {
        let reo_wnd = self.reo_wnd(board, context);
        board.mark_overdue(|sent| {
            if !sent_after(self.xmit_ts, self.end_seq, sent.sent_at, sent.end()) {
                return Fate::Open;
            }
            let due = sent.sent_at + self.rtt + reo_wnd;
            if due > context.now { Fate::Overdue(due) } else { Fate::Lost }
        })
    }

    /// RACK_mark_losses_on_RTO (section 6.3): the first segment, and all segments whose ACK is overdue.
    pub(crate) fn mark_losses_on_rto(&self, board: &mut Scoreboard, snd_una: SeqNr, context: &RackContext) -> u64 {
        let reo_wnd = self.reo_wnd(board, context);
        board.mark_lost(|sent| sent.seq == snd_una || sent.sent_at + self.rtt + reo_wnd <= context.now, |_| false)
    }
}

/// RACK_sent_after (RFC 8985 section 6.2): by time, then by sequence number within a burst.
fn sent_after(t1: Instant, seq1: SeqNr, t2: Instant, seq2: SeqNr) -> bool {
    t1 > t2 || (t1 == t2 && seq1.after(seq2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 6.2 step 4: a round ends when its data are acknowledged, and stays ended 2 GiB later.
    #[test]
    fn a_duplicate_widens_the_window_once_a_round_however_far_apart_the_rounds_are() {
        let mut rack = Rack::new(SeqNr(0));
        rack.on_dsack(SeqNr(100), SeqNr(1000));
        rack.on_dsack(SeqNr(500), SeqNr(1500));
        assert_eq!(rack.reo_wnd_mult, 2, "one round");
        rack.on_advance(SeqNr(999));
        rack.on_dsack(SeqNr(999), SeqNr(2000));
        assert_eq!(rack.reo_wnd_mult, 2, "still the same round");
        for una in [1000, 1 << 30, 2 << 30, 3 << 30] {
            rack.on_advance(SeqNr(una));
        }
        rack.on_dsack(SeqNr(3 << 30), SeqNr((3 << 30) + 1000));
        assert_eq!(rack.reo_wnd_mult, 3, "another round");
    }
}
