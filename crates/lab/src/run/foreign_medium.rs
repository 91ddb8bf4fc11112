//! A shared medium that another simulator simulates: it keeps packets here while that one decides when, and whether,
//! they arrive.
//!
//! ```text
//! enters ── limit of the receiver's rate ── taken by the backend ... arrives, by number ── leaves
//! ```
//!
//! Between two gates the other simulator keeps packets in order. If one arrives, those before it are therefore lost.

use core::any::Any;
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

use network::{Amount, DropCause, Gate, Medium, MediumOutput, Neighbours, Packet, Queue};
use units::{Instant, Rate};

/// A packet that has entered, as the other simulator needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, unique in this medium.
    pub number: u64,
    /// Where it entered.
    pub from: Gate,
    /// Where it is to leave.
    pub to: Gate,
    /// Its octets from the IP header on.
    pub wire_len: u32,
}

/// Where lost packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossesAt {
    /// At the gate where they entered.
    Sender,
    /// At the gate where they would have left.
    Receiver,
}

/// See the module documentation.
pub struct ForeignMedium {
    neighbours: Neighbours,
    losses_at: LossesAt,
    /// TCP segments from or to this port cross at once.
    free_port: Option<u16>,
    /// Queue of each limited gate.
    queue: Queue,
    gates: Vec<GateState>,
    /// Packets that the other simulator has, between two gates, in order.
    under_way: BTreeMap<(Gate, Gate), VecDeque<(u64, Packet)>>,
    /// Packets that the backend has not taken yet.
    entered: Vec<Entry>,
    /// Packets that have arrived, to be passed on at the next call.
    arrived: Vec<(Gate, Gate, u64)>,
    entries: u64,
}

#[derive(Default)]
struct GateState {
    gone: bool,
    limit: Option<Limit>,
}

/// Delays packets to a gate so that they do not exceed its rate.
struct Limit {
    rate: Rate,
    free_at: Instant,
    waiting: VecDeque<(Instant, Gate, Packet)>,
    waiting_bytes: u64,
}

impl ForeignMedium {
    /// Creates a medium with this many gates and no address.
    pub(super) fn new(gates: u16, losses_at: LossesAt, queue: Queue) -> Self {
        Self {
            neighbours: Neighbours::new(),
            losses_at,
            free_port: None,
            queue,
            gates: (0..gates).map(|_| GateState::default()).collect(),
            under_way: BTreeMap::new(),
            entered: Vec::new(),
            arrived: Vec::new(),
            entries: 0,
        }
    }

    /// TCP segments from or to this port cross without delay.
    pub(super) fn free(self, port: Option<u16>) -> Self {
        Self { free_port: port, ..self }
    }

    /// Packets to `address` leave at `gate`.
    pub(super) fn reach(&mut self, address: IpAddr, gate: Gate) {
        self.neighbours.reach(address, gate);
    }

    /// Packets from `address` to an unknown destination leave at `gate`.
    pub(super) fn leave_from(&mut self, address: IpAddr, gate: Gate) {
        self.neighbours.leave_from(address, gate);
    }

    /// Passes at most this rate to `gate`.
    pub(super) fn limit(&mut self, gate: Gate, rate: Rate) {
        let limit = Limit { rate, free_at: Instant::ZERO, waiting: VecDeque::new(), waiting_bytes: 0 };
        self.gates[gate.index()].limit = Some(limit);
    }

    /// Ends all traffic of a gate; packets under way to or from it are lost.
    pub(super) fn leave(&mut self, gate: Gate) {
        self.gates[gate.index()].gone = true;
    }

    /// Returns the packets that wait for a gate or are under way to it.
    pub(super) fn towards(&self, gate: Gate) -> Amount {
        let waiting = self.gates[gate.index()].limit.iter().flat_map(|limit| limit.waiting.iter().map(|(.., it)| it));
        let under_way = self.under_way.iter().filter(|((_, to), _)| *to == gate).flat_map(|(_, all)| all);
        amount(waiting.chain(under_way.map(|(_, packet)| packet)))
    }

    /// Returns the packets that a gate has sent and that have not arrived yet.
    pub(super) fn sent_by(&self, gate: Gate) -> Amount {
        let under_way = self.under_way.iter().filter(|((from, _), _)| *from == gate).flat_map(|(_, all)| all);
        amount(under_way.map(|(_, packet)| packet))
    }

    /// Takes the packets that have entered since the last call, in order.
    pub fn take_entered(&mut self) -> Vec<Entry> {
        core::mem::take(&mut self.entered)
    }

    /// Notes that a packet has arrived.
    pub fn arrive(&mut self, from: Gate, to: Gate, number: u64) {
        self.arrived.push((from, to, number));
    }

