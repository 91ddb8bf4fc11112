//! Subflows that the peer has closed (RFC 8684 section 3.3.3).
//!
//! A FIN ends what the peer sends on one subflow; only a DATA_FIN ends its stream. Our half goes on: like any TCP in
//! CLOSE-WAIT the subflow carries what we still have to say. It is closed once another subflow can carry that, or there
//! is nothing left because our DATA_FIN is acknowledged. Closing the last one earlier would strand what the application
//! writes later, and section 3.3.3 forbids it as long as data are outstanding.

use units::Instant;

use super::subflow::{Handshake, SUBFLOW_WAIT, Subflow};
use super::{Connection, Protocol};
use crate::SubflowId;
use crate::error::CloseReason;
use crate::host::Host;
use crate::state::State;

impl Subflow {
    /// The peer has closed it, and we have not.
    fn is_half_closed(&self) -> bool {
        self.tcb.state == State::CloseWait && self.handshake == Handshake::Complete && !self.closing
    }
}

impl Connection {
    /// Acts upon FINs of the peer: the end of its stream in plain TCP, of a subflow in MPTCP.
    pub(super) fn act_on_fins(&mut self, host: &mut Host, now: Instant) {
        match self.protocol {
            Protocol::Tcp { .. } => {
                // The FIN may have come before the fallback that makes it the end of the stream.
                let first = self.subflows.first();
                if !self.receiver.finished && first.is_some_and(|subflow| subflow.tcb.has_received_fin()) {
                    self.on_peer_finished(host, now);
                }
            }
            Protocol::Mptcp { .. } if self.subflows.iter().any(Subflow::is_half_closed) => {
                self.answer_fins();
                self.await_peers_return(now);
            }
            _ => {}
        }
    }

    /// Closes our half of every subflow that the peer has closed and that is not needed any more.
    fn answer_fins(&mut self) {
        for id in self.subflows.ids() {
            let is_needed = !self.is_stream_acknowledged() && !self.has_substitute_for(id);
            if self.subflows[id].is_half_closed() && !is_needed {
                self.retreat_from(id);
            }
        }
    }

    /// The peer has all that we will ever send.
    fn is_stream_acknowledged(&self) -> bool {
        matches!(self.state, State::FinWait2 | State::TimeWait | State::Closed)
    }

    /// Another subflow can carry what subflow `id` would.
    fn has_substitute_for(&self, id: SubflowId) -> bool {
        let una = self.sender.buffer.start();
        self.subflows.others(id).any(|subflow| subflow.is_usable() && !subflow.is_stale() && !subflow.is_suspended(una))
    }

    /// A peer that has closed all subflows without ending its stream means to come back, and has as long for it as if we
    /// had closed our halves too. What we have outstanding shows by itself whether it is still there.
    fn await_peers_return(&mut self, now: Instant) {
        let is_present = |subflow: &Subflow| subflow.admitted && subflow.tcb.state.can_receive();
        let is_outstanding = self.sender.buffer.start() != self.sender.buffer.end() || self.is_data_fin_outstanding();
        if self.receiver.finished || is_outstanding || self.subflows.iter().any(is_present) {
            self.orphan_timer = Instant::FAR_FUTURE;
        } else if self.orphan_timer == Instant::FAR_FUTURE {
            self.orphan_timer = now + SUBFLOW_WAIT.min(self.config.user_timeout);
            self.orphan_reason = CloseReason::TimedOut;
        }
    }
}
