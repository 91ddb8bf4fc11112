//! The graph: nodes as vertices, static routes between them, and the packets in transit.

use core::net::IpAddr;
use std::collections::VecDeque;

use units::{Deadlines, Instant, Prng};
use wire::Segment;

use crate::routes::Routes;
use crate::{
    Amount, Counters, Datagram, DropCause, Gate, Link, Medium, MediumOutput, Node, Output, Packet, PacketPool, Route,
};

/// Identifies a vertex of one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(u32);

/// Identifies a port, the vertex at which a host is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(VertexId);

/// Identifies an element that several vertices share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MediumId(u32);

/// A network of nodes. It has no clock: the owner sends packets into ports, calls [`Self::advance`] at
/// [`Self::next_wakeup`], and after either takes arrived packets from [`Self::poll_delivery`]. Time never moves back.
#[derive(Default)]
pub struct Network {
    seed: u64,
    /// The part to which new elements belong, and the number of elements it already has.
    part: Option<(String, usize)>,
    vertices: Vec<Vertex>,
    media: Vec<Shared>,
    /// The pending wake-ups, by [`Vertex::clock`].
    wakeups: Deadlines,
    /// The vertex to which each clock belongs.
    clocks: Vec<VertexId>,
    pending: VecDeque<(VertexId, Packet)>,
    deliveries: VecDeque<(PortId, Packet)>,
    output: Output,
    medium_output: MediumOutput,
    pool: PacketPool,
    /// The vertex with the latest wake-up.
    latest: VertexId,
}

/// How far ahead [`Network::foreseen`] looks: three fetches follow each other, and each should be complete before the
/// next.
const FORESEEN: usize = 4;

struct Vertex {
    element: Element,
    next: Next,
    /// Index into [`Network::wakeups`]; a medium uses that of its first gate.
    clock: u32,
    counters: Counters,
}

enum Element {
    /// Not behind a `Box<dyn Node>`, because most packets spend most of their time here.
    Link(Link),
    Node(Box<dyn Node>),
    Gate(MediumId, Gate),
    Router,
    Port,
}

/// A medium, whose gates are consecutive vertices.
struct Shared {
    medium: Box<dyn Medium>,
    first_gate: VertexId,
}

impl Vertex {
    /// Counts the packet as leaving and returns the vertex it goes to.
    #[inline]
    fn depart(&mut self, packet: &mut Packet) -> Result<VertexId, DropCause> {
        let next = match &self.next {
            Next::One(next) => *next,
            Next::Routes(routes) => routes.next(packet).ok_or(DropCause::NoRoute)?,
            Next::Nowhere => return Err(DropCause::NoRoute),
        };
        if !packet.count_hop() {
            return Err(DropCause::HopLimit);
        }
        self.counters.leave(packet);
        Ok(next)
    }
}

impl Shared {
    fn vertex(&self, gate: Gate) -> VertexId {
        VertexId(self.first_gate.0 + u32::from(gate.0))
    }

    fn vertices(&self) -> impl Iterator<Item = VertexId> + use<> {
        (self.first_gate.0..self.first_gate.0 + u32::from(self.medium.gates())).map(VertexId)
    }
}

enum Next {
    Nowhere,
    One(VertexId),
    Routes(Box<Routes>),
}

/// A vertex at which octets appeared or disappeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("vertex {vertex:?}: entered {entered:?}, but left {left:?} + dropped {dropped:?} + held {held:?}")]
pub struct Imbalance {
    /// The vertex.
    pub vertex: VertexId,
    /// The amount that entered.
    pub entered: Amount,
    /// The amount that left.
    pub left: Amount,
    /// The amount that was dropped.
    pub dropped: Amount,
    /// The amount inside.
    pub held: Amount,
}

impl PortId {
    /// Returns the vertex of the port.
    pub const fn vertex(self) -> VertexId {
        self.0
    }
}

impl VertexId {
    /// Returns a small integer, counted from zero in order of creation.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Wiring.
impl Network {
    /// Creates an empty network, whose nodes draw their randomness from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Makes all elements added from now on belong to the part with this name. Their randomness depends only on the
    /// name and on their order within the part. Without parts, it depends on everything added before.
    pub fn begin_part(&mut self, name: impl Into<String>) {
        self.part = Some((name.into(), 0));
    }

