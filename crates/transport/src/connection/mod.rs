//! The MPTCP level of a connection (RFC 8684 section 3): one data stream each way over any number of subflows.
//!
//! A connection is MPTCP or plain TCP, or has changed from one to the other. It always has a data sequence space; in
//! plain TCP this merely mirrors that of the one subflow.
//!
//! | file | |
//! |---|---|
//! | `arrival.rs`, `expected.rs` | segments in: handshakes, options, data; the fast path |
//! | `handshake.rs`, `join_proof.rs` | MP_CAPABLE and MP_JOIN |
//! | `stateless.rs` | MP_CAPABLE by SYN cookies |
//! | `dss.rs` | the data sequence signal, in and out |
//! | `number_width.rs` | the width of the numbers in it |
//! | `transmit.rs`, `burst.rs` | segments out: scheduling, options; the fast path |
//! | `reinjection.rs` | data that a subflow could not deliver go to others |
//! | `idle_reinjection.rs` | data missing at the head of the stream go to idle subflows |
//! | `carriers.rs`, `suspension.rs` | which subflow carries which data, and which ones swallowed data |
//! | `blocked_window.rs` | data with which a slow subflow blocks the window go to faster subflows |
//! | `receiver_centric.rs`, `held.rs` | MPTCP-rec: the receiver's rates, and the data it holds |
//! | `addresses.rs` | ADD_ADDR, REMOVE_ADDR, MP_PRIO, the path manager |
//! | `subflow.rs`, `subflows.rs` | state of a subflow, and lookup by identifier |
//! | `congestion.rs` | the subflows as paths under one controller |
//! | `application.rs` | changes of settings, corks, half shutdown |
//! | `closing.rs` | DATA_FIN, FIN, MP_FASTCLOSE |
//! | `half_closed.rs` | subflows that the peer has closed |
//! | `fallback.rs` | fallback to plain TCP |
//! | `send_buffer.rs`, `reassembly.rs`, `mapping.rs` | the data |
//! | `keys.rs` | keys, tokens, HMACs |

mod addresses;
mod application;
mod arrival;
mod blocked_window;
mod burst;
mod carriers;
mod closing;
mod congestion;
mod dss;
mod expected;
mod fallback;
mod half_closed;
mod handshake;
mod held;
mod idle_reinjection;
mod inspection;
mod join_budget;
pub(crate) mod join_proof;
pub(crate) mod keys;
pub(crate) mod mapping;
mod number_width;
mod reassembly;
mod receiver_centric;
mod reinjection;
mod send_buffer;
mod stateless;
mod subflow;
mod subflows;
mod suspension;
mod timeouts;
mod transmit;

use core::net::SocketAddr;
use std::sync::Arc;

use units::{Dsn, Instant, prefetch};
use wire::mptcp::{Key, Token};
use wire::{Payload, Segment, TooBig};

use crate::congestion::CongestionController;
use crate::era::Binding;
use crate::error::{CloseReason, ConnectionError, UnusablePolicy};
use crate::event::Event;
use crate::host::{Host, Route, Tuple};
use crate::observation::Watch;
use crate::path_manager::PathManager;
use crate::received::Received;
use crate::scheduler::Scheduler;
use crate::state::{State, Step};
use crate::stats::{ConnectionStats, Hearing, SubflowStats};
use crate::{ConnectionConfig, ConnectionId, ListenerId, SubflowId};
use addresses::Addresses;
pub(crate) use addresses::{is_unicast, is_unicast_ip};
use blocked_window::BlockedWindow;
use burst::Burst;
use carriers::Carriers;
pub(crate) use handshake::{JoinAnswer, JoinRequest, dss_room};
use reassembly::Reassembly;
use receiver_centric::RateControl;
use reinjection::Reinjection;
use send_buffer::SendBuffer;
pub(crate) use stateless::answer_statelessly;
use subflow::Subflow;
use subflows::Subflows;
pub(crate) use transmit::Polled;

