//! What can be attached to a network.

use core::net::SocketAddr;

use network::Datagram;
use transport::Endpoint;
use transport::inspection::Inspection;
use units::Instant;
use wire::{Segment, TooBig};

use crate::app::{App, Report};

/// A host: segments in, segments out, and a time at which it wants to be called.
pub trait Host {
    /// The run begins.
    fn start(&mut self, now: Instant) {
        let _ = now;
    }

    /// Takes a segment from the network.
    fn handle_segment(&mut self, segment: Segment, now: Instant);

    /// Takes a UDP datagram from the network.
    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        let _ = (datagram, now);
    }

    /// Takes a router's word that a packet was too big for its path.
    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        let _ = (too_big, now);
    }

    /// Takes note of the time; called at [`Self::poll_timeout`], or a little later.
    fn handle_timeout(&mut self, now: Instant);

    /// The next segment to send. Called after every other call until it gives nothing.
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment>;

    /// The next datagram to send; called as [`Self::poll_transmit`] is.
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        let _ = now;
        None
    }

    /// When [`Self::handle_timeout`] must be called next; after that call it must lie ahead.
    fn poll_timeout(&mut self) -> Option<Instant>;

    /// A look at the subflow from `local` to `remote`, for checkers; nothing if the host is not the engine.
    fn inspect(&self, local: SocketAddr, remote: SocketAddr) -> Option<Inspection> {
        let _ = (local, remote);
        None
    }

    /// What the host found wrong, in words; nothing in a good run.
    fn faults(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Host for Box<dyn Host> {
    fn start(&mut self, now: Instant) {
        self.as_mut().start(now);
    }

    fn handle_segment(&mut self, segment: Segment, now: Instant) {
        self.as_mut().handle_segment(segment, now);
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        self.as_mut().handle_datagram(datagram, now);
    }

    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        self.as_mut().handle_too_big(too_big, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.as_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.as_mut().poll_transmit(now)
    }

    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        self.as_mut().poll_datagram(now)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.as_mut().poll_timeout()
    }

    fn inspect(&self, local: SocketAddr, remote: SocketAddr) -> Option<Inspection> {
        self.as_ref().inspect(local, remote)
    }

    fn faults(&self) -> Vec<String> {
        self.as_ref().faults()
    }
}

/// The engine with the applications that use it.
pub struct EndpointHost {
    /// The engine.
    pub endpoint: Endpoint,
    apps: Vec<Box<dyn App>>,
    /// When each application wants to be called, as it said after its latest call.
    deadlines: Vec<Instant>,
    /// The earliest of them.
    next_deadline: Instant,
    /// Applications that were called and may have datagrams now; the last one's go first.
    talkers: Vec<usize>,
}

impl EndpointHost {
    /// A host without applications.
    pub fn new(endpoint: Endpoint) -> Self {
        let (deadlines, talkers) = (Vec::new(), Vec::new());
        Self { endpoint, apps: Vec::new(), deadlines, next_deadline: Instant::FAR_FUTURE, talkers }
    }

    /// Adds an application; it starts with the run.
    pub fn app(mut self, app: impl App + 'static) -> Self {
        self.apps.push(Box::new(app));
        self.deadlines.push(Instant::FAR_FUTURE);
        self
    }

    /// What the applications did, in the order in which they were added.
    pub fn reports(&self) -> Vec<Report> {
        self.apps.iter().map(|app| app.report()).collect()
    }

    /// Asks the applications anew when they want to be called and what they have to send: something outside of the host has
    /// given them reason to change their minds.
    pub fn ask_apps(&mut self) {
        self.note_all_called();
    }

    /// Tells the applications what happened; false if nothing did.
    fn dispatch_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            for app in &mut self.apps {
                app.handle_event(&event, &mut self.endpoint, now);
            }
        }
        if any {
            self.note_all_called();
        }
        any
    }

    /// Asks every application what it wants after a call. Between calls nothing changes, and most packets concern none.
    fn note_all_called(&mut self) {
        for (deadline, app) in self.deadlines.iter_mut().zip(&self.apps) {
            *deadline = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        }
        self.talkers.clear();
        self.talkers.extend((0..self.apps.len()).rev());
        self.find_next_deadline();
    }

    fn find_next_deadline(&mut self) {
        self.next_deadline = self.deadlines.iter().copied().min().unwrap_or(Instant::FAR_FUTURE);
    }

    /// Calls the applications whose time has come.
    fn call_due(&mut self, now: Instant) {
        self.talkers.clear();
        for (index, (deadline, app)) in self.deadlines.iter_mut().zip(&mut self.apps).enumerate() {
            if *deadline <= now {
                app.handle_timeout(&mut self.endpoint, now);
                *deadline = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                self.talkers.push(index);
            }
        }
        self.talkers.reverse();
        self.find_next_deadline();
    }
}

impl Host for EndpointHost {
    fn start(&mut self, now: Instant) {
        for app in &mut self.apps {
            app.start(&mut self.endpoint, now);
        }
        self.note_all_called();
    }

    #[inline]
    fn handle_segment(&mut self, segment: Segment, now: Instant) {
        self.endpoint.handle_segment(segment, now);
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        for app in &mut self.apps {
            app.handle_datagram(&datagram, now);
        }
        self.note_all_called();
    }

    fn handle_too_big(&mut self, too_big: &TooBig, now: Instant) {
        self.endpoint.handle_too_big(too_big, now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if self.next_deadline <= now {
            self.call_due(now);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        // Nested instead of looped: the segment is then made where the caller wants it.
        match self.endpoint.poll_transmit(now) {
            None if self.dispatch_events(now) => self.poll_transmit(now),
            segment => segment,
        }
    }

    #[inline]
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        while let Some(talker) = self.talkers.last() {
            let app = &mut self.apps[*talker];
            if let Some(datagram) = app.poll_datagram(now) {
                // What it has sent moves its next one on.
                self.deadlines[*talker] = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                self.find_next_deadline();
                return Some(datagram);
            }
            self.talkers.pop();
        }
        None
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        let apps = Some(self.next_deadline).filter(|at| *at < Instant::FAR_FUTURE);
        [self.endpoint.poll_timeout(), apps].into_iter().flatten().min()
    }

    fn inspect(&self, local: SocketAddr, remote: SocketAddr) -> Option<Inspection> {
        self.endpoint.inspect(local, remote)
    }

    fn faults(&self) -> Vec<String> {
        self.apps.iter().flat_map(|app| app.report().faults).collect()
    }
}
