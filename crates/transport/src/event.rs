//! Events from the engine to its owner.

use core::net::SocketAddr;
use std::collections::VecDeque;

use wire::mptcp::AddressId;

use crate::error::CloseReason;
use crate::observation::Observers;
use crate::{ConnectionId, ListenerId, SubflowId};

/// An event on a connection.
///
/// An owner that opens a connection receives, in this order, [`Self::Connected`], [`Self::SubflowEstablished`] for the
/// first subflow, and [`Self::FullyEstablished`] once the peer has confirmed MPTCP. An owner that accepts connections
/// receives [`Self::Incoming`] and no `Connected`; [`crate::Endpoint::stats`] tells whether the connection is MPTCP.
/// The first subflow's `SubflowEstablished`, and `FullyEstablished`, come before `Incoming`, because an accepted
/// connection is ready for everything. An owner may ignore events on connections that it does not know yet.
///
/// # How many wait
/// A peer cannot make unpolled events pile up. An event that can recur only after the owner has acted (reading, for
/// example) waits once per connection. For [`Self::PriorityChanged`] the latest event on each subflow waits, for
/// [`Self::AddressAnnounced`] and [`Self::AddressWithdrawn`] the latest event on each of the 256 identifiers. A subflow
/// of the peer counts when it is established, which takes an answer from this side: at most
/// [`crate::ConnectionConfig::subflows_max`] can come between two rounds of [`crate::Endpoint::poll_transmit`], and
/// each causes two events.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer's connection waits in the listener's queue; take it with [`crate::Endpoint::accept`].
    Incoming(ListenerId),
    /// A connection that this side opened is established. For accepted ones there is [`Self::Incoming`].
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// Whether MPTCP was agreed on; otherwise it is a plain TCP connection.
        mptcp: bool,
    },
    /// The peer has shown that it speaks MPTCP on this connection (RFC 8684 section 3.1): from now on, subflows can be
    /// added ([`crate::Endpoint::add_subflow`]) and addresses announced. At most once per connection; never for plain
    /// TCP. An accepted connection is fully established from the start.
    FullyEstablished(ConnectionId),
    /// Data, or the end of the stream, can be received.
    Readable(ConnectionId),
    /// After `send` took less than offered, there is room again in the send buffer and for unsent octets.
    Writable(ConnectionId),
    /// The peer has sent all its data (DATA_FIN or FIN).
    PeerFinished(ConnectionId),
    /// All data sent are acknowledged, including the end of the stream.
    AllAcknowledged(ConnectionId),
    /// MPTCP was given up; the connection continues as plain TCP (RFC 8684 section 3.7).
    FellBack(ConnectionId),
    /// A subflow is ready to carry data.
    SubflowEstablished {
        /// Its connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// This side's address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
    },
    /// A subflow has ended, or an attempt of this side to open one has failed. Failed attempts of the peer are silent.
    SubflowClosed {
        /// Its connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Why it ended.
        reason: CloseReason,
    },
    /// The peer changed a subflow's priority (MP_PRIO).
    PriorityChanged {
        /// Its connection.
        connection: ConnectionId,
        /// The subflow.
        subflow: SubflowId,
        /// Whether it is now a backup.
        backup: bool,
    },
    /// The peer announced an address, or another port of one that it has announced. An identifier names one address
    /// until [`Self::AddressWithdrawn`]: another address under it is neither heard nor echoed (RFC 8684 section 3.4.1).
    AddressAnnounced {
        /// The connection.
        connection: ConnectionId,
        /// Identifier of the address.
        address_id: AddressId,
        /// The address.
        address: SocketAddr,
    },
    /// The peer withdrew an address; its announcement may be missing if it came shortly before.
    AddressWithdrawn {
        /// The connection.
        connection: ConnectionId,
        /// Identifier of the address.
        address_id: AddressId,
    },
    /// The connection has ended; its statistics remain until [`crate::Endpoint::release`].
    Closed {
        /// The connection.
        connection: ConnectionId,
        /// Why it ended.
        reason: CloseReason,
    },
}

/// Identifies an event that may still wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Events that have not been polled yet.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: VecDeque<Event>,
    /// Number of events polled so far, which is the number of the first that waits.
    polled: u64,
    observers: Observers,
}

impl EventQueue {
    /// Sets who sees every event as it comes.
    pub(crate) fn set_observers(&mut self, observers: Observers) {
        self.observers = observers;
    }

    pub(crate) fn push_back(&mut self, event: Event) -> Ticket {
        self.observers.notify(&event);
        self.waiting.push_back(event);
        Ticket(self.polled + self.waiting.len() as u64 - 1)
    }

    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front();
        self.polled += u64::from(event.is_some());
        event
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the event has not been polled.
    pub(crate) fn waits(&self, ticket: Ticket) -> bool {
        ticket.0 >= self.polled
    }

    /// Replaces an earlier event on the same matter by `event` if it still waits; otherwise appends `event`.
    pub(crate) fn replace_or_push(&mut self, earlier: Option<Ticket>, event: Event) -> Ticket {
        let Some(ticket) = earlier.filter(|ticket| self.waits(*ticket)) else { return self.push_back(event) };
        self.observers.notify(&event);
        self.waiting[units::narrow::usize_from(ticket.0 - self.polled)] = event;
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_word_replaces_what_nobody_has_polled() {
        let said = |n| Event::Incoming(ListenerId(n));
        let mut queue = EventQueue::default();
        queue.push_back(said(1));
        let ticket = queue.push_back(said(2));
        queue.push_back(said(3));
        assert_eq!(queue.replace_or_push(Some(ticket), said(4)), ticket);
        assert_eq!([queue.pop_front(), queue.pop_front()], [Some(said(1)), Some(said(4))]);
        assert!(!queue.waits(ticket));
        let again = queue.replace_or_push(Some(ticket), said(5));
        assert_eq!([queue.pop_front(), queue.pop_front(), queue.pop_front()], [Some(said(3)), Some(said(5)), None]);
        assert_ne!(again, ticket);
    }
}
