//! Settings that change during the life of a TCB.

use std::sync::Arc;

use units::Instant;

use super::{Tcb, Timer};
use crate::ConnectionConfig;
use crate::state::State;

impl Tcb {
    /// Adopts `config`, which differs only in what [`crate::SettingsChange`] names.
    pub(crate) fn adopt(&mut self, config: &Arc<ConnectionConfig>, now: Instant) {
        let mut config = config.clone();
        if matches!(self.state, State::SynSent | State::SynReceived) {
            // The SYN has announced the window scale, and must repeat it if retransmitted.
            let receive_buffer_bytes = self.config.receive_buffer_bytes;
            config = Arc::new(ConnectionConfig { receive_buffer_bytes, ..(*config).clone() });
        }
        let before = core::mem::replace(&mut self.config, config);
        if self.state.is_synchronized() {
            self.rtt.leave_room_within(self.config.user_timeout);
        }
        self.rearm_user_timeout(&before, now);
        let is_over = self.state == State::TimeWait;
        if before.keep_alive != self.config.keep_alive && self.state.is_synchronized() && !is_over {
            self.rearm_keep_alive(now);
        }
    }

    fn rearm_user_timeout(&mut self, before: &ConnectionConfig, now: Instant) {
        if before.user_timeout == self.config.user_timeout {
            return;
        }
        let waiting_since = match self.timers.is_set(Timer::User) {
            true => self.timers.deadline(Timer::User).saturating_sub(before.user_timeout),
            // The old time-out was so long that it counted as never.
            false if self.has_outstanding() => now,
            false => return,
        };
        self.timers.set(Timer::User, waiting_since + self.config.user_timeout);
    }

    fn rearm_keep_alive(&mut self, now: Instant) {
        self.keep_alive_probes = 0;
        match self.config.keep_alive {
            Some(idle) => self.timers.set(Timer::KeepAlive, (self.last_heard_at + idle).max(now)),
            None => self.timers.stop(Timer::KeepAlive),
        }
    }
}
