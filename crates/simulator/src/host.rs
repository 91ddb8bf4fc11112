//! What can be attached to a network.

use network::Datagram;
use transport::Endpoint;
use units::Instant;
use wire::Segment;

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

    fn faults(&self) -> Vec<String> {
        self.as_ref().faults()
    }
}

/// The engine with the applications that use it.
pub struct EndpointHost {
    /// The engine.
    pub endpoint: Endpoint,
    apps: Vec<Box<dyn App>>,
}

impl EndpointHost {
    /// A host without applications.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, apps: Vec::new() }
    }

    /// Adds an application; it starts with the run.
    pub fn app(mut self, app: impl App + 'static) -> Self {
        self.apps.push(Box::new(app));
        self
    }

    /// What the applications did, in the order in which they were added.
    pub fn reports(&self) -> Vec<Report> {
        self.apps.iter().map(|app| app.report()).collect()
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
        any
    }
}

impl Host for EndpointHost {
    fn start(&mut self, now: Instant) {
        for app in &mut self.apps {
            app.start(&mut self.endpoint, now);
        }
    }

    #[inline]
    fn handle_segment(&mut self, segment: Segment, now: Instant) {
        self.endpoint.handle_segment(segment, now);
    }

    fn handle_datagram(&mut self, datagram: Datagram, now: Instant) {
        for app in &mut self.apps {
            app.handle_datagram(&datagram, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        for app in &mut self.apps {
            if app.poll_timeout().is_some_and(|at| at <= now) {
                app.handle_timeout(&mut self.endpoint, now);
            }
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
        self.apps.iter_mut().find_map(|app| app.poll_datagram(now))
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        let apps = self.apps.iter().filter_map(|app| app.poll_timeout()).min();
        [self.endpoint.poll_timeout(), apps].into_iter().flatten().min()
    }

    fn faults(&self) -> Vec<String> {
        self.apps.iter().flat_map(|app| app.report().faults).collect()
    }
}
