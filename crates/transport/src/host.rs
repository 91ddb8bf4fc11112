//! State that the connections of an endpoint share: events, secrets, and the tables that find connections.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use std::collections::{HashMap, VecDeque};

use foldhash::quality::FixedState;
use hmac::{Hmac, Mac};
use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};
use units::narrow::low_u32;
use units::{Instant, Prng, SeqNr};
use wire::mptcp::{MpTcpRst, MptcpOption, ResetReason, Token};
use wire::{Flags, Segment};

use crate::event::EventQueue;
use crate::observation::{Observer, Observers};
use crate::path_manager::LocalAddress;
use crate::ports::SourcePorts;
use crate::routes::Routes;
use crate::syn_cookie::CookieJar;
use crate::tcp::Secrets;
use crate::{ConnectionId, EndpointConfig, ListenerId, SubflowId};

/// Tick of the clock part of initial sequence numbers: 4 microseconds (RFC 6528 section 3).
const ISN_TICK_NANOS: u64 = 4_000;

/// Maximum number of queued replies to strangers. A flood deserves no more.
const REPLIES_MAX: usize = 1024;

/// A four-tuple, seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// Hashes in few steps because every segment needs a lookup.
impl Hash for Tuple {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for address in [self.local, self.remote] {
            match address.ip() {
                IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
                IpAddr::V6(ip) => hasher.write_u128(ip.to_bits()),
            }
            hasher.write_u16(address.port());
        }
    }
}

/// Identifies a subflow of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) slot: u32,
    pub(crate) subflow: SubflowId,
}

/// State shared by all connections of one endpoint.
pub(crate) struct Host {
    pub(crate) config: EndpointConfig,
    pub(crate) events: EventQueue,
    /// Connections that listeners wait for: established, or failed before that.
    pub(crate) accepted: Vec<(Option<ConnectionId>, ListenerId)>,
    /// Replies that belong to no connection.
    pub(crate) replies: VecDeque<Segment>,
    /// Source of keys, nonces and tokens. Cryptographic because peers see its output.
    pub(crate) secrets: ChaCha12Rng,
    /// Source of randomness for schedulers, which need not be unpredictable.
    pub(crate) prng: Prng,
    isn_key: [u8; 32],
    routes: Routes,
    tokens: HashMap<u32, u32, FixedState>,
    ports: SourcePorts,
    pub(crate) cookies: CookieJar,
    pub(crate) observers: Observers,
}

/// Derives a secret for one purpose that reveals nothing about the secrets for other purposes.
fn derived(secret: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(purpose);
    mac.finalize().into_bytes().into()
}

