//! One host: demultiplexes segments to connections, and tokens to the connections they join.

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
use wire::{Flags, Payload, Segment, TooBig};

use crate::congestion::{Competition, WindowSet};
use crate::connection::{Connection, JoinAnswer, JoinRequest, Policies, Polled, is_unicast, keys};
use crate::error::{CloseReason, ConnectError, ConnectionError, ListenError};
use crate::event::Event;
use crate::host::{Host, Route, Tuple};
use crate::inspection::Sight;
use crate::path_manager::{LocalAddress, PathEvent};
use crate::received::Received;
use crate::{ConnectionConfig, ConnectionId, ConnectionStats, EndpointConfig, ListenerId, SubflowId};

/// What an endpoint holds. All is zero once every connection was released and has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Connections, released ones that have not ended included.
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
/// | commands | [`Self::listen`], [`Self::accept`], [`Self::connect`], [`Self::send`], [`Self::recv`], [`Self::shutdown`], [`Self::close`], [`Self::abort`], [`Self::add_subflow`], [`Self::remove_subflow`], [`Self::set_priority`], [`Self::change`], [`Self::set_corked`], [`Self::send_more`], [`Self::shutdown_read`], ... |
/// | `poll_*` | [`Self::poll_transmit`] or [`Self::poll_transmit_into`], [`Self::poll_timeout`], [`Self::poll_event`] |
/// | getters | [`Self::stats`], [`Self::config`], [`Self::addresses`], [`Self::send_capacity`], [`Self::readable_bytes`], [`Self::mss`], [`Self::pending_accepts`], ... |
///
/// After any `handle_*` or command, poll in this order: `poll_transmit` until it gives nothing, `poll_event` until it
/// gives nothing, then `poll_timeout`, and call `handle_timeout` at the time it names. Time only moves forward: a
/// `now` before an earlier one is a bug of the caller and asserts.
pub struct Endpoint {
    host: Host,
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    listeners: BTreeMap<ListenerId, Listener>,
    next_listener: u32,
    /// Connections that may have something to send.
    ready: VecDeque<u32>,
    /// Connections of which nothing is left but TIME-WAIT, the oldest first, and some that are gone.
    lingering: VecDeque<ConnectionId>,
    /// When connections want to be called, or earlier: a deadline that moves on is noticed when it comes.
    timers: Deadlines,
    /// Where connections begin whose owner names no address.
    preferred_address: Option<IpAddr>,
    now: Instant,
    /// The latest subflows of [`Self::expect`].
    expected: [Option<Route>; 2],
    /// Whose timer came first with the latest calls of it.
    expected_due: [Option<usize>; 2],
    /// The settings of the connection that was opened last.
    latest_config: Option<Arc<ConnectionConfig>>,
    /// Data that came for subflows that are no more.
    strays: Vec<Stray>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Endpoint {
    /// A host. Keys, nonces and initial sequence numbers grow from `seed`: on a real network draw it from the
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

    /// A host for simulations, whose run is a function of `seed`.
    pub fn with_seed(config: EndpointConfig, seed: u64) -> Self {
        let mut octets = [0; 32];
        octets[..8].copy_from_slice(&seed.to_le_bytes());
        Self::new(config, octets)
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran backwards: {now:?} after {:?}", self.now);
        self.now = now;
    }

    /// Takes a segment from the network: a whole one or, without moving what is large, what it needs out of a borrowed one.
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
        if self.handle_cookie(segment, now) {
            return;
        }
        let is_opening = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        // Data on a SYN are not taken: they stay unacknowledged and come again.
        let taken = is_opening && self.handle_syn(segment, now);
        if !is_opening {
            self.note_stray(segment, now);
        }
        if !taken && self.host.config.reset_unknown {
            self.host.reply_reset(segment);
        }
    }