/// Maximum number of subflows of a connection: the capacity of views on the stack, and the upper bound of
/// [`ConnectionConfig::subflows_max`].
pub const SUBFLOWS_CAP: usize = 32;

/// The protocol that the connection speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Protocol {
    /// MP_CAPABLE has been sent or received, but not agreed on.
    Negotiating,
    /// MPTCP.
    Mptcp {
        /// The peer's key.
        remote_key: Key,
        /// The peer has shown that it knows both keys and uses them (RFC 8684 section 3.1).
        fully_established: bool,
    },
    /// Plain TCP.
    Tcp {
        /// The connection attempted MPTCP first.
        fell_back: bool,
    },
}

impl Protocol {
    fn is_mptcp(self) -> bool {
        matches!(self, Self::Mptcp { .. })
    }
}

/// The policies of a connection.
pub(crate) struct Policies {
    pub(crate) congestion: Box<dyn CongestionController>,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) path_manager: Box<dyn PathManager>,
}

impl Policies {
    /// Creates the policies that `config` names.
    pub(crate) fn build(config: &ConnectionConfig) -> Result<Self, UnusablePolicy> {
        Ok(Self {
            congestion: crate::congestion::build(&config.congestion)?,
            scheduler: crate::scheduler::build(&config.scheduler)?,
            path_manager: crate::path_manager::build(&config.path_manager)?,
        })
    }
}

/// The sending half.
#[derive(Debug)]
struct Sender {
    buffer: SendBuffer,
    /// The first data sequence number, stored because it is a hash of the key.
    first: Dsn,
    /// The next data sequence number to hand to a subflow.
    next: Dsn,
    /// End of the latest data sent in a segment that was not full.
    small_end: Dsn,
    /// The peer accepts data before this number (DATA_ACK plus window).
    edge: Dsn,
    /// Largest window that the peer has announced, octets.
    window_max: u64,
    /// `shutdown` was called: the stream ends with the buffer.
    finished: bool,
    /// Data sequence number of our DATA_FIN, once it has been sent.
    data_fin: Option<Dsn>,
    /// A DATA_FIN must be sent on its own.
    data_fin_due: bool,
    /// Consecutive data-level time-outs.
    backoff: u32,
    /// Time of the first of them.
    stalled_since: Instant,
    /// At the last of them: the subflow that had delivered the missing octets, and the next data sequence number.
    accused: Option<(SubflowId, Dsn)>,
    /// The only subflow has acknowledged data without a DATA_ACK since the last DATA_ACK that brought news.
    is_doubtful: bool,
    /// Whether a revival has postponed the running data-level time-out.
    is_put_off: bool,
    /// `send` took less than offered: tell the owner when there is room.
    writable_wanted: bool,
    /// The peer sends 8-octet data sequence numbers, so it wants 8-octet DATA_ACKs (RFC 8684 section 3.3.2).
    long_data_ack: bool,
    /// Start of the infinite mapping that announces a fallback (RFC 8684 section 3.7).
    infinite_mapping_due: Option<Dsn>,
    cork: application::Cork,
}

impl Sender {
    /// Creates a sender whose stream starts at `start`.
    fn new(start: Dsn, buffer_bytes: u64) -> Self {
        Self {
            buffer: SendBuffer::new(start, buffer_bytes),
            first: start,
            next: start,
            small_end: start,
            edge: start,
            window_max: 0,
            finished: false,
            data_fin: None,
            data_fin_due: false,
            backoff: 0,
            stalled_since: Instant::ZERO,
            accused: None,
            is_doubtful: false,
            is_put_off: false,
            writable_wanted: false,
            long_data_ack: false,
            infinite_mapping_due: None,
            cork: application::Cork::default(),
        }
    }
}

