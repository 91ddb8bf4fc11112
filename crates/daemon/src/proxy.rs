//! A proxy on the loopback: SOCKS5 (RFC 1928) and HTTP on one port. Every client's connection becomes one of the
//! engine's.
//!
//! ```text
//! client       ── socket ── session ── engine ── uplinks ── server
//!            poller      │
//!         resolver, dial, choice
//! ```
//!
//! ```text
//! run          the proxy on a TUN device, in a thread of its own until it is stopped
//! session      one client: octets both ways, with a bounded number in transit
//! client       the client's socket
//! opening      the client's first octets: socks, head
//! exchange     a plain HTTP request and its answer: head, framing
//! parting      clients that have ended their stream, and servers that do not answer
//! dial         connects: the server's addresses and our uplinks race; also losers of such races
//! choice       chooses the uplink on which a connection starts
//! portal       uplinks that answer in the server's place
//! priority     keeps subflows as backups until a connection brings enough for several paths
//! bad_subflows acts on subflows that cost more than they bring, or are dead
//! forgotten    gives up subflows that have owed an answer for a long time
//! silence      uplinks over which something was asked and nothing was heard
//! resolver     names to addresses
//! target       targets that the proxy refuses
//! ```
//!
//! The proxy runs in one thread, the driver's, and never waits for a client. It reads no more from a server than the
//! client       takes: the connection's window closes, and the server stops.

mod accept;
mod bad_subflows;
pub mod choice;
mod client;
mod dial;
mod exchange;
pub mod failure;
mod forgotten;
mod framing;
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
use linux::uplink::Network;
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

/// Size of a read from a client, octets.
const SCRATCH_BYTES: usize = 128 << 10;
/// Maximum number of a client's octets that wait to be sent. It covers the time between two turns at gigabits per
/// second, but is little of a slow uplink's time. With more, clients would only overestimate their progress.
const UNSENT_MAX_BYTES: u64 = 256 << 10;
/// Default limit on clients; the operating system may allow fewer.
const CLIENTS_MAX: usize = 20_000;
/// A NAT forgets a connection without traffic; mobile operators' NATs do so soon.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Time for unfinished work when the proxy ends.
const ENDING_MAX: Duration = Duration::from_secs(1);
/// Tokens of descriptors that belong to no client.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Configuration of a proxy.
#[derive(Clone)]
pub struct ProxyConfig {
    /// Address of the listener: on the loopback, unless `open` is set. Port 0 selects any free port.
    pub listen: SocketAddr,
    /// Allows any listening address. Everyone who reaches the proxy can then use it, and reaches whatever this device
    /// reaches.
    pub open: bool,
    /// This device's own addresses. The proxy refuses them as targets, besides those of [`target::why_not`] and the
    /// uplinks.
    pub forbidden: Vec<IpAddr>,
    /// Broadcast addresses of this device's networks, also refused.
    pub broadcasts: Vec<IpAddr>,
    /// Settings of connections to servers.
    pub connection: ConnectionConfig,
    /// Resolves names.
    pub lookup: Lookup,
    /// Maximum number of clients.
    pub clients_max: usize,
    /// Called after every connection to a server.
    pub ended: Option<Ended>,
}

/// Callback for a connection that has ended; it must not block.
pub type Ended = Arc<dyn Fn(&ConnectionStats) + Send + Sync>;

impl ProxyConfig {
    /// Sets which addresses this device has, and the broadcast addresses of their networks.
    pub fn set_networks(&mut self, own: &[Network]) {
        self.forbidden = own.iter().map(|network| network.address).collect();
        self.broadcasts = own.iter().filter_map(Network::broadcast).collect();
    }

