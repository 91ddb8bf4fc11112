//! Policies that nobody would write on purpose: a bad policy is slow but never breaks the protocol (`ARCHITECTURE.md`).

use core::net::SocketAddr;
use core::ops::Range;

use units::{Duration, Instant, Prng};
use wire::{Pattern, Payload, Segment};

use super::Endpoint;
use crate::congestion::{AckSample, CongestionController, LossSample, Paths, WindowSet, WindowStep};
use crate::connection::Policies;
use crate::path_manager::{PathCommand, PathEvent, PathManager, PathManagerView};
use crate::scheduler::{Marks, ScheduleContext, Scheduler};
use crate::{ConnectionConfig, ConnectionId, EndpointConfig, Event, ListenerId, SubflowId};

/// One-way delay.
const DELAY: Duration = Duration::from_millis(10);
/// Maximum number of segments and time-outs at one instant: beyond it there is no progress.
const TURNS_MAX: usize = 1000;

/// Two endpoints, and the path between them.
struct World {
    client: Endpoint,
    server: Endpoint,
    connection: ConnectionId,
    listener: ListenerId,
    now: Instant,
    under_way: Vec<(Instant, bool, Segment)>,
    /// Which of the client's segments get lost, counted from the replacement of its policies.
    lost: Range<usize>,
    sent: usize,
}

impl World {
    /// Creates an established connection, then replaces some of the client's policies.
    fn new(replace: impl FnOnce(&mut Policies)) -> Self {
        let [local, remote] = ["10.0.0.1:4000", "10.0.0.2:80"].map(|text| text.parse::<SocketAddr>().unwrap());
        let [mut client, mut server] = [1, 2].map(|seed| Endpoint::with_seed(EndpointConfig::default(), seed));
        let listener = server.listen(remote, ConnectionConfig::default()).unwrap();
        let connection = client.connect(local, remote, ConnectionConfig::default(), Instant::ZERO).unwrap();
        let (now, under_way) = (Instant::ZERO, Vec::new());
        let mut world = Self { client, server, connection, listener, now, under_way, lost: 0..0, sent: 0 };
        world.run_for(Duration::from_secs(1));
        world.sent = 0;
        let slot = &mut world.client.slots[connection.slot as usize];
        replace(slot.connection.as_mut().unwrap().policies_mut());
        world
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut turns = 0;
        loop {
            self.transmit();
            let arrival = self.under_way.iter().map(|(at, ..)| *at).min();
            let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
            let next = timeouts.into_iter().flatten().chain(arrival).min().unwrap_or(end).max(self.now);
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS_MAX, "time stands still at {:?}", self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            self.arrive();
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            if next == end && arrival.is_none() {
                return;
            }
        }
    }

    fn transmit(&mut self) {
        for (is_client, endpoint) in [(true, &mut self.client), (false, &mut self.server)] {
            let at = self.now + DELAY;
            for segment in core::iter::from_fn(|| endpoint.poll_transmit(self.now)).take(TURNS_MAX) {
                self.sent += usize::from(is_client);
                if !is_client || !self.lost.contains(&self.sent) {
                    self.under_way.push((at, is_client, segment));
                }
            }
        }
    }

    fn arrive(&mut self) {
        for (at, is_clients, segment) in core::mem::take(&mut self.under_way) {
            match (at <= self.now, is_clients) {
                (false, _) => self.under_way.push((at, is_clients, segment)),
                (true, true) => self.server.handle_segment(segment, self.now),
                (true, false) => self.client.handle_segment(segment, self.now),
            }
        }
    }

    fn send(&mut self, len: u32) {
        let data = Payload::Pattern(Pattern { stream: 1, offset: 0, len });
        assert_eq!(self.client.send(self.connection, data, self.now), Ok(len as usize));
    }

    /// Returns the octets that the server's application could read.
    fn arrived_bytes(&mut self) -> u64 {
        let accepted = self.server.accept(self.listener).expect("the connection is established");
        self.server.readable_bytes(accepted)
    }

    fn is_over(&mut self) -> bool {
        core::iter::from_fn(|| self.client.poll_event()).any(|event| matches!(event, Event::Closed { .. }))
    }
}

/// Marks these positions, whatever subflows there are.
struct Marker(fn() -> Marks);

