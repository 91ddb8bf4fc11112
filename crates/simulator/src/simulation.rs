//! The driver: time jumps from event to event.

use host::Host;
use network::{Medium, MediumId, Network, Packet, PortId};
use transport::inspection::Sight;
use units::{Deadlines, Instant};
use wire::Segment;

use crate::check::{Checker, FlowKey};
use crate::{Direction, Fingerprint, Interface, Tap};

/// Maximum calls of a host without progress of time; a host that asks for more is broken.
const CALLS_PER_INSTANT_MAX: u32 = 100_000;

/// Identifies a host of one simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// Hosts on a network in virtual time.
///
/// Events at one time happen in a fixed order: events of the network before timers of hosts, and otherwise in the order
/// in which they were set.
pub struct Simulation<H> {
    now: Instant,
    started: bool,
    network: Network,
    hosts: Vec<Attached<H>>,
    /// For each vertex, the host if the vertex is a port.
    host_at: Vec<Option<HostId>>,
    timers: Deadlines,
    watchers: Watchers,
}

struct Attached<H> {
    host: H,
    port: PortId,
    /// When the host wants to be called. Its event in `timers` may be earlier: moving a timer to a later time, as every
    /// ACK does, costs nothing.
    deadline: Option<Instant>,
    calls_without_progress: u32,
}

/// Observers of segments.
#[derive(Default)]
struct Watchers {
    checker: Option<Checker>,
    fingerprint: Option<Fingerprint>,
    taps: Vec<Box<dyn Tap>>,
    /// Whether there is any observer, and whether there is any besides the checker.
    any: bool,
    shows: bool,
}

impl<H: Host> Simulation<H> {
    /// Creates a simulation of `network`, at time zero, without hosts.
    pub fn new(network: Network) -> Self {
        Self {
            now: Instant::ZERO,
            started: false,
            network,
            hosts: Vec::new(),
            host_at: Vec::new(),
            timers: Deadlines::new(),
            watchers: Watchers::default(),
        }
    }