    /// Adds a link.
    pub fn add_link(&mut self, mut link: Link) -> VertexId {
        link.seed(self.next_prng());
        self.add(Element::Link(link))
    }

    /// Adds any other node.
    pub fn add_node(&mut self, mut node: Box<dyn Node>) -> VertexId {
        node.seed(self.next_prng());
        self.add(Element::Node(node))
    }

    /// Adds an element with several gates. Each gate becomes a vertex; see [`Self::gate`].
    pub fn add_medium(&mut self, mut medium: Box<dyn Medium>) -> MediumId {
        medium.seed(self.next_prng());
        let id = MediumId(self.media.len() as u32);
        let first_gate = VertexId(self.vertices.len() as u32);
        for gate in 0..medium.gates() {
            self.add(Element::Gate(id, Gate(gate)));
        }
        self.media.push(Shared { medium, first_gate });
        id
    }

    /// Returns the vertex of a gate.
    ///
    /// # Panics
    /// If the medium has no such gate.
    pub fn gate(&self, medium: MediumId, gate: Gate) -> VertexId {
        let shared = &self.media[medium.0 as usize];
        assert!(gate.0 < shared.medium.gates(), "{gate:?} of a medium with {} gates", shared.medium.gates());
        shared.vertex(gate)
    }

    /// Adds a router, which packets pass without delay.
    pub fn add_router(&mut self) -> VertexId {
        self.add(Element::Router)
    }

    /// Adds a port for a host.
    pub fn add_port(&mut self) -> PortId {
        PortId(self.add(Element::Port))
    }

    /// Sends everything that leaves `from` to `to`, replacing any earlier connection or routes.
    pub fn connect(&mut self, from: VertexId, to: VertexId) {
        self.vertices[from.index()].next = Next::One(to);
    }

    /// Adds a route for packets that leave `from`; it replaces an earlier [`Self::connect`].
    pub fn add_route(&mut self, from: VertexId, route: Route) {
        self.routes(from).add(route);
    }

    /// Adds the route for packets that leave `from` for the host `to`. It takes precedence over those of
    /// [`Self::add_route`] and costs little, even with many hosts.
    pub fn add_host_route(&mut self, from: VertexId, to: IpAddr, via: VertexId) {
        self.routes(from).add_host(to, via);
    }

    fn routes(&mut self, from: VertexId) -> &mut Routes {
        let next = &mut self.vertices[from.index()].next;
        if !matches!(next, Next::Routes(_)) {
            *next = Next::Routes(Box::default());
        }
        match next {
            Next::Routes(routes) => routes,
            Next::Nowhere | Next::One(_) => unreachable!("it was made routes above"),
        }
    }

    fn add(&mut self, element: Element) -> VertexId {
        let id = VertexId(self.vertices.len() as u32);
        let clock = self.clocks.len() as u32;
        if matches!(element, Element::Link(_) | Element::Node(_) | Element::Gate(_, Gate(0))) {
            self.clocks.push(id);
        }
        self.vertices.push(Vertex { element, next: Next::Nowhere, clock, counters: Counters::default() });
        id
    }

    fn next_prng(&mut self) -> Prng {
        let Some((part, number)) = &mut self.part else {
            return Prng::fork(self.seed, &format!("vertex {}", self.vertices.len()));
        };
        *number += 1;
        Prng::fork(self.seed, &format!("{part}, element {number}"))
    }
}

/// Packets.
impl Network {
    /// Returns a packet with the segment that `fill` makes, if it makes one, in memory of finished packets.
    #[inline]
    pub fn packet(&mut self, fill: impl FnOnce(&mut Segment) -> bool) -> Option<Packet> {
        self.pool.segment(fill)
    }

    /// Returns a packet that holds a datagram, in memory of finished packets.
    pub fn datagram(&mut self, datagram: Datagram) -> Packet {
        self.pool.datagram(datagram)
    }

    /// Sends a packet from the host at `port`.
    #[inline]
    pub fn send(&mut self, port: PortId, mut packet: Packet, now: Instant) {
        match self.vertices[port.0.index()].depart(&mut packet) {
            Ok(next) => self.enter(next, packet, now),
            Err(cause) => self.discard(port.0, packet, cause),
        }
        if !self.pending.is_empty() {
            self.settle(now);
        }
    }

