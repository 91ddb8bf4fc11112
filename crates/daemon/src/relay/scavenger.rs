//! The owner's traffic comes first: how much may be lent while the owner uses the link too. This is a
//! less-than-best-effort service (RFC 6297). Sans-IO.
//!
//! A scavenger serves one direction, described here as the one towards this device. For the other direction, all
//! measurements are [turned](Counters::turned).
//!
//! Lent traffic fills what the owner leaves, but no queue. While packets wait longer than [`TARGET`], it gets less;
//! otherwise it gets more, as in LEDBAT (RFC 6817). An owner who wants the whole link fills the queue and gets the
//! link. While the owner wants nothing, only the cap applies.
//!
//! While packets wait at all, the link is busy, and its throughput is its capacity. The lendable rate is the capacity
//! less the owner's maximum in the last seconds: after a loss TCP takes less for a while, and then wants its rate back.
//! Short pauses ([`Pauses`]) show whether the owner would take more if nothing were lent. If no packet shows its wait,
//! as with servers without timestamps, pauses are the only source: an owner who takes as much beside lent traffic as
//! alone lacks nothing.

use std::collections::VecDeque;

use units::{Duration, Instant, Rate};

use super::capacity::Capacity;
use super::counters::Counters;
use super::pauses::{Pauses, Seen};

/// Interval of measurements.
pub const TICK: Duration = Duration::from_millis(100);
/// Maximum wait in queues that lent traffic may cause.
const TARGET: Duration = Duration::from_millis(25);
/// Minimum lent rate: without packets, nothing shows queues.
const FLOOR_BPS: f64 = 48_000.0;
/// Part of the capacity that uploads always get. ACKs of downloads are among them, and an owner who uploads need not
/// stop those.
const FLOOR_PART_OF_UPLOADS: f64 = 0.015;
/// Below this part of the lent rate in the other direction, traffic is ACKs: 52 to 100 octets for one or two segments
/// of 1500 are 2 to 7 %.
const ACKS_PART: f64 = 0.1;
/// Time for which a server may delay an ACK while it waits for a second segment (40 ms in Linux). This looks like a
/// queue and is none. At a higher rate the second segment comes earlier; the second constant is its length in bits.
const DELAYED_ACK: Duration = Duration::from_millis(40);
const SEGMENT_BITS: f64 = 12_000.0;
/// Below this rate, or this part of the lent rate, an owner counts as idle: only the device's background traffic.
const IDLE_BPS: f64 = 100_000.0;
const IDLE_PART: f64 = 0.03;
/// An owner who pauses for this long has finished.
const PAUSE: Duration = Duration::from_secs(3);
/// Ticks of owner's traffic that justify a pause.
const BUSY_TICKS: u32 = 5;
/// Packets that wait this long wait for others: the link is busy.
const BUSY: Duration = Duration::from_millis(5);
/// Minimum backlog of a full link, four packets of 1500 octets. Less is a variation of the path's delay.
const QUEUED_BITS: f64 = 48_000.0;
/// Maximum decrease per tick, as a part of the used rate; and maximum increase, as a part of all traffic.
const LESS: f64 = 0.12;
const MORE: f64 = 0.004;
/// After a pause, if nothing showed queues: growth factor if the owner lacked nothing, and the factor if the owner
/// lacked something.
const MORE_UNSEEN: f64 = 1.25;
const LESS_UNSEEN: f64 = 0.7;
/// While the capacity is unknown, until packets have waited for longer than [`TARGET`] in so many ticks in a row: maximum
/// increase per tick, as a part of the lent rate. It doubles within a second, as in a slow start. A single packet may be
/// late by itself.
const MORE_UNKNOWN: f64 = 0.1;
const QUEUED_TICKS: u32 = 5;
/// Minimum rate to which the growth of both applies.
const LEAST_GROWING_BPS: f64 = 250_000.0;
/// An owner who gets less than this part of their rate in a pause lacks the rest.
const LACKS: f64 = 0.9;
/// Parts of the rate that the owner leaves. At the first, a queue drains fast enough, and lent traffic falls no
/// further; up to the second, lent traffic grows faster. The third is the part of the gap that it closes per tick.
const DRAINS: f64 = 0.85;
const SAFE: f64 = 0.9;
const SOON: f64 = 0.15;
/// Ticks for which the owner's rate is remembered if there is no pause.
const MEMORY_TICKS: usize = 120;
/// Weight of the newest value in averages: of displayed rates, of the owner's rate, and of the spare rate.
const NEWEST: f64 = 0.3;
const NEWEST_OF_WANTED: f64 = 0.1;
const NEWEST_OF_SPARE: f64 = 0.1;