    /// Takes an ICMP error from the network: a packet of ours was too big for its path. Believed, within reason, if it names a
    /// segment in flight (RFC 5927); the subflow's packets are smaller then, and what was lost goes out again at once.
    pub fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        self.advance(now);
        let tuple = Tuple { local: too_big.src, remote: too_big.dst };
        let Some(route) = self.host.route(&tuple) else { return };
        if let Some(connection) = self.slots[route.slot as usize].connection.as_deref_mut() {
            connection.handle_too_big(route.subflow, too_big, now);
        }
        self.after(route.slot);
    }

    /// A SYN for no known four-tuple: a join or a new connection. False if nobody wants it.
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

    /// A join. Where the endpoint shares its addresses, an unknown token may be another stack's.
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

    /// Makes a connection and claims its token and first four-tuple. Its key is `key`, if that is given and no other
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
        let connection = Connection::new(id, config, policies, tuple, initiator, key);
        self.slots[slot as usize].connection = Some(Box::new(connection));
        self.open += 1;
        Ok(slot)
    }

    /// A connection was touched: it may have something to send, to tell, or nothing left to do.
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

    /// Takes note of the time; harmless before [`Self::poll_timeout`].
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

    /// Sees to it that the connection is called no later than it wants.
    fn arm(&mut self, slot: u32) {
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
            arm(&mut self.timers, connection);
        }
    }

    /// The next segment to send, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        self.poll_transmit_into(&mut segment, now).then_some(segment)
    }

    /// As [`Self::poll_transmit`], with `segment` as the place for it, whatever it holds; false if there is none, and then what
    /// `segment` holds means nothing. Segments are large: this spares moving them.
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

    /// When to call [`Self::handle_timeout`] next. May be early, never late.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.host.replies.is_empty() {
            return Some(self.now);
        }
        self.timers.first().map(|(at, _)| at)
    }

    /// Whether [`Self::poll_event`] has one: most calls lead to none.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.host.events.is_empty()
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.host.events.pop_front()
    }

    /// Waits for connections to `local`; an unspecified address takes any.
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

    /// Stops listening. Established connections stay, those not yet accepted are aborted.
    pub fn close_listener(&mut self, listener: ListenerId, now: Instant) {
        self.advance(now);
        let Some(listener) = self.listeners.remove(&listener) else { return };
        listener.queue.into_iter().for_each(|connection| self.discard(connection));
    }

    /// A connection whose listener is gone: nobody will ever accept it.
    fn discard(&mut self, connection: ConnectionId) {
        let _ = self.abort(connection, self.now);
        self.release(connection);
    }

    /// The next established connection of a listener, if any.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        self.listeners.get_mut(&listener)?.queue.pop_front()
    }

    /// The connection that this side's `token` names (RFC 8684 section 3.2).
    pub fn by_token(&self, token: Token) -> Option<ConnectionId> {
        let slot = self.host.by_token(token)?;
        let place = self.slots.get(slot as usize)?;
        place.connection.is_some().then_some(ConnectionId { slot, generation: place.generation })
    }

    /// Opens a connection. A `local` port of zero lets the endpoint choose one. An unspecified `local` address stands for the
    /// one of [`Self::prefer_address`] or, if that is of the other family or there is none, for the first of
    /// [`EndpointConfig::local_addresses`] that is of the family and no backup, or else a backup.
    ///
    /// # Errors
    /// [`ConnectError`], nothing being opened.
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

    /// The same settings, where those of the connection before are the same: among many connections they stay in the cache.
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

    /// A connection that its owner has not released.
    fn get_mut(&mut self, id: ConnectionId, now: Instant) -> Result<&mut Connection, ConnectionError> {
        self.advance(now);
        owned(&mut self.slots, id)
    }

    /// Does something to a connection, then sees to its timers and transmissions.
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

    /// Hands over data; gives the number of octets taken from the front, which the send buffer limits.
    ///
    /// # Errors
    /// After `shutdown`, or when the connection is over.
    pub fn send(&mut self, connection: ConnectionId, data: Payload, now: Instant) -> Result<usize, ConnectionError> {
        self.with(connection, now, |connection, _| connection.send(data))
    }

    /// Takes at most `max` octets of received data. One call gives one contiguous piece, an empty one if `max` is 0 and there is
    /// something to read.
    ///
    /// # Errors
    /// When the connection ended before the peer's stream did.
    #[inline]
    pub fn recv(&mut self, connection: ConnectionId, max: usize, now: Instant) -> Result<Received, ConnectionError> {
        let reader = self.get_mut(connection, now)?;
        let Some(payload) = reader.take(max) else { return reader.nothing_to_read() };
        // Reading gives something to say only where it opens the window by much.
        if reader.announce_window_if_worthwhile() {
            self.after(connection.slot);
        }
        Ok(Received::Data(payload))
    }

    /// Octets that [`Self::send`] would take now.
    pub fn send_capacity(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::send_capacity)
    }

    /// Octets that the peer has acknowledged so far, at the data level; zero if there is no such connection. As
    /// [`ConnectionStats::acked_bytes`], but cheap enough to ask of thousands of connections.
    pub fn acked_bytes(&self, connection: ConnectionId) -> u64 {
        self.get(connection).map_or(0, Connection::acked_bytes)
    }

    /// Ends this side's stream (DATA_FIN, or FIN): the other direction stays open.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn shutdown(&mut self, connection: ConnectionId, now: Instant) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.shutdown())
    }

    /// Ends this side's stream and discards what still arrives; the connection lingers until the peer has all data.
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

    /// Forgets a connection that has closed, statistics included; one that has not is forgotten once it has.
    pub fn release(&mut self, connection: ConnectionId) {
        let now = self.now;
        let _ = self.with(connection, now, |connection, _| {
            connection.released = true;
            Ok(())
        });
    }

    /// Whether there is such a connection and it was not released: events may still tell of one that was.
    pub fn has(&self, connection: ConnectionId) -> bool {
        self.get(connection).is_some_and(|connection| !connection.released)
    }

    /// Opens a subflow (RFC 6897 TCP_MULTIPATH_ADD). A `local` port of zero lets the endpoint choose one.
    /// Possible from [`Event::FullyEstablished`] on.
    ///
    /// # Errors
    /// [`ConnectError`], nothing being opened.
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
    /// If there is no such subflow, or no MPTCP.
    pub fn remove_subflow(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.remove_subflow(subflow))
    }

    /// Asks the peer to use a subflow as backup, or as regular again (MP_PRIO), and does so itself.
    ///
    /// # Errors
    /// If there is no such subflow, or no MPTCP.
    pub fn set_priority(
        &mut self,
        connection: ConnectionId,
        subflow: SubflowId,
        backup: bool,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.with(connection, now, |connection, _| connection.set_priority(subflow, backup))
    }

    /// Tells the controller what a subflow competes with at its relay; `None` if that is unknown, or was told too long ago.
    /// Controllers that do not ask for it are not affected.
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
    /// controller. Two segments always stay, nothing is raised, and a subflow that repairs a loss keeps its windows. Tells
    /// whether anything changed.
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

    /// Lets a subflow hold at most `held_max_bytes` octets, unsent and unacknowledged, or its window if that is more; `None` for
    /// what its buffer takes. Where data are bound late ([`crate::era::Binding::Late`]), nothing waits at subflows, and this has no effect.
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
    /// If it is not an established MPTCP connection, the address is not of one host, or no identifier is left for another.
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

    /// A local address became usable: all path managers hear of it.
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

    /// A local address is gone: its subflows fail, all path managers hear of it.
    pub fn remove_local_address(&mut self, ip: IpAddr, now: Instant) {
        self.advance(now);
        self.host.config.local_addresses.retain(|known| known.ip != ip);
        self.for_each_connection(|connection, host| connection.lose_local_address(ip, host, now));
    }

    /// A local address was replaced, as when a device comes back to a Wi-Fi network: path managers hear of the new one first, so
    /// that connections are never without an address, and what was tied to the old one ends.
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

    /// How much the endpoint holds.
    pub fn footprint(&self) -> Footprint {
        let (four_tuples, tokens) = self.host.claims();
        Footprint { connections: self.open, four_tuples, tokens }
    }

    /// Statistics of a connection, also after it closed.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.get(connection).map(Connection::stats)
    }

    /// The next data sequence numbers of an MPTCP connection: of data to send, and of data expected.
    pub fn data_sequence(&self, connection: ConnectionId) -> Option<(Dsn, Dsn)> {
        self.get(connection)?.data_sequence()
    }

    /// Octets of payload in the largest packet of `segment`, which [`Self::poll_transmit`] gave last, if it is a subflow's:
    /// what the path MTU, the peer's MSS and our own leave beside the options (RFC 6691). A driver with segmentation offload
    /// cuts super-segments to this size, and no probe of the path MTU.
    pub fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let route = self.host.route(&Tuple { local: segment.src, remote: segment.dst })?;
        self.slots[route.slot as usize].connection.as_deref()?.packet_payload(route.subflow, segment)
    }

    /// A look at the subflow from `local` to `remote`, if there is one: for checkers.
    #[inline]
    pub fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        let route = self.host.route_between(local, remote)?;
        self.slots[route.slot as usize].connection.as_deref()?.inspect(route.subflow)
    }

    /// All connections that were not released.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_deref())
            .filter(|connection| !connection.released)
            .map(|connection| connection.id)
    }
}

/// Sees to it that a connection is called no later than it wants.
#[inline]
fn arm(timers: &mut Deadlines, connection: &mut Connection) {
    let slot = connection.id.slot as usize;
    let armed = timers.get(slot).unwrap_or(Instant::FAR_FUTURE);
    if let Some(next) = connection.next_timeout_before(armed) {
        timers.set(slot, Some(next));
    }
}
