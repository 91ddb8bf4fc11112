//! Expected segments: with many connections, memory is prefetched for them.

use wire::Segment;

use super::Endpoint;
use crate::host::Route;

/// With this many connections, their data do not fit into the cache.
const CROWD: usize = 256;

impl Endpoint {
    /// Whether [`Self::expect`] is worth calling: the data of few connections are in the cache anyway.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.open >= CROWD
    }

    /// Prefetches memory for a segment that will be handled after a few others. Each object leads to the next, and no
    /// call waits for any: a call goes one step for this segment, and one for each of the two before it.
    pub fn expect(&mut self, segment: &Segment) {
        let route = self.host.route_of(segment);
        let connection = |route: &Route| self.slots.get(route.slot as usize)?.connection.as_deref();
        if let Some(connection) = route.as_ref().and_then(connection) {
            units::prefetch(connection);
        }
        let [latest, before] = self.expected;
        if let Some((route, connection)) = latest.as_ref().and_then(|route| Some((route, connection(route)?))) {
            connection.prefetch_subflow(route.subflow);
        }
        if let Some((route, connection)) = before.as_ref().and_then(|route| Some((route, connection(route)?))) {
            connection.prefetch_queues(route.subflow);
        }
        self.expected = [route, latest];
        self.expect_due();
    }

    /// Does the same for the connection whose timer comes next: one step with the call that finds it first, and one
    /// with the next.
    fn expect_due(&mut self) {
        let first = self.timers.first().map(|(_, position)| position);
        let connection = first.and_then(|position| self.slots[position].connection.as_deref());
        let [latest, before] = self.expected_due;
        match connection {
            Some(connection) if first != latest => units::prefetch(connection),
            Some(connection) if first != before => connection.prefetch_timers(),
            _ => {}
        }
        self.expected_due = [first, latest];
    }
}
