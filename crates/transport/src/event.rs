//! What the engine tells its owner.

use core::net::SocketAddr;

use wire::mptcp::AddressId;

use crate::error::CloseReason;
use crate::{ConnectionId, ListenerId, SubflowId};

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer's connection waits in the listener's queue; take it with [`crate::Endpoint::accept`].
    Incoming(ListenerId),
    /// A connection is established.
    Connected {
        /// Which.
        connection: ConnectionId,
        /// Whether MPTCP was agreed upon; otherwise it is a plain TCP connection.
        mptcp: bool,
    },
    /// Data, or the end of the stream, can be received.
    Readable(ConnectionId),
    /// The send buffer has room again after `send` took less than it was offered.
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
    /// A subflow is gone.
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
    /// The peer announced an address.
    AddressAnnounced {
        /// To whom.
        connection: ConnectionId,
        /// Its identifier.
        address_id: AddressId,
        /// The address.
        address: SocketAddr,
    },
    /// The peer withdrew an address.
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
