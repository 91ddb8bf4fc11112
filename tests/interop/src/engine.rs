//! The engine on a TUN device inside a namespace, driven by a thread of its own.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use host::{Alone, App, EndpointHost};
use linux::clock::Clock;
use linux::driver::{Driver, OFFLOAD_PAYLOAD_MAX, Remote, random_seed};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use linux::tun::{Tun, TunConfig};
use transport::path_manager::LocalAddress;
use transport::{
    ConnectionConfig, ConnectionId, ConnectionStats, Endpoint, EndpointConfig, Event, ListenerId, Received,
};
use units::Instant;

use crate::priority::go_first;
use crate::stream::{Digest, pattern_piece};

/// Interval at which a test checks that the engine's thread still lives.
const POLL: Duration = Duration::from_millis(100);
/// Consecutive polls without activity of the engine, after which a test gives up. Counted in polls, not in time: a
/// machine that pauses for seconds uses only one poll.
const SILENT_POLLS_MAX: u32 = 200;
/// Time after which a test gives up even if the engine is busy.
const PATIENCE: units::Duration = units::Duration::from_secs(300);
/// MTU of the engine's device.
pub const ENGINE_MTU: u16 = 1500;

/// An engine in a namespace; it ends on drop.
pub struct Engine {
    remote: Remote<EndpointHost<Alone, Peer>>,
    shared: Arc<Shared>,
    stop: StopHandle,
    running: Option<JoinHandle<()>>,
}

/// A test's work on a connection.
#[derive(Debug, Default)]
struct Task {
    received: Digest,
    finished: bool,
    error: Option<String>,
    paused: bool,
    to_send: u64,
    sent: u64,
    shutdown_after: bool,
    shut_down: bool,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    accepted: Vec<ConnectionId>,
    tasks: BTreeMap<ConnectionId, Task>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the default settings of a namespace's engine: full mesh, all offload.
pub fn engine_config() -> ConnectionConfig {
    ConnectionConfig { mtu: ENGINE_MTU, offload_max_bytes: OFFLOAD_PAYLOAD_MAX, ..ConnectionConfig::default() }
}

/// Creates a device for an engine behind `host` with these addresses, which must be unused ones of the host's half of a
/// link.
///
/// # Panics
/// If it cannot be created.
pub fn engine_device(host: &Namespace, addresses: &[&str]) -> Tun {
    let config = TunConfig { name: "engine".into(), mtu: ENGINE_MTU, offload: true, addresses: Vec::new() };
    let tun = host.run(|| Tun::open(&config)).expect("the namespace is there").expect("a TUN device");
    let routes = addresses.iter().map(|address| format!("route add {address} dev engine"));
    host.ip(routes.collect::<Vec<_>>()).expect("routes to the engine");
    tun
}

impl Engine {
    /// Starts an engine behind `host` with these addresses, which must be unused ones of the host's half of a link.
    /// Path managers use the addresses in `paths`.
    ///
    /// # Panics
    /// If the device cannot be created.
    pub fn start(host: &Namespace, addresses: &[&str], paths: &[&str]) -> Self {
        let tun = engine_device(host, addresses);
        let local = |ip: &&str| LocalAddress { ip: ip.parse::<IpAddr>().expect("an address"), backup: false };
        let config = EndpointConfig { local_addresses: paths.iter().map(local).collect(), ..EndpointConfig::default() };
        let endpoint = Endpoint::new(config, random_seed().expect("randomness"));
        let mut driver = Driver::new(tun, ENGINE_MTU).expect("a socket pair");
        let remote = driver.remote().expect("a socket");
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let shared = Arc::<Shared>::default();
        let mut host = EndpointHost::with_app(endpoint, Alone, Peer { shared: shared.clone() });
        let running = std::thread::spawn(move || {
            go_first();
            driver.run(&mut host, &stop).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { remote, shared, stop: handle, running: Some(running) }
    }

    /// Runs a command on the endpoint.
    ///
    /// # Panics
    /// If the engine has panicked.
    pub fn call<T: Send + 'static>(&self, command: impl FnOnce(&mut Endpoint, Instant) -> T + Send + 'static) -> T {
        self.remote.call(|host, now| command(&mut host.endpoint, now)).expect("the engine has ended: it panicked")
    }

    /// Opens a listener.
    ///
    /// # Panics
    /// If the engine refuses.
    pub fn listen(&self, local: &str, config: ConnectionConfig) -> ListenerId {
        let local: SocketAddr = local.parse().expect("address and port");
        self.call(move |endpoint, _| endpoint.listen(local, config)).expect("a free port")
    }

    /// Opens a connection and waits until it is established.
    ///
    /// # Panics
    /// If it is not.
    pub fn connect(&self, local: &str, remote: &str, config: ConnectionConfig) -> ConnectionId {
        let local = SocketAddr::new(local.parse().expect("an address"), 0);
        let remote: SocketAddr = remote.parse().expect("address and port");
        let id = self.call(move |endpoint, now| endpoint.connect(local, remote, config, now)).expect("a connection");
        self.wait_event(
            "the connection is established",
            |event| matches!(event, Event::Connected { connection, .. } if *connection == id),
        );
        id
    }

    /// Returns the next connection that a peer opened.
    ///
    /// # Panics
    /// If none comes.
    pub fn accept(&self) -> ConnectionId {
        self.wait("a connection is accepted", |state| (!state.accepted.is_empty()).then(|| state.accepted.remove(0)))
    }

    /// Sends `bytes` octets of the pattern, then ends the stream if `shutdown`.
    pub fn send(&self, connection: ConnectionId, bytes: u64, shutdown: bool) {
        {
            let mut state = self.shared.lock();
            let task = state.tasks.entry(connection).or_default();
            task.to_send += bytes;
            task.shutdown_after |= shutdown;
        }
        self.turn(connection);
    }

    /// Stops or resumes reading.
    pub fn pause(&self, connection: ConnectionId, paused: bool) {
        self.shared.lock().tasks.entry(connection).or_default().paused = paused;
        self.turn(connection);
    }

    fn turn(&self, connection: ConnectionId) {
        let shared = self.shared.clone();
        self.call(move |endpoint, now| Peer { shared }.serve(connection, endpoint, now));
    }

    /// Returns a digest of everything received, after the peer has ended its stream.
    ///
    /// # Panics
    /// If the connection ends otherwise, or not in time.
    pub fn received(&self, connection: ConnectionId) -> Digest {
        self.wait("the peer ends its stream", |state| {
            let task = state.tasks.get(&connection)?;
            assert!(task.error.is_none(), "{task:?}");
            task.finished.then_some(task.received)
        })
    }

    /// Returns the octets received so far.
    pub fn received_bytes(&self, connection: ConnectionId) -> u64 {
        self.shared.lock().tasks.get(&connection).map_or(0, |task| task.received.bytes)
    }

    /// Prints the engine's state for a failed test.
    fn describe(&self) {
        let stats = self.remote.call(|host, now| {
            let endpoint = &mut host.endpoint;
            let all: Vec<_> = endpoint.connections().filter_map(|id| endpoint.stats(id)).collect();
            format!("now: {now:?}, next timeout: {:?}, {all:#?}", endpoint.poll_timeout())
        });
        eprintln!("{}\n{:#?}", stats.unwrap_or_else(|error| error.to_string()), self.shared.lock());
    }

    /// Waits for an event, past or future.
    ///
    /// # Panics
    /// If it does not come in time.
    pub fn wait_event(&self, what: &str, matches: impl Fn(&Event) -> bool) -> Event {
        self.wait(what, |state| state.events.iter().find(|event| matches(event)).cloned())
    }

    /// Returns all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.shared.lock().events.clone()
    }

