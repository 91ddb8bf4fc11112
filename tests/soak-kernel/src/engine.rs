//! The engine on a device behind a host, with the applications of a case and the checkers that watch it in simulations.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use interop::{ENGINE_MTU, engine_device, go_first};
use linux::driver::{Application, Driver, Machine, Remote, random_seed};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use simulator::check::Checker;
use simulator::{App as _, CLIENT, Direction, Interface, Tap as _};
use soak::listing::Listing;
use soak::transport::case::Side;
use soak::transport::talker::{Conversation, Conversations, Talker};
use transport::path_manager::LocalAddress;
use transport::{Endpoint, EndpointConfig, Event, Footprint};
use units::Instant;
use wire::{Segment, TooBig};

use crate::case::Case;
use crate::network::{engine_ip, server};

/// An endpoint whose segments are watched.
pub struct Watched {
    /// The engine.
    pub endpoint: Endpoint,
    /// What the applications did.
    pub conversations: Conversations,
    checker: Checker,
    lists: bool,
    /// The flow that got a segment, or sent one, last.
    touched: Option<(SocketAddr, SocketAddr)>,
}

/// What of an engine a run looks at.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Its connections, as its applications see them.
    pub conversations: Vec<Conversation>,
    /// What the checkers found.
    pub faults: Vec<String>,
    /// What it holds.
    pub footprint: Option<Footprint>,
}

/// A running engine; it ends when dropped.
pub struct Engine {
    remote: Remote<Watched>,
    stop: StopHandle,
    running: Option<JoinHandle<()>>,
}

impl Watched {
    fn see(&mut self, direction: Direction, segment: &Segment, now: Instant) {
        let flow = match direction {
            Direction::Sent => (segment.src, segment.dst),
            Direction::Received => (segment.dst, segment.src),
        };
        // One host is watched; its number means nothing.
        let interface = Interface { host: CLIENT, address: flow.0.ip() };
        self.checker.segment(now, interface, direction, segment);
        if self.lists {
            Listing.segment(now, interface, direction, segment);
        }
        if let Some(inspection) = self.endpoint.inspect(flow.0, flow.1).filter(|_| direction == Direction::Sent) {
            self.checker.sent(now, CLIENT, flow, &inspection);
        }
        self.touched = Some(flow);
    }

    fn look_at_timers(&mut self, now: Instant) {
        let Some(flow) = self.touched.take() else { return };
        if let Some(inspection) = self.endpoint.inspect(flow.0, flow.1) {
            self.checker.settled(now, CLIENT, flow, &inspection);
        }
    }

    fn look(&self) -> Look {
        Look {
            conversations: self.conversations.borrow().clone(),
            faults: self.checker.faults().iter().map(ToString::to_string).collect(),
            footprint: Some(self.endpoint.footprint()),
        }
    }
}

impl Machine for Watched {
    type Event = Event;

    fn handle_segment(&mut self, segment: Segment, now: Instant) {
        self.see(Direction::Received, &segment, now);
        self.endpoint.handle_segment(segment, now);
    }

    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        self.endpoint.handle_too_big(too_big, now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let segment = self.endpoint.poll_transmit(now);
        match &segment {
            Some(segment) => self.see(Direction::Sent, segment, now),
            None => self.look_at_timers(now),
        }
        segment
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.endpoint.packet_payload(segment)
    }
}

/// The applications of a case, which are made for simulations.
struct Applications(Talker);

impl Application<Watched> for Applications {
    fn handle_event(&mut self, event: Event, machine: &mut Watched, now: Instant) {
        self.0.handle_event(&event, &mut machine.endpoint, now);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn handle_wakeup(&mut self, machine: &mut Watched, now: Instant) {
        self.0.handle_timeout(&mut machine.endpoint, now);
    }
}

impl Engine {
    /// Starts the engine of a case behind `host`, printing every segment if `lists`.
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
            let mut talker = talker(&case, conversations.clone());
            let endpoint = Endpoint::new(config(&case), random_seed().expect("randomness"));
            let watched = Watched { endpoint, conversations, checker: Checker::new(), lists, touched: None };
            let mut driver = Driver::with_machine(tun, ENGINE_MTU, watched).expect("a socket pair");
            let (machine, now) = driver.machine();
            talker.start(&mut machine.endpoint, now);
            ready.send(driver.remote().expect("a socket")).expect("somebody waits");
            driver.run(&mut Applications(talker), &stop).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { remote: is_ready.recv().expect("the engine starts"), stop: handle, running: Some(running) }
    }

    /// How it is; nothing if it has panicked.
    pub fn look(&self) -> Option<Look> {
        self.call(|watched, _| watched.look())
    }

    /// Runs a command on the engine; nothing if it has panicked.
    pub fn call<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Watched, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        self.remote.call(command).ok()
    }

    /// Ends what may have been left half-open, as applications do when nothing is heard for long.
    pub fn abort_half_open(&self) {
        self.call(|watched, now| {
            for conversation in watched.conversations.borrow_mut().iter_mut().filter(|known| !known.released) {
                conversation.released = true;
                let _ = watched.endpoint.abort(conversation.connection, now);
                watched.endpoint.release(conversation.connection);
            }
        });
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(running) = self.running.take() {
            // A panic was noted where it happened.
            let _ = running.join();
        }
    }
}

fn talker(case: &Case, conversations: Conversations) -> Talker {
    let side = case.engine_is();
    // As the server it has its own address, which is that of the first path either way.
    debug_assert!(side == Side::Client || server(case).ip() == engine_ip(case, 0));
    Talker::new(&case.applications(), side, engine_ip(case, 0), server(case), conversations)
}

fn config(case: &Case) -> EndpointConfig {
    let local = |path| LocalAddress { ip: engine_ip(case, path), backup: false };
    EndpointConfig { local_addresses: (0..case.paths.len()).map(local).collect(), ..EndpointConfig::default() }
}
