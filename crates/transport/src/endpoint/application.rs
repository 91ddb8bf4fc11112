//! What applications ask of a connection beside sending and receiving: settings, addresses, room, corks.

use core::net::SocketAddr;

use units::Instant;
use wire::Payload;

use super::Endpoint;
use crate::change::SettingsChange;
use crate::connection::Connection;
use crate::error::{ChangeError, ConnectionError};
use crate::{ConnectionConfig, ConnectionId, Hearing, ListenerId, SubflowId};

impl Endpoint {
    /// Changes settings of a connection, all of them or, on an error, none.
    ///
    /// # Errors
    /// If a setting has a value that no connection could run with, or the connection is over.
    pub fn change(
        &mut self,
        connection: ConnectionId,
        change: &SettingsChange,
        now: Instant,
    ) -> Result<(), ChangeError> {
        self.with(connection, now, |connection, host| Ok(connection.change(change, host, now)))
            .unwrap_or(Err(ChangeError::UnknownConnection))
    }

    /// The settings of a connection as they are now.
    pub fn config(&self, connection: ConnectionId) -> Option<&ConnectionConfig> {
        self.get(connection).map(Connection::config)
    }

    /// As [`Self::send`], and says that more will follow at once: a segment that the data do not fill waits for it. What waits
    /// goes with the next data, when [`Self::send`] ends the series, at the end of the stream, or when it is more than three
    /// quarters of the send buffer.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub fn send_more(
        &mut self,
        connection: ConnectionId,
        data: Payload,
        now: Instant,
    ) -> Result<usize, ConnectionError> {
        self.with(connection, now, |connection, _| connection.send_more(data))
    }

    /// Puts a cork in, or pulls it: with a cork every segment that the data do not fill waits, as after [`Self::send_more`]. It
    /// waits without limit: whoever corks must uncork.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn set_corked(&mut self, connection: ConnectionId, corked: bool, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.set_corked(corked))
    }

    /// Reads no more: what waits and what still arrives is discarded, and acknowledged so that the peer is not held up;
    /// [`Self::recv`] gives the end of the stream. The sending direction stays open, and the peer is told nothing.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn shutdown_read(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.shutdown_read())
    }

    /// This side's and the peer's address of a connection: those of its first subflow, also when that is gone.
    pub fn addresses(&self, connection: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        self.get(connection).map(Connection::addresses)
    }

    /// Octets that [`Self::recv`] would give now, in however many pieces.
    pub fn readable_bytes(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::readable_bytes)
    }

    /// Largest payload in octets of one packet of a subflow: what the smaller MSS of both sides leaves beside the options (RFC
    /// 6691). It may change while the connection lives.
    pub fn mss(&self, connection: ConnectionId, subflow: SubflowId) -> Option<u32> {
        self.get(connection)?.payload_max(subflow)
    }

    /// Octets that the application handed over and that were not sent yet, neither by the connection nor by a subflow that was given them;
    /// `None` for an unknown handle. For owners who look often, and want no more.
    pub fn unsent_bytes(&self, connection: ConnectionId) -> Option<u64> {
        Some(self.get(connection)?.unsent_bytes())
    }

    /// What a subflow has given and not given. Costs a look at every piece that waits.
    pub fn hearing(&self, connection: ConnectionId, subflow: SubflowId) -> Option<Hearing> {
        self.get(connection)?.hearing(subflow)
    }

    /// Asks the peer for a sign of life on a subflow, which [`Self::hearing`] then tells of. Nothing is sent where data are
    /// outstanding: they ask by themselves.
    ///
    /// # Errors
    /// If there is no such subflow.
    pub fn probe_subflow(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.probe_subflow(subflow))
    }

    /// Connections that [`Self::accept`] would give now, one after the other.
    pub fn pending_accepts(&self, listener: ListenerId) -> usize {
        self.listeners.get(&listener).map_or(0, |listener| listener.queue.len())
    }
}
