//! Operations of applications on a connection, apart from sending and receiving.

use core::net::SocketAddr;
use std::sync::Arc;

use units::Instant;
use wire::Payload;

use super::Connection;
use super::transmit::Candidates;
use crate::change::SettingsChange;
use crate::congestion;
use crate::error::{ChangeError, ConnectionError, UnusablePolicy};
use crate::host::Host;
use crate::{ConnectionConfig, scheduler};

/// Reasons to hold back data that do not fill a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cork {
    /// Held back until the application removes the cork.
    set: bool,
    /// Held back until the next data: the last data came with the announcement that more follow.
    more_follows: bool,
}

impl Connection {
    pub(crate) fn config(&self) -> &ConnectionConfig {
        &self.config
    }

    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.first_local, self.first_remote)
    }

    pub(crate) fn readable_bytes(&self) -> u64 {
        self.receiver.stream.ready_bytes()
    }

    /// Refuses commands once the connection has ended.
    pub(super) fn check_open(&self) -> Result<(), ConnectionError> {
        match self.close_reason.filter(|_| self.is_closed()) {
            Some(reason) => Err(ConnectionError::Closed(reason)),
            None => Ok(()),
        }
    }

    /// Changes all given settings or, on an error, none.
    pub(crate) fn change(&mut self, change: &SettingsChange, host: &mut Host, now: Instant) -> Result<(), ChangeError> {
        if let Some(reason) = self.close_reason.filter(|_| self.is_closed()) {
            return Err(ChangeError::Closed(reason));
        }
        let config = change.applied_to(&self.config);
        config.check()?;
        let controller = change.congestion.as_ref().map(congestion::build).transpose();
        let controller = controller.map_err(UnusablePolicy::from)?;
        let scheduler = change.scheduler.as_deref().map(scheduler::build).transpose();
        if let Some(scheduler) = scheduler.map_err(UnusablePolicy::from)? {
            self.policies.scheduler = scheduler;
        }
        if let Some(controller) = controller {
            self.replace_controller(controller);
        }
        self.adopt(Arc::new(config), host, now);
        Ok(())
    }

    fn adopt(&mut self, config: Arc<ConnectionConfig>, host: &mut Host, now: Instant) {
        // An autotuned buffer never shrinks.
        let send_buffer_bytes = self.sender.buffer.limit().max(config.first_send_buffer_bytes());
        self.sender.buffer.set_limit(send_buffer_bytes.min(config.send_buffer_bytes));
        self.receiver.stream.set_limit(config.receive_buffer_bytes);
        self.subflows.iter_mut().for_each(|subflow| subflow.tcb.adopt(&config, now));
        self.receive_buffer_max_bytes = self.receive_buffer_max_bytes.max(config.receive_buffer_bytes);
        self.config = config;
        self.tell_writable(host);
        self.announce_window_if_worthwhile();
    }

    /// Returns the settings of a subflow that joins. A window scale never changes (RFC 7323 section 2.2), so it fits the
    /// largest receive buffer so far: a buffer that was made smaller may become as large again.
    pub(super) fn settings_of_join(&self) -> Arc<ConnectionConfig> {
        let receive_buffer_bytes = self.receive_buffer_max_bytes;
        if self.config.receive_buffer_bytes == receive_buffer_bytes {
            return self.config.clone();
        }
        Arc::new(ConnectionConfig { receive_buffer_bytes, ..(*self.config).clone() })
    }

    /// Accepts data that more will follow; returns the number of octets accepted.
    pub(crate) fn send_more(&mut self, data: Payload) -> Result<usize, ConnectionError> {
        let taken = self.send(data)?;
        self.sender.cork.more_follows = true;
        Ok(taken)
    }

    pub(crate) fn set_corked(&mut self, corked: bool) -> Result<(), ConnectionError> {
        self.check_open()?;
        self.sender.cork.set = corked;
        if !corked {
            self.sender.cork.more_follows = false;
        }
        Ok(())
    }

    /// Data came without the announcement that more follow.
    pub(super) fn end_series(&mut self) {
        self.sender.cork.more_follows = false;
    }

    /// Whether `waiting` octets that do not fill a segment wait for more. They never wait if the buffer then lacks the
    /// room to report itself writable: both sides would wait.
    pub(super) fn holds_back(&self, waiting: u64) -> bool {
        let Cork { set, more_follows } = self.sender.cork;
        let limit = self.room_max();
        (set || more_follows) && !self.sender.finished && waiting <= limit - limit.div_ceil(4)
    }

    /// Returns how many of the last `len` waiting octets to send in one piece: only whole segments with a cork, or if
    /// the remainder must wait under Nagle's algorithm.
    pub(super) fn uncorked_part(&self, len: u64, candidates: &Candidates) -> u64 {
        let partial = len % candidates.mss();
        let waits = partial > 0 && partial < len && (self.holds_back(partial) || self.waits_for_small());
        if waits { len - partial } else { len }
    }

    /// Shuts down reading: nobody will read what still arrives.
    pub(crate) fn shutdown_read(&mut self) -> Result<(), ConnectionError> {
        self.check_open()?;
        self.receiver.shut = true;
        self.receiver.stream.discard_ready();
        self.announce_window_if_worthwhile();
        Ok(())
    }
}
