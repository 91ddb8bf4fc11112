//! Sends the data missing at the head of the stream again on an idle subflow, as in Linux
//! ([`crate::era::Era::idle_reinjection`]).
//!
//! A timer of the data level starts with the first data, and restarts with each DATA_ACK that advances. It runs for
//! the longest time that a subflow's own timer has left. When it fires and a subflow is idle (no data outstanding or
//! unsent), the engine schedules what was sent of the first fragment that the peer lacks, for subflows other than its
//! carrier, which continues too. The scheduler `linux` prefers idle subflows to all others. If all subflows are at
//! work, nothing happens.
//!
//! Source: Linux 6.18 (`mptcp_retransmit_timer`, `mptcp_subflow_get_retrans`), as `nstat` counts it;
//! docs/decisions/0040.

use units::{Duration, Instant};

use super::{Connection, Subflow};
use crate::era::FRAGMENT_BYTES;
use crate::observation::ReinjectionCause;

/// Time-out if no subflow has a running timer (`TCP_RTO_MIN`).
const TIMEOUT_MIN: Duration = Duration::from_millis(200);

impl Connection {
    /// Restarts the timer: the first data were sent, a DATA_ACK advanced, or the timer fired.
    pub(super) fn rearm_idle_timer(&mut self, now: Instant) {
        let is_wanted =
            self.config.era.idle_reinjection && self.config.era.reinjection && self.is_mptcp() && !self.is_closed();
        let runs = is_wanted && self.sender.next != self.sender.buffer.start();
        self.idle_timer = if runs { now + self.longest_time_to_repair(now) } else { Instant::FAR_FUTURE };
    }

    /// Returns the longest time that a subflow's own timer has left.
    fn longest_time_to_repair(&self, now: Instant) -> Duration {
        let living = self.subflows.iter().filter(|subflow| subflow.is_usable() && !subflow.is_stale());
        let longest = living.filter_map(|subflow| subflow.tcb.time_to_repair(now)).max();
        longest.filter(|left| !left.is_zero()).unwrap_or(TIMEOUT_MIN)
    }

    pub(super) fn on_idle_timeout(&mut self, now: Instant) {
        let owes_nothing = |subflow: &Subflow| {
            subflow.is_usable()
                && !subflow.is_backup()
                && !subflow.tcb.has_outstanding()
                && subflow.tcb.unsent_bytes() == 0
        };
        if self.subflows.iter().any(owes_nothing) {
            let start = self.sender.buffer.start();
            let into_fragment = start.since(self.sender.first) % FRAGMENT_BYTES;
            let end = self.sender.next.min(start + (FRAGMENT_BYTES - into_fragment));
            let carrier = self
                .carriers
                .of_first(start)
                .filter(|id| self.subflows.get(*id).is_some_and(|subflow| !owes_nothing(subflow)));
            self.reinjection.push(start, end, carrier, ReinjectionCause::SubflowIdle);
        }
        self.rearm_idle_timer(now);
    }
}
