//! A proxy on the loopback: SOCKS5 (RFC 1928) and HTTP on one port, each client's connection becoming one of the engine's.
//!
//! ```text
//! client ── socket ── session ── engine ── uplinks ── server
//!            poller      │
//!         resolver, dial, choice
//! ```
//!
//! ```text
//! run       the proxy on a TUN device, in a thread of its own until it is stopped
//! session   one client: octets both ways, a bounded number of them on their way
//! client    its socket
//! opening   what it says first: socks, head
//! exchange  a request of plain HTTP and its answer: head, growing_head, framing
//! parting   clients that have ended their stream, and servers that do not answer
//! dial      connecting, the addresses of the server and our uplinks racing; losers of such races
//! choice    which uplink a connection starts from
//! portal    uplinks that answer in the place of servers
//! priority  which subflows are backups until a connection brings enough for several paths
//! guard     acts on subflows that cost more than they bring, or are dead
//! forgotten gives up subflows that owe an answer for long
//! silence   uplinks on which something was asked and nothing is heard
//! resolver  names to addresses
//! target    where nobody is taken
//! ```
//!
//! One thread, that of the driver: no client is ever waited for. What a client does not read, it does not get: its connection's
//! window closes, and the server stops.

mod accept;
pub mod choice;
mod client;
mod dial;
mod exchange;
pub mod failure;
mod forgotten;
mod framing;
mod growing_head;
mod guard;
mod head;
mod joining;
mod losers;
mod meter;
mod opening;
mod parting;
mod poller;
mod portal;
mod priority;
mod progress;
pub mod resolver;
mod run;
mod session;
pub mod silence;
mod socks;
pub mod status;
pub mod target;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use host::App;
use host::uplinks::{HeldBack, Pauses, Shares};
use linux::attachment::MTU;
use linux::driver::OFFLOAD_PAYLOAD_MAX;
use slab::Slab;
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, Event};
use units::{Deadlines, Duration, Instant};

use accept::Accepting;
use choice::{Choice, Tier, Uplink, UplinkView};
use losers::Loser;
use meter::{Meters, UplinkMeter};
use poller::Poller;
use resolver::{Lookup, Resolver, is_silence, system_lookup};
use session::{Session, Stage};
use silence::Silences;
use status::{AddressStatus, ClientStatus, ProxyStatus, Totals};

pub use run::{RunOptions, run};

/// Octets read from a client at a time.
const SCRATCH_BYTES: usize = 128 << 10;
/// Octets of a client that wait to be sent, at most: enough for the time between two turns at gigabits a second, and little of a slow uplink's time. More
/// would only have clients believe that they are further than they are.
const UNSENT_MAX_BYTES: u64 = 256 << 10;
/// Clients at most, unless the operating system allows fewer.
const CLIENTS_MAX: usize = 20_000;
/// A NAT forgets a connection without traffic, and with mobile operators soon.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// For how long what is under way may finish once the proxy ends.
const ENDING_MAX: Duration = Duration::from_secs(1);
/// Names of the descriptors that are no client's.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// What a proxy needs to know.
#[derive(Clone)]
pub struct ProxyConfig {
    /// Where it listens: on the loopback, unless `open` is set. Port 0 is any free one.
    pub listen: SocketAddr,
    /// Listens on any address: whoever reaches it may use it, and reaches whatever this device reaches.
    pub open: bool,
    /// Addresses where nobody is taken, besides those of [`target::why_not`] and the uplinks: this device's own.
    pub forbidden: Vec<IpAddr>,
    /// Addresses of all hosts of a network that this device is in: nobody is taken there either.
    pub broadcasts: Vec<IpAddr>,
    /// How connections to servers are opened.
    pub connection: ConnectionConfig,
    /// How names are resolved.
    pub lookup: Lookup,
    /// Clients at most.
    pub clients_max: usize,
    /// Hears of every connection to a server that has ended.
    pub ended: Option<Ended>,
}

/// Hears of a connection that has ended; it is not to wait for anybody.
pub type Ended = Arc<dyn Fn(&ConnectionStats) + Send + Sync>;