impl Scheduler for Marker {
    fn name(&self) -> &'static str {
        "marker"
    }

    fn schedule(&mut self, _: &ScheduleContext<'_>, _: &mut Prng) -> Marks {
        (self.0)()
    }
}

/// Nothing would ever wake a connection that waits with nothing in flight.
#[test]
fn data_arrive_whatever_a_scheduler_waits_for() {
    for marks in [|| Marks::NONE, || Marks::one(63)] {
        let mut world = World::new(|policies| policies.scheduler = Box::new(Marker(marks)));
        world.send(100_000);
        world.run_for(Duration::from_millis(200));
        let soon = world.client.stats(world.connection).unwrap().acked_bytes;
        assert!((1..20_000).contains(&soon), "a segment a round trip, not {soon} octets");
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.arrived_bytes(), 100_000);
    }
}

#[test]
fn of_marks_beyond_the_subflows_those_of_subflows_count() {
    let all = || {
        let mut marks = Marks::NONE;
        (0..64).for_each(|position| marks.mark(position));
        marks
    };
    let mut world = World::new(|policies| policies.scheduler = Box::new(Marker(all)));
    world.send(100_000);
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.arrived_bytes(), 100_000);
}

/// Asks to be called again at once after every event.
struct Restless;

impl PathManager for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn handle_event(&mut self, _: &PathEvent, _: &PathManagerView<'_>, commands: &mut Vec<PathCommand>) {
        commands.push(PathCommand::WakeAfter(Duration::ZERO));
    }
}

#[test]
fn time_goes_on_under_a_path_manager_that_never_rests() {
    let mut world = World::new(|policies| policies.path_manager = Box::new(Restless));
    let local = crate::path_manager::LocalAddress { ip: "10.0.0.3".parse().unwrap(), backup: false };
    world.client.add_local_address(local, world.now);
    world.send(100_000);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.arrived_bytes(), 100_000);
}

/// Lets nothing leave.
struct Standstill;

impl CongestionController for Standstill {
    fn name(&self) -> &'static str {
        "standstill"
    }

    fn on_ack(&mut self, _: &AckSample, _: Paths<'_>) -> WindowStep {
        WindowStep::ZERO
    }

    fn on_loss(&mut self, _: &LossSample, _: Paths<'_>) -> u64 {
        0
    }

    fn pacing_rate_bytes_per_s(&self, _: SubflowId) -> Option<u64> {
        Some(0)
    }
}

#[test]
fn a_connection_outlives_a_controller_that_lets_nothing_leave() {
    let mut world = World::new(|policies| policies.congestion = Box::new(Standstill));
    world.send(20_000);
    world.run_for(Duration::from_secs(3600));
    assert!(!world.is_over());
    assert_eq!(world.arrived_bytes(), 20_000);
}

/// Asks for these windows.
struct Greedy {
    step: WindowStep,
    set: WindowSet,
}

impl CongestionController for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn on_ack(&mut self, _: &AckSample, _: Paths<'_>) -> WindowStep {
        self.step
    }

    fn on_loss(&mut self, _: &LossSample, _: Paths<'_>) -> u64 {
        self.set.ssthresh
    }

    fn on_rto(&mut self, _: SubflowId, _: Instant, _: Paths<'_>) -> u64 {
        self.set.ssthresh
    }

    fn on_round(&mut self, _: SubflowId, _: Instant, _: Paths<'_>) -> Option<WindowSet> {
        Some(self.set)
    }

    fn pacing_rate_bytes_per_s(&self, _: SubflowId) -> Option<u64> {
        Some(u64::MAX)
    }

    fn rules_slow_start(&self) -> bool {
        true
    }
}

#[test]
fn no_window_that_a_controller_asks_for_breaks_the_engine() {
    for step in [i64::MAX, i64::MIN].map(WindowStep::from_q16) {
        for (cwnd, ssthresh) in [(u64::MAX, u64::MAX), (u64::MAX, 0), (0, u64::MAX), (0, 0)] {
            let greedy = Greedy { step, set: WindowSet { cwnd, ssthresh } };
            let mut world = World::new(|policies| policies.congestion = Box::new(greedy));
            world.lost = 30..40;
            world.send(200_000);
            world.run_for(Duration::from_secs(60));
            assert!(!world.is_over());
            assert_eq!(world.arrived_bytes(), 200_000);
        }
    }
}