    /// Returns the statistics of a connection.
    ///
    /// # Panics
    /// If the connection is unknown.
    pub fn stats(&self, connection: ConnectionId) -> ConnectionStats {
        self.call(move |endpoint, _| endpoint.stats(connection)).expect("a connection")
    }

    fn wait<T>(&self, what: &str, mut found: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = self.shared.lock();
        let (clock, mut silent_polls) = (Clock::start(), 0);
        loop {
            if let Some(result) = found(&mut state) {
                return result;
            }
            let dead = self.running.as_ref().is_none_or(JoinHandle::is_finished);
            let patient = silent_polls < SILENT_POLLS_MAX && clock.now() - Instant::ZERO < PATIENCE;
            assert!(!dead && patient, "waiting until {what}; engine ended: {dead}; {state:#?}");
            let (after, wait) = self.shared.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner);
            state = after;
            silent_polls = if wait.timed_out() { silent_polls + 1 } else { 0 };
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.describe();
        }
        self.stop.stop();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            if !std::thread::panicking() {
                ended.expect("the engine did not panic");
            }
        }
    }
}

/// The application: reads what arrives, and sends what the test requests.
struct Peer {
    shared: Arc<Shared>,
}

impl App for Peer {
    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        self.shared.lock().events.push(event.clone());
        match *event {
            Event::Incoming(listener) => {
                while let Some(connection) = endpoint.accept(listener) {
                    self.shared.lock().accepted.push(connection);
                    self.serve(connection, endpoint, now);
                }
            }
            Event::Connected { connection, .. }
            | Event::Readable(connection)
            | Event::Writable(connection)
            | Event::PeerFinished(connection)
            | Event::Closed { connection, .. } => self.serve(connection, endpoint, now),
            _ => {}
        }
        self.shared.changed.notify_all();
    }
}

impl Peer {
    fn serve(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        let mut state = self.shared.lock();
        let task = state.tasks.entry(connection).or_default();
        task.read(connection, endpoint, now);
        task.write(connection, endpoint, now);
        self.shared.changed.notify_all();
    }
}

impl Task {
    fn read(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while !self.paused && !self.finished {
            match endpoint.recv(connection, usize::MAX, now) {
                Ok(Received::Data(payload)) => self.received.add(&payload.to_bytes()),
                Ok(Received::Pending) => return,
                Ok(Received::Finished) => self.finished = true,
                Err(error) => {
                    self.error.get_or_insert(error.to_string());
                    return;
                }
            }
        }
    }

    fn write(&mut self, connection: ConnectionId, endpoint: &mut Endpoint, now: Instant) {
        while self.sent < self.to_send {
            match endpoint.send(connection, pattern_piece(self.sent, self.to_send - self.sent).into(), now) {
                Ok(0) => return,
                Ok(taken) => self.sent += taken as u64,
                Err(error) => {
                    self.error.get_or_insert(error.to_string());
                    return;
                }
            }
        }
        if self.shutdown_after && !self.shut_down {
            self.shut_down = endpoint.shutdown(connection, now).is_ok();
        }
    }
}