/// The receiving half.
#[derive(Debug)]
struct Receiver {
    stream: Reassembly,
    /// The furthest right edge that we have announced.
    edge: Dsn,
    /// Data sequence number of the peer's DATA_FIN, once received.
    data_fin: Option<Dsn>,
    /// The peer's whole stream has arrived.
    finished: bool,
    /// The owner was told that there is something to read, and has not read since.
    readable_told: bool,
    /// The owner has closed the connection: discard what arrives.
    discard: bool,
    /// Nobody reads any more, but the other direction is still in use.
    shut: bool,
    /// An MP_FAIL must report this data sequence number.
    fail_due: Option<Dsn>,
    /// After a fallback the peer may have received all our options and may continue with MPTCP: acknowledge at the data
    /// level too.
    acknowledges_data: bool,
}

impl Receiver {
    /// Creates an empty receiver that does not know where the peer's stream starts.
    fn new(buffer_bytes: u64) -> Self {
        Self {
            stream: Reassembly::new(Dsn(0), buffer_bytes),
            edge: Dsn(0),
            data_fin: None,
            finished: false,
            readable_told: false,
            discard: false,
            shut: false,
            fail_due: None,
            acknowledges_data: false,
        }
    }
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) listener: Option<ListenerId>,
    config: Arc<ConnectionConfig>,
    /// The largest receive buffer that the connection has had.
    receive_buffer_max_bytes: u64,
    /// State of the data level; in plain TCP, that of the subflow.
    state: State,
    protocol: Protocol,
    checksum: bool,
    local_key: Key,
    initiator: bool,
    first_local: SocketAddr,
    first_remote: SocketAddr,
    subflows: Subflows,
    ended: Vec<SubflowStats>,
    next_subflow: u16,
    /// A second subflow was established at some time, or the peer may believe so: data and subflow sequence have
    /// diverged.
    joined: bool,
    /// MP_CAPABLE with both keys is due, before any DSS.
    capable_due: bool,
    sender: Sender,
    receiver: Receiver,
    reinjection: Reinjection,
    carriers: Carriers,
    blocked_window: BlockedWindow,
    addresses: Addresses,
    policies: Policies,
    /// MPTCP-rec, if the settings ask for it.
    rate_control: Option<Box<RateControl>>,
    /// Subflow at which `poll_transmit` continues, so that no subflow starves.
    turn: Option<SubflowId>,
    /// Knowledge from the last segment; valid if nothing has happened since but sending that segment.
    burst: Option<Burst>,
    /// Data-level retransmission (RFC 8684 section 3.3.6).
    data_timer: Instant,
    /// When the data missing at the head of the stream go to an idle subflow.
    idle_timer: Instant,
    /// When a connection without subflows gives up.
    orphan_timer: Instant,
    /// The reason it then reports.
    orphan_reason: CloseReason,
    /// When a connection that its owner has given up stops waiting for the peer: for more acknowledgements, and then for
    /// the end of the peer's stream.
    linger_timer: Instant,
    close_reason: Option<CloseReason>,
    established_at: Option<Instant>,
    closed_at: Option<Instant>,
    totals: Totals,
    /// `release` was called: forget everything once all subflows have ended.
    pub(crate) released: bool,
    /// Is in the endpoint's queue of connections with something to send.
    pub(crate) queued: bool,
    /// Is in the endpoint's queue of connections in TIME-WAIT.
    pub(crate) lingers: bool,
    watch: Watch,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    written_bytes: u64,
    acked_bytes: u64,
    received_bytes: u64,
    read_bytes: u64,
    reinjected_bytes: u64,
    duplicate_bytes: u64,
}

