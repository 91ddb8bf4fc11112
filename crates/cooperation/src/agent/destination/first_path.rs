//! The connection's first subflow where relays acknowledge at once.
//!
//! Relays splice subflows that join; the first does not, because its handshake carries the keys. It passes its relay as IP.
//! Once the connection may have more, a spliced subflow over the same relay takes its place, and it stays as backup.

use core::net::{IpAddr, SocketAddr};

use transport::{ConnectionId, Endpoint, Event, SubflowId};
use units::Instant;

/// The number of a connection's first subflow.
pub(super) const FIRST: SubflowId = SubflowId(0);

/// Joins over the first subflow's path, for connections whose relays are not selected.
pub(super) struct FirstPath {
    local: IpAddr,
    source: SocketAddr,
}

impl FirstPath {
    /// For connections from `local` to `source`.
    pub fn new(local: IpAddr, source: SocketAddr) -> Self {
        Self { local, source }
    }

    /// The path from `old` begins at `new`.
    pub fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        if self.local == old {
            self.local = new;
        }
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::FullyEstablished(connection) => {
                // A refusal leaves the connection on the subflow that it has.
                let _ = endpoint.add_subflow(*connection, SocketAddr::new(self.local, 0), self.source, false, now);
            }
            Event::SubflowEstablished { connection, subflow, local, .. }
                if *subflow != FIRST && local.ip() == self.local =>
            {
                retire_first(endpoint, *connection, now);
            }
            _ => {}
        }
    }
}

/// A spliced subflow is there: the first becomes a backup. If it is gone already, all the better.
pub(super) fn retire_first(endpoint: &mut Endpoint, connection: ConnectionId, now: Instant) {
    let _ = endpoint.set_priority(connection, FIRST, true, now);
}
