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

    /// Lowers a subflow's window; whether anything changed.
    pub(crate) fn cut_window(&mut self, id: SubflowId, cut: WindowSet) -> Result<bool, ConnectionError> {
        let i = self.position(id).ok_or(ConnectionError::UnknownSubflow)?;
        Ok(self.subflows[i].tcb.window_mut().cut(cut.cwnd, cut.ssthresh))
    }
}
