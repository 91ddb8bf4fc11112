//! What the head of the stream waits for goes out again on a subflow that owes nothing, as in Linux
//! ([`crate::era::Era::idle_reinjection`]).
//!
//! A timer of the data level starts with the first data and anew with each DATA_ACK that moves on, for as long as the subflows' own
//! timers have left. When it fires and a subflow owes nothing, what was sent of the first fragment of the stream that the peer
//! lacks is scheduled again, for others than its carrier, who goes on; the scheduler `linux` takes a subflow that owes nothing
//! before all others. With subflows at work everywhere nothing happens.
//!
//! Source: Linux 6.18 (`mptcp_retransmit_timer`, `mptcp_subflow_get_retrans`), as `nstat` counts it; docs/decisions/0040.

use units::{Duration, Instant};

use super::{Connection, Subflow};
use crate::era::FRAGMENT_BYTES;

/// Where no subflow has a timer running (`TCP_RTO_MIN`).
const TIMEOUT_MIN: Duration = Duration::from_millis(200);

impl Connection {
    /// The first data were sent, a DATA_ACK moved on, or the timer fired.
    pub(super) fn rearm_idle_timer(&mut self, now: Instant) {
        let is_wanted =
            self.config.era.idle_reinjection && self.config.era.reinjection && self.is_mptcp() && !self.is_closed();
        let runs = is_wanted && self.sender.next != self.sender.buffer.start();
        self.idle_timer = if runs { now + self.longest_time_to_repair(now) } else { Instant::FAR_FUTURE };
    }

    /// The longest that a subflow's own timer has left.
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
            self.reinjection.push(start, end, carrier);
        }
        self.rearm_idle_timer(now);
    }
}
