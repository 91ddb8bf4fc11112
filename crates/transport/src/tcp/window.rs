//! The congestion window of a TCB: slow start (RFC 5681), recovery with proportional rate reduction (RFC 6937).
//!
//! The connection's controller decides how windows grow in congestion avoidance and how far they fall. This is the
//! mechanism that all controllers share.

use units::SeqNr;
use units::narrow::u64_from;

use crate::congestion::{SSTHRESH_MIN_SEGMENTS, WindowStep};
use crate::era::RecoveryEnd;

/// Largest window, octets: a thousand times what a receiver can announce (RFC 7323), so it limits no transfer. It keeps
/// a controller's answer, however large, within what sums and products of windows can hold.
pub(crate) const CWND_MAX: u64 = 1 << 40;

/// Phase of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Growing.
    Open,
    /// Reduced for an echoed mark, with nothing to repair, until the sequence number is acknowledged.
    Reduced(SeqNr),
    /// Repairing losses until the sequence number is acknowledged.
    Recovery(SeqNr),
    /// Slow-starting after a time-out until the sequence number is acknowledged.
    Loss(SeqNr),
}

/// State to restore when a reduction turns out to be spurious.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cwnd: u64,
    ssthresh: u64,
    phase: Phase,
}

/// The congestion window in octets.
#[derive(Debug)]
pub(crate) struct CongestionWindow {
    mss: u64,
    cwnd: u64,
    /// Growth below one octet, in 2^-16 octet.
    fraction: i64,
    ssthresh: u64,
    phase: Phase,
    undo: Option<Undo>,
    prr: Prr,
}

/// Proportional rate reduction (RFC 6937 section 3), in octets.
#[derive(Debug, Default)]
struct Prr {
    /// RecoverFS: octets in flight when recovery began.
    recover_fs: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
}

/// Returns the initial window of so many segments, octets. RFC 6928 equation 1 also bounds it in octets, for large
/// segments.
fn initial_window(mss: u64, segments: u32) -> u64 {
    let segments = u64::from(segments);
    (mss * segments).min((2 * mss).max(segments * 1460))
}

impl CongestionWindow {
    pub(crate) fn new(mss: u32, initial_segments: u32) -> Self {
        let mss = u64::from(mss);
        Self {
            mss,
            cwnd: initial_window(mss, initial_segments),
            fraction: 0,
            ssthresh: u64::MAX,
            phase: Phase::Open,
            undo: None,
            prr: Prr::default(),
        }
    }

