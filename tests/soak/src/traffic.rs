//! Counts of segments that hosts send and receive, for detecting storms.

use std::cell::RefCell;
use std::rc::Rc;

use simulator::{Direction, Interface, Tap};
use units::Instant;
use wire::Segment;

/// Segment counts of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Segments sent.
    pub sent: u64,
    /// Segments received.
    pub received: u64,
}

/// Segments so far, by the number of the host.
pub type Counts = Rc<RefCell<Vec<Traffic>>>;

/// Counts segments.
pub struct Counter(pub Counts);

impl Tap for Counter {
    fn segment(&mut self, _: Instant, interface: Interface, direction: Direction, _: &Segment) {
        let mut counts = self.0.borrow_mut();
        let host = interface.host.0 as usize;
        if host >= counts.len() {
            counts.resize(host + 1, Traffic::default());
        }
        match direction {
            Direction::Sent => counts[host].sent += 1,
            Direction::Received => counts[host].received += 1,
        }
    }
}

/// Returns the number of segments that all hosts together sent and received between two counts.
pub fn packets(before: &[Traffic], now: &[Traffic]) -> u64 {
    let sum = |counts: &[Traffic]| counts.iter().map(|host| host.sent + host.received).sum::<u64>();
    sum(now) - sum(before)
}
