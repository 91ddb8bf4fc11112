//! A fast-ACK relay: subflows end here, and other subflows carry their data on.
//!
//! The relay stands between the source and the destination of a connection. A host that joins through it meets the
//! relay's TCP, which acknowledges data once stored. A second TCP of the relay carries the data on. The source
//! therefore sees neither the losses nor the delays of the Wi-Fi behind the relay (thesis section 6.1.1; Co-MPTCP
//! section III-A).
//!
//! ```text
//!  source ──── subflow, leg towards the source ──▶ relay ──▶ subflow, leg towards the destination ──── destination
//!         ◀── subflow ACK at once ────────────────┤      │◀── subflow ACK ───────────────────────────
//!         ◀── DATA_ACK, window ───────────────────┴──────┴─── DATA_ACK, window ──────────────────────
//! ```
//!
//! Both legs are subflows of RFC 8684, spliced at the data sequence: between them are data with data sequence numbers,
//! in any order. Connection-level information passes through unchanged: the DATA_ACK, which states exactly what the
//! destination has; the window that refers to it; DATA_FIN, MP_FASTCLOSE, priorities and addresses. So do the random
//! numbers and HMACs of MP_JOIN: destination and source prove to each other that they know the keys, which the relay
//! never sees.
//!
//! Between the legs the owner holds the data: [`FastAckRelay::poll_data`] hands them out, and [`FastAckRelay::forward`]
//! takes them back, in any order and at any time (differentiated forwarding).

mod flow;
mod forwarding;
mod leg;
mod options;
mod per_side;
mod space;
mod splice;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use units::narrow::low_u32;
use units::{Dsn, Duration, Instant};
use wire::mptcp::{DataSeq, MpJoin, MptcpOption, Token};
use wire::{Flags, Payload, Segment, TooBig};

pub use forwarding::{AtOnce, Forwarding, ForwardingRelay};

use crate::connection::is_unicast_ip;
use crate::host::{Host, Route, Tuple};
use crate::observation::Observer;
use crate::{ConnectionConfig, EndpointConfig, SubflowId, congestion};
use splice::Splice;

/// A direction from the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Towards the source, over the relay's cellular link.
    Source,
    /// Towards the destination, over Wi-Fi.
    Destination,
}

impl Side {
    /// Returns the other side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Source => Self::Destination,
            Self::Destination => Self::Source,
        }
    }

    /// Returns the name of this side's leg in [`Host`]'s routes.
    const fn route_name(self) -> SubflowId {
        match self {
            Self::Source => SubflowId(0),
            Self::Destination => SubflowId(1),
        }
    }

    /// Returns the side of the leg with this route.
    fn of_route(route: &Route) -> Self {
        if route.subflow == Self::Source.route_name() { Self::Source } else { Self::Destination }
    }
}

/// Identifies a spliced subflow of one relay; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpliceId(u64);

impl core::fmt::Display for SpliceId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// When a host hears of the other's DATA_ACK and window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewsPace {
    /// At once for large changes, with a short delay for small ones.
    #[default]
    AtOnce,
    /// As [`Self::AtOnce`], but never a third ACK that otherwise repeats the last: a host without SACK takes it as a
    /// sign of loss (RFC 5681 section 3.2; RFC 8684 section 3 excepts MPTCP options, but not the DSS).
    Sparing,
}

/// Minimum size of a relay's buffer in packets: one in flight, and one to come.
const PACKETS_MIN: u64 = 2;

/// Settings of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Behaviour of the relay's TCPs: MTU, SACK, timestamps, time-outs, and the separate congestion controller of each
    /// leg.
    pub tcp: ConnectionConfig,
    /// Limit on the octets of a spliced subflow in the relay, each way: held, waiting, or not yet acknowledged by the
    /// next hop. Pieces below 256 octets fill the relay sooner: with 256 octets more for each piece, all of them are
    /// charged to twice this limit and 64 KiB.
    pub buffer_bytes: u64,
    /// The relay's own address on its cellular link. The source sees it in place of the destination's, as behind NAT.
    pub address_towards_source: Option<IpAddr>,
    /// The relay's own address on Wi-Fi. The destination sees it in place of the source's.
    pub address_towards_destination: Option<IpAddr>,
    /// Maximum number of spliced subflows.
    pub splices_max: usize,
    /// When a host hears of the other's DATA_ACK and window.
    pub news_pace: NewsPace,
}

impl RelayConfig {
    /// Returns the relay's own address on one side, if it has one there.
    const fn own_address(&self, side: Side) -> Option<IpAddr> {
        match side {
            Side::Source => self.address_towards_source,
            Side::Destination => self.address_towards_destination,
        }
    }
}

