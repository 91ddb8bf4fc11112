//! One host: assigns segments to connections, and tokens to the connections that they join.

mod application;
#[cfg(test)]
mod bad_policies;
mod expectation;
mod lingering;
mod local_address;
mod passive_open;
mod strays;

use core::borrow::BorrowMut;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use passive_open::Listener;
pub use strays::Stray;
use units::narrow::u32_from;
use units::{Deadlines, Dsn, Instant};
use wire::mptcp::{Key, MpJoin, MptcpOption, ResetReason, Token};
use wire::{Payload, Segment, TooBig};

use crate::congestion::{Competition, WindowSet};
use crate::connection::{Connection, JoinAnswer, JoinRequest, Policies, Polled, is_unicast, keys};
use crate::error::{CloseReason, ConnectError, ConnectionError, ListenError};
use crate::event::Event;
use crate::host::{Host, Route, Tuple};
use crate::inspection::Sight;
use crate::observation::{Observer, Subject};
use crate::path_manager::{LocalAddress, PathEvent};
use crate::received::Received;
use crate::{ConnectionConfig, ConnectionId, ConnectionStats, EndpointConfig, ListenerId, SubflowId};

/// Resources that an endpoint holds. All are zero once every connection was released and has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Connections, including released ones that have not ended.
    pub connections: usize,
    /// Four-tuples in use.
    pub four_tuples: usize,
    /// MPTCP tokens in use.
    pub tokens: usize,
}

fn owned(slots: &mut [Slot], id: ConnectionId) -> Result<&mut Connection, ConnectionError> {
    slots
        .get_mut(id.slot as usize)
        .filter(|slot| slot.generation == id.generation)
        .and_then(|slot| slot.connection.as_deref_mut())
        .filter(|connection| !connection.released)
        .ok_or(ConnectionError::UnknownConnection)
}

