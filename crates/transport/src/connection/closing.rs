//! The end of streams, subflows and connections (RFC 8684 sections 3.3.3 and 3.5, RFC 9293 section 3.6).

use units::{Duration, Instant};
use wire::mptcp::{MpFastclose, MptcpOption};

use super::Connection;
use super::subflow::{RESET_WAIT, SUBFLOW_WAIT, Subflow};
use crate::SubflowId;
use crate::control_loop::ControlledPaths;
use crate::error::{CloseReason, ConnectionError};
use crate::event::Event;
use crate::host::{Host, Tuple};
use crate::observation::ReinjectionCause;
use crate::path_manager::PathEvent;
use crate::state::{State, Step};
use crate::stats::SubflowStats;

/// Time that the peer has to finish its stream after `close` (Linux's tcp_fin_timeout).
const LINGER: Duration = Duration::from_secs(60);
/// Maximum number of ended subflows whose statistics are kept.
const ENDED_MAX: usize = 128;

impl Connection {
    /// Ends this side's stream.
    pub(crate) fn shutdown(&mut self) -> Result<(), ConnectionError> {
        self.check_open()?;
        self.sender.finished = true;
        self.finish_stream_if_last(true);
        Ok(())
    }

    /// Ends this side's stream, and discards what still arrives.
    pub(crate) fn close(&mut self, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        if !self.is_established() {
            return self.abort(CloseReason::Aborted, host, now);
        }
        self.receiver.discard = true;
        self.receiver.stream.discard_ready();
        self.announce_window_if_worthwhile();
        let _ = self.shutdown();
        if self.state == State::FinWait2 {
            self.linger_timer = now + LINGER;
        } else if self.linger_timer == Instant::FAR_FUTURE {
            self.limit_wait(now);
        }
    }

    /// Forgets the connection once it has closed. If this side's stream has ended, nobody is left to read the peer's: what
    /// still arrives is discarded, as after [`Self::close`].
    pub(crate) fn release(&mut self, host: &mut Host, now: Instant) {
        self.released = true;
        // Before it is established, closing would abort it.
        if self.sender.finished && !self.receiver.discard && self.is_established() {
            self.close(host, now);
        }
    }

    /// From now on, the peer has the user time-out to acknowledge more of the stream, if the owner has given up the
    /// connection. A peer that answers probes of a shut window is waited for (RFC 9293 section 3.8.6.1), but not without
    /// end once nobody is left who could decide to abort the connection (RFC 6429).
    pub(super) fn limit_wait(&mut self, now: Instant) {
        let is_given_up = self.sender.finished && (self.receiver.discard || self.released);
        if is_given_up && !self.is_closed() && self.state != State::FinWait2 {
            self.linger_timer = now + self.config.user_timeout;
        }
    }

    /// The peer has not finished its stream, or has not taken more of ours, for as long as it may.
    pub(super) fn on_linger_timeout(&mut self, host: &mut Host, now: Instant) {
        if self.subflows.iter().any(Subflow::can_end_stream) || self.state == State::FinWait2 {
            self.abort(CloseReason::TimedOut, host, now);
        } else {
            // Without a subflow, the wait for one has a limit of its own. The data then have as long as before.
            self.limit_wait(now);
        }
    }

    /// Ends the connection at once: MP_FASTCLOSE on every subflow, or RST. MP_FASTCLOSE contains the peer's key, so a
    /// host that has not proved that it knows the keys gets a RST without it.
    pub(crate) fn abort(&mut self, reason: CloseReason, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        let fastclose = self.remote_key().map(|receiver_key| MptcpOption::Fastclose(MpFastclose { receiver_key }));
        for subflow in &mut self.subflows {
            subflow.close_reason.get_or_insert(reason);
            if subflow.is_proven() {
                subflow.reset_options.extend(fastclose.clone());
            }
            subflow.tcb.request_reset();
        }
        self.finish(reason, host, now);
    }

    /// The peer has ended the connection at once: a RST answers on every subflow (RFC 8684 section 3.5).
    pub(super) fn on_fastclose(&mut self, host: &mut Host, now: Instant) {
        for subflow in &mut self.subflows {
            subflow.close_reason.get_or_insert(CloseReason::Fastclose);
            subflow.tcb.request_reset();
        }
        self.finish(CloseReason::Fastclose, host, now);
    }

