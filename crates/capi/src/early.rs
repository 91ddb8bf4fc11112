//! What happens to connections before the program accepts them.
//!
//! The engine tells of a peer's connection before the program knows it: its first subflow is established, and data, or
//! its end, may come with that. The program would have to keep such events for numbers that it has not seen yet, and a
//! readable connection is told of only once. So they wait here until the program has accepted the connection.

use std::collections::{BTreeMap, VecDeque};

use transport::{ConnectionId, Event};

/// Events of connections that the program did not know when they happened.
#[derive(Default)]
pub(crate) struct EarlyEvents {
    waiting: BTreeMap<ConnectionId, Vec<Event>>,
    /// Events of connections that the program has accepted.
    due: VecDeque<Event>,
}

impl EarlyEvents {
    /// Returns the next event of an accepted connection. It is older than all that the engine has not told yet.
    pub fn poll(&mut self) -> Option<Event> {
        self.due.pop_front()
    }

    /// Keeps an event until the connection is accepted. `exists` tells which connections still do; some are never
    /// accepted.
    ///
    /// A peer cannot pile up events: what it has ended itself, such as a subflow, is left out, and so is what a later
    /// event replaces.
    pub fn keep(&mut self, connection: ConnectionId, event: Event, exists: impl Fn(ConnectionId) -> bool) {
        if !self.waiting.contains_key(&connection) {
            self.waiting.retain(|other, _| exists(*other));
        }
        let events = self.waiting.entry(connection).or_default();
        events.retain(|earlier| !is_obsolete(earlier, &event));
        if !matches!(event, Event::SubflowClosed { .. } | Event::AddressWithdrawn { .. }) {
            events.push(event);
        }
    }

    /// Has the program told what has happened to a connection, which it has just accepted.
    pub fn accept(&mut self, connection: ConnectionId) {
        self.due.extend(self.waiting.remove(&connection).into_iter().flatten());
    }
}

/// Returns whether `later`, of the same connection, makes `earlier` obsolete.
fn is_obsolete(earlier: &Event, later: &Event) -> bool {
    match (earlier, later) {
        (
            Event::SubflowEstablished { subflow, .. } | Event::PriorityChanged { subflow, .. },
            Event::SubflowClosed { subflow: closed, .. },
        ) => subflow == closed,
        (Event::PriorityChanged { subflow, .. }, Event::PriorityChanged { subflow: changed, .. }) => subflow == changed,
        (
            Event::AddressAnnounced { address_id, .. },
            Event::AddressAnnounced { address_id: other, .. } | Event::AddressWithdrawn { address_id: other, .. },
        ) => address_id == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use transport::error::CloseReason;
    use transport::{ConnectionConfig, Endpoint, EndpointConfig, SubflowId};
    use wire::mptcp::AddressId;

    use super::*;

    /// Returns two connections.
    fn connections() -> [ConnectionId; 2] {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let (local, remote) = ("10.0.0.1:0".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        let mut open = || endpoint.connect(local, remote, ConnectionConfig::default(), units::Instant::ZERO).unwrap();
        [open(), open()]
    }

    fn established(connection: ConnectionId, subflow: u16) -> Event {
        let (local, remote) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:1025".parse().unwrap());
        Event::SubflowEstablished { connection, subflow: SubflowId(subflow), local, remote }
    }

    fn announced(connection: ConnectionId, address_id: u8) -> Event {
        let address = "10.0.0.2:1025".parse().unwrap();
        Event::AddressAnnounced { connection, address_id: AddressId(address_id), address }
    }

    fn all_due(early: &mut EarlyEvents) -> Vec<Event> {
        core::iter::from_fn(|| early.poll()).collect()
    }

    #[test]
    fn events_wait_in_their_order_for_their_connection_to_be_accepted() {
        let (mut early, [one, other]) = (EarlyEvents::default(), connections());
        let closed = Event::Closed { connection: one, reason: CloseReason::Reset };
        early.keep(one, established(one, 0), |_| true);
        early.keep(other, established(other, 0), |_| true);
        early.keep(one, Event::Readable(one), |_| true);
        early.keep(one, closed.clone(), |_| true);
        assert_eq!(early.poll(), None);
        early.accept(one);
        assert_eq!(all_due(&mut early), [established(one, 0), Event::Readable(one), closed]);
        early.accept(other);
        assert_eq!(all_due(&mut early), [established(other, 0)]);
    }

    #[test]
    fn a_peer_cannot_pile_up_events() {
        let (mut early, [connection, _]) = (EarlyEvents::default(), connections());
        let reason = CloseReason::Reset;
        for subflow in 0..1000 {
            let [number, kept] = [SubflowId(subflow), SubflowId(0)];
            early.keep(connection, established(connection, subflow), |_| true);
            let backup = subflow % 2 == 0;
            early.keep(connection, Event::PriorityChanged { connection, subflow: kept, backup }, |_| true);
            early.keep(connection, Event::PriorityChanged { connection, subflow: number, backup }, |_| true);
            early.keep(connection, announced(connection, 1), |_| true);
            early.keep(connection, announced(connection, 2), |_| true);
            let address_id = AddressId(2);
            early.keep(connection, Event::AddressWithdrawn { connection, address_id }, |_| true);
            if number != kept {
                early.keep(connection, Event::SubflowClosed { connection, subflow: number, reason }, |_| true);
            }
        }
        early.accept(connection);
        let priority = Event::PriorityChanged { connection, subflow: SubflowId(0), backup: false };
        assert_eq!(all_due(&mut early), [established(connection, 0), priority, announced(connection, 1)]);
    }

    #[test]
    fn nothing_waits_for_a_connection_that_is_gone() {
        let (mut early, [gone, other]) = (EarlyEvents::default(), connections());
        early.keep(gone, established(gone, 0), |_| true);
        early.keep(other, established(other, 0), |connection| connection != gone);
        assert_eq!(early.waiting.len(), 1);
    }
}
