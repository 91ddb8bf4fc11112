//! A stream through relays that join, leave and die: everything arrives, and nobody waits for ever.
//!
//! Each relay receives its packets in order and forwards them in order, each way with random delays. The source resends
//! data that were lost with a relay through another one, as it would reinject data that no DATA_ACK covers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cooperation::forwarding::hold_queue::{HoldLimits, HoldQueue};
use cooperation::forwarding::range::{CumAck, DsnRange, Threshold};
use cooperation::forwarding::range_keeper::{Announcement, Counting, RangeKeeper, RangeSettings};
use cooperation::relay_selection::RelayId;
use proptest::prelude::*;
use units::{Dsn, Duration, Instant, Prng};

/// A span for which no test waits.
const NEVER: Duration = Duration::from_secs(1_000_000);
/// The stream crosses the end of the data sequence space.
const FIRST: Dsn = Dsn(u64::MAX - 9_999);

#[derive(Clone, Debug)]
struct Setting {
    seed: u64,
    packets: u64,
    range_len_bytes: u64,
    rho: f64,
    counting: Counting,
    capacity_bytes: u64,
    /// MAX_BF_SIZE of each relay at the start.
    hold_limits_bytes: Vec<u64>,
    stay: Duration,
    /// Part of the announcements that are lost.
    lost: f64,
    /// Changes of the set of relays, and after how many ms each happens.
    changes: Vec<(u64, Change)>,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Join(u64),
    Leave(usize),
    Kill(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send,
    AtRelay(usize, u64),
    AtDestination(usize, u64),
    Read,
    Told(usize, u64),
    RelayTimeout(usize),
    KeeperTimeout,
    Change(usize),
    Reinject(usize),
}

struct Relay {
    queue: HoldQueue<u64>,
    limit_bytes: u64,
    /// Whether the source sends through it.
    in_use: bool,
    dead: bool,
    /// Packets that it received and that may have died with it.
    given: Vec<u64>,
    /// Times at which the last packet enters and leaves, and the last message arrives.
    last: [Instant; 3],
}

struct Run {
    setting: Setting,
    prng: Prng,
    now: Instant,
    agenda: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    /// First DSN and length of each packet, counted from FIRST.
    packets: Vec<(u64, u64)>,
    unsent: std::collections::VecDeque<u64>,
    /// Right edge of the window as the source knows it, counted from FIRST.
    edge: u64,
    relays: Vec<Relay>,
    told: Vec<(Option<DsnRange>, CumAck)>,
    keeper: RangeKeeper,
    arrived: BTreeMap<u64, u64>,
    rcv_nxt: u64,
    read_to: u64,
}

impl Run {
    fn new(setting: Setting) -> Self {
        let mut prng = Prng::new(setting.seed);
        let mut end = 0;
        let mut packets = Vec::new();
        for _ in 0..setting.packets {
            let len = 64 + prng.below(100);
            packets.push((end, len));
            end += len;
        }
        let keeper_settings = RangeSettings {
            range_len_bytes: setting.range_len_bytes,
            threshold: Threshold::new(setting.rho).unwrap(),
            counting: setting.counting,
            capacity_bytes: setting.capacity_bytes,
        };
        let mut run = Self {
            prng,
            now: Instant::ZERO,
            agenda: BinaryHeap::new(),
            scheduled: 0,
            packets,
            unsent: (0..setting.packets).collect(),
            edge: 0,
            relays: Vec::new(),
            told: Vec::new(),
            keeper: RangeKeeper::new(keeper_settings, FIRST),
            arrived: BTreeMap::new(),
            rcv_nxt: 0,
            read_to: 0,
            setting,
        };
        run.setting.hold_limits_bytes.clone().into_iter().for_each(|limit| run.join(limit));
        for (index, (after_ms, _)) in run.setting.changes.clone().into_iter().enumerate() {
            run.schedule(Instant::from_millis(after_ms), Event::Change(index));
        }
        run.schedule(Instant::ZERO, Event::Send);
        run
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.agenda.push(Reverse((at, self.scheduled, event)));
    }

    /// Schedules items to or from a relay in order: `lane` 0 is in, 1 is out, 2 carries messages.
    fn schedule_in_order(&mut self, relay: usize, lane: usize, event: Event) {
        let delay = Duration::from_micros(self.prng.below(20_000));
        let at = (self.now + delay).max(self.relays[relay].last[lane]);
        self.relays[relay].last[lane] = at;
        self.schedule(at, event);
    }

    fn join(&mut self, limit_bytes: u64) {
        let mut queue = HoldQueue::new(HoldLimits { size_bytes: limit_bytes, stay: self.setting.stay });
        let update = self.keeper.add_relay(self.now, RelayId(self.relays.len() as u16), limit_bytes);
        queue.on_range(update.range);
        self.hear(update.ack);
        let last = [self.now; 3];
        self.relays.push(Relay { queue, limit_bytes, in_use: true, dead: false, given: Vec::new(), last });
    }