    fn enter(&mut self, from: Gate, packet: Packet, now: Instant, out: &mut MediumOutput) {
        let to = self.neighbours.gate_of(&packet).filter(|to| *to != from && to.index() < self.gates.len());
        let Some(to) = to else { return out.discard(from, packet, DropCause::NoRoute) };
        if self.gates[from.index()].gone || self.gates[to.index()].gone {
            return out.discard(self.counted_at(from, to), packet, DropCause::Outage);
        }
        if self.is_free(&packet) {
            return out.forward(to, packet);
        }
        let counted_at = self.counted_at(from, to);
        match &mut self.gates[to.index()].limit {
            None => self.hand_over(from, to, packet),
            Some(limit) if !limit.admits(&packet, self.queue) => {
                out.discard(counted_at, packet, DropCause::QueueFull);
            }
            Some(limit) => limit.push(from, packet, now),
        }
    }

    fn is_free(&self, packet: &Packet) -> bool {
        let segment = self.free_port.zip(packet.segment());
        segment.is_some_and(|(port, segment)| segment.src.port() == port || segment.dst.port() == port)
    }

    fn hand_over(&mut self, from: Gate, to: Gate, packet: Packet) {
        let (number, wire_len) = (self.entries, packet.wire_len());
        self.entries += 1;
        self.entered.push(Entry { number, from, to, wire_len });
        self.under_way.entry((from, to)).or_default().push_back((number, packet));
    }

    fn counted_at(&self, from: Gate, to: Gate) -> Gate {
        match self.losses_at {
            LossesAt::Receiver => to,
            LossesAt::Sender => from,
        }
    }

    /// Passes on what has arrived; what should have arrived before it is lost.
    fn pass_on(&mut self, out: &mut MediumOutput) {
        for (from, to, number) in core::mem::take(&mut self.arrived) {
            let counted_at = self.counted_at(from, to);
            let is_gone = self.gates[from.index()].gone || self.gates[to.index()].gone;
            let Some(under_way) = self.under_way.get_mut(&(from, to)) else { continue };
            while under_way.front().is_some_and(|(first, _)| *first <= number) {
                let Some((first, packet)) = under_way.pop_front() else { break };
                match first == number {
                    true if is_gone => out.discard(counted_at, packet, DropCause::Outage),
                    true => out.forward(to, packet),
                    false => out.discard(counted_at, packet, DropCause::Loss),
                }
            }
        }
    }

    fn release(&mut self, now: Instant) {
        for to in (0..self.gates.len() as u16).map(Gate) {
            while let Some((from, packet)) = self.gates[to.index()].limit.as_mut().and_then(|limit| limit.pop(now)) {
                self.hand_over(from, to, packet);
            }
        }
    }
}

impl Limit {
    fn admits(&self, packet: &Packet, queue: Queue) -> bool {
        let backlog = Amount { packets: self.waiting.len() as u64, bytes: self.waiting_bytes };
        queue.admits(backlog, packet.wire_len())
    }

    fn push(&mut self, from: Gate, packet: Packet, now: Instant) {
        let departs = self.free_at.max(now);
        self.free_at = departs + self.rate.time_to_send(u64::from(packet.wire_len()));
        self.waiting_bytes += u64::from(packet.wire_len());
        self.waiting.push_back((departs, from, packet));
    }

    fn pop(&mut self, now: Instant) -> Option<(Gate, Packet)> {
        self.waiting.front().filter(|(departs, ..)| *departs <= now)?;
        let (_, from, packet) = self.waiting.pop_front()?;
        self.waiting_bytes -= u64::from(packet.wire_len());
        Some((from, packet))
    }
}

fn amount<'a>(packets: impl Iterator<Item = &'a Packet>) -> Amount {
    packets.fold(Amount::default(), |mut sum, packet| {
        sum.add(packet);
        sum
    })
}