    /// Attaches a host to a port.
    pub fn attach(&mut self, port: PortId, host: H) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        self.hosts.push(Attached { host, port, deadline: None, calls_without_progress: 0 });
        let vertex = port.vertex().index();
        self.host_at.resize(self.host_at.len().max(vertex + 1), None);
        self.host_at[vertex] = Some(id);
        if self.started {
            self.with_host(id, |host, now| host.start(now));
        }
        id
    }

    /// Checks every segment for broken rules; see [`Self::faults`].
    pub fn check(&mut self) {
        self.watchers.checker = Some(Checker::new());
        self.watchers.any = true;
    }

    /// Computes a fingerprint of all segments.
    pub fn take_fingerprint(&mut self) {
        self.watchers.fingerprint = Some(Fingerprint::default());
        (self.watchers.any, self.watchers.shows) = (true, true);
    }

    /// Shows every segment to `tap`.
    pub fn add_tap(&mut self, tap: Box<dyn Tap>) {
        self.watchers.taps.push(tap);
        (self.watchers.any, self.watchers.shows) = (true, true);
    }

    /// Returns the present time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the network, for measurements.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns a host.
    pub fn host(&self, id: HostId) -> &H {
        &self.hosts[id.0 as usize].host
    }

    /// Runs `action` at a host and sends the packets that result.
    pub fn with_host<T>(&mut self, id: HostId, action: impl FnOnce(&mut H, Instant) -> T) -> T {
        let result = action(&mut self.hosts[id.0 as usize].host, self.now);
        self.service(id, Cause::Other);
        self.deliver();
        result
    }

    /// Gives a command to a medium of the network, if it is a `T`, and carries out its consequences.
    pub fn with_medium<T: Medium, R>(&mut self, id: MediumId, act: impl FnOnce(&mut T, Instant) -> R) -> Option<R> {
        let now = self.now;
        let result = self.network.with_medium(id, now, |medium| act(medium, now));
        self.deliver();
        result
    }

    /// Returns the fingerprint so far, if one is computed.
    pub fn fingerprint(&self) -> Option<u64> {
        self.watchers.fingerprint.map(|fingerprint| fingerprint.value())
    }

    /// Describes all faults of the run so far: broken rules on the wire (with [`Self::check`]), octets that appeared or
    /// vanished in the network, and faults that the hosts found themselves.
    pub fn faults(&self) -> Vec<String> {
        let hosts = self.hosts.iter().flat_map(|attached| attached.host.faults());
        self.broken_rules().into_iter().chain(hosts).collect()
    }

    /// Returns those of [`Self::faults`] that neither network nor peer can cause: all except those that the hosts found
    /// themselves.
    pub fn broken_rules(&self) -> Vec<String> {
        let wire = self.watchers.checker.iter().flat_map(|checker| checker.faults()).map(|fault| fault.to_string());
        let network = self.network.imbalances().map(|imbalance| imbalance.to_string());
        wire.chain(network).collect()
    }

    /// Returns when the next event is due.
    pub fn next_event(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| at);
        [self.network.next_wakeup(), timer].into_iter().flatten().min().filter(|at| *at < Instant::FAR_FUTURE)
    }

    /// Runs every event up to and including `end`, and sets the time to `end`.
    pub fn run_until(&mut self, end: Instant) {
        self.run_while(end, |_| true);
        self.now = self.now.max(end);
    }

    /// Runs while `goes_on` returns true and there are events by `end`. Returns true if it stopped because `goes_on`
    /// returned false. The time is then that of the last event.
    pub fn run_while(&mut self, end: Instant, mut goes_on: impl FnMut(&Self) -> bool) -> bool {
        self.start();
        while goes_on(self) {
            if !self.step(end) {
                return false;
            }
        }
        true
    }

    fn start(&mut self) {
        if !core::mem::replace(&mut self.started, true) {
            (0..self.hosts.len() as u32).for_each(|id| self.with_host(HostId(id), |host, now| host.start(now)));
        }
    }

    /// Runs the next event if it is due by `end`.
    #[inline]
    fn step(&mut self, end: Instant) -> bool {
        let network = self.network.next_wakeup().unwrap_or(Instant::FAR_FUTURE);
        let timer = self.timers.first().unwrap_or((Instant::FAR_FUTURE, 0));
        let at = network.min(timer.0);
        if at > end || at == Instant::FAR_FUTURE {
            return false;
        }
        debug_assert!(at >= self.now, "time runs back from {:?} to {at:?}", self.now);
        self.now = at;
        if network <= timer.0 {
            self.network.advance(at);
            self.deliver();
        } else {
            self.fire(HostId(timer.1 as u32));
            // A link or middlebox next to the host may pass packets on, or answer them, without delay and thus without
            // an event.
            self.deliver();
        }
        true
    }

    #[inline]
    fn deliver(&mut self) {
        while let Some((port, packet)) = self.network.poll_delivery() {
            if let Some(Some(id)) = self.host_at.get(port.vertex().index()) {
                self.receive(*id, packet);
            }
        }
    }

    #[inline]
    fn receive(&mut self, id: HostId, mut packet: Packet) {
        let host = &mut self.hosts[id.0 as usize].host;
        if host.is_crowded() {
            if let Some(segment) = self.network.foreseen().and_then(Packet::segment) {
                host.expect(segment);
            }
        }
        if let Some(segment) = packet.segment_mut() {
            self.watchers.see_arrival(self.now, id, segment, host);
            host.handle_segment(segment, self.now);
        } else {
            hand_over(host, &mut packet, self.now);
        }
        self.network.recycle(packet);
        self.service(id, Cause::Other);
    }

    /// Calls a host whose deadline has passed.
    fn fire(&mut self, id: HostId) {
        let attached = &mut self.hosts[id.0 as usize];
        if attached.deadline.is_some_and(|deadline| deadline <= self.now) {
            attached.host.handle_timeout(self.now);
            self.service(id, Cause::TimeOut);
        }
        let attached = &mut self.hosts[id.0 as usize];
        attached.note_progress(id, self.now);
        self.timers.set(id.0 as usize, attached.deadline);
    }

    /// Sends the host's packets and updates its deadline.
    #[inline]
    fn service(&mut self, id: HostId, cause: Cause) {
        let attached = &mut self.hosts[id.0 as usize];
        while let Some(packet) = self.network.packet(|segment| attached.host.poll_transmit(segment, self.now)) {
            if let Some(segment) = packet.segment() {
                self.watchers.see_departure(self.now, id, segment, &attached.host);
            }
            self.network.send(attached.port, packet, self.now);
        }
        while let Some(datagram) = attached.host.poll_datagram(self.now) {
            let packet = self.network.datagram(datagram);
            self.network.send(attached.port, packet, self.now);
        }
        while let Some(octets) = attached.host.poll_octets() {
            self.network.send(attached.port, Packet::from_raw(octets), self.now);
        }
        match cause {
            Cause::TimeOut => self.watchers.see_rest_after_timeout(self.now, id, &attached.host),
            Cause::Other => self.watchers.see_rest(self.now, &attached.host),
        }
        attached.deadline = attached.host.poll_timeout();
        let scheduled = self.timers.get(id.0 as usize).unwrap_or(Instant::FAR_FUTURE);
        if attached.deadline.is_some_and(|deadline| deadline < scheduled) {
            self.timers.set(id.0 as usize, attached.deadline);
        }
    }
}

