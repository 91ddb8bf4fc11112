//! A checker's view of a TCB.

use super::timer::Timer;
use super::{State, Tcb};
use crate::inspection::{FlightInspection, SubflowTimer};

impl Tcb {
    /// Flight and window. Only the connection knows about penalties.
    #[inline]
    pub(crate) fn flight(&self) -> FlightInspection {
        FlightInspection {
            mss_bytes: self.payload_max(),
            cwnd_bytes: self.window.cwnd(),
            in_flight_bytes: self.in_flight(),
            in_recovery: self.window.in_recovery(),
            penalized_at: None,
        }
    }

    /// Whether anything sent is unacknowledged: SYN, data or FIN.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.snd_una != self.snd_nxt && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Octets that wait in the TCB, not yet sent.
    #[inline]
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    /// Whether a timer runs.
    #[inline]
    pub(crate) fn runs(&self, timer: SubflowTimer) -> bool {
        self.timers.is_set(match timer {
            SubflowTimer::Retransmit => Timer::Retransmit,
            SubflowTimer::Reorder => Timer::Reorder,
            SubflowTimer::TailProbe => Timer::TailProbe,
            SubflowTimer::Persist => Timer::Persist,
            SubflowTimer::Pace => Timer::Pace,
        })
    }
}
