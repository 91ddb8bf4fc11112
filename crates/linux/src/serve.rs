//! `anabranch serve`: serves a folder with HTTP over the engine.

mod answer;
#[cfg(test)]
mod answer_tests;
mod files;
#[cfg(test)]
mod idle_tests;
mod ledger;
#[cfg(test)]
mod ledger_tests;
mod listing;
mod session;
#[cfg(test)]
mod virtual_time;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use host::{Alone, App, EndpointHost};
use transport::{ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, Event, ListenerId};
use units::{Duration, Instant};

use crate::attachment::{Attachment, MTU, forwarding_variable, forwards};
use crate::descriptors;
use crate::driver::{Driver, OFFLOAD_PAYLOAD_MAX};
use crate::engine_options::EngineOptions;
use crate::stop::Stop;
use crate::{Error, Result};
use files::Folder;
use session::{Progress, Session};

/// Maximum interval between searches for idle connections.
const SWEEP_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// How often a connection is checked within the permitted idle time.
const SWEEPS_PER_IDLE: u64 = 4;

/// Maximum delay of the line about an answer after the peer has got all of it.
const SETTLE_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum of file descriptors, since every download keeps a file open; as many as a proxy may have clients.
const DESCRIPTORS: u64 = 20_000;

/// Called for each connection that has ended.
pub type Ended = Arc<dyn Fn(&ConnectionStats) + Send + Sync>;

/// What to serve, and where.
#[derive(Clone)]
pub struct ServeOptions {
    /// The folder; nothing outside it can be reached.
    pub folder: PathBuf,
    /// Port, at all addresses of the engine.
    pub port: u16,
    /// Addresses of the engine; private ones if empty.
    pub via: Vec<IpAddr>,
    /// A connection is ended if nothing moves on it for this long: the peer neither acknowledges nor asks for anything.
    pub idle_max: Duration,
    /// Settings of the engine.
    pub engine: EngineOptions,
    /// Called for each connection that has ended.
    pub ended: Option<Ended>,
}

/// Serves until `stop` is triggered. Lines for the user, such as the address and the outcome of requests, go to `say`.
///
/// # Errors
/// If the process may not make a TUN device, if the folder cannot be read, or if an address is in use.
pub fn serve(options: &ServeOptions, stop: &Stop, say: &mut dyn FnMut(&str)) -> Result<()> {
    let folder = Folder::open(&options.folder)?;
    descriptors::allow(DESCRIPTORS);
    let mut config =
        ConnectionConfig { mtu: MTU, offload_max_bytes: OFFLOAD_PAYLOAD_MAX, ..ConnectionConfig::default() };
    options.engine.apply(&mut config)?;
    let Attachment { mut endpoint, tun, addresses } = Attachment::open(&options.via)?;
    options.engine.observe(&mut endpoint);
    let mut listen = |ip: IpAddr| {
        let local = SocketAddr::new(ip, options.port);
        endpoint
            .listen(local, config.clone())
            .map_err(|error| Error::Usage(format!("cannot listen on {local}: {error}")))
    };
    let listeners = vec![listen(Ipv4Addr::UNSPECIFIED.into())?, listen(Ipv6Addr::UNSPECIFIED.into())?];
    for address in &addresses {
        say(&format!("serving {} at http://{}/", options.folder.display(), SocketAddr::new(*address, options.port)));
    }
    if let Some(address) = addresses.iter().find(|address| !forwards(**address)) {
        say(&format!(
            "{address} is reachable only from this host: the kernel does not forward (sysctl {})",
            forwarding_variable(*address)
        ));
    }
    let mut server = Server::new(folder, listeners, options.idle_max, say);
    server.ended = options.ended.clone();
    let mut driver = Driver::new(tun, MTU)?;
    driver.set_tap(options.engine.tap.clone());
    driver.run(&mut EndpointHost::with_app(endpoint, Alone, server), stop).map(|_| ())
}