/// State of one direction.
#[derive(Debug)]
pub struct Scavenger {
    cap: Option<Rate>,
    /// Maximum offer until there is a sample.
    expected: Option<Rate>,
    /// Part of the capacity that is always lent.
    floor_part: f64,
    /// The owner's average rate in each direction, this one first. Below zero for a while where lent packets were
    /// counted that did not cross the link, as firewall rules dropped them or they wait in its queue.
    owner_each_bps: [f64; 2],
    /// The owner's average rate towards this device in the last ticks.
    owner_down_bps: VecDeque<f64>,
    lent_bps: f64,
    /// The larger lent rate of the two directions.
    lent_most_bps: f64,
    /// The lent rate of the last tick.
    last_lent_bps: f64,
    /// Estimate of the link's capacity towards this device.
    capacity: Capacity,
    allowed_bps: f64,
    spare_bps: f64,
    /// While the owner is active: until when a pause of the owner's traffic does not count as its end.
    active_until: Option<Instant>,
    /// Whether packets have waited for too long since the owner became active and a destination wanted something: what
    /// is lent has reached what is left.
    has_queued: bool,
    /// Ticks in a row in which they did.
    late_ticks: u32,
    /// Ticks for which the owner has used the link without a break.
    busy_ticks: u32,
    /// The shortest waits of this tick and of the one before.
    waits: [Option<Waited>; 2],
    /// Whether any wait was seen since the last pause.
    sees_waits: bool,
    /// Whether the shortest round trip was measured without the owner's queue.
    knows_base: bool,
    pauses: Pauses,
    ticked_at: Instant,
}

/// Traffic of the shared interface since the last tick.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// All octets.
    pub all: Counters,
    /// Lent octets.
    pub lent: Counters,
    /// Whether more packets wait to be lent.
    pub waits: bool,
}

impl Passed {
    /// Returns the same for the other direction.
    pub const fn turned(self) -> Self {
        Self { all: self.all.turned(), lent: self.lent.turned(), waits: self.waits }
    }
}

/// The wait of a packet, and whether it was in this direction for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waited {
    span: Duration,
    is_here: bool,
}

/// The same in bit/s; without a suffix towards this device.
#[derive(Clone, Copy)]
struct Rates {
    all: f64,
    all_up: f64,
    owner: f64,
    owner_up: f64,
    lent: f64,
    lent_most: f64,
}

impl Passed {
    fn rates(&self, span: Duration) -> Rates {
        let bps = |bytes: u64| bytes as f64 * 8.0 / span.as_secs_f64();
        let Self { all, lent, .. } = self;
        // Lent traffic is counted a little later than by the interface: one tick shows too much, another too little.
        // Averages of this are right, so nothing is cut off here.
        let owner = |all: u64, lent: u64| bps(all) - bps(lent);
        // What did not cross the link makes nobody's traffic on it look small.
        let crossed = [lent.down_bytes.min(all.down_bytes), lent.up_bytes.min(all.up_bytes)];
        Rates {
            all: bps(all.down_bytes),
            all_up: bps(all.up_bytes),
            owner: owner(all.down_bytes, lent.down_bytes),
            owner_up: owner(all.up_bytes, lent.up_bytes),
            lent: bps(lent.down_bytes),
            lent_most: bps(crossed[0].max(crossed[1])),
        }
    }
}

impl Rates {
    /// Returns whether the link was full, given the shortest wait. If so, its throughput is its capacity, not the
    /// demand.
    fn is_full(&self, waited: Waited) -> bool {
        let Waited { span, is_here } = waited;
        // Little's law: backlog = throughput * wait. If more goes the other way, packets may wait there instead.
        span >= BUSY && self.all * span.as_secs_f64() >= QUEUED_BITS && (is_here || self.all >= self.all_up)
    }
}

impl Scavenger {
    /// Creates a scavenger with a cap, and with an expected rate that applies until the link was seen full.
    pub const fn new(cap: Option<Rate>, expected: Option<Rate>) -> Self {
        Self {
            cap,
            expected,
            floor_part: 0.0,
            owner_each_bps: [0.0; 2],
            owner_down_bps: VecDeque::new(),
            lent_bps: 0.0,
            lent_most_bps: 0.0,
            last_lent_bps: 0.0,
            capacity: Capacity::new(),
            allowed_bps: FLOOR_BPS,
            spare_bps: 0.0,
            active_until: None,
            has_queued: false,
            late_ticks: 0,
            busy_ticks: 0,
            waits: [None; 2],
            sees_waits: false,
            knows_base: false,
            pauses: Pauses::new(),
            ticked_at: Instant::ZERO,
        }
    }

    /// Creates a scavenger for uploads.
    pub fn of_uploads(cap: Option<Rate>) -> Self {
        Self { floor_part: FLOOR_PART_OF_UPLOADS, ..Self::new(cap, None) }
    }