/// One host.
///
/// | kind | methods |
/// |---|---|
/// | `handle_*` | [`Self::handle_segment`], [`Self::handle_too_big`], [`Self::handle_timeout`] |
/// | commands | [`Self::listen`], [`Self::accept`], [`Self::connect`], [`Self::send`], [`Self::recv`], [`Self::shutdown`], [`Self::close`], [`Self::abort`], [`Self::add_subflow`], [`Self::remove_subflow`], [`Self::set_priority`], [`Self::change`], [`Self::set_corked`], [`Self::send_more`], [`Self::shutdown_read`], [`Self::set_observer`], ... |
/// | `poll_*` | [`Self::poll_transmit`] or [`Self::poll_transmit_into`], [`Self::poll_timeout`], [`Self::poll_event`] |
/// | getters | [`Self::stats`], [`Self::config`], [`Self::addresses`], [`Self::send_capacity`], [`Self::readable_bytes`], [`Self::mss`], [`Self::pending_accepts`], ... |
///
/// After any `handle_*` or command, poll in this order: `poll_transmit` until it returns nothing, `poll_event` until it
/// returns nothing, then `poll_timeout`, and call `handle_timeout` at the time that it returns. Time only moves
/// forward: a `now` before an earlier one is a bug of the caller and asserts.
pub struct Endpoint {
    host: Host,
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    listeners: BTreeMap<ListenerId, Listener>,
    next_listener: u32,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Connections with nothing left but TIME-WAIT, the oldest first, and some that have ended.
    lingering: VecDeque<ConnectionId>,
    /// When connections want to be called, or earlier: a postponed deadline is noticed when it comes.
    timers: Deadlines,
    /// Local address of connections whose owner names none.
    preferred_address: Option<IpAddr>,
    now: Instant,
    /// The latest subflows of [`Self::expect`].
    expected: [Option<Route>; 2],
    /// Connections whose timers came first at the latest calls of [`Self::expect`].
    expected_due: [Option<usize>; 2],
    /// Settings of the connection that was opened last.
    latest_config: Option<Arc<ConnectionConfig>>,
    /// Data that arrived for subflows that no longer exist.
    strays: Vec<Stray>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Endpoint {
    /// Creates a host. `seed` determines keys, nonces and initial sequence numbers: on a real network, draw it from the
    /// operating system.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        Self {
            host: Host::new(config, seed),
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            listeners: BTreeMap::new(),
            next_listener: 0,
            ready: VecDeque::new(),
            lingering: VecDeque::new(),
            timers: Deadlines::new(),
            preferred_address: None,
            now: Instant::ZERO,
            expected: [None; 2],
            expected_due: [None; 2],
            latest_config: None,
            strays: Vec::new(),
        }
    }

    /// Creates a host for simulations, whose run is a function of `seed`.
    pub fn with_seed(config: EndpointConfig, seed: u64) -> Self {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(&seed.to_le_bytes());
        Self::new(config, octets)
    }

    /// Sets the observer of connections that do not exist yet. There is at most one: a later one takes its place,
    /// also for the connections that it observes, and the former is dropped.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.host.set_observer(observer, self.now);
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran backwards: {now:?} after {:?}", self.now);
        self.now = now;
        self.host.observers.advance(now);
    }

    /// Handles a segment from the network: an owned one or, to avoid moving large segments, a borrowed one, from which
    /// it takes what it needs.
    #[inline]
    pub fn handle_segment(&mut self, mut segment: impl BorrowMut<Segment>, now: Instant) {
        self.take_segment(segment.borrow_mut(), now);
    }

    fn take_segment(&mut self, segment: &mut Segment, now: Instant) {
        self.advance(now);
        if let Some(route) = self.host.route_of(segment) {
            let Self { host, slots, timers, ready, .. } = self;
            let Some(connection) = slots[route.slot as usize].connection.as_deref_mut() else { return };
            if !connection.handle_segment(route.subflow, segment, host, now) {
                return arm(timers, connection);
            }
            if connection.note_touch() {
                ready.push_back(route.slot);
            }
            if !self.host.accepted.is_empty() {
                self.take_accepted();
            }
            return;
        }
        self.handle_stranger(segment, now);
    }

    /// Handles an ICMP error from the network: a packet of ours was too big for its path. The error counts only if it
    /// names a segment in flight (RFC 5927), and within limits. The subflow then sends smaller packets, and sends lost
    /// data again at once.
    pub fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        self.advance(now);
        let tuple = Tuple { local: too_big.src, remote: too_big.dst };
        let Some(route) = self.host.route(&tuple) else { return };
        if let Some(connection) = self.slots[route.slot as usize].connection.as_deref_mut() {
            connection.handle_too_big(route.subflow, too_big, now);
        }
        self.after(route.slot);
    }

    /// Handles a SYN for an unknown four-tuple: a join or a new connection. Returns false if there is no use for it.
    fn handle_syn(&mut self, syn: &Segment, now: Instant) -> bool {
        let join = syn.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Join(join) => Some(*join),
            _ => None,
        });
        match join {
            Some(MpJoin::Syn { backup, address_id, token, nonce }) => {
                self.handle_join(syn, token, JoinRequest { backup, address_id, nonce }, now);
                true
            }
            Some(_) => false,
            None => self.handle_first_syn(syn, now),
        }
    }

    /// Handles a join. If the endpoint shares its addresses, an unknown token may belong to another stack.
    fn handle_join(&mut self, syn: &Segment, token: Token, request: JoinRequest, now: Instant) {
        let Self { host, slots, .. } = self;
        let slot = host.by_token(token);
        let connection = slot.and_then(|slot| slots[slot as usize].connection.as_deref_mut());
        match connection.map(|connection| connection.accept_join(syn, request, host, now)) {
            None if host.config.reset_unknown => host.refuse_join(syn, ResetReason::MptcpSpecific),
            None | Some(JoinAnswer::Ignored) => {}
            Some(JoinAnswer::Refused(reason)) => host.refuse_join(syn, reason),
            Some(JoinAnswer::Accepted) => slot.into_iter().for_each(|slot| self.after(slot)),
        }
    }

    /// Creates a connection and claims its token and first four-tuple. Its key is `key`, if given and no other
    /// connection has its token.
    fn create(
        &mut self,
        config: Arc<ConnectionConfig>,
        tuple: Tuple,
        initiator: bool,
        key: Option<Key>,
    ) -> Result<u32, ConnectError> {
        let policies = Policies::build(&config)?;
        if !self.make_room() {
            return Err(ConnectError::Limit);
        }
        let slot = self.free.last().copied().unwrap_or(u32_from(self.slots.len() as u64));
        if !self.host.claim(tuple, Route { slot, subflow: SubflowId(0) }) {
            return Err(ConnectError::InUse);
        }
        if self.free.pop().is_none() {
            self.slots.push(Slot::default());
        }
        let mut key = key.unwrap_or_else(|| keys::generate(&mut self.host.secrets));
        while config.mptcp && !self.host.claim_token(keys::token(key), slot) {
            key = keys::generate(&mut self.host.secrets);
        }
        let id = ConnectionId { slot, generation: self.slots[slot as usize].generation };
        let watch = self.host.observers.watch(Subject::Connection(id));
        let connection = Connection::new(id, config, policies, tuple, initiator, key, watch);
        self.slots[slot as usize].connection = Some(Box::new(connection));
        self.open += 1;
        Ok(slot)
    }

    /// Follows up on a connection after an operation: it may have something to send or to report, or nothing left to
    /// do.
    fn after(&mut self, slot: u32) {
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { return };
        if connection.note_touch() {
            self.ready.push_back(slot);
        }
        if !self.host.accepted.is_empty() {
            self.take_accepted();
        }
    }

    /// Moves newly established connections into the queues of their listeners.
    fn take_accepted(&mut self) {
        while let Some((id, listener)) = self.host.accepted.pop() {
            let Some(queue) = self.listeners.get_mut(&listener) else {
                id.into_iter().for_each(|id| self.discard(id));
                continue;
            };
            queue.pending = queue.pending.saturating_sub(1);
            if let Some(connection) = id {
                queue.queue.push_back(connection);
                self.host.events.push_back(Event::Incoming(listener));
            }
        }
    }

    /// Handles timers that are due; harmless before [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some((_, position)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.set(position, None);
            let slot = u32_from(position as u64);
            let Self { host, slots, .. } = self;
            let Some(connection) = slots[position].connection.as_deref_mut() else { continue };
            if connection.next_timeout() <= now {
                connection.handle_timeout(host, now);
                self.after(slot);
            } else {
                self.arm(slot);
            }
        }
    }

    /// Makes sure that the connection is called no later than it wants.
    fn arm(&mut self, slot: u32) {
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
            arm(&mut self.timers, connection);
        }
    }

    /// Returns the next segment to send, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        self.poll_transmit_into(&mut segment, now).then_some(segment)
    }

    /// Like [`Self::poll_transmit`], but writes into `segment`, whatever it contains. Returns false if there is no
    /// segment; the content of `segment` is then meaningless. Segments are large, and this saves moving them.
    #[inline]
    pub fn poll_transmit_into(&mut self, segment: &mut Segment, now: Instant) -> bool {
        self.advance(now);
        if self.ready.is_empty() && self.host.replies.is_empty() {
            return false;
        }
        self.transmit_into(segment, now)
    }

    fn transmit_into(&mut self, segment: &mut Segment, now: Instant) -> bool {
        if let Some(reply) = self.host.replies.pop_front() {
            *segment = reply;
            return true;
        }
        while let Some(slot) = self.ready.front().copied() {
            let Self { host, slots, timers, ready, .. } = self;
            if let Some(connection) = slots[slot as usize].connection.as_deref_mut() {
                let polled = connection.poll_transmit(segment, host, now);
                if polled == Polled::Segment {
                    return true;
                }
                connection.queued = false;
                if polled == Polled::LastSegment {
                    ready.pop_front();
                    arm(timers, connection);
                    return true;
                }
            }
            self.ready.pop_front();
            if !self.host.accepted.is_empty() {
                self.take_accepted();
            }
            if !self.free_if_spent(slot) {
                self.note_lingering(slot);
                self.arm(slot);
            }
        }
        false
    }

    fn free_if_spent(&mut self, slot: u32) -> bool {
        let place = &mut self.slots[slot as usize];
        if !place.connection.as_deref().is_some_and(Connection::is_spent) {
            return place.connection.is_none();
        }
        place.connection = None;
        place.generation = place.generation.wrapping_add(1);
        self.open -= 1;
        self.free.push(slot);
        self.timers.set(slot as usize, None);
        true
    }

    /// Returns when to call [`Self::handle_timeout`] next. May be early, never late.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.host.replies.is_empty() {
            return Some(self.now);
        }
        self.timers.first().map(|(at, _)| at)
    }

    /// Whether [`Self::poll_event`] would return an event: most calls cause none.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.host.events.is_empty()
    }

    /// Returns the next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.host.events.pop_front()
    }

    /// Listens for connections to `local`; an unspecified address accepts any.
    ///
    /// # Errors
    /// If the port is 0 or taken, the configuration names an unknown policy, or no connection could run with it.
    pub fn listen(&mut self, local: SocketAddr, config: ConnectionConfig) -> Result<ListenerId, ListenError> {
        if local.port() == 0 {
            return Err(ListenError::PortZero);
        }
        if self.listeners.values().any(|listener| listener.local == local) {
            return Err(ListenError::InUse);
        }
        config.check()?;
        Policies::build(&config)?;
        let id = ListenerId(self.next_listener);
        self.next_listener += 1;
        self.listeners.insert(id, Listener::new(local, config));
        Ok(id)
    }

    /// Stops listening. Established connections stay; those not yet accepted are aborted.
    pub fn close_listener(&mut self, listener: ListenerId, now: Instant) {
        self.advance(now);
        let Some(listener) = self.listeners.remove(&listener) else { return };
        listener.queue.into_iter().for_each(|connection| self.discard(connection));
    }

    /// Ends a connection whose listener is closed: nobody will ever accept it.
    fn discard(&mut self, connection: ConnectionId) {
        let _ = self.abort(connection, self.now);
        self.release(connection);
    }

    /// Returns the next established connection of a listener, if any.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        self.listeners.get_mut(&listener)?.queue.pop_front()
    }

    /// Returns the connection that this side's `token` names (RFC 8684 section 3.2).
    pub fn by_token(&self, token: Token) -> Option<ConnectionId> {
        let slot = self.host.by_token(token)?;
        let place = self.slots.get(slot as usize)?;
        place.connection.is_some().then_some(ConnectionId { slot, generation: place.generation })
    }

    /// Opens a connection. If the port of `local` is zero, the endpoint chooses one. If the address of `local` is
    /// unspecified, the endpoint uses that of [`Self::prefer_address`]. If this is missing or of the other family, it
    /// uses the first of [`EndpointConfig::local_addresses`] of the right family that is no backup, or else a backup.
    ///
    /// # Errors
    /// [`ConnectError`]; then nothing is opened.
    pub fn connect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
        now: Instant,
    ) -> Result<ConnectionId, ConnectError> {
        self.advance(now);
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(ConnectError::FamilyMismatch);
        }
        if !is_unicast(remote) {
            return Err(ConnectError::NoPeer(remote));
        }
        let local = self.specified(local)?;
        config.check()?;
        let local = match local.port() {
            0 => self.host.pick_port(local.ip(), remote).ok_or(ConnectError::InUse)?,
            _ => local,
        };
        let tuple = Tuple { local, remote };
        let config = self.share(config);
        let slot = self.create(config, tuple, true, None)?;
        let Self { host, slots, .. } = self;
        let place = &mut slots[slot as usize];
        if let Some(connection) = place.connection.as_deref_mut() {
            connection.open(tuple, host, now);
        }
        let id = ConnectionId { slot, generation: place.generation };
        self.after(slot);
        Ok(id)
    }

    /// Shares the settings of the previous connection if they are equal: with many connections, they thus stay in the
    /// cache.
    fn share(&mut self, config: ConnectionConfig) -> Arc<ConnectionConfig> {
        match &self.latest_config {
            Some(latest) if **latest == config => latest.clone(),
            _ => self.latest_config.insert(Arc::new(config)).clone(),
        }
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots
            .get(id.slot as usize)
            .filter(|slot| slot.generation == id.generation)
            .and_then(|slot| slot.connection.as_deref())
    }

    /// Returns a connection that its owner has not released.
    fn get_mut(&mut self, id: ConnectionId, now: Instant) -> Result<&mut Connection, ConnectionError> {
        self.advance(now);
        owned(&mut self.slots, id)
    }

    /// Applies a command to a connection, then updates its timers and transmissions.
    fn with<T>(
        &mut self,
        id: ConnectionId,
        now: Instant,
        command: impl FnOnce(&mut Connection, &mut Host) -> Result<T, ConnectionError>,
    ) -> Result<T, ConnectionError> {
        self.advance(now);
        let Self { host, slots, .. } = self;
        let result = command(owned(slots, id)?, host);
        self.after(id.slot);
        result
    }

    /// Accepts data for sending; returns the number of octets taken from the front, which the send buffer limits.
    ///
    /// # Errors
    /// After `shutdown`, or if the connection has ended.
    pub fn send(&mut self, connection: ConnectionId, data: Payload, now: Instant) -> Result<usize, ConnectionError> {
        self.with(connection, now, |connection, _| connection.send(data))
    }

    /// Takes at most `max` octets of received data. One call returns one contiguous piece, which is empty if `max` is 0
    /// and there is something to read.
    ///
    /// # Errors
    /// If the connection ended before the peer's stream did.
    #[inline]
    pub fn recv(&mut self, connection: ConnectionId, max: usize, now: Instant) -> Result<Received, ConnectionError> {
        let reader = self.get_mut(connection, now)?;
        let Some(payload) = reader.take(max) else { return reader.nothing_to_read() };
        // Reading causes a segment only if it opens the window far enough.
        if reader.announce_window_if_worthwhile() {
            self.after(connection.slot);
        }
        Ok(Received::Data(payload))
    }

    /// Returns the octets that [`Self::send`] would take now.
    pub fn send_capacity(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::send_capacity)
    }

    /// Returns the octets that the peer has acknowledged so far at the data level; zero if there is no such connection.
    /// As [`ConnectionStats::acked_bytes`], but cheap enough to query for thousands of connections.
    pub fn acked_bytes(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::acked_bytes)
    }

    /// Ends this side's stream (DATA_FIN, or FIN): the other direction stays open.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn shutdown(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.shutdown())
    }

    /// Ends this side's stream and discards what still arrives; the connection lingers until the peer has all data, and
    /// is aborted if the peer acknowledges nothing more for [`ConnectionConfig::user_timeout`].
    ///
    /// # Errors
    /// If there is no such connection.
    pub fn close(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, host| {
            connection.close(host, now);
            Ok(())
        })
    }

    /// Ends the connection at once: MP_FASTCLOSE, or RST for plain TCP.
    ///
    /// # Errors
    /// If there is no such connection.
    pub fn abort(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, host| {
            connection.abort(CloseReason::Aborted, host, now);
            Ok(())
        })
    }

    /// Forgets a connection that has closed, including its statistics; an open one is forgotten once it has closed. If
    /// its stream has ended, that is the same as [`Self::close`].
    pub fn release(&mut self, connection: ConnectionId) {
        let now = self.now;
        let _ = self.with(connection, now, |connection, host| {
            connection.release(host, now);
            Ok(())
        });
    }

    /// Whether there is such a connection and it was not released: events may still concern a released one.
    pub fn has(&self, connection: ConnectionId) -> bool {
        self.get(connection).is_some_and(|connection| !connection.released)
    }

    /// Opens a subflow (RFC 6897 TCP_MULTIPATH_ADD). If the port of `local` is zero, the endpoint chooses one. Possible
    /// from [`Event::FullyEstablished`] on, unless the peer forbids subflows to `remote`.
    ///
    /// # Errors
    /// [`ConnectError`]; then nothing is opened.
    pub fn add_subflow(
        &mut self,
        connection: ConnectionId,
        local: SocketAddr,
        remote: SocketAddr,
        backup: bool,
        now: Instant,
    ) -> Result<SubflowId, ConnectError> {
        self.with(connection, now, |connection, host| Ok(connection.open_join(local, remote, backup, host, now)))
            .unwrap_or(Err(ConnectError::UnknownConnection))
    }

    /// Closes a subflow (RFC 6897 TCP_MULTIPATH_REMOVE); its unacknowledged data go to the others.
    ///
    /// # Errors
    /// If there is no such subflow, or the connection is not MPTCP.
    pub fn remove_subflow(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.remove_subflow(subflow))
    }

    /// Uses a subflow as backup, or as regular again, and asks the peer to do the same (MP_PRIO).
    ///
    /// # Errors
    /// If there is no such subflow, if it has ended, or if the connection is not MPTCP.
    pub fn set_priority(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        backup: bool,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.set_priority(subflow, backup))
    }

    /// Tells the controller about a subflow's competition at its relay; `None` if it is unknown, or its last report is
    /// too old. Controllers that do not use it are not affected.
    ///
    /// # Errors
    /// If there is no such subflow.
    pub fn set_competition(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        competition: Option<Competition>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.set_competition(subflow, competition))
    }

    /// Lowers a subflow's congestion window and slow start threshold to at most those of `cut`: for layers above any
    /// controller. At least two segments remain, nothing is raised, and a subflow that repairs a loss keeps its
    /// windows. Returns whether anything changed.
    ///
    /// # Errors
    /// If there is no such subflow.
    pub fn cut_window(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        cut: WindowSet,
        now: Instant,
    ) -> Result<bool, ConnectionError> {
        self.with(connection, now, |connection, _| connection.cut_window(subflow, cut))
    }

    /// Limits a subflow to `held_max_bytes` octets, unsent and unacknowledged, or to its window if that is larger;
    /// `None` limits it to its buffer. If data are bound late ([`crate::era::Binding::Late`]), nothing waits at
    /// subflows, and this has no effect.
    ///
    /// # Errors
    /// If there is no such subflow.
    pub fn limit_held(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        held_max_bytes: Option<u64>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.limit_held(subflow, held_max_bytes))
    }

    /// Announces an address to the peer of one connection (ADD_ADDR).
    ///
    /// # Errors
    /// If it is not an established MPTCP connection, the address is not that of one host, or all identifiers are in
    /// use.
    pub fn announce_address(
        &mut self,
        connection: ConnectionId,
        ip: IpAddr,
        port: Option<u16>,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.announce_address(ip, port, now))
    }

    /// Withdraws an address from one connection (REMOVE_ADDR) and closes its subflows.
    ///
    /// # Errors
    /// If it is not an established MPTCP connection, or does not know the address.
    pub fn withdraw_address(
        &mut self,
        connection: ConnectionId,
        ip: IpAddr,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, host| {
            connection.withdraw_address(ip)?;
            connection.settle(host, now);
            Ok(())
        })
    }

    /// Adds a local address that has become usable, and tells all path managers.
    pub fn add_local_address(&mut self, address: LocalAddress, now: Instant) {
        self.advance(now);
        self.host.config.local_addresses.retain(|known| known.ip != address.ip);
        self.host.config.local_addresses.push(address);
        self.for_each_connection(|connection, host| {
            if connection.is_fully_established() {
                connection.tell_path_manager(&PathEvent::LocalAddressAdded(address), host, now);
            }
        });
    }

    /// Whether path managers may use a local address.
    pub fn has_local_address(&self, ip: IpAddr) -> bool {
        self.host.config.local_addresses.iter().any(|known| known.ip == ip)
    }

    /// Removes a local address that has disappeared: its subflows fail, and all path managers are told.
    pub fn remove_local_address(&mut self, ip: IpAddr, now: Instant) {
        self.advance(now);
        self.host.config.local_addresses.retain(|known| known.ip != ip);
        self.preferred_address = self.preferred_address.filter(|preferred| *preferred != ip);
        self.for_each_connection(|connection, host| connection.lose_local_address(ip, host, now));
    }

    /// Replaces a local address, for example after a device returns to a Wi-Fi network. Path managers hear of the new
    /// address first, so connections are never without one; then everything bound to the old address ends.
    pub fn replace_local_address(&mut self, old: IpAddr, new: IpAddr, now: Instant) {
        let known = self.host.config.local_addresses.iter().find(|known| known.ip == old).copied();
        if let Some(known) = known {
            self.add_local_address(LocalAddress { ip: new, ..known }, now);
        }
        if self.preferred_address == Some(old) {
            self.preferred_address = Some(new);
        }
        self.remove_local_address(old, now);
    }

    fn for_each_connection(&mut self, mut visit: impl FnMut(&mut Connection, &mut Host)) {
        for slot in 0..u32_from(self.slots.len() as u64) {
            let Self { host, slots, .. } = self;
            if let Some(connection) = slots[slot as usize].connection.as_deref_mut() {
                visit(connection, host);
                self.after(slot);
            }
        }
    }

    /// Returns the resources that the endpoint holds.
    pub fn footprint(&self) -> Footprint {
        let (four_tuples, tokens) = self.host.claims();
        Footprint { connections: self.open, four_tuples, tokens }
    }

    /// Returns statistics of a connection, also after it has closed.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.get(connection).map(Connection::stats)
    }

    /// Returns the next data sequence numbers of an MPTCP connection: of data to send, and of data expected.
    pub fn data_sequence(&self, connection: ConnectionId) -> Option<(Dsn, Dsn)> {
        self.get(connection)?.data_sequence()
    }

    /// Returns the octets of payload in the largest packet of `segment`, the last one from [`Self::poll_transmit`], if
    /// it belongs to a subflow: the room that the path MTU, the peer's MSS and our own leave beside the options (RFC
    /// 6691). A driver with segmentation offload cuts super-segments to this size, but not probes of the path MTU.
    pub fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let route = self.host.route(&Tuple { local: segment.src, remote: segment.dst })?;
        self.slots[route.slot as usize].connection.as_deref()?.packet_payload(route.subflow, segment)
    }

    /// Returns a view of the subflow from `local` to `remote`, if there is one: for checkers.
    #[inline]
    pub fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        let route = self.host.route_between(local, remote)?;
        self.slots[route.slot as usize].connection.as_deref()?.inspect(route.subflow)
    }

    /// Iterates over all connections that were not released.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_deref())
            .filter(|connection| !connection.released)
            .map(|connection| connection.id)
    }
}

/// Makes sure that a connection is called no later than it wants.
#[inline]
fn arm(timers: &mut Deadlines, connection: &mut Connection) {
    let slot = connection.id.slot as usize;
    let armed = timers.get(slot).unwrap_or(Instant::FAR_FUTURE);
    if let Some(next) = connection.next_timeout_before(armed) {
        timers.set(slot, Some(next));
    }
}