    pub(crate) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the window follows a reduction: a loss is being repaired, or a mark answered.
    pub(crate) fn in_recovery(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether a loss is being repaired.
    pub(crate) fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery(_) | Phase::Loss(_))
    }

    /// Whether proportional rate reduction sets the window.
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced(_) | Phase::Recovery(_))
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows in slow start (RFC 5681 section 3.1, counting octets as RFC 3465 does). Returns the octets that carry over
    /// into congestion avoidance.
    pub(crate) fn slow_start(&mut self, acked_bytes: u64) -> u64 {
        let room = self.ssthresh.min(CWND_MAX).saturating_sub(self.cwnd);
        let step = acked_bytes.min(room);
        self.cwnd += step;
        acked_bytes - step
    }

    /// Adds a controller's step, whatever it is: the window stays between one segment and [`CWND_MAX`].
    pub(crate) fn apply(&mut self, step: WindowStep) {
        let grown = self.fraction.saturating_add(step.as_q16());
        let whole = grown >> 16;
        self.fraction = grown - (whole << 16);
        self.cwnd = self.bounded(self.cwnd.saturating_add_signed(whole));
    }

    /// Returns the permitted window nearest to `cwnd`. Not `clamp`, which would panic if a segment exceeded the maximum.
    fn bounded(&self, cwnd: u64) -> u64 {
        cwnd.min(CWND_MAX).max(self.mss)
    }

    /// Sets a controller's correction at the end of a round, within the bounds of [`Self::apply`].
    pub(crate) fn set(&mut self, cwnd: u64, ssthresh: u64) {
        self.cwnd = self.bounded(cwnd);
        self.ssthresh = ssthresh.max(SSTHRESH_MIN_SEGMENTS * self.mss);
    }

    /// Lowers the window and the threshold to at most these values, but to no less than two segments. Does nothing
    /// during a repair, when the window follows the recovery. Returns whether anything changed.
    pub(crate) fn cut(&mut self, cwnd: u64, ssthresh: u64) -> bool {
        let least = SSTHRESH_MIN_SEGMENTS * self.mss;
        let (cwnd, ssthresh) = (self.cwnd.min(cwnd.max(least)), self.ssthresh.min(ssthresh.max(least)));
        if self.in_recovery() || (cwnd, ssthresh) == (self.cwnd, self.ssthresh) {
            return false;
        }
        if cwnd < self.cwnd {
            self.fraction = 0;
        }
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
        true
    }

    /// Enters recovery towards `ssthresh` until `point` is acknowledged. The caller has applied the controller's
    /// minimum.
    pub(crate) fn enter_recovery(&mut self, point: SeqNr, ssthresh: u64, in_flight_before: u64) {
        self.undo = Some(self.undo_point());
        self.ssthresh = ssthresh.max(self.mss);
        self.phase = Phase::Recovery(point);
        self.prr = Prr { recover_fs: in_flight_before.max(1), delivered: 0, out: 0 };
    }

    fn undo_point(&self) -> Undo {
        Undo { cwnd: self.cwnd, ssthresh: self.ssthresh, phase: self.phase }
    }

    /// Reduces the window for an echoed mark (RFC 3168 section 6.1.2), as [`Self::enter_recovery`] does for a loss.
    pub(crate) fn answer_mark(&mut self, point: SeqNr, ssthresh: u64, in_flight_before: u64) {
        self.enter_recovery(point, ssthresh, in_flight_before);
        self.phase = Phase::Reduced(point);
    }

    /// A loss was found. If the window is being reduced for a mark, the loss belongs to the same window of data: it is
    /// repaired without another reduction. Returns whether that is so.
    pub(crate) fn repair_while_reduced(&mut self) -> bool {
        let Phase::Reduced(point) = self.phase else { return false };
        self.phase = Phase::Recovery(point);
        true
    }

    /// Handles a retransmission time-out: one segment, then slow start (RFC 5681 section 3.1).
    pub(crate) fn enter_loss(&mut self, point: SeqNr, ssthresh: Option<u64>) {
        if let Some(ssthresh) = ssthresh {
            // During a recovery, only the time-out may prove spurious: the losses were real.
            self.undo = Some(self.undo_point());
            self.ssthresh = ssthresh.max(self.mss);
        }
        self.cwnd = self.mss;
        self.fraction = 0;
        self.phase = Phase::Loss(point);
    }

    /// Computes the window for the next transmissions of a recovery (RFC 6937 section 3). `progress` states that the
    /// ACK repaired something and showed no new loss. Only then may more data leave than arrived (RFC 9937's safe ACK);
    /// otherwise retransmissions would fill the very queue that dropped the originals.
    pub(crate) fn on_ack_in_recovery(&mut self, delivered_bytes: u64, in_flight: u64, progress: bool) {
        self.prr.delivered += delivered_bytes;
        let allowance = if in_flight > self.ssthresh {
            let target =
                (u128::from(self.prr.delivered) * u128::from(self.ssthresh)).div_ceil(u128::from(self.prr.recover_fs));
            u64_from(target).saturating_sub(self.prr.out)
        } else {
            let extra = if progress { self.mss } else { 0 };
            let limit = self.prr.delivered.saturating_sub(self.prr.out).max(delivered_bytes) + extra;
            (self.ssthresh - in_flight).min(limit)
        };
        // The first retransmission leaves at once, whatever the proportion (RFC 6937 section 3.1's fast retransmit).
        let forced = if self.prr.out == 0 { self.mss } else { 0 };
        self.cwnd = in_flight + allowance.max(forced);
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        if self.is_reducing() {
            self.prr.out += bytes;
        }
    }

    /// Ends recovery. The window becomes the threshold; with [`RecoveryEnd::Flight`] only as far as that causes no
    /// burst.
    pub(crate) fn exit_recovery(&mut self, in_flight: u64, end: RecoveryEnd) {
        if self.is_reducing() {
            self.cwnd = match end {
                RecoveryEnd::Flight => self.ssthresh.min(in_flight.max(self.mss) + self.mss),
                RecoveryEnd::Threshold => self.bounded(self.ssthresh),
            };
        }
        self.phase = Phase::Open;
        self.undo = None;
    }

    /// Ends a recovery that has nothing to repair: the window becomes the threshold.
    pub(crate) fn settle(&mut self) {
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.phase = Phase::Open;
        self.undo = None;
    }

    /// Takes back a spurious reduction (RFC 4015 section 3.4). An ACK of `acked_bytes` that has left `in_flight` octets
    /// releases no more than an initial window at once; slow start leads back to the window before. A time-out during
    /// another reduction leads back to that one: its threshold stays, and proportional rate reduction leads there.
    pub(crate) fn undo(&mut self, in_flight: u64, acked_bytes: u64, initial_segments: u32) {
        self.phase = Phase::Open;
        if let Some(undo) = self.undo.take() {
            let without_burst = in_flight + acked_bytes.min(initial_window(self.mss, initial_segments));
            self.cwnd = self.cwnd.max(undo.cwnd.min(without_burst));
            self.phase = undo.phase;
            self.ssthresh = if self.in_recovery() { undo.ssthresh } else { undo.ssthresh.max(undo.cwnd) };
        }
    }

    /// Takes a changed segment size. The window in octets stays, but holds at least one segment.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
        self.cwnd = self.cwnd.max(self.mss);
    }

    /// Restores the threshold after time-outs without congestion. The window grows from its present value.
    pub(crate) fn restore_ssthresh(&mut self) {
        if let Some(undo) = self.undo.take() {
            self.ssthresh = undo.ssthresh;
        }
    }

    /// Resets the window to at most the initial one after idling longer than a time-out (RFC 5681 section 4.1).
    pub(crate) fn restart(&mut self, initial_segments: u32) {
        self.cwnd = self.cwnd.min(initial_window(self.mss, initial_segments));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> CongestionWindow {
        CongestionWindow::new(1000, 10)
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut window = window();
        window.set(10_000, 12_000);
        assert_eq!(window.slow_start(1000), 0);
        assert_eq!(window.slow_start(3000), 2000);
        assert_eq!(window.cwnd(), 12_000);
    }

    #[test]
    fn a_cut_lowers_what_is_above_it_and_keeps_two_segments() {
        let mut window = window();
        window.set(12_000, 40_000);
        assert!(window.cut(8_000, 8_000));
        assert_eq!((window.cwnd(), window.ssthresh()), (8_000, 8_000));
        assert!(!window.cut(9_000, 20_000), "nothing is raised");
        assert!(window.cut(0, 9_000));
        assert_eq!((window.cwnd(), window.ssthresh()), (2_000, 8_000));
        assert!(window.cut(9_000, 0));
        assert_eq!((window.cwnd(), window.ssthresh()), (2_000, 2_000));
    }

    #[test]
    fn a_window_below_two_segments_is_not_raised_by_a_cut() {
        let mut window = window();
        window.set(1_000, 8_000);
        assert!(!window.cut(500, 8_000));
        assert_eq!(window.cwnd(), 1_000);
    }

    #[test]
    fn a_recovery_is_not_cut() {
        let mut window = window();
        window.enter_recovery(SeqNr(99), 5_000, 10_000);
        assert!(!window.cut(2_000, 2_000));
        assert_eq!((window.cwnd(), window.ssthresh()), (10_000, 5_000));
        window.exit_recovery(10_000, RecoveryEnd::Flight);
        assert!(window.cut(4_000, 4_000));
    }

    #[test]
    fn fractions_add_up() {
        let mut window = window();
        for _ in 0..4 {
            window.apply(WindowStep::from_f64(0.25));
        }
        assert_eq!(window.cwnd(), 10_001);
        window.apply(WindowStep::from_f64(-0.5));
        assert_eq!(window.cwnd(), 10_000);
        window.apply(WindowStep::from_f64(0.5));
        assert_eq!(window.cwnd(), 10_001);
    }

    #[test]
    fn no_answer_of_a_controller_leaves_the_bounds() {
        let (widest, narrowest) = (CWND_MAX, 1_000);
        let mut window = window();
        window.apply(WindowStep::from_f64(0.75));
        for (step, bound) in [(i64::MAX, widest), (i64::MIN, narrowest), (i64::MAX, widest), (i64::MAX, widest)] {
            window.apply(WindowStep::from_q16(step));
            assert_eq!(window.cwnd(), bound, "after {step}");
        }
        window.set(0, 0);
        assert_eq!((window.cwnd(), window.ssthresh()), (narrowest, 2_000));
        window.set(u64::MAX, u64::MAX);
        assert_eq!((window.cwnd(), window.slow_start(u64::MAX)), (widest, u64::MAX));
        window.enter_recovery(SeqNr(99), u64::MAX, 20_000);
        window.on_ack_in_recovery(1000, 16_000, false);
        window.exit_recovery(10_000, RecoveryEnd::Threshold);
        assert_eq!(window.cwnd(), widest);
    }

    #[test]
    fn prr_sends_in_proportion() {
        // 20 segments in flight, halved to 10: about one segment out for two delivered.
        let mut window = window();
        window.set(20_000, 40_000);
        window.enter_recovery(SeqNr(99), 10_000, 20_000);
        window.on_ack_in_recovery(1000, 16_000, false);
        assert_eq!(window.cwnd(), 17_000, "the first retransmission is forced");
        window.on_sent(1000);
        window.on_ack_in_recovery(1000, 16_000, false);
        assert_eq!(window.cwnd(), 16_000);
        window.on_ack_in_recovery(2000, 14_000, false);
        assert_eq!(window.cwnd(), 15_000);
        window.exit_recovery(10_000, RecoveryEnd::Flight);
        assert_eq!((window.cwnd(), window.phase()), (10_000, Phase::Open));
    }

    #[test]
    fn a_time_out_restarts_from_one_segment_and_can_be_undone() {
        let mut window = window();
        window.enter_loss(SeqNr(99), Some(5000));
        assert_eq!((window.cwnd(), window.ssthresh()), (1000, 5000));
        window.undo(9_000, 1_000, 10);
        assert_eq!((window.cwnd(), window.ssthresh()), (10_000, u64::MAX));
    }

    /// RFC 4015 section 3.4: cwnd = FlightSize + min(bytes_acked, IW), and slow start as far as the pipe before.
    #[test]
    fn an_undone_reduction_causes_no_burst() {
        for (in_flight, acked, cwnd) in [(5_000, 45_000, 15_000), (48_000, 2_000, 50_000), (60_000, 2_000, 50_000)] {
            let mut window = window();
            window.set(50_000, 20_000);
            window.enter_loss(SeqNr(99), Some(25_000));
            window.undo(in_flight, acked, 10);
            assert_eq!((window.cwnd(), window.ssthresh(), window.phase()), (cwnd, 50_000, Phase::Open));
        }
    }

    /// RFC 5681 section 4.1: RW = min(IW, cwnd). RFC 6928: ten segments of 8960 octets are 14,600 octets or two segments.
    #[test]
    fn the_window_after_idling_is_the_initial_one() {
        for (mss, initial) in [(1000, 10_000), (1460, 14_600), (8960, 17_920)] {
            let mut window = CongestionWindow::new(mss, 10);
            assert_eq!(window.cwnd(), initial);
            window.set(1_000_000, u64::MAX);
            window.restart(10);
            assert_eq!(window.cwnd(), initial);
            window.set(u64::from(mss), u64::MAX);
            window.restart(10);
            assert_eq!(window.cwnd(), u64::from(mss), "it does not grow");
        }
    }
}
