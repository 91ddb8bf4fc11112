//! Two engines with nothing between them, in virtual time: hours of waiting take no time.

use std::net::{IpAddr, Ipv4Addr};

use transport::{Endpoint, EndpointConfig};
use units::Instant;

/// Address of the server.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// Address of the client.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

pub struct Pair {
    pub server: Endpoint,
    pub client: Endpoint,
    pub now: Instant,
    /// Segments no longer reach the other end.
    pub cut: bool,
}

impl Pair {
    pub fn new() -> Self {
        let server = Endpoint::with_seed(EndpointConfig::default(), 1);
        let client = Endpoint::with_seed(EndpointConfig::default(), 2);
        Self { server, client, now: Instant::ZERO, cut: false }
    }

    /// Moves all segments that are ready; false if there was none.
    pub fn exchange(&mut self) -> bool {
        let Self { server, client, now, cut } = self;
        let moved = pass(client, server, *now, *cut);
        pass(server, client, *now, *cut) || moved
    }

    /// Advances to the next time at which an end or its owner wants something, but not beyond `end`; false if there is
    /// none.
    pub fn go_on(&mut self, owner: Option<Instant>, end: Instant) -> bool {
        let due = [self.server.poll_timeout(), self.client.poll_timeout(), owner].into_iter().flatten().min();
        let Some(at) = due.filter(|at| *at <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(at);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        true
    }
}

fn pass(from: &mut Endpoint, to: &mut Endpoint, now: Instant, cut: bool) -> bool {
    let mut moved = false;
    while let Some(segment) = from.poll_transmit(now) {
        moved = true;
        if !cut {
            to.handle_segment(segment, now);
        }
    }
    moved
}
