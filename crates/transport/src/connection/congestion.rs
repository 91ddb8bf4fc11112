//! What the owner of a connection tells its congestion controller, and does to windows past it.

use super::Connection;
use crate::SubflowId;
use crate::congestion::{Competition, WindowSet};
use crate::error::ConnectionError;

impl Connection {
    /// What a subflow competes with, for the controller to see from now on.
    pub(crate) fn set_competition(
        &mut self,
        id: SubflowId,
        competition: Option<Competition>,
    ) -> Result<(), ConnectionError> {
        let i = self.position(id).ok_or(ConnectionError::UnknownSubflow)?;
        self.subflows[i].competition = competition;
        Ok(())
    }

    /// The controller says how fast a subflow sends, unless the receiver does.
    pub(super) fn follow_pace_of_controller(&mut self, id: SubflowId) {
        let Some(i) = self.position(id).filter(|_| !self.is_paced_by_receiver(id)) else { return };
        let rate = self.policies.congestion.pacing_rate_bytes_per_s(id);
        self.subflows[i].tcb.set_pacing_rate(rate);
    }

    /// Lowers a subflow's window; whether anything changed.
    pub(crate) fn cut_window(&mut self, id: SubflowId, cut: WindowSet) -> Result<bool, ConnectionError> {
        let i = self.position(id).ok_or(ConnectionError::UnknownSubflow)?;
        Ok(self.subflows[i].tcb.window_mut().cut(cut.cwnd, cut.ssthresh))
    }
}
