//! The connection's first subflow if relays acknowledge at once.
//!
//! Relays splice subflows that join, but not the first one, because its handshake carries the keys: its packets are
//! routed through its relay. Once the connection may have more subflows, a spliced one over the same relay replaces it,
//! and it stays as backup.

use core::net::{IpAddr, SocketAddr};

use transport::error::ConnectError;
use transport::{ConnectionId, Endpoint, Event, SubflowId};
use units::Instant;

use super::DestinationEvent;
use super::event::Events;

/// The first subflow of a connection.
pub(super) const FIRST: SubflowId = SubflowId(0);

/// Adds a subflow over the first subflow's path, for connections without relay selection.
pub(super) struct FirstPath {
    local: IpAddr,
}

impl FirstPath {
    /// Creates it for connections from `local`.
    pub fn new(local: IpAddr) -> Self {
        Self { local }
    }

    /// Moves the path from address `old` to `new`.
    pub fn move_to(&mut self, old: IpAddr, new: IpAddr) {
        if self.local == old {
            self.local = new;
        }
    }

    pub fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant, events: &mut Events) {
        match event {
            Event::FullyEstablished(connection) => {
                let Some((_, peer)) = endpoint.addresses(*connection) else { return };
                let local = SocketAddr::new(self.local, 0);
                // If the join is refused, the connection stays on its subflow.
                let joined = endpoint.add_subflow(*connection, local, peer, false, now);
                if let Err(ConnectError::JoinsForbidden(_)) = joined {
                    events.push_back(DestinationEvent::JoinsForbidden);
                }
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

/// Makes the first subflow a backup, because a spliced one is established. It may be gone already.
pub(super) fn retire_first(endpoint: &mut Endpoint, connection: ConnectionId, now: Instant) {
    let _ = endpoint.set_priority(connection, FIRST, true, now);
}