impl Default for RelayConfig {
    fn default() -> Self {
        let tcp = ConnectionConfig {
            congestion: congestion::ControllerSpec::named("cubic"),
            nagle: false,
            // Both hosts may vanish silently, and the relay may have nothing left to send that would show it.
            keep_alive: Some(Duration::from_secs(300)),
            ..ConnectionConfig::default()
        };
        Self {
            tcp,
            buffer_bytes: 2 << 20,
            address_towards_source: None,
            address_towards_destination: None,
            splices_max: 256,
            news_pace: NewsPace::AtOnce,
        }
    }
}

/// Data between the legs.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The subflow that they belong to.
    pub splice: SpliceId,
    /// Their direction.
    pub to: Side,
    /// Data sequence number of the first octet. If both hosts use short numbers, only the low 32 bits are certain.
    pub dsn: Dsn,
    /// The data.
    pub payload: Payload,
}

/// A notification from a relay to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEvent {
    /// Both hosts have authenticated each other; data may flow.
    Joined {
        /// Identifier of the spliced subflow.
        splice: SpliceId,
        /// Address and port of the destination's end.
        destination: SocketAddr,
        /// The source's token of the connection (RFC 8684 section 3.2). `None` if the source opened the subflow: its SYN
        /// carries the destination's token.
        connection: Option<Token>,
    },
    /// No more data will come for `to` once [`FastAckRelay::poll_data`] has handed out what arrived before. Data held
    /// back should leave now, those included.
    Ending {
        /// Identifier of the spliced subflow.
        splice: SpliceId,
        /// Direction of the data.
        to: Side,
    },
    /// The spliced subflow has ended; its pieces can no longer be sent.
    Closed {
        /// Identifier of the spliced subflow.
        splice: SpliceId,
    },
}

/// Statistics of one leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LegStats {
    /// Octets received in subflow order.
    pub received_bytes: u64,
    /// Octets sent for the first time.
    pub sent_bytes: u64,
    /// Octets retransmitted.
    pub retransmitted_bytes: u64,
    /// Smoothed round-trip time to the next host, once measured.
    pub srtt: Option<units::Duration>,
    /// Largest IP packet sent, octets: the path MTU as known or estimated.
    pub path_mtu_bytes: u16,
}

/// Statistics of one spliced subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpliceStats {
    /// Address and port of the destination's end.
    pub destination: SocketAddr,
    /// Whether data may flow.
    pub joined: bool,
    /// The leg towards the source.
    pub towards_source: LegStats,
    /// The leg towards the destination.
    pub towards_destination: LegStats,
    /// Octets for the destination that the relay holds.
    pub stored_bytes: u64,
    /// Segments dropped because the relay's buffer was full.
    pub overflowed_segments: u64,
}

/// A fast-ACK relay. Like [`crate::Endpoint`] a pure state machine, with the same rules for the time and the order of
/// calls.
pub struct FastAckRelay {
    config: Arc<RelayConfig>,
    tcp: Arc<ConnectionConfig>,
    host: Host,
    splices: BTreeMap<SpliceId, Splice>,
    next: u64,
    /// Next hop by token, for joins at the relay's own address.
    served: BTreeMap<u32, SocketAddr>,
    /// Splices that may have something to send.
    ready: BTreeSet<SpliceId>,
    data: VecDeque<Piece>,
    events: VecDeque<RelayEvent>,
    now: Instant,
}

/// Error when setting up a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// [`RelayConfig::tcp`] names an unknown controller.
    #[error("unknown congestion controller in the configuration of the relay's TCP")]
    UnknownController,
    /// The buffer is so small that the window would stay shut.
    #[error("buffer_bytes = {buffer_bytes} leaves no room for data: write {least_bytes} or more")]
    NoRoom {
        /// [`RelayConfig::buffer_bytes`].
        buffer_bytes: u64,
        /// The smallest size that works.
        least_bytes: u64,
    },
}

impl FastAckRelay {
    /// Creates a relay. Initial sequence numbers derive from `seed`.
    ///
    /// # Errors
    /// Fails if the configuration names an unknown congestion controller, or leaves no room for data.
    pub fn new(config: RelayConfig, seed: [u8; 32]) -> Result<Self, RelayError> {
        congestion::build(&config.tcp.congestion).map_err(|_| RelayError::UnknownController)?;
        let least_bytes = PACKETS_MIN * u64::from(config.tcp.mtu);
        if config.buffer_bytes < least_bytes {
            return Err(RelayError::NoRoom { buffer_bytes: config.buffer_bytes, least_bytes });
        }
        Ok(Self {
            tcp: Arc::new(config.tcp.clone()),
            config: Arc::new(config),
            host: Host::new(EndpointConfig::default(), seed),
            splices: BTreeMap::new(),
            next: 0,
            served: BTreeMap::new(),
            ready: BTreeSet::new(),
            data: VecDeque::new(),
            events: VecDeque::new(),
            now: Instant::ZERO,
        })
    }