    /// Passes an acknowledgement to the source.
    fn hear(&mut self, ack: CumAck) {
        self.edge = self.edge.max(ack.edge().since(FIRST));
    }

    fn in_use(&self) -> Vec<usize> {
        (0..self.relays.len()).filter(|&relay| self.relays[relay].in_use).collect()
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Send => self.send(),
            Event::AtRelay(relay, packet) if !self.relays[relay].dead => {
                let (start, len) = self.packets[packet as usize];
                self.relays[relay].queue.on_packet(self.now, FIRST + start, len as u32, packet);
                self.drain(relay);
            }
            Event::AtDestination(relay, packet) if !self.relays[relay].dead => self.deliver(packet),
            Event::Told(relay, message) if !self.relays[relay].dead => self.tell(relay, message as usize),
            Event::RelayTimeout(relay) if !self.relays[relay].dead => {
                self.relays[relay].queue.handle_timeout(self.now);
                self.drain(relay);
            }
            Event::KeeperTimeout => self.keeper.handle_timeout(self.now),
            Event::Read => {
                self.read_to = self.rcv_nxt;
                self.keeper.on_read(self.now, 0);
            }
            Event::Change(index) => self.change(self.setting.changes[index].1),
            Event::Reinject(relay) => self.reinject(relay),
            _ => {}
        }
        self.announce();
    }

    fn send(&mut self) {
        let Some(&packet) = self.unsent.front() else { return };
        let (start, len) = self.packets[packet as usize];
        if start + len <= self.edge {
            self.unsent.pop_front();
            let candidates = self.in_use();
            let relay = candidates[self.prng.below(candidates.len() as u64) as usize];
            self.relays[relay].given.push(packet);
            self.schedule_in_order(relay, 0, Event::AtRelay(relay, packet));
            let pause = Duration::from_micros(self.prng.below(1000));
            self.schedule(self.now + pause, Event::Send);
        }
    }

    fn drain(&mut self, relay: usize) {
        while let Some(packet) = self.relays[relay].queue.poll_forward() {
            self.schedule_in_order(relay, 1, Event::AtDestination(relay, packet));
        }
        let relay_state = &self.relays[relay];
        assert!(relay_state.queue.held_bytes() <= relay_state.limit_bytes, "more is held than allowed");
        if let Some(at) = relay_state.queue.poll_timeout() {
            if at < Instant::ZERO + NEVER {
                self.schedule(at, Event::RelayTimeout(relay));
            }
        }
    }

    fn deliver(&mut self, packet: u64) {
        let (start, len) = self.packets[packet as usize];
        if !self.anything_leaves_early() {
            assert!((FIRST + start).before_or_at(self.keeper.range().max), "forwarded beyond the range");
        }
        self.arrived.insert(start, len);
        while let Some(len) = self.arrived.get(&self.rcv_nxt) {
            self.rcv_nxt += len;
        }
        let unread = self.rcv_nxt - self.read_to;
        self.keeper.on_packet(self.now, FIRST + start, len, FIRST + self.rcv_nxt, unread);
        if unread > 0 {
            let pause = Duration::from_micros(self.prng.below(5_000));
            self.schedule(self.now + pause, Event::Read);
        }
    }

    /// Returns whether a relay may have forwarded data before their range was announced.
    fn anything_leaves_early(&self) -> bool {
        let left = self.relays.iter().any(|relay| !relay.in_use);
        left || self.relays.iter().any(|relay| {
            let stats = relay.queue.stats();
            stats.overflowed_packets + stats.expired_packets > 0
        })
    }

    fn announce(&mut self) {
        while let Some(announcement) = self.keeper.poll_announcement() {
            let message = self.told.len() as u64;
            self.told.push(match announcement {
                Announcement::Range(update) => (Some(update.range), update.ack),
                Announcement::Ack(ack) => (None, ack),
            });
            for relay in 0..self.relays.len() {
                if !self.prng.chance(self.setting.lost) {
                    self.schedule_in_order(relay, 2, Event::Told(relay, message));
                }
            }
        }
        if let Some(at) = self.keeper.poll_timeout() {
            self.schedule(at, Event::KeeperTimeout);
        }
    }

    fn tell(&mut self, relay: usize, message: usize) {
        let (range, ack) = self.told[message];
        if let Some(range) = range {
            self.relays[relay].queue.on_range(range);
            self.drain(relay);
        }
        self.hear(ack);
        self.schedule(self.now, Event::Send);
    }

