//! What happens as time passes.

use units::{Duration, Instant};
use wire::mptcp::ResetReason;

use super::Connection;
use crate::congestion::LossSample;
use crate::error::{CloseReason, Violation};
use crate::host::Host;
use crate::state::State;
use crate::tcp::{AckOutcome, Expired};

/// Shortest data-level time-out: subflows get the chance to repair their losses first.
const DATA_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest.
const DATA_TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl Connection {
    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        let own = self.data_timer.min(self.orphan_timer).min(self.addresses.next_timeout());
        self.subflows.iter().map(super::Subflow::next_timeout).fold(own, Instant::min)
    }

    /// Handles everything that is due.
    pub(crate) fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        for i in 0..self.subflows.len() {
            if self.subflows[i].tcb.next_timeout() <= now {
                let expired = self.subflows[i].tcb.on_timeout(now);
                self.on_expired(i, expired, now);
            }
            if !self.subflows[i].resend_join_ack(now) {
                let reason = CloseReason::Violation(Violation::JoinOption);
                self.reset_subflow(i, ResetReason::MptcpSpecific, true, reason);
            }
        }
        if self.data_timer <= now {
            self.on_data_timeout(host, now);
        }
        if self.orphan_timer <= now {
            self.abort(CloseReason::TimedOut, host, now);
        }
        self.on_address_timeout(host, now);
        self.settle(host, now);
    }

    fn on_expired(&mut self, i: usize, expired: Expired, now: Instant) {
        let subflow = &mut self.subflows[i];
        let id = subflow.id;
        if expired.gave_up {
            subflow.close_reason.get_or_insert(CloseReason::TimedOut);
            return;
        }
        if expired.retransmission_timeout {
            let ask = subflow.tcb.is_first_timeout() && subflow.admitted;
            let ssthresh = ask.then(|| self.with_paths(|congestion, paths| congestion.on_rto(id, now, paths)));
            self.subflows[i].tcb.begin_loss(ssthresh, now);
            self.reinject_after_timeout(i);
        } else if let Some(signal) = expired.congestion.filter(|_| subflow.admitted) {
            let sample = LossSample { subflow: id, now, signal, lost_bytes: expired.lost_bytes };
            let ssthresh = self.with_paths(|congestion, paths| congestion.on_loss(&sample, paths));
            self.subflows[i].tcb.begin_recovery(ssthresh, &AckOutcome::default());
        }
    }

    /// Restarts the data-level time-out: twice the slowest subflow's, because that subflow may still deliver.
    pub(super) fn rearm_data_timer(&mut self, now: Instant) {
        let outstanding = self.sender.next != self.sender.buffer.start() || self.data_fin_outstanding();
        if !outstanding || self.is_closed() {
            self.data_timer = Instant::FAR_FUTURE;
            return;
        }
        let slowest = self.subflows.iter().map(|subflow| subflow.tcb.rto()).max().unwrap_or(DATA_TIMEOUT_MIN);
        let base = (slowest * 2).max(DATA_TIMEOUT_MIN);
        self.data_timer = now + base.saturating_mul(1 << self.sender.backoff.min(6)).min(DATA_TIMEOUT_MAX);
    }

    pub(super) fn data_fin_outstanding(&self) -> bool {
        self.sender.data_fin.is_some() && matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    /// The data level heard nothing for long (RFC 8684 section 3.3.6): if no subflow is still at it, the first octets
    /// missing go out again.
    fn on_data_timeout(&mut self, host: &mut Host, now: Instant) {
        if self.sender.backoff == 0 {
            self.sender.stalled_since = now;
        } else if self.is_mptcp() && now.saturating_since(self.sender.stalled_since) >= self.config.user_timeout {
            // A plain TCP has its own, which knows whether the peer still answers.
            return self.abort(CloseReason::TimedOut, host, now);
        }
        self.sender.backoff += 1;
        if self.is_mptcp() {
            let at_work = self.subflows.iter().any(|subflow| subflow.tcb.has_outstanding() && !subflow.is_stale());
            let start = self.sender.buffer.start();
            if start != self.sender.next && !at_work && self.reinjection.next().is_none() {
                let nobody = crate::SubflowId(u16::MAX);
                self.reinjection.push(start, self.sender.next, nobody);
            } else if start == self.sender.next && self.data_fin_outstanding() {
                self.send_data_fin();
            }
        }
        self.rearm_data_timer(now);
    }
}
