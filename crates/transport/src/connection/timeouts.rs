//! Time-outs of a connection.

use units::{Duration, Instant};
use wire::mptcp::ResetReason;

use super::fallback::DOUBT_TIMEOUTS;
use super::{Connection, Subflow};
use crate::SubflowId;
use crate::control_loop;
use crate::error::{CloseReason, Violation};
use crate::host::Host;
use crate::observation::{Occurrence, ReinjectionCause};
use crate::state::State;
use crate::tcp::Expired;

/// Shortest data-level time-out: subflows get the chance to repair their losses first.
const DATA_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest data-level time-out.
const DATA_TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl Connection {
    /// Returns when to call [`Self::handle_timeout`].
    pub(crate) fn next_timeout(&self) -> Instant {
        self.subflows.iter().map(Subflow::next_timeout).fold(self.next_own_timeout(), Instant::min)
    }

    fn next_own_timeout(&self) -> Instant {
        let own = self
            .data_timer
            .min(self.idle_timer)
            .min(self.orphan_timer)
            .min(self.linger_timer)
            .min(self.addresses.next_timeout());
        own.min(self.rate_control_timeout())
    }

    /// Returns [`Self::next_timeout`] if it is before `at`: nearly always it is not, and this query is cheaper.
    #[inline]
    pub(crate) fn next_timeout_before(&mut self, at: Instant) -> Option<Instant> {
        let is_early = self.next_own_timeout() < at || self.subflows.iter_mut().any(|subflow| subflow.fires_before(at));
        is_early.then(|| self.next_timeout())
    }

    /// Handles everything that is due.
    pub(crate) fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        for id in self.subflows.ids() {
            if let Some(expired) = control_loop::on_timeout(self, id, now) {
                self.on_expired(id, expired);
            }
            if self.subflows[id].half_open_until().is_some_and(|until| until <= now) {
                self.subflows[id].give_up_join();
            }
            if !self.subflows[id].resend_join_ack(now) {
                let reason = CloseReason::Violation(Violation::JoinOption);
                self.reset_subflow(id, ResetReason::MptcpSpecific, true, reason);
            }
        }
        self.on_rate_control_timeout(now);
        if self.data_timer <= now {
            self.on_data_timeout(host, now);
        }
        if self.idle_timer <= now {
            self.on_idle_timeout(now);
        }
        if self.orphan_timer <= now {
            self.abort(self.orphan_reason, host, now);
        }
        if self.linger_timer <= now {
            self.on_linger_timeout(host, now);
        }
        self.on_address_timeout(host, now);
        self.settle(host, now);
    }

    /// Applies the consequences of a subflow's time-outs to the other subflows.
    fn on_expired(&mut self, id: SubflowId, expired: Expired) {
        let subflow = &mut self.subflows[id];
        if expired.gave_up {
            subflow.close_reason.get_or_insert(CloseReason::TimedOut);
        }
        let is_probing_in_vain = subflow.tcb.is_probing() && subflow.is_stale();
        let is_enough = subflow.tcb.consecutive_timeouts() >= self.config.era.reinjection_timeouts;
        if (expired.retransmission_timeout && is_enough && !expired.gave_up) || is_probing_in_vain {
            self.reinject_after_timeout(id);
        }
    }

    /// Starts the timers of the data level when the first data are sent.
    #[inline]
    pub(super) fn arm_data_timers(&mut self, now: Instant) {
        if self.data_timer == Instant::FAR_FUTURE {
            self.rearm_data_timer(now);
            self.rearm_idle_timer(now);
        }
    }

    /// Restarts the data-level time-out: twice that of the slowest subflow, because that subflow may still deliver.
    /// Subflows without signs of life count only if there are no others: their outstanding data have been given to
    /// others.
    pub(super) fn rearm_data_timer(&mut self, now: Instant) {
        self.sender.is_put_off = false;
        if !self.is_mptcp() || !self.data_outstanding() || self.is_closed() {
            self.data_timer = Instant::FAR_FUTURE;
            return;
        }
        let (mut slowest, mut slowest_living) = (Duration::ZERO, Duration::ZERO);
        for subflow in self.subflows.iter() {
            let rto = subflow.tcb.rto();
            slowest = slowest.max(rto);
            if subflow.is_usable() && !subflow.is_stale() {
                slowest_living = slowest_living.max(rto);
            }
        }
        // No time-out is zero.
        let slowest = if slowest_living.is_zero() { slowest } else { slowest_living };
        let base = (slowest * 2).max(DATA_TIMEOUT_MIN);
        self.data_timer = now + base.saturating_mul(1 << self.sender.backoff.min(6)).min(DATA_TIMEOUT_MAX);
    }

    /// Whether data or the DATA_FIN wait for a DATA_ACK.
    pub(super) fn data_outstanding(&self) -> bool {
        self.sender.next != self.sender.buffer.start() || self.is_data_fin_outstanding()
    }

    pub(super) fn is_data_fin_outstanding(&self) -> bool {
        self.sender.data_fin.is_some() && matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    /// A connection that had no subflow has one again. The rest of the stream has as long as before on it (decision
    /// 0017), and is repeated as soon as on any other.
    pub(super) fn start_anew(&mut self, now: Instant) {
        self.sender.backoff = 0;
        self.limit_wait(now);
        self.rearm_data_timer(now);
        self.repeat_data_fin();
    }

    /// Sends the DATA_FIN again if nothing else is outstanding. One that ended data goes with these.
    pub(super) fn repeat_data_fin(&mut self) {
        if self.is_data_fin_outstanding() && self.sender.buffer.start() == self.sender.next {
            self.send_data_fin();
        }
    }

    /// Starts the data-level timer for a DATA_FIN without data, which no transmission of data covers.
    pub(super) fn arm_data_timer_for_fin(&mut self, now: Instant) {
        if self.data_timer == Instant::FAR_FUTURE && self.is_data_fin_outstanding() {
            self.rearm_data_timer(now);
        }
    }

    /// Handles a data-level time-out (RFC 8684 section 3.3.6): data that no subflow is at work on are sent again.
    fn on_data_timeout(&mut self, host: &mut Host, now: Instant) {
        // Without a subflow, the wait for one has a limit of its own. The data then have as long as before.
        if self.sender.backoff == 0 || self.awaits_subflow() {
            self.sender.stalled_since = now;
        } else if now.saturating_since(self.sender.stalled_since) >= self.config.user_timeout && !self.is_held_off() {
            return self.abort(CloseReason::TimedOut, host, now);
        }
        self.sender.backoff += 1;
        let in_a_row = self.sender.backoff;
        self.watch.tell(|| Occurrence::DataTimedOut { in_a_row });
        if self.is_in_doubt() {
            // Nothing is sent again: if the peer has fallen back, the data would be in the stream twice, as other
            // octets of the subflow.
            if self.sender.backoff >= DOUBT_TIMEOUTS {
                return self.fall_back_aloud(host, now);
            }
        } else if self.sender.buffer.start() != self.sender.next {
            match self.suspend_who_swallowed() {
                Some(id) => self.repair_after(id),
                None => self.reinject_uncarried_head(ReinjectionCause::DataTimedOut),
            }
        } else if self.is_data_fin_outstanding() {
            self.end_subflow_in_silence();
            self.capable_due = true;
            self.send_data_fin();
        }
        self.rearm_data_timer(now);
    }

    /// The peer's window is shut. While the peer answers probes, we wait for it (RFC 9293 section 3.8.6.1); if it
    /// stops, the subflow gives up. Without waiting data there are no probes: a DATA_FIN needs no window.
    fn is_held_off(&self) -> bool {
        self.sender.buffer.start() != self.sender.buffer.end()
            && self.subflows.iter().any(|subflow| subflow.is_usable() && subflow.tcb.peer_window() == 0)
    }

    /// Ends the first subflow if DATA_FINs remain unanswered. A peer may have fallen back because our third ACK lost
    /// its option, or because our options do not reach it. It then does not answer a DATA_FIN, and may have no data of
    /// ours to acknowledge. It does understand a FIN, and its answer shows whether it fell back. A peer that did not
    /// fall back, and missed the DATA_FINs, finds another one on the FIN.
    fn end_subflow_in_silence(&mut self) {
        /// DATA_FINs without an answer.
        const TRIES: u32 = 3;
        if self.sender.backoff >= TRIES && self.can_fall_back() {
            self.subflows.iter_mut().take(1).for_each(|first| first.tcb.request_fin());
        }
    }
}
