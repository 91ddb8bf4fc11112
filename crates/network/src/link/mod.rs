//! A link: queue, rate, delay and loss in one node.
//!
//! The queue is first in, first out, so a packet's departure is known when it arrives. One ring therefore holds the
//! packets that wait, those in service and those on the wire; one wake-up is pending, that of the oldest.

mod loss;
mod queue;
mod service;

use std::collections::VecDeque;

use units::{Duration, Instant, Prng, Rate};

use crate::trace::TraceCursor;
use crate::{Amount, DropCause, Node, Output, Packet, Trace};
pub use loss::LossModel;
pub use queue::Queue;
use service::Service;

/// A link. Packets wait in a drop-tail queue, are serialised at a rate or at the opportunities of a trace, and travel
/// for a delay. Packets that the loss model picks are lost on the wire, after they used their share of the rate.
#[derive(Clone, Debug)]
pub struct Link {
    service: Service,
    delay: Duration,
    queue: Queue,
    loss: LossModel,
    prng: Prng,
    ring: Ring,
}

#[derive(Debug)]
struct Ring {
    packets: VecDeque<InFlight>,
    /// When the oldest packet reaches the end of the wire; never if there is none.
    due: Instant,
    /// Number of packets at the front that have departed and are on the wire. The others wait or are in service.
    departed: usize,
    waiting_bytes: u64,
}

#[derive(Debug)]
struct InFlight {
    departs: Instant,
    wire_len: u32,
    lost: bool,
    packet: Packet,
}

// Small, because all packets in a link lie side by side.
const _: () = assert!(size_of::<InFlight>() <= 24);

impl Default for Ring {
    fn default() -> Self {
        Self { packets: VecDeque::new(), due: Instant::FAR_FUTURE, departed: 0, waiting_bytes: 0 }
    }
}

/// A cloned ring is empty: packets are not copied.
impl Clone for Ring {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Link {
    /// Creates a link of fixed rate, with a queue of 100 packets and without loss.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self::with_service(Service::fixed(rate), delay)
    }

    /// Creates a link that serialises at the opportunities of a trace.
    pub fn traced(trace: Trace, delay: Duration) -> Self {
        Self::with_service(Service::Trace(TraceCursor::new(trace)), delay)
    }

    fn with_service(service: Service, delay: Duration) -> Self {
        let queue = Queue::packets(100);
        Self { service, delay, queue, loss: LossModel::None, prng: Prng::new(0), ring: Ring::default() }
    }

    /// Sets the queue.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the loss model.
    pub fn loss(mut self, loss: LossModel) -> Self {
        self.loss = loss;
        self
    }

    /// Returns the packets that wait or are in service, as of the latest call.
    pub fn backlog(&self) -> Amount {
        let packets = (self.ring.packets.len() - self.ring.departed) as u64;
        Amount { packets, bytes: self.ring.waiting_bytes }
    }

    /// Returns the packets that wait or are in service at `now`, which is no earlier than the latest call.
    pub fn backlog_at(&self, now: Instant) -> Amount {
        let since = self.ring.packets.iter().skip(self.ring.departed).take_while(|next| next.departs <= now);
        since.fold(self.backlog(), |Amount { packets, bytes }, departed| Amount {
            packets: packets - 1,
            bytes: bytes - u64::from(departed.wire_len),
        })
    }

    /// Returns the packet behind `others` others, if there is one. Prefetches the packets behind twice and six times as
    /// many; of the last, only the ring entry.
    pub(crate) fn foresee(&self, others: usize) -> Option<&Packet> {
        let behind = |others: usize| self.ring.packets.get(others);
        behind(6 * others).into_iter().for_each(units::prefetch);
        behind(2 * others).into_iter().for_each(|in_flight| in_flight.packet.prefetch());
        behind(others).map(|in_flight| &in_flight.packet)
    }

    /// Returns when the oldest packet inside reaches the end of the wire; never if there is none.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        self.ring.due
    }

    /// Moves the link to the time `now`.
    #[inline]
    pub(crate) fn note_time(&mut self, now: Instant) {
        self.ring.advance(now);
    }

    /// Takes a packet, or gives it back if the queue is full.
    #[inline]
    pub(crate) fn take(&mut self, mut packet: Packet, now: Instant) -> Result<(), Packet> {
        self.ring.advance(now);
        let wire_len = packet.wire_len();
        let backlog = self.backlog();
        if !self.queue.admits(backlog, wire_len) {
            return Err(packet);
        }
        if self.queue.marks(backlog) {
            packet.mark_congestion();
        }
        let departs = self.service.departure(now, wire_len);
        let lost = self.loss.loses(&mut self.prng);
        if self.ring.packets.is_empty() {
            self.ring.due = departs + self.delay;
        }
        self.ring.waiting_bytes += u64::from(wire_len);
        self.ring.packets.push_back(InFlight { departs, wire_len, lost, packet });
        if departs <= now {
            self.ring.advance(now);
        }
        Ok(())
    }

    /// Returns, after [`Self::take`] or [`Self::note_time`], the next packet that has reached the end of the wire by
    /// `now`, or was lost on it.
    #[inline]
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Result<Packet, Packet>> {
        if self.ring.due > now {
            return None;
        }
        let InFlight { lost, packet, .. } = self.ring.pop_front(self.delay)?;
        Some(if lost { Err(packet) } else { Ok(packet) })
    }
}

