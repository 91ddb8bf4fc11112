//! What a TCB tells the observer of its endpoint.

use super::window::Phase;
use super::{Tcb, Timer};
use crate::inspection::SubflowTimer;
use crate::observation::{CongestionCause, CongestionState, CutCause, Occurrence, PathMetrics};

impl Tcb {
    /// Tells the observer about windows and round-trip times, and about the congestion state if there is a cause for
    /// its change, or if it has changed since it was last told.
    #[inline]
    pub(crate) fn tell_congestion(&mut self, cause: Option<CongestionCause>) {
        if self.watch.is_on() {
            self.tell_congestion_now(cause);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_congestion_now(&mut self, cause: Option<CongestionCause>) {
        let (state, metrics) = (self.congestion_state(), self.path_metrics());
        self.watch.tell_congestion(state, cause, metrics);
    }

    fn congestion_state(&self) -> CongestionState {
        match self.window.phase() {
            Phase::Reduced(_) | Phase::Recovery(_) => CongestionState::Recovery,
            Phase::Loss(_) => CongestionState::Loss,
            Phase::Open if self.window.in_slow_start() => CongestionState::SlowStart,
            Phase::Open => CongestionState::Avoidance,
        }
    }

    fn path_metrics(&self) -> PathMetrics {
        PathMetrics {
            cwnd_bytes: self.window.cwnd(),
            ssthresh_bytes: self.window.ssthresh(),
            in_flight_bytes: self.in_flight(),
            latest_rtt: self.rtt.latest(),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            rttvar: self.rtt.rttvar(),
            rto: self.rtt.rto(),
            pacing_bytes_per_s: self.pacer.rate_bytes_per_s(),
        }
    }

    #[inline]
    pub(super) fn tell_lost(&self, bytes: u64) {
        if bytes > 0 {
            self.watch.tell(|| Occurrence::DataLost { bytes });
        }
    }

    #[inline]
    pub(super) fn tell_timer(&self, timer: Timer) {
        if self.watch.is_on() {
            self.tell_timer_now(timer);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_timer_now(&self, timer: Timer) {
        let timer = match timer {
            Timer::Retransmit => SubflowTimer::Retransmit,
            Timer::Reorder => SubflowTimer::Reorder,
            Timer::TailProbe => SubflowTimer::TailProbe,
            Timer::Persist => SubflowTimer::Persist,
            Timer::DelayedAck | Timer::KeepAlive | Timer::Linger | Timer::User | Timer::Pace => return,
        };
        self.watch.tell(|| Occurrence::TimerExpired(timer));
    }

    /// Lowers window and threshold as [`super::window::CongestionWindow::cut`] does. Returns whether anything changed.
    pub(crate) fn cut_window(&mut self, cwnd: u64, ssthresh: u64, cause: CutCause) -> bool {
        let is_cut = self.window.cut(cwnd, ssthresh);
        if is_cut {
            let (cwnd_bytes, ssthresh_bytes) = (self.window.cwnd(), self.window.ssthresh());
            self.watch.tell(|| Occurrence::WindowCut { cwnd_bytes, ssthresh_bytes, cause });
        }
        is_cut
    }
}