    /// The peer has received our whole stream, including its end.
    pub(super) fn on_data_fin_acked(&mut self, host: &mut Host, now: Instant) {
        let before = self.state;
        self.step(Step::FinAcked);
        if before == self.state {
            return;
        }
        self.sender.data_fin_due = false;
        self.data_timer = Instant::FAR_FUTURE;
        host.events.push_back(Event::AllAcknowledged(self.id));
        if self.released && !self.receiver.discard {
            // It was released before it was established.
            self.receiver.discard = true;
            self.receiver.stream.discard_ready();
        }
        let lingers = self.state == State::FinWait2 && self.receiver.discard;
        self.linger_timer = if lingers { now + LINGER } else { Instant::FAR_FUTURE };
        self.on_state_change(host, now);
    }

    /// Closes the subflows once both streams have ended (RFC 8684 section 3.3.3).
    pub(super) fn on_state_change(&mut self, host: &mut Host, now: Instant) {
        if !matches!(self.state, State::TimeWait | State::Closed) || self.is_closed() {
            return;
        }
        // A connection that fell back may have ended with a DATA_FIN whose FIN never comes.
        if self.is_mptcp() || self.receiver.data_fin.is_some() {
            for subflow in &mut self.subflows {
                subflow.closing = true;
                if subflow.tcb.state.is_synchronized() {
                    subflow.tcb.request_close();
                    subflow.tcb.bound_fin_wait(now);
                } else {
                    subflow.tcb.request_reset();
                }
            }
        }
        self.finish(CloseReason::Finished, host, now);
    }

    fn finish(&mut self, reason: CloseReason, host: &mut Host, now: Instant) {
        if self.is_closed() {
            return;
        }
        self.closed_at = Some(now);
        self.close_reason = Some(reason);
        self.data_timer = Instant::FAR_FUTURE;
        self.idle_timer = Instant::FAR_FUTURE;
        self.orphan_timer = Instant::FAR_FUTURE;
        self.linger_timer = Instant::FAR_FUTURE;
        self.addresses.stop();
        if self.config.mptcp {
            host.release_token(self.local_token(), self.id.slot);
        }
        if let Some(listener) = self.listener.filter(|_| !self.is_established()) {
            // The owner has not heard of this connection, so nobody will release it.
            host.accepted.push((None, listener));
            self.released = true;
            return;
        }
        if reason != CloseReason::Finished {
            self.enter(State::Closed);
        }
        host.events.push_back(Event::Closed { connection: self.id, reason });
    }

    /// Ends TIME-WAIT because another connection needs the place.
    pub(crate) fn end_time_wait(&mut self, host: &mut Host, now: Instant) {
        self.subflows.iter_mut().for_each(|subflow| subflow.tcb.close());
        self.settle(host, now);
    }

    /// Brings the connection into a consistent state after any event.
    #[inline]
    pub(crate) fn settle(&mut self, host: &mut Host, now: Instant) {
        if !self.is_settled() {
            self.settle_ends(host, now);
        }
    }