impl Ring {
    /// Counts the packets that have departed by `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        while let Some(next) = self.packets.get(self.departed).filter(|next| next.departs <= now) {
            self.waiting_bytes -= u64::from(next.wire_len);
            self.departed += 1;
        }
    }

    /// Takes the oldest packet, which has departed. The others travel for `delay`, too.
    #[inline]
    fn pop_front(&mut self, delay: Duration) -> Option<InFlight> {
        let oldest = self.packets.pop_front()?;
        self.departed -= 1;
        self.due = self.packets.front().map_or(Instant::FAR_FUTURE, |next| next.departs + delay);
        Some(oldest)
    }
}

impl Node for Link {
    #[inline]
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        self.note_time(now);
        if let Some(Err(packet)) = packet.map(|packet| self.take(packet, now)) {
            out.discard(packet, DropCause::QueueFull);
        }
        while let Some(due) = self.next_due(now) {
            match due {
                Ok(packet) => out.forward(packet),
                Err(packet) => out.discard(packet, DropCause::Loss),
            }
        }
    }

    #[inline]
    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.ring.due).filter(|_| !self.ring.packets.is_empty())
    }

    fn held(&self) -> Amount {
        let mut held = Amount::default();
        self.ring.packets.iter().for_each(|in_flight| held.add(&in_flight.packet));
        held
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, arrivals, packet};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn packets_follow_each_other_at_the_rate() {
        // 1000 octets at 8 Mbit/s take 1 ms; then 10 ms on the wire.
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(10)));
        for _ in 0..3 {
            lane.send(packet(1000), Instant::ZERO);
        }
        lane.send(packet(500), Instant::from_millis(20));
        lane.run();
        assert_eq!(arrivals(&lane), [(11_000, 1000), (12_000, 1000), (13_000, 1000), (30_500, 500)]);
    }

    #[test]
    fn the_queue_counts_what_has_not_departed() {
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(10)).queue(Queue::packets(2)));
        // At 0 ms one packet is in service and one waits: the third finds the queue full. At 1 ms the first has
        // departed.
        for at in [0, 0, 0, 1] {
            lane.send(packet(1000), Instant::from_millis(at));
        }
        lane.run();
        assert_eq!(arrivals(&lane), [(11_000, 1000), (12_000, 1000), (13_000, 1000)]);
        assert_eq!(lane.dropped, [(0, DropCause::QueueFull)]);
    }

    #[test]
    fn what_is_on_the_wire_does_not_wait_though_nothing_else_has_happened() {
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(10)));
        (0..3).for_each(|_| lane.send(packet(1000), Instant::ZERO));
        let waiting = |millis| lane.node.backlog_at(Instant::from_millis(millis)).packets;
        assert_eq!([0, 1, 2, 3].map(waiting), [3, 2, 1, 0]);
    }

    #[test]
    fn a_lost_packet_takes_its_share_of_the_rate() {
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(10)).loss(LossModel::uniform(1.0)));
        lane.send(packet(1000), Instant::ZERO);
        assert_eq!(lane.node.held(), Amount { packets: 1, bytes: 1000 });
        lane.run();
        assert_eq!(lane.dropped, [(11_000, DropCause::Loss)]);
        assert_eq!(lane.node.held(), Amount::default());
    }

    #[test]
    fn a_trace_serves_at_its_opportunities() {
        // Opportunities at 1, 1 and 4 ms, then again at 5, 5 and 8 ms.
        let trace = Trace::parse("1\n1\n4\n").unwrap();
        let mut lane = Lane::new(Link::traced(trace, MS(10)));
        // 2000 octets use up the first and a third of the second; 1000 fit into the rest; 1500 wait for 4 ms.
        for len in [2000, 1000, 1500, 40] {
            lane.send(packet(len), Instant::ZERO);
        }
        lane.run();
        assert_eq!(arrivals(&lane), [(11_000, 2000), (11_000, 1000), (14_000, 1500), (15_000, 40)]);
    }

    #[test]
    fn marks_instead_of_waiting_for_overflow() {
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(1)).queue(Queue::packets(10).mark_above(2)));
        for _ in 0..4 {
            lane.send(crate::testing::ecn_packet(1000), Instant::ZERO);
        }
        lane.run();
        let marks: Vec<bool> = lane.arrived.iter().map(|(_, packet)| crate::testing::is_marked(packet)).collect();
        assert_eq!(marks, [false, false, true, true]);
    }

    #[test]
    fn a_clone_starts_empty() {
        let mut lane = Lane::new(Link::new(Rate::from_mbps(8), MS(10)));
        lane.send(packet(1000), Instant::ZERO);
        assert_eq!(lane.node.clone().held(), Amount::default());
    }
}