    /// Returns when [`Self::advance`] must be called next.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.wakeups.first().map(|(at, _)| at)
    }

    /// Runs the node that is due first if it is due by `now`; returns false if none is.
    #[inline]
    pub fn advance(&mut self, now: Instant) -> bool {
        let Some((_, clock)) = self.wakeups.first().filter(|(at, _)| *at <= now) else { return false };
        self.latest = self.clocks[clock];
        self.wake(self.latest, now);
        if !self.pending.is_empty() {
            self.settle(now);
        }
        true
    }

    /// Returns the next packet that arrived at a port.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<(PortId, Packet)> {
        self.deliveries.pop_front()
    }

    /// Returns a packet that will soon leave the link with the latest wake-up, a few packets behind the next one. The
    /// caller can fetch into the cache what that packet needs. Prefetches the memory of a packet further behind.
    pub fn foreseen(&self) -> Option<&Packet> {
        let Element::Link(link) = &self.vertices[self.latest.index()].element else { return None };
        link.foresee(FORESEEN)
    }

    /// Keeps the memory of an arrived packet that is no longer needed.
    #[inline]
    pub fn recycle(&mut self, packet: Packet) {
        self.pool.recycle(packet);
    }

    /// Takes the segment out of an arrived packet; `None` if it holds none.
    pub fn take_segment(&mut self, packet: Packet) -> Option<Segment> {
        self.pool.take_segment(packet)
    }

    /// Moves the packets between vertices until all are in a node or at a port.
    fn settle(&mut self, now: Instant) {
        while let Some((at, packet)) = self.pending.pop_front() {
            self.enter(at, packet, now);
        }
    }

    /// Lets a packet enter a vertex.
    #[inline]
    fn enter(&mut self, at: VertexId, packet: Packet, now: Instant) {
        let vertex = &mut self.vertices[at.index()];
        vertex.counters.enter(&packet);
        let Element::Link(link) = &mut vertex.element else { return self.enter_other(at, packet, now) };
        let before = link.due();
        let taken = link.take(packet, now);
        let due = link.due();
        if let Err(packet) = taken {
            vertex.counters.drop_packet(&packet, DropCause::QueueFull);
            self.pool.recycle(packet);
        }
        if due <= now {
            self.run_link(at, now);
        } else if due != before {
            // A packet behind others does not change when the first of them is due.
            self.wakeups.set(vertex.clock as usize, Some(due));
        }
    }

    /// Lets a packet enter a vertex that is not a link.
    fn enter_other(&mut self, at: VertexId, packet: Packet, now: Instant) {
        match &self.vertices[at.index()].element {
            Element::Port => self.deliveries.push_back((PortId(at), packet)),
            Element::Router => self.leave(at, packet),
            Element::Node(_) => self.run_node(at, Some(packet), now),
            Element::Gate(id, gate) => {
                let (id, gate) = (*id, *gate);
                self.process_medium(id, Some((gate, packet)), now);
            }
            Element::Link(_) => unreachable!("its caller has seen that it is none"),
        }
    }

    /// Runs a vertex whose wake-up is due.
    #[inline]
    fn wake(&mut self, at: VertexId, now: Instant) {
        match &mut self.vertices[at.index()].element {
            Element::Link(link) => {
                link.note_time(now);
                self.run_link(at, now);
            }
            Element::Node(_) => self.run_node(at, None, now),
            Element::Gate(id, _) => {
                let id = *id;
                self.process_medium(id, None, now);
            }
            Element::Router | Element::Port => {}
        }
    }

    /// Runs a node and collects its output.
    #[inline]
    fn run_node(&mut self, at: VertexId, packet: Option<Packet>, now: Instant) {
        let vertex = &mut self.vertices[at.index()];
        let Element::Node(node) = &mut vertex.element else { return };
        node.process(packet, now, &mut self.output);
        self.wakeups.set(vertex.clock as usize, node.next_wakeup());
        self.collect(at);
    }

    /// Passes on the packets that have reached the end of a link, without an intermediate list: most packets pass
    /// several links.
    #[inline]
    fn run_link(&mut self, at: VertexId, now: Instant) {
        loop {
            let vertex = &mut self.vertices[at.index()];
            let Element::Link(link) = &mut vertex.element else { return };
            let mut packet = match link.next_due(now) {
                Some(Ok(packet)) => packet,
                Some(Err(packet)) => {
                    self.discard(at, packet, DropCause::Loss);
                    continue;
                }
                None => return self.wakeups.set(vertex.clock as usize, link.next_wakeup()),
            };
            match vertex.depart(&mut packet) {
                Ok(next) => self.go_on(next, packet),
                Err(cause) => self.discard(at, packet, cause),
            }
        }
    }

    /// Runs a medium; its wake-up is stored at its first gate.
    fn process_medium(&mut self, id: MediumId, packet: Option<(Gate, Packet)>, now: Instant) {
        let shared = &mut self.media[id.0 as usize];
        core::mem::swap(&mut self.pool, &mut self.medium_output.pool);
        shared.medium.process(packet, now, &mut self.medium_output);
        core::mem::swap(&mut self.pool, &mut self.medium_output.pool);
        let clock = self.vertices[shared.first_gate.index()].clock;
        self.wakeups.set(clock as usize, shared.medium.next_wakeup());
        let mut forwarded = core::mem::take(&mut self.medium_output.forwarded);
        for (gate, packet) in forwarded.drain(..) {
            self.leave(self.media[id.0 as usize].vertex(gate), packet);
        }
        self.medium_output.forwarded = forwarded;
        while let Some((gate, packet, cause)) = self.medium_output.dropped.pop() {
            self.discard(self.media[id.0 as usize].vertex(gate), packet, cause);
        }
        for (gate, wire_len, cause) in self.medium_output.never_made.drain(..) {
            let vertex = self.media[id.0 as usize].vertex(gate);
            self.vertices[vertex.index()].counters.drop_one(wire_len, cause);
        }
    }

    #[inline]
    fn collect(&mut self, at: VertexId) {
        // Moved out and back to end the borrow of the network; nothing is copied.
        let mut forwarded = core::mem::take(&mut self.output.forwarded);
        forwarded.drain(..).for_each(|packet| self.leave(at, packet));
        self.output.forwarded = forwarded;
        while let Some((packet, cause)) = self.output.dropped.pop() {
            self.discard(at, packet, cause);
        }
        while let Some(packet) = self.output.absorbed.pop() {
            self.pool.recycle(packet);
        }
    }

    /// Sends a packet from a vertex to the next one.
    fn leave(&mut self, from: VertexId, mut packet: Packet) {
        match self.vertices[from.index()].depart(&mut packet) {
            Ok(next) => self.go_on(next, packet),
            Err(cause) => self.discard(from, packet, cause),
        }
    }

    /// Puts a packet before the vertex `next`, or straight into a port.
    #[inline]
    fn go_on(&mut self, next: VertexId, packet: Packet) {
        let onto = &mut self.vertices[next.index()];
        if self.pending.is_empty() && matches!(onto.element, Element::Port) {
            // `enter`, which counts packets, is not called here.
            onto.counters.enter(&packet);
            return self.deliveries.push_back((PortId(next), packet));
        }
        self.pending.push_back((next, packet));
    }

    #[cold]
    fn discard(&mut self, at: VertexId, packet: Packet, cause: DropCause) {
        self.vertices[at.index()].counters.drop_packet(&packet, cause);
        self.pool.recycle(packet);
    }
}