impl Connection {
    /// Creates a connection without subflows; [`Self::open`] or [`Self::accept`] adds the first.
    pub(crate) fn new(
        id: ConnectionId,
        config: Arc<ConnectionConfig>,
        policies: Policies,
        tuple: Tuple,
        initiator: bool,
        local_key: Key,
        watch: Watch,
    ) -> Self {
        let protocol = if config.mptcp { Protocol::Negotiating } else { Protocol::Tcp { fell_back: false } };
        let start = keys::initial_dsn(local_key) + 1;
        Self {
            id,
            listener: None,
            state: if initiator { State::SynSent } else { State::SynReceived },
            protocol,
            checksum: false,
            local_key,
            initiator,
            first_local: tuple.local,
            first_remote: tuple.remote,
            subflows: Subflows::default(),
            ended: Vec::new(),
            next_subflow: 0,
            joined: false,
            capable_due: true,
            sender: Sender::new(start, config.first_send_buffer_bytes()),
            receiver: Receiver::new(config.receive_buffer_bytes),
            reinjection: Reinjection::default(),
            carriers: Carriers::default(),
            blocked_window: BlockedWindow::default(),
            addresses: Addresses::new(tuple.local.ip(), tuple.remote),
            policies,
            rate_control: config.receiver_centric.map(|settings| Box::new(RateControl::new(settings))),
            turn: None,
            burst: None,
            data_timer: Instant::FAR_FUTURE,
            idle_timer: Instant::FAR_FUTURE,
            orphan_timer: Instant::FAR_FUTURE,
            orphan_reason: CloseReason::TimedOut,
            linger_timer: Instant::FAR_FUTURE,
            close_reason: None,
            established_at: None,
            closed_at: None,
            totals: Totals::default(),
            released: false,
            queued: false,
            lingers: false,
            watch,
            receive_buffer_max_bytes: config.receive_buffer_bytes,
            config,
        }
    }

    /// Moves the data level along RFC 9293's figure 5.
    fn step(&mut self, step: Step) {
        self.enter(self.state.after(step));
    }

    fn enter(&mut self, state: State) {
        self.watch.tell_state(self.state, state);
        self.state = state;
    }

    pub(crate) fn is_mptcp(&self) -> bool {
        self.protocol.is_mptcp()
    }

    pub(crate) fn local_token(&self) -> Token {
        keys::token(self.local_key)
    }

    fn remote_key(&self) -> Option<Key> {
        match self.protocol {
            Protocol::Mptcp { remote_key, .. } => Some(remote_key),
            _ => None,
        }
    }

    /// Returns the largest payload of one packet of subflow `id`, if the subflow exists.
    pub(crate) fn payload_max(&self, id: SubflowId) -> Option<u32> {
        self.subflows.get(id).map(|subflow| subflow.tcb.payload_max())
    }

    /// Returns the congestion window of subflow `id`, octets, if the subflow exists.
    pub(crate) fn cwnd(&self, id: SubflowId) -> Option<u64> {
        self.subflows.get(id).map(|subflow| subflow.tcb.window().cwnd())
    }