    /// Forgets all measurements, since the link was replaced.
    pub fn forget_link(&mut self) {
        let (floor_part, ticked_at) = (self.floor_part, self.ticked_at);
        *self = Self { floor_part, ticked_at, ..Self::new(self.cap, self.expected) };
    }

    /// Notes that a packet waited in queues for `span`. `is_here`: certainly in this direction.
    pub fn observe_wait(&mut self, span: Duration, is_here: bool) {
        let waited = Waited { span, is_here };
        self.sees_waits = true;
        self.waits[0] = Some(self.waits[0].map_or(waited, |shortest| shortest.min(waited)));
    }

    /// Returns by how much longer than `span` the link takes for the traffic counted in it, as a factor. Uploads are
    /// counted when they enter the queue: if it has grown by a tenth of a second since the last tick, the link needs
    /// that much longer. Downloads are counted behind the queue.
    fn queue_growth(&self, span: Duration) -> f64 {
        let [Some(now), Some(before)] = self.waits else { return 1.0 };
        if !self.is_of_uploads() {
            return 1.0;
        }
        let growth = now.span.as_secs_f64() - before.span.as_secs_f64();
        (1.0 + growth / span.as_secs_f64()).clamp(0.5, 2.0)
    }

    fn without_delayed_ack(&self, waited: Waited, lent_bps: f64) -> Waited {
        if !self.is_of_uploads() {
            return waited;
        }
        let apart = Duration::from_secs_f64(SEGMENT_BITS / lent_bps.max(FLOOR_BPS));
        Waited { span: waited.span.saturating_sub(apart.min(DELAYED_ACK)), ..waited }
    }

    const fn is_of_uploads(&self) -> bool {
        self.floor_part > 0.0
    }

    fn cap_bps(&self) -> f64 {
        self.cap.map_or(f64::MAX, |cap| cap.as_bps() as f64)
    }

    /// Returns the rate that is always lent; a lower cap still applies.
    fn floor_bps(&self) -> f64 {
        let capacity = self.capacity.bps(self.ticked_at).unwrap_or(0.0);
        FLOOR_BPS.max(self.floor_part * capacity).min(self.cap_bps())
    }

    /// Returns when the next tick is due.
    pub fn next_at(&self) -> Instant {
        self.ticked_at + TICK
    }

    /// Handles a tick. Returns the rate that may be lent from now on; `None`: unlimited.
    pub fn tick(&mut self, passed: Passed, now: Instant) -> Option<Rate> {
        let span = now.saturating_since(self.ticked_at).max(Duration::from_millis(1));
        self.ticked_at = now;
        let rates = passed.rates(span);
        let carried_bps = rates.all / self.queue_growth(span);
        let lent_least = rates.lent.min(core::mem::replace(&mut self.last_lent_bps, rates.lent));
        let waited = self.waits.into_iter().flatten().min().map(|waited| self.without_delayed_ack(waited, lent_least));
        let wait = waited.map(|waited| waited.span);
        self.waits = [None, self.waits[0]];
        let was_active = self.active_until.is_some();
        self.observe_rates(rates, carried_bps, waited, span, now);
        if self.active_until.is_none() {
            self.pauses.forget();
            self.owner_down_bps.clear();
            return self.cap;
        }
        if !was_active {
            self.has_queued = false;
            self.allowed_bps = self.lent_bps;
            self.spare_bps = self.left_bps(now).unwrap_or(self.lent_bps);
        }
        if self.pauses.is_pausing() || self.busy_ticks >= BUSY_TICKS {
            self.look_at_owner(rates, wait, passed.waits, now);
        }
        if let Some(wait) = wait.filter(|_| !self.pauses.is_pausing()) {
            self.adapt(wait, passed.waits, now);
        }
        let cap_bps = self.cap_bps();
        self.allowed_bps = self.allowed_bps.min(cap_bps).max(self.floor_bps());
        let spare_bps = self.left_bps(now).unwrap_or(self.allowed_bps).min(cap_bps);
        self.spare_bps += NEWEST_OF_SPARE * (spare_bps - self.spare_bps);
        Some(Rate::from_bps(self.allowed_bps as u64))
    }

