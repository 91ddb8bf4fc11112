//! The subflows as paths under one controller, and what the owner of the connection tells that controller or does to
//! windows directly.

use arrayvec::ArrayVec;

use super::subflow::Subflow;
use super::{Connection, SUBFLOWS_CAP};
use crate::SubflowId;
use crate::congestion::{Competition, CongestionController, PathView, Paths, WindowSet};
use crate::control_loop::{self, ControlledPaths, Rule, path_view};
use crate::error::ConnectionError;
use crate::observation::{CutCause, Occurrence};
use crate::tcp::Tcb;

impl ControlledPaths for Connection {
    fn tcb(&mut self, id: SubflowId) -> &mut Tcb {
        &mut self.subflows[id].tcb
    }

    fn controller(&mut self) -> &mut dyn CongestionController {
        self.policies.congestion.as_mut()
    }

    fn with_paths<T>(
        &mut self,
        asked: SubflowId,
        ask: impl FnOnce(&mut dyn CongestionController, Paths<'_>) -> T,
    ) -> T {
        let una = self.sender.buffer.start();
        self.with_those(|subflow| subflow.id == asked || !subflow.is_left_out(una), ask)
    }

    fn is_admitted(&self, id: SubflowId) -> bool {
        self.subflows.get(id).is_some_and(|subflow| subflow.admitted)
    }

    /// The peer has a say only if both sides have agreed on MPTCP-rec.
    fn rule(&self, id: SubflowId) -> Rule {
        if self.rate_control.is_none() { Rule::Controller } else { self.rule_of_receiver(id) }
    }
}

impl Connection {
    /// Calls `ask` with the controller and those of its paths for which `are_seen` holds.
    fn with_those<T>(
        &mut self,
        are_seen: impl Fn(&Subflow) -> bool,
        ask: impl FnOnce(&mut dyn CongestionController, Paths<'_>) -> T,
    ) -> T {
        // Filled in place: `collect` would build it elsewhere and copy it, and this happens with every ACK.
        let mut views = ArrayVec::<PathView, SUBFLOWS_CAP>::new();
        for subflow in self.subflows.iter().filter(|subflow| subflow.is_controlled() && are_seen(subflow)) {
            views.push(path_view(subflow.id, &subflow.tcb, subflow.competition));
        }
        ask(self.policies.congestion.as_mut(), Paths(&views))
    }

    /// Introduces the subflows to another controller, which takes over their windows as they are.
    pub(super) fn replace_controller(&mut self, controller: Box<dyn CongestionController>) {
        let name = controller.name();
        self.watch.tell(|| Occurrence::ControllerChanged { name });
        self.policies.congestion = controller;
        self.with_those(|_| true, |congestion, paths| congestion.take_over(paths));
        let controlled = self.subflows.iter().filter(|subflow| subflow.is_controlled());
        let ids: ArrayVec<SubflowId, SUBFLOWS_CAP> = controlled.map(|subflow| subflow.id).collect();
        for id in ids {
            control_loop::follow_pace(self, id);
        }
    }

    /// Sets a subflow's competition, for the controller to see from now on.
    pub(crate) fn set_competition(
        &mut self,
        id: SubflowId,
        competition: Option<Competition>,
    ) -> Result<(), ConnectionError> {
        self.subflows.get_mut(id).ok_or(ConnectionError::UnknownSubflow)?.competition = competition;
        Ok(())
    }

    /// Limits what a subflow holds below the size of its buffer, if data are bound early; `None` removes the limit.
    pub(crate) fn limit_held(&mut self, id: SubflowId, held_max_bytes: Option<u64>) -> Result<(), ConnectionError> {
        self.subflows.get_mut(id).ok_or(ConnectionError::UnknownSubflow)?.held_max_bytes = held_max_bytes;
        Ok(())
    }

    /// Lowers a subflow's window; returns whether anything changed.
    pub(crate) fn cut_window(&mut self, id: SubflowId, cut: WindowSet) -> Result<bool, ConnectionError> {
        let subflow = self.subflows.get_mut(id).ok_or(ConnectionError::UnknownSubflow)?;
        Ok(subflow.tcb.cut_window(cut.cwnd, cut.ssthresh, CutCause::Owner))
    }
}