    /// There is nothing to settle while no stream ends, no subflow has seen a FIN or a RST, and no options about
    /// addresses are due.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        let is_flowing = |subflow: &Subflow| subflow.tcb.state == State::Established;
        !self.sender.finished && !self.addresses.has_due() && self.subflows.iter().all(is_flowing)
    }

    /// Nothing needs sending or settling.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        let is_at_rest =
            |subflow: &Subflow| (subflow.tcb.state == State::Established) & !subflow.tcb.has_something_to_send();
        self.sender.next == self.sender.buffer.end()
            && self.reinjection.next().is_none()
            && !self.sender.finished
            && !self.addresses.has_due()
            && self.subflows.iter().all(is_at_rest)
    }

    fn settle_ends(&mut self, host: &mut Host, now: Instant) {
        self.burst = None;
        self.finish_stream_if_last(true);
        self.arm_data_timer_for_fin(now);
        if self.subflows.iter().any(|subflow| subflow.tcb.state != State::Established) {
            self.act_on_fins(host, now);
            if self.subflows.iter().any(Subflow::is_finished) {
                self.retire_subflows(host, now);
            }
        }
        self.demand_for_addresses();
    }

    fn retire_subflows(&mut self, host: &mut Host, now: Instant) {
        for id in self.subflows.ids() {
            if self.subflows[id].is_finished() && !self.subflows[id].is_retired() {
                self.retire(id, host, now);
            }
            let subflow = &self.subflows[id];
            if subflow.tcb.is_over() {
                host.release(&Tuple { local: subflow.local(), remote: subflow.remote() });
                self.remember(subflow.stats());
                self.subflows.remove(id);
            }
        }
        if self.is_closed() && self.subflows.is_empty() {
            self.enter(State::Closed);
        }
    }

    /// Keeps the statistics of an ended subflow. Anyone who knows the token can open subflows that fail, any number of
    /// times: those that were never established are forgotten first.
    fn remember(&mut self, stats: SubflowStats) {
        if self.ended.len() >= ENDED_MAX {
            let failed = self.ended.iter().position(|ended| ended.established_at.is_none());
            self.ended.remove(failed.unwrap_or(0));
        }
        self.ended.push(stats);
    }

    /// Retires subflow `id`, which can carry nothing any more.
    fn retire(&mut self, id: SubflowId, host: &mut Host, now: Instant) {
        self.subflows[id].retired_at = Some(now);
        if self.is_mptcp() && !self.is_closed() {
            self.reinject_from(id, ReinjectionCause::SubflowEnded);
            if self.config.suspension {
                self.reinject_uncarried_head_of(id);
            } else {
                self.reinject_uncarried_head(ReinjectionCause::SubflowEnded);
            }
            if self.subflows[id].data_fins > 0 {
                self.repeat_data_fin();
            }
        }
        let subflow = &self.subflows[id];
        let (local, remote) = (subflow.local(), subflow.remote());
        let reason = subflow.close_reason.unwrap_or(CloseReason::Finished);
        let admitted = subflow.admitted;
        let is_known = admitted || !subflow.is_peers_attempt();
        self.govern_no_more(id);
        if admitted {
            self.with_paths(id, |congestion, paths| congestion.subflow_removed(id, paths));
        }
        if is_known {
            host.events.push_back(Event::SubflowClosed { connection: self.id, subflow: id, reason });
        }
        if self.is_closed() {
            return;
        }
        let is_left = |subflow: &Subflow| !subflow.is_retired();
        if self.is_fully_established() && self.is_worth_rejoining(reason) {
            if !self.subflows.iter().any(|subflow| subflow.admitted && is_left(subflow)) {
                self.await_subflow(reason, now);
            }
        } else if !self.subflows.iter().any(is_left) {
            // A TCP that closed gracefully has reported its end already.
            self.finish(reason, host, now);
        }
        if self.is_fully_established() && !self.is_closed() {
            let on_request =
                matches!(reason, CloseReason::Finished | CloseReason::Aborted | CloseReason::AddressWithdrawn);
            let event = match is_known {
                true => PathEvent::SubflowClosed { id, local, remote, failed: !on_request },
                false => PathEvent::PlaceFreed,
            };
            self.tell_path_manager(&event, host, now);
        }
    }

    /// Whether a new subflow would have anything to carry after the end of the last one. A peer that resets has more
    /// often lost its state than its path, so a mere DATA_FIN of ours, which loses no data, is not worth the wait.
    fn is_worth_rejoining(&self, reason: CloseReason) -> bool {
        let may_speak = !self.receiver.finished && !self.receiver.discard;
        let is_used = !self.released && (may_speak || !self.sender.finished);
        !is_reset(reason) || is_used || self.sender.buffer.start() != self.sender.buffer.end()
    }

    /// No subflow carries data: gives up unless a new subflow is established in time (RFC 8684 sections 3.3.3 and 3.5:
    /// the connection outlives its subflows). Mere attempts do not count.
    fn await_subflow(&mut self, reason: CloseReason, now: Instant) {
        let wait = if is_reset(reason) { RESET_WAIT } else { SUBFLOW_WAIT };
        let until = now + wait.min(self.config.user_timeout);
        if until < self.orphan_timer {
            self.orphan_timer = until;
            self.orphan_reason = if is_reset(reason) { reason } else { CloseReason::TimedOut };
        }
    }

    /// Whether the connection has no subflow, and waits for one.
    pub(super) fn awaits_subflow(&self) -> bool {
        self.orphan_timer != Instant::FAR_FUTURE
    }
}

fn is_reset(reason: CloseReason) -> bool {
    matches!(reason, CloseReason::Reset | CloseReason::Violation(_))
}