    fn observe_rates(&mut self, rates: Rates, carried_bps: f64, waited: Option<Waited>, span: Duration, now: Instant) {
        // While hardly anything is lent, ticks come late, and each stands for several.
        let ticks = ((span + TICK / 2).as_millis() / TICK.as_millis()).clamp(1, 20);
        let newest = 1.0 - (0..ticks).fold(1.0, |older, _| older * (1.0 - NEWEST));
        for (average, latest) in self.owner_each_bps.iter_mut().zip([rates.owner, rates.owner_up]) {
            *average += newest * (latest - *average);
        }
        // The ACKs of a lent download slow down with the download; they must not be slowed again here.
        let is_acks = self.is_of_uploads() && self.lent_bps < ACKS_PART * self.lent_most_bps;
        let is_active = !is_acks && self.owner_bps() > IDLE_BPS.max(IDLE_PART * self.lent_most_bps);
        let goes_on = self.active_until.filter(|until| now < *until);
        self.active_until = if is_active { Some(now + PAUSE) } else { goes_on };
        self.busy_ticks = if is_active { self.busy_ticks + 1 } else { 0 };
        self.knows_base |= self.active_until.is_none() && waited.is_some();
        if self.pauses.is_pausing() {
            return;
        }
        let before = self.owner_down_bps.back().copied().unwrap_or(0.0);
        self.owner_down_bps.push_back(before + NEWEST_OF_WANTED * (rates.owner - before));
        if self.owner_down_bps.len() > MEMORY_TICKS {
            self.owner_down_bps.pop_front();
        }
        self.lent_bps += NEWEST * (rates.lent - self.lent_bps);
        self.lent_most_bps += NEWEST * (rates.lent_most - self.lent_most_bps);
        self.capacity.observe(carried_bps, waited.is_some_and(|waited| rates.is_full(waited)), now);
    }

    /// Measures what the owner wants, by pauses.
    fn look_at_owner(&mut self, rates: Rates, wait: Option<Duration>, more_waits: bool, now: Instant) {
        let seen = Seen {
            owner_bps: rates.owner.max(0.0),
            owner_mean_bps: self.owner_down_bps.back().copied().unwrap_or(0.0),
            lent_bps: rates.lent,
            floor_bps: self.floor_bps(),
            capacity_bps: self.capacity.bps(now),
            wait,
            is_long: wait.is_some_and(|wait| wait > TARGET),
            empty: self.knows_base.then_some(BUSY),
        };
        if !self.pauses.tick(seen, now) {
            return;
        }
        if !core::mem::replace(&mut self.sees_waits, false) {
            self.adapt_unseen(seen.owner_mean_bps, more_waits);
        }
        // The owner's rate while the queue drained is not the demand.
        self.owner_down_bps.clear();
        self.owner_down_bps.extend(self.pauses.alone_bps());
        self.knows_base |= !self.pauses.is_backlogged() && wait.is_some();
        self.allowed_bps = self.allowed_bps.min(self.left_bps(now).unwrap_or(f64::MAX));
    }

    /// Returns the rate that the owner leaves of the link, once the capacity is known.
    fn left_bps(&self, now: Instant) -> Option<f64> {
        if self.pauses.is_backlogged() {
            return Some(0.0);
        }
        let most = self.owner_down_bps.iter().copied().fold(0.0, f64::max);
        self.capacity.bps(now).map(|capacity| (capacity - most).max(0.0))
    }

    /// Returns the rate in use: an unused allowance need not be reduced first.
    fn used_bps(&self) -> f64 {
        self.allowed_bps.min(1.2 * self.lent_bps + FLOOR_BPS)
    }

    /// Adjusts the rate after a pause, if no wait was seen since the one before; `owner_bps` is the owner's rate until
    /// the pause.
    fn adapt_unseen(&mut self, owner_bps: f64, more_waits: bool) {
        let lacks = owner_bps < LACKS * self.pauses.alone_bps().unwrap_or(0.0);
        // So little lent traffic takes hardly anything from the owner.
        if lacks && self.lent_bps > IDLE_BPS {
            self.allowed_bps = LESS_UNSEEN * self.used_bps();
        } else if !lacks && more_waits {
            self.allowed_bps = self.allowed_bps.max(MORE_UNSEEN * self.lent_bps.max(LEAST_GROWING_BPS));
        }
    }

    fn adapt(&mut self, wait: Duration, more_waits: bool, now: Instant) {
        let target = TARGET.as_secs_f64();
        let off = ((target - wait.as_secs_f64()) / target).clamp(-1.0, 1.0);
        let left = self.left_bps(now);
        let is_idle = !more_waits && self.lent_bps < IDLE_BPS;
        self.late_ticks = if off < 0.0 && !is_idle { self.late_ticks.saturating_add(1) } else { 0 };
        self.has_queued = !is_idle && (self.has_queued || self.late_ticks >= QUEUED_TICKS);
        if off < 0.0 {
            // A link that was not full is not full of this either: the path's delay varies.
            if left.is_none() && is_idle {
                return;
            }
            let used = self.used_bps();
            self.allowed_bps = (used * (1.0 + LESS * off)).max(used.min(DRAINS * left.unwrap_or(0.0)));
        } else if more_waits && !self.pauses.is_backlogged() {
            self.allowed_bps += off * MORE * (self.owner_bps() + self.lent_bps).max(FLOOR_BPS);
            self.allowed_bps += off
                * match left {
                    Some(left) => SOON * (SAFE * left - self.allowed_bps).max(0.0),
                    None if self.has_queued => 0.0,
                    None => MORE_UNKNOWN * self.lent_bps.max(LEAST_GROWING_BPS),
                };
        }
    }

