//! Operations of applications on a connection, apart from sending and receiving: settings, addresses, room, corks.

use core::net::SocketAddr;

use units::Instant;
use wire::Payload;

use super::Endpoint;
use crate::change::SettingsChange;
use crate::connection::Connection;
use crate::error::{ChangeError, ConnectionError};
use crate::host::Tuple;
use crate::{ConnectionConfig, ConnectionId, Hearing, ListenerId, SubflowId};

impl Endpoint {
    /// Changes settings of a connection: all of them or, on an error, none.
    ///
    /// # Errors
    /// If no connection could run with a setting's value, or the connection has ended.
    pub fn change(
        &mut self,
        connection: ConnectionId,
        change: &SettingsChange,
        now: Instant,
    ) -> Result<(), ChangeError> {
        self.with(connection, now, |connection, host| Ok(connection.change(change, host, now)))
            .unwrap_or(Err(ChangeError::UnknownConnection))
    }

    /// Returns the connection that has a subflow between these addresses and ports, open or being opened.
    pub fn by_addresses(&self, local: SocketAddr, remote: SocketAddr) -> Option<ConnectionId> {
        let slot = self.host.route(&Tuple { local, remote })?.slot;
        let place = self.slots.get(slot as usize)?;
        place.connection.is_some().then_some(ConnectionId { slot, generation: place.generation })
    }

    /// Returns the present settings of a connection.
    pub fn config(&self, connection: ConnectionId) -> Option<&ConnectionConfig> {
        self.get(connection).map(Connection::config)
    }

    /// Like [`Self::send`], and announces that more data follow at once: a segment that the data do not fill waits for
    /// them. Waiting data leave with the next data, when [`Self::send`] ends the series, at the end of the stream, or
    /// when they exceed three quarters of the send buffer.
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

    /// Inserts or removes a cork: with a cork, every segment that the data do not fill waits, as after
    /// [`Self::send_more`]. It waits without limit: an application that corks must also uncork.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn set_corked(&mut self, connection: ConnectionId, corked: bool, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.set_corked(corked))
    }

    /// Shuts down reading: waiting data and data that still arrive are discarded, but acknowledged, so the peer is not
    /// blocked. [`Self::recv`] returns the end of the stream. The sending direction stays open, and the peer is told
    /// nothing.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn shutdown_read(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.shutdown_read())
    }

    /// Returns this side's and the peer's address of a connection: those of its first subflow, even after its end.
    pub fn addresses(&self, connection: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        self.get(connection).map(Connection::addresses)
    }

    /// Returns the octets that [`Self::recv`] would return now, in however many pieces.
    pub fn readable_bytes(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::readable_bytes)
    }

    /// Returns the largest payload of one packet of a subflow, octets: what the smaller MSS of both sides leaves beside
    /// the options (RFC 6691). It may change during the connection.
    pub fn mss(&self, connection: ConnectionId, subflow: SubflowId) -> Option<u32> {
        self.get(connection)?.payload_max(subflow)
    }

    /// Returns the congestion window of a subflow, octets. For owners that look often and need nothing else.
    pub fn cwnd(&self, connection: ConnectionId, subflow: SubflowId) -> Option<u64> {
        self.get(connection)?.cwnd(subflow)
    }

    /// Returns the octets that the application has written and that neither the connection nor one of its subflows has
    /// sent; `None` for an unknown handle. For owners that look often and need nothing else.
    pub fn unsent_bytes(&self, connection: ConnectionId) -> Option<u64> {
        Some(self.get(connection)?.unsent_bytes())
    }

    /// Returns a short report on what a subflow delivers. Visits every waiting piece.
    pub fn hearing(&self, connection: ConnectionId, subflow: SubflowId) -> Option<Hearing> {
        self.get(connection)?.hearing(subflow)
    }

    /// Asks the peer for a sign of life on a subflow, which [`Self::hearing`] then reports. Sends nothing while data
    /// are outstanding, because they ask by themselves.
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

    /// Returns the number of connections that [`Self::accept`] would return now.
    pub fn pending_accepts(&self, listener: ListenerId) -> usize {
        self.listeners.get(&listener).map_or(0, |listener| listener.queue.len())
    }
}