impl Host {
    pub(crate) fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        let mut secrets = ChaCha12Rng::from_seed(seed);
        let hasher = FixedState::with_seed(secrets.next_u64());
        let mut isn_key = [0; 32];
        secrets.fill_bytes(&mut isn_key);
        let prng = Prng::new(secrets.next_u64());
        let ports = SourcePorts::new(config.ephemeral_port_first, derived(&isn_key, b"source ports"));
        let cookies = CookieJar::new(&derived(&isn_key, b"SYN cookies"));
        Self {
            config,
            events: EventQueue::default(),
            accepted: Vec::new(),
            replies: VecDeque::new(),
            secrets,
            prng,
            isn_key,
            routes: Routes::new(hasher.clone()),
            tokens: HashMap::with_hasher(hasher),
            ports,
            cookies,
            observers: Observers::default(),
        }
    }

    /// Sets the observer of connections that do not exist yet, and of those that have one. The one before is dropped.
    pub(crate) fn set_observer(&mut self, observer: Box<dyn Observer>, now: Instant) {
        self.observers.set(observer, now);
        self.events.set_observers(self.observers.clone());
    }

    /// Returns the initial sequence number and timestamp offset of a new TCB. The sequence number is RFC 6528's clock
    /// plus a keyed function of the four-tuple: a new incarnation of a connection starts beyond the old one, and no
    /// outsider can predict where. RFC 7323 section 7.1 asks the same of timestamps.
    pub(crate) fn tcb_secrets(&self, tuple: &Tuple, now: Instant) -> Secrets {
        let mut keyed = Sha256::new().chain_update(self.isn_key);
        for address in [tuple.local, tuple.remote] {
            match address.ip() {
                IpAddr::V4(ip) => keyed.update(ip.octets()),
                IpAddr::V6(ip) => keyed.update(ip.octets()),
            }
            keyed.update(address.port().to_be_bytes());
        }
        let digest = keyed.finalize();
        let word = |at: usize| u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
        let clock = low_u32(now.as_nanos() / ISN_TICK_NANOS);
        Secrets { iss: SeqNr(word(0).wrapping_add(clock)), timestamp_offset: word(4) }
    }

    #[inline]
    pub(crate) fn route(&self, tuple: &Tuple) -> Option<Route> {
        self.routes.get(tuple)
    }

    /// Returns the subflow that an arriving segment belongs to.
    #[inline(always)]
    pub(crate) fn route_of(&self, segment: &Segment) -> Option<Route> {
        self.route_between(&segment.dst, &segment.src)
    }

    #[inline(always)]
    pub(crate) fn route_between(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Route> {
        self.routes.between(local, remote)
    }

    /// Claims a four-tuple. Returns false if it is taken.
    pub(crate) fn claim(&mut self, tuple: Tuple, route: Route) -> bool {
        if self.routes.get(&tuple).is_some() {
            return false;
        }
        self.routes.insert(tuple, route);
        true
    }

    pub(crate) fn release(&mut self, tuple: &Tuple) {
        self.routes.remove(tuple);
    }

    pub(crate) fn by_token(&self, token: Token) -> Option<u32> {
        self.tokens.get(&token.0).copied()
    }

    /// Claims a token. Returns false if another connection has it (RFC 8684 section 3.1).
    pub(crate) fn claim_token(&mut self, token: Token, slot: u32) -> bool {
        if self.tokens.contains_key(&token.0) {
            return false;
        }
        self.tokens.insert(token.0, slot);
        true
    }

    /// Releases a token if it belongs to the connection in `slot`; otherwise does nothing.
    pub(crate) fn release_token(&mut self, token: Token, slot: u32) {
        if self.by_token(token) == Some(slot) {
            self.tokens.remove(&token.0);
        }
    }

    /// Returns the numbers of four-tuples and tokens in use.
    pub(crate) fn claims(&self) -> (usize, usize) {
        (self.routes.len(), self.tokens.len())
    }

    /// Picks a free local port for a connection to `remote`. Returns `None` if all are taken.
    pub(crate) fn pick_port(&mut self, local: IpAddr, remote: SocketAddr) -> Option<SocketAddr> {
        let Self { ports, routes, .. } = self;
        let is_free = |port| routes.get(&Tuple { local: SocketAddr::new(local, port), remote }).is_none();
        ports.pick(local, remote, is_free).map(|port| SocketAddr::new(local, port))
    }

    pub(crate) fn local_addresses(&self) -> &[LocalAddress] {
        &self.config.local_addresses
    }

    /// Answers a segment that belongs to no connection (RFC 9293 section 3.10.7.1).
    pub(crate) fn reply_reset(&mut self, segment: &Segment) {
        if !segment.flags.contains(Flags::RST) {
            self.reply(segment.reset_in_answer());
        }
    }

    /// Refuses a join and states the reason (RFC 8684 sections 3.2 and 3.6).
    pub(crate) fn refuse_join(&mut self, syn: &Segment, reason: ResetReason) {
        let mut reply = syn.reset_in_answer();
        let transient = reason == ResetReason::LackOfResources;
        reply.options.mptcp.push(MptcpOption::TcpRst(MpTcpRst { transient, reason }));
        self.reply(reply);
    }

    /// Queues a segment that belongs to no connection, unless the queue is full.
    pub(crate) fn reply(&mut self, reply: Segment) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back(reply);
        }
    }
}