    /// Returns the limit for lent traffic during a pause; `None`: there is no pause.
    pub fn pause_rate(&self) -> Option<Rate> {
        self.pauses.is_pausing().then(|| Rate::from_bps(self.floor_bps() as u64))
    }

    /// Returns the rate that can be lent now; `None`: unknown, because the owner wants nothing, there is no cap, and
    /// the link was never full.
    pub fn spare(&self) -> Option<Rate> {
        if self.active_until.is_some() {
            return Some(Rate::from_bps(self.spare_bps as u64));
        }
        // An estimate that grows old is no sign of a faster link: destinations would take it for an owner who is done.
        let capacity = self.capacity.last_bps().map(|bps| Rate::from_bps(bps as u64));
        let guess = self.expected.filter(|_| capacity.is_none());
        self.cap.into_iter().chain(capacity).chain(guess).min()
    }

    /// Returns the lent rate.
    pub fn lent(&self) -> Rate {
        Rate::from_bps(self.lent_bps as u64)
    }

    /// Returns the rate of the owner's own traffic, both ways.
    pub fn owner(&self) -> Rate {
        Rate::from_bps(self.owner_bps() as u64)
    }

    /// One direction does not make up for the other: a destination must not hide the owner's downloads by uploads that
    /// go nowhere.
    fn owner_bps(&self) -> f64 {
        self.owner_each_bps.iter().map(|bps| bps.max(0.0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const CAPACITY_BPS: f64 = 10e6;

    /// Simulates a link with a queue, an owner who wants `owner_bps` and a destination who wants everything, for thirty
    /// seconds. Returns the mean lent rate and the mean wait of the last ten.
    fn run(owner_bps: impl Fn(u64) -> f64) -> (f64, Duration) {
        run_with(300, |scavenger, wait| scavenger.observe_wait(wait, false), owner_bps)
    }

    /// The same for `ticks` ticks, of which the last third counts. `tell` may report the waits.
    fn run_with(
        ticks: u64,
        tell: impl Fn(&mut Scavenger, Duration),
        owner_bps: impl Fn(u64) -> f64,
    ) -> (f64, Duration) {
        run_on(CAPACITY_BPS, ticks, tell, owner_bps)
    }

    /// The same on a link of `capacity_bps`.
    fn run_on(
        capacity_bps: f64,
        ticks: u64,
        tell: impl Fn(&mut Scavenger, Duration),
        owner_bps: impl Fn(u64) -> f64,
    ) -> (f64, Duration) {
        let counted_from = ticks - ticks / 3;
        let counted_s = TICK.as_secs_f64() * (ticks - counted_from) as f64;
        let mut scavenger = Scavenger::new(None, None);
        let (mut queued_bits, mut lent_bits, mut waited, mut allowed) = (0.0_f64, 0.0, Duration::ZERO, None);
        for tick in 1..=ticks {
            let step = TICK.as_secs_f64();
            let allowed_now = scavenger.pause_rate().or(allowed);
            let wanted_bps = allowed_now.map_or(2.0 * capacity_bps, |rate: Rate| rate.as_bps() as f64);
            let owner = owner_bps(tick).max(1.0);
            queued_bits += (wanted_bps + owner - capacity_bps) * step;
            queued_bits = queued_bits.clamp(0.0, 0.3 * capacity_bps);
            // On a full link everyone gets a share in proportion to their arrivals.
            let share = (capacity_bps / (wanted_bps + owner)).min(1.0);
            let (lent, own) = (wanted_bps * share * step, owner * share * step);
            let wait = Duration::from_secs_f64(queued_bits / capacity_bps);
            tell(&mut scavenger, wait);
            let down = |bits: f64| Counters { down_bytes: (bits / 8.0) as u64, up_bytes: 0 };
            let passed = Passed { all: down(lent + own), lent: down(lent), waits: true };
            allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            if tick > counted_from {
                lent_bits += lent;
                waited += wait;
            }
        }
        (lent_bits / counted_s, waited.mul_div(1, ticks - counted_from))
    }

    #[test]
    fn an_owner_gets_what_they_want_and_the_others_the_rest() {
        for (owner, spare) in [(2e6, 8e6), (5e6, 5e6), (9e6, 1e6)] {
            let (lent, wait) = run(|_| owner);
            assert!((lent - spare).abs() < (0.1 * spare).max(0.2e6), "{owner}: {lent}");
            assert!(wait < Duration::from_millis(60), "{owner}: {wait}");
        }
    }

    #[test]
    fn an_owner_who_wants_everything_gets_it() {
        let (lent, _) = run(|_| 1.5 * CAPACITY_BPS);
        assert!(lent < 0.1e6, "{lent}");
    }

    /// On a slow link, the wait that lent traffic may cause is a queue too short to show the capacity.
    #[test]
    fn a_slow_link_has_no_long_queue_again_and_again() {
        for (capacity_bps, late_ticks) in [(0.6e6, 2), (1e6, 2), (1e6, 3), (1.2e6, 2)] {
            let waits = RefCell::new(Vec::new());
            let tell = |scavenger: &mut Scavenger, wait: Duration| {
                let mut waits = waits.borrow_mut();
                waits.push(wait);
                if let Some(wait) = waits.iter().rev().nth(late_ticks) {
                    scavenger.observe_wait(*wait, false);
                }
            };
            run_on(capacity_bps, 3_000, tell, |_| 0.3e6);
            let longest = waits.borrow().iter().skip(300).copied().max();
            assert!(longest < Some(Duration::from_millis(80)), "{capacity_bps}, {late_ticks} ticks: {longest:?}");
        }
    }

    /// At a low rate, a packet is often the only one of two ticks, and a radio may be late with it.
    #[test]
    fn a_late_packet_does_not_end_the_growth() {
        let mut scavenger = Scavenger::new(None, None);
        let down = |bps: f64| Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
        let mut allowed_bps = 0.0;
        for tick in 1..=180_u64 {
            let wanted_bps = if tick < 100 { 0.0 } else { CAPACITY_BPS - 0.5e6 };
            let lent_bps = wanted_bps.min(scavenger.pause_rate().map_or(allowed_bps, |rate| rate.as_bps() as f64));
            if tick >= 100 && (tick % 3 == 0 || tick > 120) {
                scavenger.observe_wait(Duration::from_millis(if tick == 108 { 30 } else { 0 }), false);
            }
            let passed = Passed { all: down(0.5e6 + lent_bps), lent: down(lent_bps), waits: wanted_bps > 0.0 };
            let allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            allowed_bps = allowed.map_or(f64::MAX, |rate| rate.as_bps() as f64);
        }
        assert!(allowed_bps > 0.5 * CAPACITY_BPS, "{allowed_bps}");
    }

    #[test]
    fn pauses_are_enough_where_nothing_tells_of_waits() {
        let unseen = |owner_bps: f64| run_with(1800, |_, _| (), move |_| owner_bps).0;
        for owner in [2e6, 5e6] {
            let (lent, spare) = (unseen(owner), CAPACITY_BPS - owner);
            assert!((0.8 * spare..1.1 * spare).contains(&lent), "{owner}: {lent}");
        }
        let lent = unseen(1.5 * CAPACITY_BPS);
        assert!((0.2e6..2e6).contains(&lent), "an owner who wants everything gets nine tenths of it: {lent}");
        // An owner who arrives during a download gets room.
        let (lent, _) = run_with(1800, |_, _| (), |tick| if tick < 300 { 0.0 } else { 1.5 * CAPACITY_BPS });
        assert!(lent < 2e6, "{lent}");
        // So does a download that arrives while the owner is active, although its allowance was zero before.
        let mut scavenger = Scavenger::new(None, None);
        let down = |bps: f64| Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
        let mut allowed_bps = 0.0;
        for tick in 1..=3_000_u64 {
            let wanted_bps = if tick < 1_000 { 0.0 } else { CAPACITY_BPS };
            let lent_bps = wanted_bps.min(scavenger.pause_rate().map_or(allowed_bps, |rate| rate.as_bps() as f64));
            let passed = Passed { all: down(2e6 + lent_bps), lent: down(lent_bps), waits: wanted_bps > 0.0 };
            let allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            allowed_bps = allowed.map_or(f64::MAX, |rate| rate.as_bps() as f64);
            assert!(tick > 1_000 || allowed_bps < 0.1e6, "nobody asked: {allowed_bps}");
        }
        assert!(allowed_bps > 0.5 * CAPACITY_BPS, "{allowed_bps}");
    }

    #[test]
    fn an_owner_who_wants_nothing_is_not_waited_for() {
        let (lent, _) = run(|_| 20e3);
        assert!(lent > 0.98 * CAPACITY_BPS, "{lent}");
        // An owner who has finished is not waited for.
        let (lent, _) = run(|tick| if tick < 150 { 8e6 } else { 0.0 });
        assert!(lent > 0.98 * CAPACITY_BPS, "{lent}");
    }

    #[test]
    fn a_guess_is_offered_until_the_link_was_seen_full() {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(10)), Some(Rate::from_mbps(4)));
        assert_eq!(scavenger.spare(), Some(Rate::from_mbps(4)));
        let down = Counters { down_bytes: 100_000, up_bytes: 0 };
        let passed = Passed { all: down, lent: down, waits: true };
        assert_eq!(scavenger.tick(passed, Instant::from_millis(100)), Some(Rate::from_mbps(10)), "it is no limit");
        assert_eq!(scavenger.spare(), Some(Rate::from_mbps(4)));
        scavenger.observe_wait(Duration::from_millis(30), false);
        scavenger.tick(passed, Instant::from_millis(200));
        assert_eq!(scavenger.spare(), Some(Rate::from_mbps(8)));
    }

    /// Returns the spare rate after a link was full and then carried `little_bps` for a minute, with waits up to 30 ms
    /// above the shortest.
    fn spare_after_a_quiet_minute(little_bps: f64, waits_ms: impl Fn(u64) -> u64) -> f64 {
        let mut scavenger = Scavenger::new(None, None);
        for tick in 1..=650_u64 {
            let (bps, wait_ms) = if tick <= 100 { (CAPACITY_BPS, 40) } else { (little_bps, waits_ms(tick)) };
            let down = Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
            scavenger.observe_wait(Duration::from_millis(wait_ms), false);
            scavenger.tick(Passed { all: down, lent: down, waits: false }, Instant::ZERO + TICK.saturating_mul(tick));
        }
        scavenger.spare().map_or(f64::NAN, |rate| rate.as_bps() as f64)
    }

    #[test]
    fn little_traffic_over_a_way_that_wavers_says_nothing_of_what_the_link_carries() {
        for little_bps in [50e3, 300e3, 1e6] {
            for waits_ms in [|tick| 5 + tick % 26, |_| 20, |tick| 5 + tick / 22] {
                let spare = spare_after_a_quiet_minute(little_bps, waits_ms);
                assert!((spare - CAPACITY_BPS).abs() < 0.01 * CAPACITY_BPS, "{little_bps}: {spare}");
            }
        }
    }

    /// A link of 16 Mbit/s, of which 10 may be lent, with a path that delays nothing. The owner listens to the radio at
    /// 1 Mbit/s. A destination downloads in some ticks; in `late`, one packet of it has waited for 30 ms. Returns what
    /// is lent in each tick, bit/s.
    fn lent_beside_a_radio(ticks: u64, downloads: impl Fn(u64) -> bool, late: u64) -> Vec<f64> {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(10)), None);
        let down = |bps: f64| Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
        let mut allowed = None;
        let tick = |tick: u64| {
            let may_bps = scavenger.pause_rate().or(allowed).map_or(10e6, |rate: Rate| rate.as_bps() as f64);
            let lent_bps = if downloads(tick) { may_bps } else { 5e3 };
            if downloads(tick) || tick == late {
                scavenger.observe_wait(Duration::from_millis(if tick == late { 30 } else { 0 }), false);
            }
            let passed = Passed { all: down(1e6 + lent_bps), lent: down(lent_bps), waits: downloads(tick) };
            allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            lent_bps
        };
        (1..=ticks).map(tick).collect()
    }

    #[test]
    fn a_download_beside_a_stream_on_a_link_that_was_never_full_is_soon_lent_most() {
        let lent = lent_beside_a_radio(400, |tick| tick > 200, 0);
        let most = lent.iter().skip(200).position(|bps| *bps > 5e6);
        assert!(most.is_some_and(|ticks| ticks < 100), "{most:?}");
        // It was nothing that filled the link which came late.
        let lent = lent_beside_a_radio(1_200, |tick| !(400..=1_100).contains(&tick), 1_000);
        assert!(lent[390] > 9e6 && lent[1_100] > 9e6, "{} {}", lent[390], lent[1_100]);
    }

    #[test]
    fn a_link_that_is_not_used_for_long_is_offered_as_before() {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(10)), Some(Rate::from_mbps(20)));
        for tick in 1..=2_000_u64 {
            let bps = if tick <= 100 { 1e6 } else { 1e3 };
            let down = Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
            scavenger.observe_wait(Duration::from_millis(if tick <= 100 { 60 } else { 0 }), false);
            scavenger.tick(Passed { all: down, lent: down, waits: false }, Instant::ZERO + TICK.saturating_mul(tick));
            let spare = scavenger.spare().unwrap();
            assert!(tick < 20 || spare < Rate::from_bps(1_100_000), "tick {tick}: {spare:?}");
        }
    }

    #[test]
    fn a_link_that_was_never_full_is_not_known() {
        let mut scavenger = Scavenger::new(None, None);
        let down = Counters { down_bytes: 3_000, up_bytes: 0 };
        for tick in 1..=100 {
            scavenger.observe_wait(Duration::from_millis(5 + tick % 26), false);
            scavenger.tick(Passed { all: down, lent: down, waits: false }, Instant::from_millis(tick * 100));
        }
        assert_eq!(scavenger.spare(), None);
    }

    #[test]
    fn a_link_that_gets_slower_is_believed_soon() {
        let mut scavenger = Scavenger::new(None, None);
        for tick in 1..=200_u64 {
            let bps = if tick <= 100 { CAPACITY_BPS } else { 0.4 * CAPACITY_BPS };
            let down = Counters { down_bytes: (bps * TICK.as_secs_f64() / 8.0) as u64, up_bytes: 0 };
            scavenger.observe_wait(Duration::from_millis(60), false);
            scavenger.tick(Passed { all: down, lent: down, waits: true }, Instant::ZERO + TICK.saturating_mul(tick));
        }
        let spare = scavenger.spare().unwrap().as_bps() as f64;
        assert!((spare - 0.4 * CAPACITY_BPS).abs() < 0.01 * CAPACITY_BPS, "{spare}");
    }

    #[test]
    fn an_upload_says_nothing_of_what_can_come() {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(1)), None);
        // 1 Mbit/s goes out, and its ACKs come in.
        let lent = Counters { down_bytes: 400, up_bytes: 12_500 };
        for tick in 1..200 {
            scavenger.observe_wait(Duration::from_millis(30), false);
            scavenger.tick(Passed { all: lent, lent, waits: true }, Instant::from_millis(tick * 100));
        }
        assert_eq!(scavenger.spare(), Some(Rate::from_mbps(1)));
    }

    /// The owner downloads 8 Mbit/s. A destination downloads as well, and sends 10 or 400 Mbit/s that the firewall drops.
    #[test]
    fn uploads_that_go_nowhere_do_not_hide_the_owner() {
        let bytes = |bps: f64| (bps * TICK.as_secs_f64() / 8.0) as u64;
        for nowhere_bps in [10e6, 400e6] {
            let mut scavenger = Scavenger::new(None, None);
            let all = Counters { down_bytes: bytes(9e6), up_bytes: bytes(0.2e6) };
            let lent = Counters { down_bytes: bytes(1e6), up_bytes: bytes(nowhere_bps) };
            let mut allowed = None;
            for tick in 1..=50_u64 {
                scavenger.observe_wait(Duration::from_millis(60), true);
                let passed = Passed { all, lent, waits: true };
                allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            }
            let owner_bps = scavenger.owner().as_bps() as f64;
            assert!((owner_bps - 8e6).abs() < 0.1e6, "{owner_bps}");
            assert!(allowed.is_some_and(|rate| rate < Rate::from_mbps(1)), "{allowed:?}");
        }
    }

    /// 9 Mbit/s are lent, from 2 s on beside 6 Mbit/s of the owner. The upward traffic is the ACKs.
    #[test]
    fn acks_of_a_download_are_not_slowed_a_second_time() {
        let cap = Some(Rate::from_mbps(10));
        let mut scavenger = Scavenger::of_uploads(cap);
        let counted = |down_bytes: u64| Counters { down_bytes, up_bytes: 2_500 };
        for tick in 1..300 {
            let all = counted(if tick < 20 { 112_500 } else { 187_500 });
            let passed = Passed { all, lent: counted(112_500), waits: true }.turned();
            scavenger.observe_wait(Duration::from_millis(30), false);
            let rate = scavenger.tick(passed, Instant::from_millis(tick * 100));
            assert_eq!((rate, scavenger.pause_rate()), (cap, None), "tick {tick}");
        }
    }

    #[test]
    fn a_cap_holds_in_any_case() {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(1)), None);
        let down = |down_bytes| Counters { down_bytes, up_bytes: 0 };
        let mut passed = Passed { all: down(12_500), lent: down(12_500), waits: true };
        assert_eq!(scavenger.tick(passed, Instant::from_millis(100)), Some(Rate::from_mbps(1)));
        passed.all = down(100_000);
        for tick in 2..100 {
            scavenger.observe_wait(Duration::ZERO, false);
            let rate = scavenger.tick(passed, Instant::from_millis(tick * 100)).unwrap();
            assert!(rate <= Rate::from_mbps(1));
        }
        assert!(scavenger.spare().unwrap() > Rate::from_bps(900_000));
    }

    #[test]
    fn a_cap_below_what_is_always_lent_holds_too() {
        let cap = Rate::from_bps(20_000);
        for mut scavenger in [Scavenger::new(Some(cap), None), Scavenger::of_uploads(Some(cap))] {
            let down = |down_bytes| Counters { down_bytes, up_bytes: 0 };
            let passed = Passed { all: down(125_000), lent: down(250), waits: true };
            for tick in 1..200 {
                scavenger.observe_wait(Duration::from_millis(30), false);
                let rate = scavenger.tick(passed, Instant::from_millis(tick * 100));
                assert!(rate.is_some_and(|rate| rate <= cap), "tick {tick}: {rate:?}");
                assert!(scavenger.pause_rate().is_none_or(|rate| rate <= cap), "tick {tick}");
            }
        }
    }
}
