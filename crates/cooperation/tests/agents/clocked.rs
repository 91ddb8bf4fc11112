//! A host whose clock differs from the network's.

use bytes::Bytes;
use cooperation::agent::Role;
use host::Host;
use simulator::EndpointHost;
use transport::inspection::Sight;
use units::{Duration, Instant};
use wire::Segment;

/// A clock that showed zero at `zero`, and runs at `percent` of the network's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub zero: Instant,
    pub percent: u64,
}

impl Clock {
    /// The network's clock.
    pub const TRUE: Self = Self { zero: Instant::ZERO, percent: 100 };

    /// Returns the time that the clock shows at `at`.
    pub fn shows(self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.zero).mul_div(self.percent, 100)
    }

    /// Returns when the clock shows `local`, or a moment later.
    pub fn when(self, local: Instant) -> Instant {
        if local >= Instant::FAR_FUTURE {
            return Instant::FAR_FUTURE;
        }
        let nanos = local.saturating_since(Instant::ZERO).as_nanos() * 100;
        self.zero + Duration::from_nanos(nanos.div_ceil(self.percent))
    }
}

/// The host, which knows only its own clock.
pub struct Clocked {
    pub host: EndpointHost<Role>,
    pub clock: Clock,
}

impl From<EndpointHost<Role>> for Clocked {
    fn from(host: EndpointHost<Role>) -> Self {
        Self { host, clock: Clock::TRUE }
    }
}

impl Host for Clocked {
    fn start(&mut self, now: Instant) {
        self.host.start(self.clock.shows(now));
    }

    fn handle_segment(&mut self, segment: &mut Segment, now: Instant) {
        self.host.handle_segment(segment, self.clock.shows(now));
    }

    fn handle_octets(&mut self, octets: Bytes, now: Instant) {
        self.host.handle_octets(octets, self.clock.shows(now));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(self.clock.shows(now));
    }

    fn poll_transmit(&mut self, segment: &mut Segment, now: Instant) -> bool {
        self.host.poll_transmit(segment, self.clock.shows(now))
    }

    fn poll_octets(&mut self) -> Option<Bytes> {
        self.host.poll_octets()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.host.poll_timeout().map(|local| self.clock.when(local))
    }

    fn handle_end(&mut self, now: Instant) {
        self.host.handle_end(self.clock.shows(now));
    }

    fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        self.host.packet_payload(segment)
    }

    fn is_in_transit(&self, segment: &Segment) -> bool {
        self.host.is_in_transit(segment)
    }

    /// Checkers compare the host's timers with the network's time.
    fn inspect(&self, local: &core::net::SocketAddr, remote: &core::net::SocketAddr) -> Option<Sight<'_>> {
        if self.clock == Clock::TRUE { self.host.inspect(local, remote) } else { None }
    }

    fn faults(&self) -> Vec<String> {
        self.host.faults()
    }
}