/// Measurements.
impl Network {
    /// Returns the counters of a vertex.
    pub fn counters(&self, vertex: VertexId) -> &Counters {
        &self.vertices[vertex.index()].counters
    }

    /// Returns the packets inside a vertex now.
    pub fn held(&self, vertex: VertexId) -> Amount {
        match &self.vertices[vertex.index()].element {
            Element::Link(link) => link.held(),
            Element::Node(node) => node.held(),
            Element::Gate(..) | Element::Router | Element::Port => Amount::default(),
        }
    }

    /// Returns a medium for measurements; `None` if it is not a `T`.
    pub fn medium<T: Medium>(&self, id: MediumId) -> Option<&T> {
        self.media[id.0 as usize].medium.as_any().downcast_ref()
    }

    /// Gives a command to a medium, if it is a `T`, and carries out its consequences.
    pub fn with_medium<T: Medium, R>(
        &mut self,
        id: MediumId,
        now: Instant,
        act: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let result = self.media[id.0 as usize].medium.as_any_mut().downcast_mut().map(act);
        self.process_medium(id, None, now);
        self.settle(now);
        result
    }

    /// Returns the packets waiting or in service in a link at `now`; zero for other vertices.
    pub fn backlog(&self, vertex: VertexId, now: Instant) -> Amount {
        match &self.vertices[vertex.index()].element {
            Element::Link(link) => link.backlog_at(now),
            _ => Amount::default(),
        }
    }

