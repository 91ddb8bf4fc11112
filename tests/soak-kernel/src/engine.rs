//! The engine on a device behind a host, with the applications of a case and the checkers that also watch it in
//! simulations.

use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use bytes::Bytes;
use host::{Alone, EndpointHost, Host};
use interop::{ENGINE_MTU, engine_device, go_first};
use linux::driver::{Driver, Remote, random_seed};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use simulator::check::Checker;
use simulator::{CLIENT, Direction, Interface, Tap as _};
use soak::listing::Listing;
use soak::transport::case::Side;
use soak::transport::talker::{Conversation, Conversations, Talker};
use transport::path_manager::LocalAddress;
use transport::{Endpoint, EndpointConfig, Footprint};
use units::Instant;
use wire::Segment;

use crate::case::Case;
use crate::network::{engine_ip, server};

/// A host whose segments are watched.
pub struct Watched {
    /// The engine, with the applications of a case, which are shared with simulations.
    pub host: EndpointHost<Alone, Talker>,
    /// Records of the applications.
    pub conversations: Conversations,
    checker: Checker,
    lists: bool,
}

/// The state of an engine that a run examines.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Its connections, as its applications see them.
    pub conversations: Vec<Conversation>,
    /// Findings of the checkers.
    pub faults: Vec<String>,
    /// Memory use of the engine.
    pub footprint: Option<Footprint>,
}

/// A running engine; it ends on drop.
pub struct Engine {
    remote: Remote<Watched>,
    stop: StopHandle,
    running: Option<JoinHandle<()>>,
}

impl Watched {
    fn see(&mut self, direction: Direction, segment: &Segment, now: Instant) {
        let host = &self.host;
        // Only one host is watched; its number has no meaning.
        self.checker.see(now, CLIENT, direction, segment, |(local, remote)| host.inspect(local, remote));
        if self.lists {
            let own = if direction == Direction::Sent { segment.src } else { segment.dst };
            Listing.segment(now, Interface { host: CLIENT, address: own.ip() }, direction, segment);
        }
    }

    fn settled(&mut self, now: Instant) {
        let host = &self.host;
        self.checker.settled(now, |(local, remote)| host.inspect(local, remote));
    }

    fn look(&self) -> Look {
        Look {
            conversations: self.conversations.borrow().clone(),
            faults: self.checker.faults().iter().map(ToString::to_string).collect(),
            footprint: Some(self.host.endpoint.footprint()),
        }
    }
}

impl Host for Watched {
    fn start(&mut self, now: Instant) {
        self.host.start(now);
    }

    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        self.see(Direction::Received, segment, now);
        self.host.handle_segment(segment, now);
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        self.host.handle_octets(octets, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        let any = self.host.poll_transmit(segment, now);
        if any {
            self.see(Direction::Sent, segment, now);
        } else {
            self.settled(now);
        }
        any
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.host.packet_payload(segment)
    }
}

impl Engine {
    /// Starts the engine of a case behind `host`; prints every segment if `lists`.
    ///
    /// # Panics
    /// If the machine has no device, no randomness or no file descriptors for it.
    pub fn start(case: &Case, host: &Namespace, lists: bool) -> Self {
        let addresses: Vec<_> = (0..case.paths.len()).map(|path| engine_ip(case, path).to_string()).collect();
        let tun = engine_device(host, &addresses.iter().map(String::as_str).collect::<Vec<_>>());
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let (ready, is_ready) = channel();
        let case = case.clone();
        let running = std::thread::spawn(move || {
            go_first();
            let conversations = Conversations::default();
            let endpoint = Endpoint::new(config(&case), random_seed().expect("randomness"));
            let host = EndpointHost::with_app(endpoint, Alone, talker(&case, conversations.clone()));
            let mut watched = Watched { host, conversations, checker: Checker::new(), lists };
            let mut driver = Driver::new(tun, ENGINE_MTU).expect("a socket pair");
            ready.send(driver.remote().expect("a socket")).expect("somebody waits");
            driver.run(&mut watched, &stop).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { remote: is_ready.recv().expect("the engine starts"), stop: handle, running: Some(running) }
    }

    /// Returns the current state; `None` if the engine has panicked.
    pub fn look(&self) -> Option<Look> {
        self.call(|watched, _| watched.look())
    }

    /// Runs a command on the engine; `None` if it has panicked.
    pub fn call<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Watched, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        self.remote.call(command).ok()
    }

    /// Aborts half-open connections, as applications do after a long silence.
    pub fn abort_half_open(&self) {
        self.call(|watched, now| {
            for conversation in watched.conversations.borrow_mut().iter_mut().filter(|known| !known.released) {
                conversation.released = true;
                let _ = watched.host.endpoint.abort(conversation.connection, now);
                watched.host.endpoint.release(conversation.connection);
            }
        });
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(running) = self.running.take() {
            // A panic was recorded where it happened.
            let _ = running.join();
        }
    }
}

fn talker(case: &Case, conversations: Conversations) -> Talker {
    let side = case.engine_is();
    // As the server it has its own address, which is that of the first path on either side.
    debug_assert!(side == Side::Client || server(case).ip() == engine_ip(case, 0));
    Talker::new(&case.applications(), side, engine_ip(case, 0), server(case), conversations)
}

fn config(case: &Case) -> EndpointConfig {
    let local = |path| LocalAddress { ip: engine_ip(case, path), backup: false };
    EndpointConfig { local_addresses: (0..case.paths.len()).map(local).collect(), ..EndpointConfig::default() }
}