    /// Returns the octets of the application that have not been sent yet, including those queued on subflows.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let bound: u64 = self.subflows.iter().map(|subflow| subflow.tcb.unsent_bytes()).sum();
        self.sender.buffer.end().since(self.sender.next) + bound
    }

    /// Returns a short report on what subflow `id` delivers, if the subflow exists.
    pub(crate) fn hearing(&self, id: SubflowId) -> Option<Hearing> {
        let tcb = &self.subflows.get(id)?.tcb;
        let held_bytes = self.receiver.stream.waiting_bytes_of(id);
        Some(Hearing { held_bytes, heard_at: tcb.last_heard_at(), echo: tcb.latest_echo() })
    }

    /// Asks the peer for a sign of life on subflow `id`.
    pub(crate) fn probe_subflow(&mut self, id: SubflowId) -> Result<(), ConnectionError> {
        let subflow = self.subflows.get_mut(id).ok_or(ConnectionError::UnknownSubflow)?;
        subflow.tcb.demand_sign_of_life();
        Ok(())
    }

    /// Returns the octets of payload in the largest packet of `segment`, which subflow `id` has just produced.
    pub(crate) fn packet_payload(&self, id: SubflowId, segment: &Segment) -> Option<u32> {
        self.subflows.get(id).map(|subflow| subflow.tcb.packet_payload(segment))
    }

    /// A router reports that a packet of subflow `id` was too big.
    pub(crate) fn handle_too_big(&mut self, id: SubflowId, too_big: &TooBig, now: Instant) {
        if let Some(subflow) = self.subflows.get_mut(id) {
            subflow.tcb.on_too_big(too_big, now);
        }
    }

    /// Prefetches the memory that this connection refers to.
    pub(crate) fn prefetch_subflow(&self, id: SubflowId) {
        self.subflows.likely(id).into_iter().for_each(prefetch);
        prefetch(&*self.config);
        prefetch(&*self.policies.congestion);
        self.sender.buffer.prefetch();
    }

    /// Prefetches the memory that subflow `id` refers to.
    pub(crate) fn prefetch_queues(&self, id: SubflowId) {
        if let Some(subflow) = self.subflows.likely(id) {
            subflow.tcb.prefetch_queues();
            subflow.mappings.prefetch();
        }
    }

    /// Prefetches the timers of the subflows.
    pub(crate) fn prefetch_timers(&self) {
        self.subflows.iter().for_each(Subflow::prefetch_timers);
    }

    /// Notes that something other than sending happens to the connection. Returns true if it was not in the endpoint's
    /// queue before.
    #[inline]
    pub(crate) fn note_touch(&mut self) -> bool {
        self.burst = None;
        !core::mem::replace(&mut self.queued, true)
    }

    fn route(&self, subflow: SubflowId) -> Route {
        Route { slot: self.id.slot, subflow }
    }

    /// Returns the identifier of the next subflow. After 65,536 they start over, skipping those still remembered.
    fn next_subflow_id(&self) -> SubflowId {
        let is_used = |id: &SubflowId| self.subflows.contains(*id) || self.ended.iter().any(|ended| ended.id == *id);
        let mut candidates = (0..=u16::MAX).map(|step| SubflowId(self.next_subflow.wrapping_add(step)));
        candidates.find(|id| !is_used(id)).unwrap_or(SubflowId(self.next_subflow))
    }

    fn take_subflow_id(&mut self) -> SubflowId {
        let id = self.next_subflow_id();
        self.next_subflow = id.0.wrapping_add(1);
        id
    }

    /// Number of subflows that can still carry something, as limits count them.
    fn active_subflows(&self) -> usize {
        self.subflows.iter().filter(|subflow| !subflow.is_retired()).count()
    }

    /// The connection and its subflows have ended: nothing is left to do.
    pub(crate) fn is_spent(&self) -> bool {
        self.released && self.closed_at.is_some() && self.subflows.iter().all(|subflow| subflow.tcb.is_over())
    }

    /// Like [`Self::is_spent`], except for TIME-WAIT.
    pub(crate) fn is_lingering(&self) -> bool {
        self.released && self.closed_at.is_some() && self.subflows.iter().all(Subflow::is_finished)
    }

    /// No data can flow any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// It ended otherwise than by the ends of both streams.
    fn is_cut_off(&self) -> bool {
        self.close_reason.is_some_and(|reason| reason != CloseReason::Finished)
    }

    pub(crate) fn is_established(&self) -> bool {
        self.established_at.is_some()
    }

    /// Accepts data for sending; returns the number of octets accepted.
    pub(crate) fn send(&mut self, data: Payload) -> Result<usize, ConnectionError> {
        self.check_open()?;
        if self.sender.finished {
            return Err(ConnectionError::WrongState);
        }
        self.end_series();
        let offered = data.len();
        let taken = self.sender.buffer.write(data, self.room());
        self.sender.writable_wanted |= taken < offered;
        self.totals.written_bytes += taken as u64;
        Ok(taken)
    }

    pub(crate) fn send_capacity(&self) -> u64 {
        if self.sender.finished || self.is_closed() { 0 } else { self.room() }
    }

    /// Octets that the send buffer can accept now.
    fn room(&self) -> u64 {
        let unsent_bytes = self.sender.buffer.end().since(self.sender.next);
        self.sender.buffer.capacity().min(self.config.unsent_max_bytes.saturating_sub(unsent_bytes))
    }

    /// Octets that the send buffer can accept when nothing is in flight.
    fn room_max(&self) -> u64 {
        self.sender.buffer.limit().min(self.config.unsent_max_bytes)
    }

    /// Returns the octets that the peer has acknowledged.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.totals.acked_bytes
    }

    /// For tests with policies outside all registries.
    #[cfg(test)]
    pub(crate) fn policies_mut(&mut self) -> &mut Policies {
        &mut self.policies
    }

    /// Takes at most `max` octets in order. The caller then checks whether that opens the window
    /// ([`Self::announce_window_if_worthwhile`]); if there are no octets, [`Self::nothing_to_read`] tells why.
    pub(crate) fn take(&mut self, max: usize) -> Option<Payload> {
        self.receiver.readable_told = false;
        let payload = self.receiver.stream.take(max)?;
        self.totals.read_bytes += payload.len() as u64;
        Some(payload)
    }

    pub(crate) fn nothing_to_read(&self) -> Result<Received, ConnectionError> {
        if self.receiver.finished || self.receiver.shut {
            return Ok(Received::Finished);
        }
        match self.close_reason.filter(|_| self.is_closed()) {
            Some(reason) => Err(ConnectionError::Closed(reason)),
            None => Ok(Received::Pending),
        }
    }

    /// Tells the owner once that there is something to read.
    fn tell_readable(&mut self, host: &mut Host) {
        if self.receiver.shut {
            return;
        }
        if !core::mem::replace(&mut self.receiver.readable_told, true) && self.established_at.is_some() {
            host.events.push_back(Event::Readable(self.id));
        }
    }

    /// Makes the send buffer as large as the sum of its subflows' buffers, if those grow with their windows; it never
    /// shrinks.
    fn grow_send_buffer(&mut self) {
        let binding = self.config.era.binding;
        if binding == Binding::Autotuned {
            let sum = self.subflows.iter().filter_map(|subflow| subflow.send_buffer_bytes(binding)).sum::<u64>();
            let limit = sum.min(self.config.send_buffer_bytes).max(self.sender.buffer.limit());
            self.sender.buffer.set_limit(limit);
        }
    }

    /// Sending has made room for unsent octets, if their number is limited.
    fn tell_writable_after_sending(&mut self, host: &mut Host) {
        if self.sender.writable_wanted && self.config.unsent_max_bytes < self.sender.buffer.limit() {
            self.tell_writable(host);
        }
    }

    /// Tells the owner that there is room again.
    fn tell_writable(&mut self, host: &mut Host) {
        self.grow_send_buffer();
        // A quarter at a time, so the owner is not woken for small pieces.
        if self.sender.writable_wanted && self.room() >= (self.room_max() / 4).max(1) {
            self.sender.writable_wanted = false;
            host.events.push_back(Event::Writable(self.id));
        }
    }

    /// Returns the next data sequence numbers to send and to receive, in MPTCP only.
    pub(crate) fn data_sequence(&self) -> Option<(Dsn, Dsn)> {
        self.is_mptcp().then(|| (self.sender.next, self.receiver.stream.next()))
    }

    /// Returns statistics, including those of ended subflows.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let mut subflows = self.ended.clone();
        subflows.extend(self.subflows.iter().map(Subflow::stats));
        subflows.sort_by_key(|subflow| subflow.id);
        let totals = &self.totals;
        ConnectionStats {
            state: self.state.name(),
            mptcp: self.is_mptcp(),
            fell_back: self.protocol == Protocol::Tcp { fell_back: true },
            local_token: self.is_mptcp().then(|| self.local_token().0),
            remote_token: self.remote_key().map(|key| keys::token(key).0),
            written_bytes: totals.written_bytes,
            unsent_bytes: self.sender.buffer.end().since(self.sender.next),
            acked_bytes: totals.acked_bytes,
            received_bytes: totals.received_bytes,
            read_bytes: totals.read_bytes,
            reinjected_bytes: totals.reinjected_bytes,
            duplicate_bytes: totals.duplicate_bytes,
            out_of_order_bytes: self.receiver.stream.waiting_bytes(),
            out_of_order_peak_bytes: self.receiver.stream.waiting_peak_bytes(),
            established_at: self.established_at,
            closed_at: self.closed_at,
            subflows,
        }
    }
}