    /// Returns every vertex at which entered = left + dropped + held should hold and does not.
    pub fn imbalances(&self) -> impl Iterator<Item = Imbalance> + '_ {
        let vertices = (0..self.vertices.len() as u32).map(VertexId).filter_map(|vertex| self.imbalance(vertex));
        vertices.chain(self.media.iter().filter_map(|shared| self.medium_imbalance(shared)))
    }

    /// Balances a medium over all its gates: packets that enter at one gate, or are made inside, leave at another.
    fn medium_imbalance(&self, shared: &Shared) -> Option<Imbalance> {
        let [mut entered, mut left, mut dropped] = [Amount::default(); 3];
        for vertex in shared.vertices() {
            let counters = self.counters(vertex);
            entered = entered + counters.entered;
            left = left + counters.left;
            dropped = dropped + counters.dropped_total();
        }
        let held = shared.medium.held();
        let entered = entered + shared.medium.made();
        let balanced = entered == left + dropped + held;
        (shared.medium.conserves() && !balanced).then_some(Imbalance {
            vertex: shared.first_gate,
            entered,
            left,
            dropped,
            held,
        })
    }

    fn imbalance(&self, id: VertexId) -> Option<Imbalance> {
        let vertex = &self.vertices[id.index()];
        let conserves = match &vertex.element {
            Element::Link(_) | Element::Router => true,
            Element::Node(node) => node.conserves(),
            Element::Gate(..) | Element::Port => false,
        };
        let (entered, left) = (vertex.counters.entered, vertex.counters.left);
        let (dropped, held) = (vertex.counters.dropped_total(), self.held(id));
        let balanced = entered == left + dropped + held;
        (conserves && !balanced).then_some(Imbalance { vertex: id, entered, left, dropped, held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::{Duplicate, Lossy};
    use crate::testing::{CLIENT, SERVER, packet, segment};
    use crate::{LossModel, Prefix};
    use units::{Duration, Rate};

    fn run(network: &mut Network) -> Vec<(u64, PortId)> {
        let mut arrived = Vec::new();
        while let Some(at) = network.next_wakeup() {
            network.advance(at);
            while let Some((port, _)) = network.poll_delivery() {
                arrived.push((at.as_micros(), port));
            }
        }
        arrived
    }

    fn link() -> Link {
        Link::new(Rate::from_mbps(8), Duration::from_millis(10))
    }

    #[test]
    fn the_fifth_after_the_one_that_arrives_is_foreseen() {
        let mut network = Network::new(1);
        let (client, server) = (network.add_port(), network.add_port());
        let link = network.add_link(link());
        network.connect(client.vertex(), link);
        network.connect(link, server.vertex());
        (0..6).for_each(|number| network.send(client, packet(1000 + number), Instant::ZERO));
        network.advance(network.next_wakeup().unwrap());
        assert_eq!(network.poll_delivery().map(|(_, packet)| packet.wire_len()), Some(1000));
        assert_eq!(network.foreseen().map(Packet::wire_len), Some(1005));
        network.advance(network.next_wakeup().unwrap());
        assert!(network.foreseen().is_none(), "nobody is so far behind");
    }

    #[test]
    fn two_links_in_a_row_add_up() {
        let mut network = Network::new(1);
        let (client, server) = (network.add_port(), network.add_port());
        let (first, second) = (network.add_link(link()), network.add_link(link()));
        network.connect(client.vertex(), first);
        network.connect(first, second);
        network.connect(second, server.vertex());
        network.send(client, packet(1000), Instant::ZERO);
        network.send(client, packet(1000), Instant::ZERO);
        assert_eq!(network.backlog(first, Instant::ZERO), Amount { packets: 2, bytes: 2000 });
        assert_eq!(run(&mut network), [(22_000, server), (23_000, server)]);
        assert_eq!(network.counters(second).left, Amount { packets: 2, bytes: 2000 });
    }

    #[test]
    fn what_a_part_loses_hangs_on_its_name_alone() {
        let arrived = |name: &str, others: usize| {
            let mut network = Network::new(1);
            network.begin_part("others");
            for _ in 0..others {
                network.add_link(link());
            }
            network.begin_part(name);
            let lossy = network.add_link(link().loss(LossModel::uniform(0.5)));
            let (client, server) = (network.add_port(), network.add_port());
            network.connect(client.vertex(), lossy);
            network.connect(lossy, server.vertex());
            (0..50).for_each(|_| network.send(client, packet(1000), Instant::ZERO));
            run(&mut network).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(arrived("this", 0), arrived("this", 3));
        assert_ne!(arrived("this", 0), arrived("that", 0));
    }

    /// The link serves one packet, and none may wait.
    #[test]
    fn a_copy_that_finds_no_room_is_dropped_but_nothing_is_lost() {
        let mut network = Network::new(1);
        let (client, server) = (network.add_port(), network.add_port());
        let twice = network.add_node(Box::new(crate::impairment::Duplicate::new(1.0)));
        let narrow = network.add_link(link().queue(crate::Queue::packets(1)));
        network.connect(client.vertex(), twice);
        network.connect(twice, narrow);
        network.connect(narrow, server.vertex());
        (0..2).for_each(|_| network.send(client, packet(1000), Instant::ZERO));
        let counters = network.counters(narrow);
        assert_eq!((counters.entered.packets, counters.dropped(DropCause::QueueFull).packets), (4, 3));
        assert_eq!((counters.lost(DropCause::QueueFull), counters.lost_total()), (1, 1));
        assert_eq!(run(&mut network).len(), 1);
    }

    #[test]
    fn routers_send_by_source_and_destination() {
        let mut network = Network::new(1);
        let (client, server, elsewhere) = (network.add_port(), network.add_port(), network.add_port());
        let router = network.add_router();
        network.connect(client.vertex(), router);
        let to_server = Some(Prefix::host(SERVER.ip()));
        let not_from = Some(Prefix::host("10.9.9.9".parse().unwrap()));
        network.add_route(router, Route { from: not_from, to: to_server, via: elsewhere.vertex() });
        network.add_route(router, Route { from: None, to: to_server, via: server.vertex() });
        network.send(client, packet(100), Instant::ZERO);
        let lost = Segment { src: CLIENT, dst: CLIENT, ..segment(0) };
        network.send(client, Packet::from_segment(lost), Instant::ZERO);
        assert_eq!(network.poll_delivery().map(|(port, _)| port), Some(server));
        assert!(network.poll_delivery().is_none());
        assert_eq!(network.counters(router).dropped(DropCause::NoRoute).packets, 1);
        network.add_host_route(router, SERVER.ip(), elsewhere.vertex());
        network.send(client, packet(100), Instant::ZERO);
        assert_eq!(network.poll_delivery().map(|(port, _)| port), Some(elsewhere), "a host's route goes first");
    }

    #[test]
    fn a_circle_ends() {
        let mut network = Network::new(1);
        let client = network.add_port();
        let (there, back) = (network.add_router(), network.add_router());
        network.connect(client.vertex(), there);
        network.connect(there, back);
        network.connect(back, there);
        network.send(client, packet(100), Instant::ZERO);
        let dropped = [there, back].map(|router| network.counters(router).dropped(DropCause::HopLimit).packets);
        assert_eq!(dropped.iter().sum::<u64>(), 1);
    }

    /// A medium with two gates: packets that enter at one leave at the other after 5 ms. It drops empty packets.
    #[derive(Default)]
    struct Bridge(VecDeque<(Instant, Gate, Packet)>);

    impl Medium for Bridge {
        fn gates(&self) -> u16 {
            2
        }

        fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
            match packet {
                Some((gate, packet)) if packet.wire_len() == 40 => out.discard(gate, packet, DropCause::Filtered),
                Some((gate, packet)) => self.0.push_back((now + Duration::from_millis(5), Gate(1 - gate.0), packet)),
                None => {}
            }
            while self.0.front().is_some_and(|(due, ..)| *due <= now) {
                let (_, gate, packet) = self.0.pop_front().unwrap();
                out.forward(gate, packet);
            }
        }

        fn next_wakeup(&self) -> Option<Instant> {
            self.0.front().map(|(due, ..)| *due)
        }

        fn held(&self) -> Amount {
            let mut held = Amount::default();
            self.0.iter().for_each(|(.., packet)| held.add(packet));
            held
        }

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }

        fn as_any_mut(&mut self) -> &mut dyn core::any::Any {
            self
        }
    }

    #[test]
    fn what_enters_a_medium_at_one_gate_leaves_at_another() {
        let mut network = Network::new(1);
        let (client, server) = (network.add_port(), network.add_port());
        let bridge = network.add_medium(Box::new(Bridge::default()));
        for (port, gate) in [(client, Gate(0)), (server, Gate(1))] {
            let gate = network.gate(bridge, gate);
            network.connect(port.vertex(), gate);
            network.connect(gate, port.vertex());
        }
        network.send(client, packet(1000), Instant::ZERO);
        network.send(server, packet(500), Instant::from_millis(1));
        network.send(client, packet(40), Instant::from_millis(1));
        assert_eq!(network.medium::<Bridge>(bridge).unwrap().0.len(), 2);
        assert_eq!(network.imbalances().collect::<Vec<_>>(), []);
        assert_eq!(run(&mut network), [(5000, server), (6000, client)]);
        let first = network.gate(bridge, Gate(0));
        assert_eq!(network.counters(first).left, Amount { packets: 1, bytes: 500 });
        assert_eq!(network.counters(first).dropped(DropCause::Filtered).packets, 1);
        network.with_medium(bridge, Instant::from_millis(9), |bridge: &mut Bridge| {
            bridge.0.push_back((Instant::ZERO, Gate(0), packet(77)));
        });
        assert_eq!(network.poll_delivery().map(|(port, _)| port), Some(client));
        assert_eq!(network.imbalances().map(|imbalance| imbalance.vertex).collect::<Vec<_>>(), [first]);
    }

    /// Keeps all packets and does not report them.
    #[derive(Default)]
    struct Silent(Vec<Packet>);

    impl Medium for Silent {
        fn gates(&self) -> u16 {
            1
        }

        fn process(&mut self, packet: Option<(Gate, Packet)>, _: Instant, _: &mut MediumOutput) {
            self.0.extend(packet.map(|(_, packet)| packet));
        }

        fn next_wakeup(&self) -> Option<Instant> {
            None
        }

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }

        fn as_any_mut(&mut self) -> &mut dyn core::any::Any {
            self
        }
    }

    #[test]
    fn a_medium_that_forgets_to_say_what_it_holds_is_found() {
        let mut network = Network::new(1);
        let client = network.add_port();
        let silent = network.add_medium(Box::new(Silent::default()));
        let gate = network.gate(silent, Gate(0));
        network.connect(client.vertex(), gate);
        network.send(client, packet(1000), Instant::ZERO);
        assert_eq!(network.imbalances().map(|imbalance| imbalance.vertex).collect::<Vec<_>>(), [gate]);
    }

    #[test]
    fn octets_are_conserved_except_where_they_multiply() {
        let mut network = Network::new(1);
        let (client, server) = (network.add_port(), network.add_port());
        let chain = [
            network.add_node(Box::new(Duplicate::new(0.5))),
            network.add_node(Box::new(Lossy::new(LossModel::uniform(0.2)))),
            network.add_link(link()),
            server.vertex(),
        ];
        network.connect(client.vertex(), chain[0]);
        chain.windows(2).for_each(|pair| network.connect(pair[0], pair[1]));
        (0..200).for_each(|_| network.send(client, packet(1000), Instant::ZERO));
        assert_eq!(network.held(chain[2]).packets, 100);
        assert_eq!(network.imbalances().collect::<Vec<_>>(), []);
        run(&mut network);
        assert_eq!(network.imbalances().collect::<Vec<_>>(), []);
        network.vertices[chain[2].index()].counters.left.bytes -= 1;
        assert_eq!(network.imbalances().map(|imbalance| imbalance.vertex).collect::<Vec<_>>(), [chain[2]]);
    }
}