impl Medium for ForeignMedium {
    fn gates(&self) -> u16 {
        self.gates.len() as u16
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        self.pass_on(out);
        self.release(now);
        if let Some((from, packet)) = packet {
            self.enter(from, packet, now, out);
            self.release(now);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let limits = self.gates.iter().filter_map(|gate| gate.limit.as_ref());
        limits.filter_map(|limit| limit.waiting.front().map(|(departs, ..)| *departs)).min()
    }

    fn held(&self) -> Amount {
        let waiting = self.gates.iter().filter_map(|gate| gate.limit.as_ref()).flat_map(|limit| &limit.waiting);
        let under_way = self.under_way.values().flatten();
        amount(waiting.map(|(.., packet)| packet).chain(under_way.map(|(_, packet)| packet)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use wire::{Pattern, Payload, Segment};

    use super::*;

    const DESTINATION: &str = "10.1.0.1:5000";
    const SOURCE: &str = "10.0.0.1:80";
    /// The cell's core.
    const HUB: Gate = Gate(0);
    const SPOKE: Gate = Gate(1);

    fn packet(from: &str, to: &str, len: u32) -> Packet {
        let [from, to] = [from, to].map(|end| end.parse::<SocketAddr>().unwrap());
        let mut segment = Segment::new(from, to);
        segment.payload = Payload::Pattern(Pattern { stream: 1, offset: 0, len });
        Packet::from_segment(segment)
    }

    fn down() -> Packet {
        packet(SOURCE, DESTINATION, 960)
    }

    /// A cell with one relay, through which the destination is reached.
    fn cell() -> ForeignMedium {
        let mut cell = ForeignMedium::new(2, LossesAt::Receiver, Queue::packets(2));
        let address = DESTINATION.parse::<SocketAddr>().unwrap().ip();
        cell.reach(address, SPOKE);
        cell.leave_from(address, HUB);
        cell
    }

    /// Enters packets at a time, and returns what leaves and what is dropped.
    fn process(
        cell: &mut ForeignMedium,
        packets: Vec<(Gate, Packet)>,
        at_ms: u64,
    ) -> (Vec<Gate>, Vec<(Gate, DropCause)>) {
        let (mut out, now) = (MediumOutput::new(), Instant::from_millis(at_ms));
        cell.process(None, now, &mut out);
        packets.into_iter().for_each(|packet| cell.process(Some(packet), now, &mut out));
        let left = out.take_forwarded().map(|(gate, _)| gate).collect();
        (left, out.take_dropped().map(|(gate, _, cause)| (gate, cause)).collect())
    }

    #[test]
    fn packets_stay_until_they_arrive() {
        let mut cell = cell();
        assert_eq!(process(&mut cell, vec![(HUB, down())], 0), (vec![], vec![]));
        assert_eq!(cell.take_entered(), [Entry { number: 0, from: HUB, to: SPOKE, wire_len: 1000 }]);
        assert_eq!((cell.held().packets, cell.towards(SPOKE).bytes), (1, 1000));
        cell.arrive(HUB, SPOKE, 0);
        assert_eq!(process(&mut cell, vec![], 5), (vec![SPOKE], vec![]));
        assert_eq!((cell.held().packets, cell.take_entered().len()), (0, 0));
    }

    #[test]
    fn what_should_have_arrived_before_is_lost() {
        let mut cell = cell();
        process(&mut cell, vec![(HUB, down()), (HUB, down()), (HUB, down())], 0);
        let answer = (SPOKE, packet(DESTINATION, SOURCE, 0));
        process(&mut cell, vec![answer], 0);
        cell.arrive(HUB, SPOKE, 2);
        // The other direction has an order of its own, and a number that is unknown changes nothing.
        cell.arrive(HUB, SPOKE, 0);
        let lost = vec![(SPOKE, DropCause::Loss); 2];
        assert_eq!(process(&mut cell, vec![], 9), (vec![SPOKE], lost));
        cell.arrive(SPOKE, HUB, 3);
        assert_eq!(process(&mut cell, vec![], 9), (vec![HUB], vec![]));
    }

    #[test]
    fn a_limit_delays_packets_and_drops_those_that_find_its_queue_full() {
        let mut cell = cell();
        cell.limit(SPOKE, Rate::from_mbps(8));
        // Each takes 1 ms; the first goes at once, two wait.
        let all = (0..4).map(|_| (HUB, down())).collect();
        assert_eq!(process(&mut cell, all, 0), (vec![], vec![(SPOKE, DropCause::QueueFull)]));
        assert_eq!((cell.take_entered().len(), cell.towards(SPOKE).packets), (1, 3));
        assert_eq!(cell.next_wakeup(), Some(Instant::from_millis(1)));
        process(&mut cell, vec![], 2);
        assert_eq!((cell.take_entered().len(), cell.next_wakeup()), (2, None));
    }

    #[test]
    fn nothing_reaches_a_gate_that_is_gone() {
        let mut cell = cell();
        process(&mut cell, vec![(HUB, down())], 0);
        cell.leave(SPOKE);
        cell.arrive(HUB, SPOKE, 0);
        let dropped = vec![(SPOKE, DropCause::Outage); 2];
        assert_eq!(process(&mut cell, vec![(HUB, down())], 1), (vec![], dropped));
    }

    /// The hop towards the destination takes all drops at a relay's gate for its own.
    #[test]
    fn losses_towards_the_core_count_at_the_core() {
        let mut cell = cell();
        let up = || (SPOKE, packet(DESTINATION, SOURCE, 0));
        process(&mut cell, vec![up(), up()], 0);
        cell.arrive(SPOKE, HUB, 1);
        assert_eq!(process(&mut cell, vec![], 9), (vec![HUB], vec![(HUB, DropCause::Loss)]));
        cell.leave(SPOKE);
        assert_eq!(process(&mut cell, vec![up()], 9), (vec![], vec![(HUB, DropCause::Outage)]));
    }

    #[test]
    fn packets_to_unknown_addresses_and_free_ones_do_not_wait() {
        let mut cell = cell().free(Some(80));
        let stray = (HUB, packet(SOURCE, "192.0.2.1:9", 0));
        assert_eq!(process(&mut cell, vec![stray], 0), (vec![], vec![(HUB, DropCause::NoRoute)]));
        assert_eq!(process(&mut cell, vec![(HUB, down())], 0), (vec![SPOKE], vec![]));
        assert_eq!(cell.take_entered(), []);
    }
}