    fn change(&mut self, change: Change) {
        let candidates = self.in_use();
        match change {
            Change::Join(limit_bytes) => {
                self.join(limit_bytes);
                self.schedule(self.now, Event::Send);
            }
            Change::Leave(index) | Change::Kill(index) if candidates.len() > 1 => {
                let relay = candidates[index % candidates.len()];
                self.relays[relay].in_use = false;
                self.keeper.remove_relay(RelayId(relay as u16));
                if matches!(change, Change::Kill(_)) {
                    self.relays[relay].dead = true;
                    self.schedule(self.now + Duration::from_millis(50), Event::Reinject(relay));
                } else {
                    self.relays[relay].queue.leave();
                    self.drain(relay);
                }
            }
            Change::Leave(_) | Change::Kill(_) => {}
        }
    }

    fn reinject(&mut self, relay: usize) {
        let given = std::mem::take(&mut self.relays[relay].given);
        let lost =
            given.into_iter().rev().filter(|packet| !self.arrived.contains_key(&self.packets[*packet as usize].0));
        lost.for_each(|packet| self.unsent.push_front(packet));
        self.schedule(self.now, Event::Send);
    }

    /// Runs until no event is left.
    fn run(&mut self) {
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            self.now = at;
            assert!(self.scheduled < 5_000_000, "the stream does not end");
            self.step(event);
        }
        let end = self.packets.last().map_or(0, |(start, len)| start + len);
        assert_eq!(self.rcv_nxt, end, "stuck at {:?}; range {:?}", self.now, self.keeper.range());
    }
}

fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let change = prop_oneof![
        hold_limit().prop_map(Change::Join),
        (0..8_usize).prop_map(Change::Leave),
        (0..8_usize).prop_map(Change::Kill),
    ];
    prop::collection::vec((0..300_u64, change), 0..12)
}

fn hold_limit() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..2_000_u64, Just(100_000)]
}

prop_compose! {
    fn settings()(
        seed: u64,
        packets in 1..400_u64,
        range_len_bytes in 1..8_000_u64,
        rho in prop_oneof![Just(0.8), Just(0.9), Just(0.95), Just(1.0), 0.01..1.0],
        counting in prop_oneof![Just(Counting::Contiguous), Just(Counting::Any)],
        capacity_bytes in 200..20_000_u64,
        hold_limits_bytes in prop::collection::vec(hold_limit(), 1..5),
        changes in changes(),
    ) -> Setting {
        let (stay, lost) = (NEVER, 0.0);
        Setting {
            seed, packets, range_len_bytes, rho, counting, capacity_bytes, hold_limits_bytes, stay, lost, changes,
        }
    }
}

proptest! {
    /// No time-out helps here: only ranges release held data.
    #[test]
    fn everything_arrives_without_any_packet_expiring(setting in settings()) {
        Run::new(setting).run();
    }

    #[test]
    fn everything_arrives_though_announcements_get_lost(setting in settings(), lost in 0.0..0.9) {
        // The last acknowledgement may be lost, so the stream must not depend on the window.
        Run::new(Setting { lost, stay: Duration::from_secs(4), capacity_bytes: 100_000, ..setting }).run();
    }
}

fn four_relays(seed: u64) -> Setting {
    Setting {
        seed,
        packets: 2_000,
        range_len_bytes: 10_000,
        rho: 0.95,
        counting: Counting::Contiguous,
        capacity_bytes: 20_000,
        hold_limits_bytes: vec![20_000; 4],
        stay: NEVER,
        lost: 0.0,
        changes: Vec::new(),
    }
}

#[test]
fn a_relay_that_dies_with_held_data_costs_nothing_but_time() {
    let mut run = Run::new(Setting { changes: vec![(60, Change::Kill(1)), (120, Change::Kill(2))], ..four_relays(5) });
    run.run();
    let died_holding = run.relays.iter().filter(|relay| relay.dead && relay.queue.held_packets() > 0).count();
    assert_eq!(died_holding, 2);
}

#[test]
fn when_every_announcement_of_a_range_is_lost_the_stay_saves_the_stream() {
    let mut run =
        Run::new(Setting { lost: 1.0, stay: Duration::from_secs(4), capacity_bytes: 1_000_000, ..four_relays(6) });
    run.run();
    assert!(run.relays.iter().all(|relay| relay.queue.stats().expired_packets > 0));
    assert!(run.now > Instant::from_secs(4));
}

#[test]
fn with_room_enough_nothing_is_forwarded_beyond_the_range() {
    let mut run = Run::new(Setting { hold_limits_bytes: vec![1_000_000; 4], ..four_relays(7) });
    run.run();
    assert!(!run.anything_leaves_early());
    assert!(run.relays.iter().all(|relay| relay.queue.stats().held_packets > 0));
}