impl ProxyConfig {
    /// A proxy at `listen` with what suits most.
    pub fn new(listen: SocketAddr) -> Self {
        let connection = ConnectionConfig {
            mtu: MTU,
            offload_max_bytes: OFFLOAD_PAYLOAD_MAX,
            keep_alive: Some(KEEP_ALIVE),
            // Clients have gathered their octets, or have not, as they like.
            nagle: false,
            unsent_max_bytes: UNSENT_MAX_BYTES,
            ..ConnectionConfig::default()
        };
        let (lookup, clients_max) = (system_lookup(), CLIENTS_MAX);
        let (forbidden, broadcasts) = (Vec::new(), Vec::new());
        Self { listen, open: false, forbidden, broadcasts, connection, lookup, clients_max, ended: None }
    }
}

/// The proxy as an application of the engine, for [`linux::driver::Driver::run_with`] with [`Proxy::source`].
pub struct Proxy {
    config: ProxyConfig,
    local: SocketAddr,
    accepting: Accepting,
    poller: Poller,
    resolver: Resolver,
    choice: Choice,
    /// What people call the uplinks of the engine's addresses.
    names: BTreeMap<IpAddr, String>,
    meters: Meters,
    /// Octets that were metered since the watch looked last.
    unwatched: BTreeMap<IpAddr, u64>,
    sessions: Slab<Session>,
    by_connection: BTreeMap<ConnectionId, usize>,
    losers: Vec<Loser>,
    /// When sessions want to be called.
    timers: Deadlines,
    /// Sessions that have another turn coming.
    again: VecDeque<u64>,
    /// Sessions whose octets move.
    watched: Vec<u64>,
    /// Sessions whose connections are new, or have got an uplink.
    joining: Vec<u64>,
    watch_at: Option<Instant>,
    watched_at: Instant,
    held_back: HeldBack,
    /// How long uplinks pause.
    pauses: Pauses,
    shares: Shares,
    /// When anybody was last heard on an uplink.
    heard: BTreeMap<IpAddr, Instant>,
    silences: Silences,
    /// When several clients last downloaded at once.
    crowded_at: Option<Instant>,
    /// The last name that was looked up found no name server.
    names_are_silent: bool,
    guard_at: Option<Instant>,
    /// Until when what is under way may finish.
    ending: Option<Instant>,
    next_serial: u32,
    scratch: Vec<u8>,
    totals: Totals,
    say: Box<dyn FnMut(&str) + Send>,
}

impl ProxyConfig {
    /// Whether `open` is set where others reach the address, and nowhere else.
    ///
    /// # Errors
    /// If it is not so.
    pub fn check(&self) -> linux::Result<()> {
        let why = match (self.listen.ip().is_loopback(), self.open) {
            (false, false) => {
                "is no loopback address: whoever reaches such a proxy may use it, and reaches through it whatever this device reaches. Listen on \
                 127.0.0.1, or allow it with --open"
            }
            (true, true) => {
                "is a loopback address, which nobody else reaches: leave out --open, or name another one, as --listen 0.0.0.0:1080"
            }
            _ => return Ok(()),
        };
        Err(linux::Error::Usage(format!("{} {why}", self.listen)))
    }
}