    /// Sets the observer of the legs of subflows that are spliced from now on. There is at most one: a later one
    /// takes its place, also for the legs that it observes, and the former is dropped.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.host.set_observer(observer, self.now);
    }

    /// Accepts joins with this token at the relay's own addresses, and passes them on to `next`. Joins with the
    /// destination's token come from the source and go to the destination; joins with the source's token go the other
    /// way.
    pub fn serve(&mut self, token: Token, next: SocketAddr) {
        self.served.insert(token.0, next);
    }

    /// Stops accepting joins with this token.
    pub fn stop_serving(&mut self, token: Token) {
        self.served.remove(&token.0);
    }

    /// Takes a segment that arrived from `from`. Returns it if it neither belongs to a spliced subflow nor opens one;
    /// the relay may then route it.
    pub fn handle_segment(&mut self, from: Side, segment: Segment, now: Instant) -> Option<Segment> {
        self.advance(now);
        let tuple = Tuple { local: segment.dst, remote: segment.src };
        if let Some(route) = self.host.route(&tuple) {
            let id = SpliceId(u64::from(route.slot));
            if let Some(splice) = self.splices.get_mut(&id) {
                splice.handle_segment(Side::of_route(&route), segment, &mut self.data, now);
            }
            self.settle(id);
            return None;
        }
        match opening_join(&segment) {
            Some(token) => self.open(from, token, segment, now),
            None => Some(segment),
        }
    }

    /// Returns the next segment to send, and its direction.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Segment)> {
        self.advance(now);
        while let Some(id) = self.ready.first().copied() {
            if let Some(segment) = self.splices.get_mut(&id).and_then(|splice| splice.poll_transmit(now)) {
                return Some(segment);
            }
            self.ready.remove(&id);
            self.forget_if_over(id);
        }
        None
    }

    /// Takes an ICMP error from the network. Returns false if it does not concern a packet of a leg. See
    /// [`crate::Endpoint::handle_too_big`].
    pub fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) -> bool {
        self.advance(now);
        let tuple = Tuple { local: too_big.src, remote: too_big.dst };
        let Some(route) = self.host.route(&tuple) else { return false };
        let id = SpliceId(route.slot.into());
        let leg = self.splices.get_mut(&id).and_then(|splice| splice.legs[Side::of_route(&route)].as_mut());
        if let Some(leg) = leg {
            leg.tcb.on_too_big(too_big, now);
            self.settle(id);
        }
        true
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.splices.values().map(Splice::next_timeout).min()?;
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        let due: Vec<_> =
            self.splices.iter().filter(|(_, splice)| splice.next_timeout() <= now).map(|(id, _)| *id).collect();
        for id in due {
            if let Some(splice) = self.splices.get_mut(&id) {
                splice.handle_timeout(now);
            }
            self.settle(id);
        }
    }

    /// Returns the next data that arrived. The relay remains responsible for them, and they count against its buffer,
    /// until [`Self::forward`] has taken them back and the next host has acknowledged them.
    pub fn poll_data(&mut self) -> Option<Piece> {
        let mut piece = self.data.pop_front()?;
        if let Some(splice) = self.splices.get(&piece.splice) {
            // Its high bits may have become known since it arrived.
            piece.dsn = splice.flows[piece.to].locate(piece.dsn);
        }
        Some(piece)
    }

    /// Sends data on. Drops data of a subflow that has ended: their sender has no DATA_ACK and sends them again.
    pub fn forward(&mut self, piece: Piece, now: Instant) {
        self.advance(now);
        let id = piece.splice;
        if let Some(splice) = self.splices.get_mut(&id) {
            splice.forward(piece);
        }
        self.settle(id);
    }

    /// Widens the window announced to the source by the octets that the connection's relays may hold back together
    /// (shared window). Data that they hold lie beyond what the destination itself can promise. While the window is
    /// widened, data beyond the destination's own one wait here, so keep [`Self::on_data_ack`] informed; with 0 octets,
    /// they leave at once.
    pub fn widen_window(&mut self, splice: SpliceId, bytes: u64) {
        if let Some(splice) = self.splices.get_mut(&splice) {
            splice.widened_bytes = bytes;
        }
        self.settle(splice);
    }

    /// Takes the state of the host at `to`, learned outside this subflow: the first octet it lacks, with all bits, and
    /// its window from there. Its DATA_ACKs may arrive only on other subflows of the connection. Without this
    /// information, data beyond the window last announced here would wait until the source sends them again elsewhere.
    pub fn on_data_ack(&mut self, splice: SpliceId, to: Side, rcv_nxt: Dsn, window_bytes: u64) {
        if let Some(splice) = self.splices.get_mut(&splice) {
            let flow = &mut splice.flows[to];
            flow.anchor(rcv_nxt);
            flow.on_data_ack(DataSeq::Short(rcv_nxt.low()), window_bytes);
        }
        self.settle(splice);
    }

    /// Teaches the relay all bits of a recent data sequence number of the data towards `to`, which hosts that write
    /// only 32 bits do not show (the destination knows them: [`crate::Endpoint::data_sequence`]). DSS checksums cover
    /// all bits. Without this information the relay trusts the first checksums, and the host that receives the data
    /// verifies them.
    pub fn anchor(&mut self, splice: SpliceId, to: Side, dsn: Dsn) {
        if let Some(splice) = self.splices.get_mut(&splice) {
            splice.flows[to].anchor(dsn);
        }
    }

    /// Closes a spliced subflow gracefully: delivers all data in the relay, then closes both legs.
    pub fn close(&mut self, splice: SpliceId, now: Instant) {
        self.advance(now);
        if let Some(ending) = self.splices.get_mut(&splice) {
            ending.close();
        }
        self.settle(splice);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<RelayEvent> {
        self.events.pop_front()
    }

    /// Iterates over all spliced subflows.
    pub fn splices(&self) -> impl Iterator<Item = (SpliceId, SpliceStats)> + '_ {
        self.splices.iter().map(|(id, splice)| (*id, splice.stats()))
    }

    /// Returns the payload octets of the largest packet of `segment`, if it is a leg's; see
    /// [`crate::Endpoint::packet_payload`].
    pub fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        let route = self.host.route(&Tuple { local: segment.src, remote: segment.dst })?;
        let splice = self.splices.get(&SpliceId(route.slot.into()))?;
        Some(splice.legs[Side::of_route(&route)].as_ref()?.tcb.packet_payload(segment))
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran backwards: {now:?} after {:?}", self.now);
        self.now = now;
        self.host.observers.advance(now);
    }

    /// Opens a splice for a join that passes through. Returns the SYN if this relay has no part in it.
    fn open(&mut self, from: Side, token: Token, syn: Segment, now: Instant) -> Option<Segment> {
        let (near, far) = (Tuple { local: syn.dst, remote: syn.src }, self.far_tuple(from, token, &syn));
        let is_between_hosts = is_unicast_ip(syn.src.ip()) && is_unicast_ip(syn.dst.ip());
        let has_room = self.splices.len() < self.config.splices_max;
        let Some(far) = far.filter(|_| is_between_hosts && has_room) else { return Some(syn) };
        let id = SpliceId(self.next);
        let route = |side: Side| Route { slot: low_u32(id.0), subflow: side.route_name() };
        if !self.host.claim(far, route(from.opposite())) {
            return Some(syn);
        }
        self.host.claim(near, route(from));
        // Routes have 32 bits; the numbers start over after that many spliced subflows.
        self.next = (self.next + 1) & u64::from(u32::MAX);
        let splice = Splice::open(id, &self.config, &self.tcp, from, syn, far, &self.host, now);
        self.splices.insert(id, splice);
        self.settle(id);
        None
    }

    /// Returns the four-tuple of the leg behind the relay: the same addresses, or the relay's own where it has one.
    fn far_tuple(&mut self, from: Side, token: Token, syn: &Segment) -> Option<Tuple> {
        let is_own = self.config.own_address(from) == Some(syn.dst.ip());
        let remote = if is_own { *self.served.get(&token.0)? } else { syn.dst };
        let local = match self.config.own_address(from.opposite()) {
            Some(own) => self.host.pick_port(own, remote)?,
            None => syn.src,
        };
        (local.is_ipv4() == remote.is_ipv4()).then_some(Tuple { local, remote })
    }

    /// Processes a splice that changed: it may have segments to send or events to report.
    fn settle(&mut self, id: SpliceId) {
        let Some(splice) = self.splices.get_mut(&id) else { return };
        splice.settle(self.now);
        self.events.extend(splice.take_events());
        self.ready.insert(id);
    }

    fn forget_if_over(&mut self, id: SpliceId) {
        let Self { splices, host, data, events, .. } = self;
        let Some(splice) = splices.get(&id).filter(|splice| splice.is_over()) else { return };
        splice.tuples().iter().for_each(|tuple| host.release(tuple));
        data.retain(|piece| piece.splice != id);
        events.push_back(RelayEvent::Closed { splice: id });
        splices.remove(&id);
    }
}

/// Returns the token of a SYN that joins.
fn opening_join(segment: &Segment) -> Option<Token> {
    if !segment.flags.contains(Flags::SYN) || segment.flags.intersects(Flags::ACK | Flags::RST) {
        return None;
    }
    segment.options.mptcp.iter().find_map(|option| match option {
        MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
        _ => None,
    })
}