/// Why a host was called.
#[derive(Clone, Copy)]
enum Cause {
    TimeOut,
    Other,
}

/// Gives a packet other than a segment to a host. Raw octets that hold a segment go to the engine, but observers do not
/// see them: they come from a middlebox.
fn hand_over(host: &mut impl Host, packet: &mut Packet, now: Instant) {
    packet.parse();
    if let Some(segment) = packet.segment_mut() {
        host.handle_segment(segment, now);
    } else if let Some(datagram) = packet.datagram() {
        host.handle_datagram(*datagram, now);
    } else if let Some(octets) = packet.raw() {
        host.handle_octets(octets.clone(), now);
    }
}

impl<H> Attached<H> {
    /// # Panics
    /// If the host keeps asking for a time that has passed.
    fn note_progress(&mut self, id: HostId, now: Instant) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            self.calls_without_progress = 0;
            return;
        }
        self.calls_without_progress += 1;
        let deadline = self.deadline;
        assert!(
            self.calls_without_progress < CALLS_PER_INSTANT_MAX,
            "host {id:?} at {now:?} still asks to be called at {deadline:?}"
        );
    }
}

/// A separate function, to keep the code that nearly every segment runs short.
#[inline(never)]
fn look_inside<'a>(host: &'a impl Host, (local, remote): &FlowKey) -> Option<Sight<'a>> {
    host.inspect(local, remote)
}

impl Watchers {
    #[inline]
    fn see_arrival(&mut self, at: Instant, id: HostId, segment: &Segment, host: &impl Host) {
        if !self.any || host.is_in_transit(segment) {
            return;
        }
        if let Some(checker) = &mut self.checker {
            checker.received(at, id, segment);
        }
        self.show(at, id, Direction::Received, segment);
    }

    #[inline]
    fn see_departure(&mut self, at: Instant, id: HostId, segment: &Segment, host: &impl Host) {
        if !self.any || host.is_in_transit(segment) {
            return;
        }
        if let Some(checker) = &mut self.checker {
            checker.sent(at, id, segment, |flow| look_inside(host, flow));
        }
        self.show(at, id, Direction::Sent, segment);
    }

    /// Tells the checker that a host has nothing more to send after a time-out.
    #[inline]
    fn see_rest_after_timeout(&mut self, at: Instant, id: HostId, host: &impl Host) {
        if let Some(checker) = &mut self.checker {
            checker.settled_after_timeout(at, id, |(local, remote)| host.inspect(local, remote));
        }
    }

    /// Tells the checker that a host has nothing more to send.
    #[inline]
    fn see_rest(&mut self, at: Instant, host: &impl Host) {
        if let Some(checker) = &mut self.checker {
            checker.settled(at, |(local, remote)| host.inspect(local, remote));
        }
    }

    #[inline]
    fn show(&mut self, at: Instant, id: HostId, direction: Direction, segment: &Segment) {
        if self.shows {
            self.show_taps(at, id, direction, segment);
        }
    }

    #[inline(never)]
    fn show_taps(&mut self, at: Instant, id: HostId, direction: Direction, segment: &Segment) {
        let address = match direction {
            Direction::Sent => segment.src.ip(),
            Direction::Received => segment.dst.ip(),
        };
        let interface = Interface { host: id, address };
        let fingerprint = self.fingerprint.iter_mut().map(|fingerprint| fingerprint as &mut dyn Tap);
        let taps = self.taps.iter_mut().map(|tap| tap.as_mut() as &mut dyn Tap);
        fingerprint.chain(taps).for_each(|tap| tap.segment(at, interface, direction, segment));
    }
}