    /// Creates a configuration with the defaults, for a proxy at `listen`.
    pub fn new(listen: SocketAddr) -> Self {
        let connection = ConnectionConfig {
            mtu: MTU,
            offload_max_bytes: OFFLOAD_PAYLOAD_MAX,
            keep_alive: Some(KEEP_ALIVE),
            // Clients decide themselves whether to gather octets.
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
    /// Names of the uplinks, by the engine's address.
    names: BTreeMap<IpAddr, String>,
    meters: Meters,
    /// Octets metered since the last look of the watch.
    unwatched: BTreeMap<IpAddr, u64>,
    sessions: Slab<Session>,
    by_connection: BTreeMap<ConnectionId, usize>,
    losers: Vec<Loser>,
    /// Times at which sessions are due.
    timers: Deadlines,
    /// Sessions that asked for another turn.
    again: VecDeque<u64>,
    /// Sessions with octets in motion.
    watched: Vec<u64>,
    /// Sessions whose connections are new or have gained an uplink.
    joining: Vec<u64>,
    watch_at: Option<Instant>,
    watched_at: Instant,
    held_back: HeldBack,
    /// Pauses of the uplinks.
    pauses: Pauses,
    shares: Shares,
    /// When the last packet arrived on each uplink, of any connection.
    heard: BTreeMap<IpAddr, Instant>,
    silences: Silences,
    /// When several clients last downloaded at once.
    crowded_at: Option<Instant>,
    /// Whether the last look-up found no name server.
    names_are_silent: bool,
    examine_at: Option<Instant>,
    /// The session that was examined last.
    examined: Option<u64>,
    /// Deadline for unfinished work while the proxy ends.
    ending: Option<Instant>,
    next_serial: u32,
    scratch: Vec<u8>,
    totals: Totals,
    say: Box<dyn FnMut(&str) + Send>,
}

impl ProxyConfig {
    /// Checks that `open` is set if and only if others can reach the address.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> linux::Result<()> {
        let why = match (self.listen.ip().is_loopback(), self.open) {
            (false, false) => {
                "is not a loopback address: anyone who reaches the proxy can use it to reach everything that this \
                 device reaches; listen on 127.0.0.1, or allow it with --open"
            }
            (true, true) => {
                "is a loopback address, which no other device reaches: leave out --open, or choose another one, such \
                 as --listen 0.0.0.0:1080"
            }
            _ => return Ok(()),
        };
        Err(linux::Error::Usage(format!("{} {why}", self.listen)))
    }
}

impl Proxy {
    /// Creates a listening proxy. `wake` makes the driver call [`App::handle_wake`]; `say` passes messages to the user.
    ///
    /// # Errors
    /// Those of [`ProxyConfig::check`]; if the process cannot listen on the address.
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
                    " (another program already does, perhaps another `anabranch join`: stop it, or \
                     choose another address with --listen)"
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
            examine_at: None,
            examined: None,
            ending: None,
            next_serial: 0,
            scratch: vec![0; SCRATCH_BYTES],
            totals: Totals::default(),
            say: Box::new(say),
        })
    }

    /// Returns the address of the listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the descriptor that the driver watches besides its device.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn source(&self) -> io::Result<OwnedFd> {
        self.poller.handle()
    }

    /// Ends the proxy in good order when `stop` becomes readable; [`App::is_finished`] reports the end. The caller
    /// keeps the descriptor, and keeps it open.
    ///
    /// # Errors
    /// If the kernel refuses to watch another descriptor.
    pub fn end_at(&self, stop: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.add(stop, STOP)
    }

    /// Notes that this device has other addresses than before: see [`ProxyConfig::set_networks`].
    pub fn set_networks(&mut self, own: &[Network]) {
        self.config.set_networks(own);
    }

    /// Assigns an address of the engine to another uplink, with this name.
    pub fn hand_over(&mut self, ip: IpAddr, name: &str) {
        self.meters.forget(ip);
        self.set_name(ip, name);
    }

    /// Sets the name of the uplink behind an address of the engine.
    pub fn set_name(&mut self, ip: IpAddr, name: &str) {
        self.names.insert(ip, name.to_owned());
    }

    /// Stops accepting clients, and gives the present ones a second to finish.
    pub fn end(&mut self, now: Instant) {
        if self.ending.is_none() {
            self.accepting.end();
            self.ending = Some(now + ENDING_MAX);
            self.watch_at = Some(now);
        }
    }

    /// Adds an uplink or changes its tier. New connections start on it, and existing ones spread to it.
    pub fn add_uplink(&mut self, uplink: Uplink, endpoint: &mut Endpoint, now: Instant) {
        self.choice.add(uplink);
        self.renew(uplink.ip, endpoint, now);
        self.note_all_joining(now);
    }

    /// Removes an uplink. Connections continue on other uplinks; those without another end.
    pub fn remove_uplink(&mut self, ip: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        self.choice.remove(ip);
        self.held_back.forget(ip);
        self.heard.remove(&ip);
        self.silences.forget(ip);
        // An uplink that gets this address later inherits nothing.
        for (_, session) in &mut self.sessions {
            session.counted = session.counted.filter(|(counted, _)| *counted != ip);
            if let Some(server) = &mut session.server {
                server.other_family.forget(ip);
                server.held_back.forget(ip);
                server.harm.forget(ip);
                server.lacks.retain(|lack| !lack.is_over(ip));
            }
        }
        endpoint.remove_local_address(ip, now);
    }

    /// Changes the tier of an uplink; existing connections follow.
    pub fn set_tier(&mut self, uplink: Uplink, endpoint: &mut Endpoint, now: Instant) {
        if uplink.tier == Tier::Never {
            return self.remove_uplink(uplink.ip, endpoint, now);
        }
        self.add_uplink(uplink, endpoint, now);
        self.settle_all(endpoint, now);
    }

    /// Forgets that an uplink was late, also for one connection only: the user has set its tier. A tier that changes by
    /// itself, such as by the target bit rate, says nothing about that.
    pub fn forgive(&mut self, ip: IpAddr) {
        self.held_back.forget(ip);
        for server in self.sessions.iter_mut().filter_map(|(_, session)| session.server.as_mut()) {
            server.held_back.forget(ip);
        }
    }

    /// Returns whether an uplink is a backup for a while for all connections, because it made transfers slower than
    /// without it.
    pub fn is_held_back(&self, ip: IpAddr, now: Instant) -> bool {
        self.held_back.is_held(ip, now)
    }

    /// Returns whether octets of any client have moved recently.
    pub fn is_busy(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Returns the totals since the start, present clients included.
    pub fn totals(&self) -> Totals {
        let mut totals = self.totals;
        for (_, session) in &self.sessions {
            totals.up_bytes += session.up_bytes;
            totals.down_bytes += session.down_bytes;
        }
        totals
    }

    /// Returns the traffic over an address of the engine, over all past and present connections.
    pub fn meter(&self, ip: IpAddr) -> UplinkMeter {
        self.meters.of(ip)
    }

    /// Returns the status. Visits every connection.
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
            held_back: self.is_held_back(view.uplink.ip, now),
            meter: self.meters.of(view.uplink.ip),
        };
        ProxyStatus {
            listen: self.local,
            totals: self.totals(),
            addresses: self.choice.view(now).into_iter().map(address).collect(),
            clients: self.sessions.iter().map(|(_, session)| client(session)).collect(),
        }
    }

    /// Handles the events of the kernel and the answers of the resolver.
    fn take_news(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut events = Vec::new();
        if self.poller.take(&mut events).is_err() {
            // This only fails if the descriptor is no epoll descriptor; nothing can be done for clients then.
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

    /// Returns the session of a token, unless the slot now belongs to another session.
    fn key_of(&self, token: u64) -> Option<usize> {
        let key = (token & u64::from(u32::MAX)) as usize;
        self.sessions.get(key).filter(|session| u64::from(session.serial) == token >> 32).map(|_| key)
    }

    fn token(&self, key: usize) -> u64 {
        u64::from(self.sessions[key].serial) << 32 | key as u64
    }

    /// Gives another turn to the sessions that asked for one. Those that ask during this call wait for the next.
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
        if self.examine_at.is_some_and(|at| at <= now) {
            self.examine_watched(endpoint, now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.again.is_empty() {
            return Some(Instant::ZERO);
        }
        let timer = self.timers.first().map(|(at, _)| at);
        [timer, self.accepting.retry_at(), self.watch_at, self.examine_at].into_iter().flatten().min()
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
