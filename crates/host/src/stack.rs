//! A host made of the engine, an agent and applications.

use core::net::SocketAddr;

use bytes::Bytes;
use network::Datagram;
use transport::Endpoint;
use transport::inspection::Sight;
use units::Instant;
use wire::{Segment, TooBig};

use crate::{Agent, Alone, App, Apps, Host, Report};

/// The engine with an agent and the applications that use it: any number of them, or one of a known type.
pub struct EndpointHost<A = Alone, P = Apps> {
    /// The engine.
    pub endpoint: Endpoint,
    agent: A,
    apps: P,
    /// Switched off: nothing arrives and nothing is sent.
    is_off: bool,
    running: bool,
    /// Whether the applications have started, which they do once the agent is ready. They are not called before.
    started: bool,
    /// Deadline of agent and applications after their latest call.
    next_deadline: Instant,
}

impl EndpointHost {
    /// Creates a host without applications that cooperates with no other.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_agent(endpoint, Alone)
    }
}

impl<A: Agent> EndpointHost<A> {
    /// Creates a host without applications.
    pub fn with_agent(endpoint: Endpoint, agent: A) -> Self {
        Self::with_app(endpoint, agent, Apps::default())
    }

    /// Adds an application, which starts with the run.
    pub fn app(mut self, app: impl App + 'static) -> Self {
        self.apps.push(app);
        self
    }

    /// Returns the applications' reports, in the order in which they were added.
    pub fn reports(&self) -> Vec<Report> {
        self.apps.reports()
    }
}

impl<A: Agent, P: App> EndpointHost<A, P> {
    /// Creates a host with `app` as its only application, which starts with the run.
    pub const fn with_app(endpoint: Endpoint, agent: A, app: P) -> Self {
        let next_deadline = Instant::FAR_FUTURE;
        Self { endpoint, agent, apps: app, is_off: false, running: false, started: false, next_deadline }
    }

    /// Returns the agent, for observers.
    pub const fn agent(&self) -> &A {
        &self.agent
    }

    /// Returns the application of [`Self::with_app`], for observers.
    pub const fn app_ref(&self) -> &P {
        &self.apps
    }

    /// Acts on the agent; the consequences are handled as after any other call.
    pub fn with_agent_mut<T>(&mut self, act: impl FnOnce(&mut A, &mut Endpoint) -> T) -> T {
        let result = act(&mut self.agent, &mut self.endpoint);
        self.find_next_deadline();
        result
    }

    /// Acts on the application of [`Self::with_app`]; the consequences are handled as after any other call.
    pub fn with_app_mut<T>(&mut self, act: impl FnOnce(&mut P, &mut Endpoint) -> T) -> T {
        let result = act(&mut self.apps, &mut self.endpoint);
        self.find_next_deadline();
        result
    }

    /// Returns the engine, the agent and the application of [`Self::with_app`], for inspection.
    pub fn into_parts(self) -> (Endpoint, A, P) {
        (self.endpoint, self.agent, self.apps)
    }

    /// Switches the host off without notice to its peers.
    pub fn switch_off(&mut self) {
        self.is_off = true;
    }

    /// Starts the applications when they may start.
    #[inline]
    fn start_apps(&mut self, now: Instant) {
        if !self.started && self.running && self.agent.is_ready() {
            self.start_apps_now(now);
        }
    }

    fn start_apps_now(&mut self, now: Instant) {
        self.started = true;
        self.apps.start(&mut self.endpoint, now);
        self.find_next_deadline();
    }

    /// Passes events to agent and applications, as [`Host::poll_transmit`] does before it returns nothing. For drivers
    /// whose application is polled. Returns false if nothing happened.
    #[inline]
    pub fn handle_events(&mut self, now: Instant) -> bool {
        let any = self.endpoint.has_events();
        if any {
            self.dispatch(now);
        }
        let before = self.started;
        self.start_apps(now);
        any || self.started != before
    }

    fn dispatch(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            self.agent.handle_event(&event, &mut self.endpoint, now);
            if self.started {
                self.apps.handle_event(&event, &mut self.endpoint, now);
            }
        }
        self.find_next_deadline();
    }

    fn find_next_deadline(&mut self) {
        let apps = self.apps.poll_timeout().filter(|_| self.started).unwrap_or(Instant::FAR_FUTURE);
        self.next_deadline = self.agent.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(apps);
    }

    /// Calls agent and applications whose deadline has come.
    fn call_due(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.agent.poll_timeout()) {
            self.agent.handle_timeout(&mut self.endpoint, now);
        }
        if self.started && is_due(self.apps.poll_timeout()) {
            self.apps.handle_timeout(&mut self.endpoint, now);
        }
        self.find_next_deadline();
    }
}

impl<A: Agent, P: App> Host for EndpointHost<A, P> {
    fn start(&mut self, now: Instant) {
        self.running = true;
        self.agent.start(&mut self.endpoint, now);
        self.find_next_deadline();
        self.start_apps(now);
    }

    #[inline]
    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        if self.is_off || self.agent.take_segment(segment, now) {
            return;
        }
        self.endpoint.handle_segment(segment, now);
    }

    #[inline]
    fn is_crowded(&self) -> bool {
        self.endpoint.is_crowded()
    }

    fn expect(&mut self, segment: &Segment) {
        self.endpoint.expect(segment);
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        if self.is_off || !self.started {
            return;
        }
        self.apps.handle_datagram(&datagram, now);
        self.find_next_deadline();
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        if self.is_off {
            return;
        }
        let own = self.agent.take_octets(octets, now);
        if let Some(too_big) = own.and_then(|octets| TooBig::parse(&octets).ok()) {
            self.endpoint.handle_too_big(&too_big, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if self.next_deadline <= now {
            self.call_due(now);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        if self.is_off {
            return false;
        }
        loop {
            if let Some(own) = self.agent.poll_transmit(now) {
                *segment = own;
                return true;
            }
            if self.endpoint.poll_transmit_into(segment, now) {
                return true;
            }
            if !self.handle_events(now) {
                return false;
            }
        }
    }

    #[inline]
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        if self.is_off || !self.started {
            return None;
        }
        let datagram = self.apps.poll_datagram(now)?;
        self.find_next_deadline();
        Some(datagram)
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.agent.poll_octets().filter(|_| !self.is_off)
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        if self.is_off {
            return None;
        }
        // An agent's deadline may have changed when it took a segment.
        let agent = self.agent.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        self.next_deadline = self.next_deadline.min(agent);
        let earliest = self.endpoint.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(self.next_deadline);
        Some(earliest).filter(|at| *at < Instant::FAR_FUTURE)
    }

    fn handle_wake(&mut self, now: Instant) {
        if self.started {
            self.apps.handle_wake(&mut self.endpoint, now);
            self.find_next_deadline();
        }
    }

    fn handle_end(&mut self, now: Instant) {
        self.agent.retire(&mut self.endpoint, now);
        if self.started {
            self.apps.handle_end(&mut self.endpoint, now);
        }
    }

    fn is_finished(&self) -> bool {
        self.started && self.apps.is_finished()
    }

    #[inline]
    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.agent.packet_payload(segment).or_else(|| self.endpoint.packet_payload(segment))
    }

    #[inline]
    fn is_in_transit(&self, segment: &Segment) -> bool {
        self.agent.is_in_transit(segment)
    }

    #[inline]
    fn inspect(&self, local: &SocketAddr, remote: &SocketAddr) -> Option<Sight<'_>> {
        self.endpoint.inspect(local, remote)
    }

    fn faults(&self) -> Vec<String> {
        self.apps.report().faults
    }
}