impl Proxy {
    /// A proxy that listens. `wake` makes the driver call [`App::handle_wake`], and `say` tells people what they should know.
    ///
    /// # Errors
    /// Those of [`ProxyConfig::check`]; if the address is in use.
    pub fn new(
        config: ProxyConfig,
        uplinks: &[Uplink],
        wake: impl Fn() + Send + Sync + 'static,
        say: impl FnMut(&str) + Send + 'static,
    ) -> linux::Result<Self> {
        config.check()?;
        let system = |what| move |error: io::Error| linux::Error::system(what)(error);
        let listener = TcpListener::bind(config.listen).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    " (another program does, perhaps another `anabranch join`: end it, or choose another address with --listen)"
                }
                io::ErrorKind::AddrNotAvailable => " (this device has no such address)",
                _ => "",
            };
            linux::Error::system(format!("listen on {}{remedy}", config.listen))(error)
        })?;
        let local = listener.local_addr().map_err(system("find the proxy's address"))?;
        let poller = Poller::new().map_err(system("create an epoll descriptor"))?;
        poller.add(&listener, LISTENER).map_err(system("watch a socket"))?;
        let accepting = Accepting::new(listener, config.clients_max).map_err(system("set up a socket"))?;
        let mut choice = Choice::default();
        uplinks.iter().for_each(|uplink| choice.add(*uplink));
        Ok(Self {
            resolver: Resolver::new(config.lookup.clone(), wake),
            config,
            local,
            accepting,
            poller,
            choice,
            names: BTreeMap::new(),
            meters: Meters::default(),
            unwatched: BTreeMap::new(),
            sessions: Slab::new(),
            by_connection: BTreeMap::new(),
            losers: Vec::new(),
            timers: Deadlines::new(),
            again: VecDeque::new(),
            watched: Vec::new(),
            joining: Vec::new(),
            watch_at: None,
            watched_at: Instant::ZERO,
            held_back: HeldBack::default(),
            pauses: Pauses::default(),
            shares: Shares::default(),
            heard: BTreeMap::new(),
            silences: Silences::default(),
            crowded_at: None,
            names_are_silent: false,
            guard_at: None,
            ending: None,
            next_serial: 0,
            scratch: vec![0; SCRATCH_BYTES],
            totals: Totals::default(),
            say: Box::new(say),
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What the driver is to wait for beside its device.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn source(&self) -> io::Result<OwnedFd> {
        self.poller.handle()
    }

    /// Has the proxy end by itself, in good order, when `stop` can be read: [`App::is_finished`] tells when it has. The descriptor
    /// stays the caller's, and must stay open.
    ///
    /// # Errors
    /// If the kernel watches no more descriptors.
    pub fn end_at(&self, stop: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.add(stop, STOP)
    }

    /// An address of the engine is another uplink's than before, which is called so.
    pub fn hand_over(&mut self, ip: IpAddr, name: &str) {
        self.meters.forget(ip);
        self.set_name(ip, name);
    }

    /// What people call the uplink of an address of the engine.
    pub fn set_name(&mut self, ip: IpAddr, name: &str) {
        self.names.insert(ip, name.to_owned());
    }

    /// Accepts no more clients, and gives those that are there a second to finish what is under way.
    pub fn end(&mut self, now: Instant) {
        if self.ending.is_none() {
            self.accepting.end();
            self.ending = Some(now + ENDING_MAX);
            self.watch_at = Some(now);
        }
    }

    /// An uplink is there, or has another tier: connections start from it, and those that exist spread to it.
    pub fn add_uplink(&mut self, uplink: Uplink, endpoint: &mut Endpoint, now: Instant) {
        if self.choice.tier(uplink.ip) != Some(uplink.tier) {
            self.held_back.forget(uplink.ip);
        }
        self.choice.add(uplink);
        self.renew(uplink.ip, endpoint, now);
        self.note_all_joining(now);
    }

    /// An uplink is gone: connections live on on others; those that had no other end.
    pub fn remove_uplink(&mut self, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        self.choice.remove(ip);
        self.held_back.forget(ip);
        self.heard.remove(&ip);
        self.silences.forget(ip);
        endpoint.remove_local_address(ip, now);
    }

    /// An uplink is used in another way; connections that exist follow.
    pub fn set_tier(&mut self, uplink: Uplink, endpoint: &mut Endpoint, now: Instant) {
        if uplink.tier == Tier::Never {
            return self.remove_uplink(uplink.ip, endpoint, now);
        }
        self.add_uplink(uplink, endpoint, now);
        self.settle_all(endpoint, now);
    }

    /// Whether somebody's octets have moved lately.
    pub fn is_busy(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Sums since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What passed over an address of the engine, of all connections that ever were.
    pub fn meter(&self, ip: IpAddr) -> UplinkMeter {
        self.meters.of(ip)
    }

    /// What it does. Costs a look at every connection.
    pub fn status(&self, endpoint: &Endpoint, now: Instant) -> ProxyStatus {
        let client = |session: &Session| ClientStatus {
            protocol: session.protocol,
            target: session.target().map(ToString::to_string),
            stage: session.stage.name(),
            age: now.saturating_since(session.since),
            up_bytes: session.up_bytes,
            down_bytes: session.down_bytes,
            connection: session.server.as_ref().and_then(|server| endpoint.stats(server.connection)),
        };
        let address = |view: UplinkView| AddressStatus {
            view,
            held_back: self.held_back.holds(view.uplink.ip),
            meter: self.meters.of(view.uplink.ip),
        };
        ProxyStatus {
            listen: self.local,
            totals: self.totals,
            addresses: self.choice.view(now).into_iter().map(address).collect(),
            clients: self.sessions.iter().map(|(_, session)| client(session)).collect(),
        }
    }

    /// Takes what the kernel and the resolver have to tell.
    fn take_news(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut events = Vec::new();
        if self.poller.take(&mut events).is_err() {
            // Only a descriptor that is not epoll's any more fails here: nothing can be done for clients then.
            return self.end(now);
        }
        for (token, readiness) in events {
            match token {
                LISTENER => self.accept(endpoint, now),
                STOP if readiness.readable => self.end(now),
                STOP => {}
                token => {
                    let Some(key) = self.key_of(token) else { continue };
                    match self.sessions[key].client.note(readiness) {
                        Ok(()) => self.turn(key, endpoint, now),
                        Err(_) => self.finish(key, session::End::ClientGone, endpoint, now),
                    }
                }
            }
        }
        for (waiters, answer) in self.resolver.poll(now) {
            self.names_are_silent &= answer.as_ref().is_err_and(|why| is_silence(why));
            for token in waiters {
                if let Some(key) = self.key_of(token) {
                    self.resolved(key, answer.clone(), endpoint, now);
                }
            }
        }
    }

    /// The session of a token, unless it is another one by now.
    fn key_of(&self, token: u64) -> Option<usize> {
        let key = (token & u64::from(u32::MAX)) as usize;
        self.sessions.get(key).filter(|session| u64::from(session.serial) == token >> 32).map(|_| key)
    }

    fn token(&self, key: usize) -> u64 {
        u64::from(self.sessions[key].serial) << 32 | key as u64
    }

    /// Gives those their turn who asked for another one; what they ask for now comes later.
    fn go_round(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for _ in 0..self.again.len() {
            let Some(token) = self.again.pop_front() else { return };
            if let Some(key) = self.key_of(token) {
                self.sessions[key].queued = false;
                self.turn(key, endpoint, now);
            }
        }
    }
}

impl App for Proxy {
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Connected { connection, mptcp }
                if self.take_late_answer(*connection, Some(*mptcp), endpoint, now) => {}
            Event::Closed { connection, .. } if self.take_late_answer(*connection, None, endpoint, now) => {}
            Event::Connected { connection, mptcp } => self.connected(*connection, *mptcp, endpoint, now),
            Event::Closed { connection, reason } => self.closed(*connection, *reason, endpoint, now),
            Event::SubflowClosed { connection, subflow, reason } => {
                self.note_refusal((*connection, *subflow), *reason, endpoint, now);
            }
            Event::FellBack(connection) => self.fell_back(*connection, endpoint, now),
            Event::Readable(connection) | Event::Writable(connection) | Event::PeerFinished(connection) => {
                if let Some(key) = self.by_connection.get(connection).copied() {
                    self.drop_unasked(key, matches!(event, Event::PeerFinished(_)), endpoint, now);
                    self.turn(key, endpoint, now);
                }
            }
            _ => {}
        }
    }

    fn handle_wake(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.totals.turns += 1;
        self.take_news(endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.totals.turns += 1;
        self.go_round(endpoint, now);
        while let Some((_, key)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.set(key, None);
            if self.sessions.contains(key) {
                self.time_is_up(key, endpoint, now);
            }
        }
        if self.accepting.retry_at().is_some_and(|at| at <= now) {
            self.accept(endpoint, now);
        }
        if self.watch_at.is_some_and(|at| at <= now) {
            self.watch(endpoint, now);
        }
        if self.guard_at.is_some_and(|at| at <= now) {
            self.guard(endpoint, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.again.is_empty() {
            return Some(Instant::ZERO);
        }
        let timer = self.timers.first().map(|(at, _)| at);
        [timer, self.accepting.retry_at(), self.watch_at, self.guard_at].into_iter().flatten().min()
    }

    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let keys: Vec<usize> = self.sessions.iter().map(|(key, _)| key).collect();
        for key in keys {
            let quiet = self.sessions[key].is_quiet(endpoint) && !matches!(self.sessions[key].stage, Stage::Tunnel);
            let end = if quiet { session::End::Finished } else { session::End::ServerGone };
            self.finish(key, end, endpoint, now);
        }
    }

    fn is_finished(&self) -> bool {
        self.ending.is_some() && self.sessions.is_empty()
    }
}

impl AsFd for Proxy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

#[cfg(test)]
mod tests;
