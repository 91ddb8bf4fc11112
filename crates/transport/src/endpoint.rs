//! One host: demultiplexes segments to connections, and tokens to the connections they join.

use core::net::{IpAddr, SocketAddr};

use units::Instant;
use wire::{Payload, Segment};

use crate::error::{ConnectError, ConnectionError, ListenError};
use crate::event::Event;
use crate::path_manager::LocalAddress;
use crate::{ConnectionConfig, ConnectionId, ConnectionStats, EndpointConfig, ListenerId, SubflowId};

/// What [`Endpoint::recv`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// The next octets of the stream.
    Data(Payload),
    /// Nothing yet.
    Pending,
    /// The peer sent all its data and everything was received.
    Finished,
}

/// One host.
///
/// | kind | methods |
/// |---|---|
/// | `handle_*` | [`Self::handle_segment`], [`Self::handle_timeout`] |
/// | commands | [`Self::listen`], [`Self::accept`], [`Self::connect`], [`Self::send`], [`Self::recv`], [`Self::shutdown`], [`Self::close`], [`Self::abort`], [`Self::add_subflow`], [`Self::remove_subflow`], [`Self::set_priority`], ... |
/// | `poll_*` | [`Self::poll_transmit`], [`Self::poll_timeout`], [`Self::poll_event`] |
/// | getters | [`Self::stats`], ... |
///
/// After any `handle_*` or command, poll in this order: `poll_transmit` until it gives nothing, `poll_event` until it
/// gives nothing, then `poll_timeout`, and call `handle_timeout` at the time it names. Time only moves forward: a
/// `now` before an earlier one is a bug of the caller and asserts.
pub struct Endpoint {
    config: EndpointConfig,
}

#[expect(unused_variables, reason = "the contract stands before the engine")]
impl Endpoint {
    /// A host. Keys, nonces and initial sequence numbers grow from `seed`: on a real network draw it from the
    /// operating system.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        todo!()
    }

    /// A host for simulations, whose run is a function of `seed`.
    pub fn with_seed(config: EndpointConfig, seed: u64) -> Self {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(&seed.to_le_bytes());
        Self::new(config, octets)
    }

    /// Takes a segment from the network.
    pub fn handle_segment(&mut self, segment: Segment, now: Instant) {
        todo!()
    }

    /// Takes note of the time; harmless before [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        todo!()
    }

    /// The next segment to send, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        todo!()
    }

    /// When to call [`Self::handle_timeout`] next. May be early, never late.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        todo!()
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// Waits for connections to `local`; an unspecified address takes any.
    pub fn listen(&mut self, local: SocketAddr, config: ConnectionConfig) -> Result<ListenerId, ListenError> {
        todo!()
    }

    /// Stops listening. Established connections stay.
    pub fn close_listener(&mut self, listener: ListenerId) {
        todo!()
    }

    /// The next established connection of a listener, if any.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        todo!()
    }

    /// Opens a connection. A `local` port of zero lets the endpoint choose one.
    pub fn connect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
        now: Instant,
    ) -> Result<ConnectionId, ConnectError> {
        todo!()
    }

    /// Hands over data; gives the number of octets taken from the front, which the send buffer limits.
    pub fn send(&mut self, connection: ConnectionId, data: Payload, now: Instant) -> Result<usize, ConnectionError> {
        todo!()
    }

    /// Takes at most `max` octets of received data. One call gives one contiguous piece.
    pub fn recv(&mut self, connection: ConnectionId, max: usize, now: Instant) -> Result<Received, ConnectionError> {
        todo!()
    }

    /// Octets that [`Self::send`] would take now.
    pub fn send_capacity(&self, connection: ConnectionId) -> u64 {
        todo!()
    }

    /// Ends this side's stream (DATA_FIN, or FIN): the other direction stays open.
    pub fn shutdown(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Ends this side's stream and discards what still arrives; the connection lingers until the peer has all data.
    pub fn close(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Ends the connection at once: MP_FASTCLOSE, or RST for plain TCP.
    pub fn abort(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Forgets a connection that has closed, statistics included.
    pub fn release(&mut self, connection: ConnectionId) {
        todo!()
    }

    /// Opens a subflow (RFC 6897 TCP_MULTIPATH_ADD). A `local` port of zero lets the endpoint choose one.
    pub fn add_subflow(
        &mut self,
        connection: ConnectionId,
        local: SocketAddr,
        remote: SocketAddr,
        backup: bool,
        now: Instant,
    ) -> Result<SubflowId, ConnectError> {
        todo!()
    }

    /// Closes a subflow (RFC 6897 TCP_MULTIPATH_REMOVE); its unacknowledged data go to the others.
    pub fn remove_subflow(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Asks the peer to use a subflow as backup, or as regular again (MP_PRIO), and does so itself.
    pub fn set_priority(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        backup: bool,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Announces an address to the peer of one connection (ADD_ADDR).
    pub fn announce_address(
        &mut self,
        connection: ConnectionId,
        ip: IpAddr,
        port: Option<u16>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        todo!()
    }

    /// Withdraws an address from one connection (REMOVE_ADDR) and closes its subflows.
    pub fn withdraw_address(
        &mut self,
        connection: ConnectionId,
        ip: IpAddr,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        todo!()
    }

    /// A local address became usable: all path managers hear of it.
    pub fn add_local_address(&mut self, address: LocalAddress, now: Instant) {
        todo!()
    }

    /// A local address is gone: its subflows fail, all path managers hear of it.
    pub fn remove_local_address(&mut self, ip: IpAddr, now: Instant) {
        todo!()
    }

    /// Statistics of a connection, also after it closed.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        todo!()
    }

    /// All connections that were not released.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        core::iter::empty()
    }
}