struct Server<'a> {
    folder: Folder,
    listeners: Vec<ListenerId>,
    sessions: BTreeMap<ConnectionId, Session>,
    /// Sessions that continue in the next turn of the loop.
    again: BTreeSet<ConnectionId>,
    /// Sessions whose peers have not yet acknowledged all data that were handed over.
    unsettled: BTreeSet<ConnectionId>,
    settle_at: Instant,
    idle_max: Duration,
    ended: Option<Ended>,
    sweep_at: Instant,
    say: &'a mut dyn FnMut(&str),
}

impl App for Server<'_> {
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match *event {
            Event::Incoming(listener) if self.listeners.contains(&listener) => {
                while let Some(id) = endpoint.accept(listener) {
                    self.sessions.insert(id, Session::new(now));
                    self.advance(id, endpoint, now);
                }
            }
            Event::Readable(id) | Event::Writable(id) | Event::PeerFinished(id) => self.advance(id, endpoint, now),
            Event::Closed { connection, reason } => {
                if let Some((ended, stats)) = self.ended.as_ref().zip(endpoint.stats(connection)) {
                    ended(&stats);
                }
                if let Some(mut session) = self.sessions.remove(&connection) {
                    let why = format!("the connection was {reason}");
                    session.close(endpoint.acked_bytes(connection), &why, self.say);
                }
                endpoint.release(connection);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.again.is_empty() {
            return Some(Instant::ZERO);
        }
        let settle_at = (!self.unsettled.is_empty()).then_some(self.settle_at);
        let sweep_at = (!self.sessions.is_empty()).then_some(self.sweep_at);
        settle_at.into_iter().chain(sweep_at).min()
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for id in core::mem::take(&mut self.again) {
            self.advance(id, endpoint, now);
        }
        if now >= self.settle_at {
            self.settle(endpoint, now);
        }
        if now >= self.sweep_at {
            self.sweep(endpoint, now);
        }
    }

    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for (id, session) in &mut self.sessions {
            session.close(endpoint.acked_bytes(*id), "the server was stopped", self.say);
            let _ = endpoint.abort(*id, now);
        }
    }
}

impl<'a> Server<'a> {
    fn new(folder: Folder, listeners: Vec<ListenerId>, idle_max: Duration, say: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            folder,
            listeners,
            sessions: BTreeMap::new(),
            again: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            settle_at: Instant::ZERO,
            idle_max,
            ended: None,
            sweep_at: Instant::ZERO,
            say,
        }
    }

    /// Ends connections that are idle for too long.
    fn sweep(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.sweep_at = now + (self.idle_max / SWEEPS_PER_IDLE).min(SWEEP_INTERVAL_MAX);
        for (id, session) in &mut self.sessions {
            let progress = session.patience(endpoint.acked_bytes(*id), self.idle_max, now);
            carry_out(progress, *id, &mut self.again, endpoint, now);
        }
    }

    /// Reports answers that have arrived since the last call.
    fn settle(&mut self, endpoint: &Endpoint, now: Instant) {
        self.settle_at = now + SETTLE_INTERVAL;
        self.unsettled.retain(|id| {
            let Some(session) = self.sessions.get_mut(id) else { return false };
            session.settle(endpoint.acked_bytes(*id), self.say);
            session.is_unsettled()
        });
    }

    fn advance(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.settle(endpoint.acked_bytes(id), self.say);
        let progress = session.advance(id, endpoint, &mut self.folder, now);
        if session.is_unsettled() {
            if self.unsettled.is_empty() {
                self.settle_at = now + SETTLE_INTERVAL;
            }
            self.unsettled.insert(id);
        }
        carry_out(progress, id, &mut self.again, endpoint, now);
    }
}

/// An error of the endpoint means that the connection is already over; an event reports its end.
fn carry_out(
    progress: Progress,
    id: ConnectionId,
    again: &mut BTreeSet<ConnectionId>,
    endpoint: &mut Endpoint,
    now: Instant,
) {
    match progress {
        Progress::Goes => {}
        Progress::Again => drop(again.insert(id)),
        Progress::Ends => drop(endpoint.close(id, now)),
        Progress::Fails => drop(endpoint.abort(id, now)),
    }
}
