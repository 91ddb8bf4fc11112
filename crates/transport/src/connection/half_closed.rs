//! Subflows that the peer has closed (RFC 8684 section 3.3.3).
//!
//! A FIN ends what the peer sends on one subflow; only a DATA_FIN ends its stream. Our half continues: like any TCP in
//! CLOSE-WAIT, the subflow carries our remaining data. It is closed once another subflow can carry them, or once our
//! DATA_FIN is acknowledged and nothing is left. To close the last subflow earlier would strand data that the
//! application writes later, and section 3.3.3 forbids it while data are outstanding.

use units::Instant;

use super::subflow::{Handshake, SUBFLOW_WAIT, Subflow};
use super::{Connection, Protocol};
use crate::SubflowId;
use crate::error::CloseReason;
use crate::host::Host;
use crate::state::State;

impl Subflow {
    /// The peer has closed the subflow, and we have not.
    fn is_half_closed(&self) -> bool {
        self.tcb.state == State::CloseWait && self.handshake == Handshake::Complete && !self.closing
    }
}

impl Connection {
    /// Acts on FINs of the peer: the end of its stream in plain TCP, of a subflow in MPTCP.
    pub(super) fn act_on_fins(&mut self, host: &mut Host, now: Instant) {
        match self.protocol {
            Protocol::Tcp { .. } => {
                // The FIN may have arrived before the fallback that makes it the end of the stream.
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

    /// Closes our half of every subflow that the peer has closed and that is no longer needed.
    fn answer_fins(&mut self) {
        for id in self.subflows.ids() {
            let is_needed = !self.is_stream_acknowledged() && !self.has_substitute_for(id);
            if self.subflows[id].is_half_closed() && !is_needed {
                self.retreat_from(id);
            }
        }
    }

    /// The peer has received all that we will ever send.
    fn is_stream_acknowledged(&self) -> bool {
        matches!(self.state, State::FinWait2 | State::TimeWait | State::Closed)
    }

    /// Another subflow can carry the data of subflow `id`.
    fn has_substitute_for(&self, id: SubflowId) -> bool {
        let una = self.sender.buffer.start();
        self.subflows.others(id).any(|subflow| subflow.is_usable() && !subflow.is_stale() && !subflow.is_suspended(una))
    }

    /// A peer that has closed all subflows without ending its stream intends to return. It has as much time for that as
    /// if we had closed our halves too. If we have data outstanding, these show by themselves whether it is still
    /// there.
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
