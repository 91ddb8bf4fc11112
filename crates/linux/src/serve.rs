//! `anabranch serve`: a folder over HTTP over the engine.

mod files;
mod session;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use transport::{ConnectionConfig, ConnectionId, Endpoint, Event, ListenerId};
use units::{Duration, Instant};

use crate::attachment::{Attachment, MTU, forwards};
use crate::driver::{Application, OFFLOAD_PAYLOAD_MAX};
use crate::stop::Stop;
use crate::{Error, Result};
use files::Folder;
use session::{Progress, Session};

/// A connection on which nothing moves for so long is ended.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How often idle connections are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The folder; nothing outside of it is reachable.
    pub folder: PathBuf,
    /// Port to listen on, at all addresses of the engine.
    pub port: u16,
    /// Addresses of the engine; private ones if there are none.
    pub via: Vec<IpAddr>,
}

/// Serves until `stop` is triggered. Lines for people, like where to look and what was asked for, go to `say`.
///
/// # Errors
/// Without root, if the folder cannot be read, or if an address is in use.
pub fn serve(options: &ServeOptions, stop: &Stop, say: &mut dyn FnMut(&str)) -> Result<()> {
    let folder = Folder::open(&options.folder)?;
    let mut attachment = Attachment::open(&options.via)?;
    let config = ConnectionConfig { mtu: MTU, offload_max_bytes: OFFLOAD_PAYLOAD_MAX, ..ConnectionConfig::default() };
    let (endpoint, now) = attachment.driver.endpoint();
    let mut listen = |ip: IpAddr| {
        let local = SocketAddr::new(ip, options.port);
        endpoint
            .listen(local, config.clone())
            .map_err(|error| Error::Usage(format!("cannot listen on {local}: {error}")))
    };
    let listeners = vec![listen(Ipv4Addr::UNSPECIFIED.into())?, listen(Ipv6Addr::UNSPECIFIED.into())?];
    for address in &attachment.addresses {
        say(&format!("serving {} at http://{}/", options.folder.display(), SocketAddr::new(*address, options.port)));
    }
    if let Some(address) = attachment.addresses.iter().find(|address| !forwards(**address)) {
        say(&format!(
            "{address} is reachable from this host only: the kernel does not forward (sysctl net.ipv4.ip_forward)"
        ));
    }
    let mut server = Server { folder, listeners, sessions: BTreeMap::new(), sweep_at: now + SWEEP_INTERVAL, say };
    attachment.driver.run(&mut server, stop).map(|_| ())
}

struct Server<'a> {
    folder: Folder,
    listeners: Vec<ListenerId>,
    sessions: BTreeMap<ConnectionId, Session>,
    sweep_at: Instant,
    say: &'a mut dyn FnMut(&str),
}

impl Application for Server<'_> {
    fn handle_event(&mut self, event: Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::Incoming(listener) if self.listeners.contains(&listener) => {
                while let Some(id) = endpoint.accept(listener) {
                    self.sessions.insert(id, Session::new(now));
                    self.advance(id, endpoint, now);
                }
            }
            Event::Readable(id) | Event::Writable(id) | Event::PeerFinished(id) => self.advance(id, endpoint, now),
            Event::Closed { connection, .. } => {
                self.sessions.remove(&connection);
                endpoint.release(connection);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (!self.sessions.is_empty()).then_some(self.sweep_at)
    }

    fn handle_wakeup(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.sweep_at = now + SWEEP_INTERVAL;
        for (id, session) in &self.sessions {
            if now.saturating_since(session.active_at) > IDLE_MAX {
                // The peer may be gone: an orderly end would wait for it. Its end is reported as an event.
                let _ = endpoint.abort(*id, now);
            }
        }
    }
}

impl Server<'_> {
    fn advance(&mut self, id: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match session.advance(id, endpoint, &mut self.folder, self.say, now) {
            Progress::Goes => {}
            // An error means that the connection is over already; its end is reported as an event.
            Progress::Ends => drop(endpoint.close(id, now)),
            Progress::Fails => drop(endpoint.abort(id, now)),
        }
    }
}
