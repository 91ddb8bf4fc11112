//! Checkers' view of a connection and one of its subflows.

use units::Instant;

use super::Connection;
use super::subflow::Subflow;
use crate::SubflowId;
use crate::inspection::{FlightInspection, Inspect, Sight, SubflowTimer};
use crate::state::State;

impl Connection {
    /// Returns a view of subflow `id`, if the subflow exists.
    #[inline]
    pub(crate) fn inspect(&self, id: SubflowId) -> Option<Sight<'_>> {
        let tcb = &self.subflows.get(id)?.tcb;
        Some(Sight { connection: self, id, tcb })
    }

    /// Whether anything will happen on a subflow without outside input: an ACK is due, or a timer runs in its place.
    pub(super) fn is_any_subflow_driven(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.tcb.is_driven())
    }
}

impl Inspect for Sight<'_> {
    #[inline]
    fn flight(&self) -> FlightInspection {
        FlightInspection { penalized_at: self.connection.blocked_window.penalized_at(self.id), ..self.tcb.flight() }
    }

    #[inline]
    fn is_outstanding(&self) -> bool {
        self.tcb.is_outstanding()
    }

    #[inline]
    fn unsent_bytes(&self) -> u64 {
        self.tcb.waiting_bytes()
    }

    #[inline]
    fn runs(&self, timer: SubflowTimer) -> bool {
        self.tcb.runs(timer)
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.connection.is_established() && !self.connection.is_closed()
    }

    #[inline]
    fn connection_unsent_bytes(&self) -> u64 {
        self.connection.sender.buffer.end().since(self.connection.sender.next)
    }

    #[inline]
    fn is_data_outstanding(&self) -> bool {
        self.connection.is_mptcp() && self.connection.data_outstanding()
    }

    #[inline]
    fn data_timer_runs(&self) -> bool {
        self.connection.data_timer != Instant::FAR_FUTURE
    }

    #[inline]
    fn is_driven(&self) -> bool {
        let Connection { data_timer, orphan_timer, linger_timer, subflows, .. } = self.connection;
        // Before FIN-WAIT-2 this timer only limits how long data may wait.
        let lingers = self.connection.state == State::FinWait2 && *linger_timer != Instant::FAR_FUTURE;
        lingers
            || [data_timer, orphan_timer].into_iter().any(|timer| *timer != Instant::FAR_FUTURE)
            || self.connection.is_any_subflow_driven()
            || !subflows.iter().any(Subflow::is_usable)
    }
}
