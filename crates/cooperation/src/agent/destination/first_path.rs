//! The connection's first subflow if relays acknowledge at once.
//!
//! Relays splice subflows that join, but not the first one, because its handshake carries the keys: its packets are
//! routed through its relay. Once the connection may have more subflows, a spliced one over the same relay replaces it,
//! and it stays as backup.

use core::net::SocketAddr;

use transport::error::ConnectError;
use transport::{ConnectionId, Endpoint, Event, SubflowId};
use units::Instant;

use super::event::Events;
use super::{DestinationEvent, DestinationSettings};

/// The first subflow of a connection.
pub(super) const FIRST: SubflowId = SubflowId(0);

/// Adds a subflow over the first subflow's path, for connections without relay selection.
pub(super) struct FirstPath;

impl FirstPath {
    pub fn handle_event(
        &self,
        event: &Event,
        all: &DestinationSettings,
        endpoint: &mut Endpoint,
        now: Instant,
        events: &mut Events,
    ) {
        match event {
            Event::FullyEstablished(connection) => {
                let Some((own, peer)) = endpoint.addresses(*connection) else { return };
                // Connections may be bound to an address that leads to no relay.
                if all.relay_at(own.ip()).is_none() {
                    return;
                }
                // If the join is refused, the connection stays on its subflow.
                let joined = endpoint.add_subflow(*connection, SocketAddr::new(own.ip(), 0), peer, false, now);
                if let Err(ConnectError::JoinsForbidden(_)) = joined {
                    events.push_back(DestinationEvent::JoinsForbidden);
                }
            }
            Event::SubflowEstablished { connection, subflow, local, .. } if *subflow != FIRST => {
                let first = endpoint.addresses(*connection).map(|(own, _)| own.ip());
                if first == Some(local.ip()) && all.relay_at(local.ip()).is_some() {
                    retire_first(endpoint, *connection, now);
                }
            }
            _ => {}
        }
    }
}

/// Makes the first subflow a backup, because a spliced one is established. It may be gone already.
pub(super) fn retire_first(endpoint: &mut Endpoint, connection: ConnectionId, now: Instant) {
    let _ = endpoint.set_priority(connection, FIRST, true, now);
}
