//! Reactions that schedulers request when the peer's window, not a congestion window, holds back a subflow (NSDI 2012,
//! section 4.2).

use units::{Dsn, Duration, Instant};

use super::Connection;
use crate::SubflowId;
use crate::observation::{CutCause, ReinjectionCause};
use crate::scheduler::{Remedy, SubflowView};

/// Past reactions to a blocked window.
#[derive(Debug, Default)]
pub(super) struct BlockedWindow {
    /// First octet of the window examined last: one examination per window suffices.
    examined: Option<Dsn>,
    /// Time of each subflow's last penalty; empty for connections without penalties.
    penalties: Vec<(SubflowId, Instant)>,
}

impl BlockedWindow {
    /// Records a penalty, unless `subflow` had one within `rtt`.
    fn may_penalize(&mut self, subflow: SubflowId, rtt: Duration, now: Instant) -> bool {
        /// Longer than any round trip: subflows come and go, and this list must not grow with them.
        const MEMORY: Duration = Duration::from_secs(60);
        let lasts = |id: SubflowId| if id == subflow { rtt } else { MEMORY };
        self.penalties.retain(|(id, at)| now.saturating_since(*at) < lasts(*id));
        let due = self.penalties.iter().all(|(id, _)| *id != subflow);
        if due {
            self.penalties.push((subflow, now));
        }
        due
    }

    /// Returns when `subflow` was last penalised, if that is still known.
    pub(super) fn penalized_at(&self, subflow: SubflowId) -> Option<Instant> {
        self.penalties.iter().find(|(id, _)| *id == subflow).map(|(_, at)| *at)
    }
}

impl Connection {
    /// The window has no room for the waiting data: applies the scheduler's remedy, once for each start of the window.
    /// Returns true if there is now something to schedule.
    pub(super) fn relieve_window(&mut self, candidates: &[SubflowView], now: Instant) -> bool {
        let remedy = self.policies.scheduler.when_window_blocks();
        let start = self.sender.buffer.start();
        let nothing_new = self.blocked_window.examined == Some(start) || start == self.sender.next;
        if remedy == Remedy::Wait || !self.config.era.reinjection || !self.is_mptcp() || nothing_new {
            return false;
        }
        let Some(rtt_fast) = candidates.iter().filter(|view| view.has_room).filter_map(|view| view.srtt).min() else {
            return false;
        };
        self.blocked_window.examined = Some(start);
        let Some((holder, end)) = self.holder_of(start) else { return false };
        let subflow = &self.subflows[holder];
        let cwnd = subflow.tcb.window().cwnd();
        let Some(rtt_slow) = subflow.srtt(now).filter(|rtt| *rtt > rtt_fast) else { return false };
        if remedy == Remedy::RetransmitAndPenalize && self.blocked_window.may_penalize(holder, rtt_slow, now) {
            self.subflows[holder].tcb.cut_window(cwnd / 2, cwnd / 2, CutCause::Penalty);
        }
        self.reinjection.push(start, end, Some(holder), ReinjectionCause::WindowBlocked);
        true
    }

    /// Returns the subflow on which the octet at `dsn` is in flight, and the end of its segment.
    fn holder_of(&self, dsn: Dsn) -> Option<(SubflowId, Dsn)> {
        self.subflows.iter().filter(|subflow| subflow.is_usable()).find_map(|subflow| {
            let ends =
                subflow.tcb.unacknowledged().map(|(label, payload)| (label.dsn(), label.dsn() + payload.len() as u64));
            let mut holding = ends.filter(|(start, end)| start.before_or_at(dsn) && end.after(dsn));
            holding.next().map(|(_, end)| (subflow.id, end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_penalty_is_due_once_a_round_trip() {
        let mut blocked = BlockedWindow::default();
        let mut penalized =
            |id, at_ms| blocked.may_penalize(SubflowId(id), Duration::from_millis(100), Instant::from_millis(at_ms));
        assert!(penalized(1, 1000));
        assert!(!penalized(1, 1099));
        assert!(penalized(2, 1099));
        assert!(penalized(1, 1100));
        assert!(!penalized(1, 1199));
        assert_eq!(blocked.penalties.len(), 2);
        assert!(blocked.may_penalize(SubflowId(3), Duration::from_millis(100), Instant::from_secs(62)));
        assert_eq!(blocked.penalties.len(), 1, "those of subflows that may be gone are forgotten");
    }
}
