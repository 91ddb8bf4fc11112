//! What the engine tells its owner.

use core::net::SocketAddr;
use std::collections::VecDeque;

use wire::mptcp::AddressId;

use crate::error::CloseReason;
use crate::{ConnectionId, ListenerId, SubflowId};

/// Something happened to a connection.
///
/// An owner that opens a connection hears of it in this order: [`Self::Connected`], [`Self::SubflowEstablished`] for the
/// first subflow, and [`Self::FullyEstablished`] once the peer has confirmed MPTCP. One that accepts connections hears
/// [`Self::Incoming`] and no `Connected`: whether it is MPTCP, [`crate::Endpoint::stats`] tells. The first subflow's
/// `SubflowEstablished`, and `FullyEstablished`, come before `Incoming`, because an accepted connection is ready for
/// everything. An owner need not note what it hears of connections that it does not know yet.
///
/// # How many wait
/// A peer cannot make unpolled events pile up. Whatever can happen again only after the owner has acted (reading, say)
/// waits once for each connection. Of [`Self::PriorityChanged`] the latest word on each subflow waits, of
/// [`Self::AddressAnnounced`] and [`Self::AddressWithdrawn`] the latest word on each of the 256 identifiers. A subflow
/// of the peer counts when it is established, which takes an answer from this side: no more than
/// [`crate::ConnectionConfig::subflows_max`] can come between two rounds of [`crate::Endpoint::poll_transmit`], and
/// each is heard of twice.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer's connection waits in the listener's queue; take it with [`crate::Endpoint::accept`].
    Incoming(ListenerId),
    /// A connection that this side opened is established. Of accepted ones [`Self::Incoming`] tells.
    Connected {
        /// Which.
        connection: ConnectionId,
        /// Whether MPTCP was agreed upon; otherwise it is a plain TCP connection.
        mptcp: bool,
    },
    /// The peer has shown that it speaks MPTCP on this connection (RFC 8684 section 3.1): from now on subflows can be
    /// added ([`crate::Endpoint::add_subflow`]) and addresses announced. At most once for each connection; never, if it
    /// is plain TCP. A connection that was accepted is fully established from the start.
    FullyEstablished(ConnectionId),
    /// Data, or the end of the stream, can be received.
    Readable(ConnectionId),
    /// There is room again, in the send buffer and for octets that are not sent yet, after `send` took less than it was offered.
    Writable(ConnectionId),
    /// The peer sent all its data (DATA_FIN or FIN).
    PeerFinished(ConnectionId),
    /// Everything sent, the end of the stream included, is acknowledged.
    AllAcknowledged(ConnectionId),
    /// MPTCP was given up; the connection goes on as plain TCP (RFC 8684 section 3.7).
    FellBack(ConnectionId),
    /// A subflow is ready to carry data.
    SubflowEstablished {
        /// Whose.
        connection: ConnectionId,
        /// Which.
        subflow: SubflowId,
        /// This side of it.
        local: SocketAddr,
        /// The peer's side.
        remote: SocketAddr,
    },
    /// A subflow is gone, or an attempt of this side to open one has failed. Attempts of the peer that fail are silent.
    SubflowClosed {
        /// Whose.
        connection: ConnectionId,
        /// Which.
        subflow: SubflowId,
        /// Why.
        reason: CloseReason,
    },
    /// The peer changed a subflow's priority (MP_PRIO).
    PriorityChanged {
        /// Whose.
        connection: ConnectionId,
        /// Which.
        subflow: SubflowId,
        /// Backup or regular.
        backup: bool,
    },
    /// The peer announced an address, instead of whatever the identifier stood for before.
    AddressAnnounced {
        /// To whom.
        connection: ConnectionId,
        /// Its identifier.
        address_id: AddressId,
        /// The address.
        address: SocketAddr,
    },
    /// The peer withdrew an address, which the owner may not have heard of if it was announced a moment ago.
    AddressWithdrawn {
        /// From whom.
        connection: ConnectionId,
        /// Its identifier.
        address_id: AddressId,
    },
    /// The connection is over; its statistics stay until [`crate::Endpoint::release`].
    Closed {
        /// Which.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
}

/// An event that may still wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Events that nobody has polled yet.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: VecDeque<Event>,
    /// Events polled so far: the number of the first that waits.
    polled: u64,
}

impl EventQueue {
    pub(crate) fn push_back(&mut self, event: Event) -> Ticket {
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

    /// Says `event` in place of an earlier word on the same matter, if that still waits.
    pub(crate) fn replace_or_push(&mut self, earlier: Option<Ticket>, event: Event) -> Ticket {
        let Some(ticket) = earlier.filter(|ticket| self.waits(*ticket)) else { return self.push_back(event) };
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
