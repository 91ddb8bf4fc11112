//! The owner's traffic first: how much may be lent while the owner uses the link too. Less than best effort, as RFC 6297 calls it. Sans-IO.
//!
//! What is lent fills what the owner leaves, and no queue: while packets wait longer than [`TARGET`], it gets less; while they do not, it
//! gets more, as in LEDBAT (RFC 6817). An owner who wants all there is fills the queue, and gets it. While the owner wants nothing, only the
//! cap counts.
//!
//! While packets wait at all, the link is busy, and what passes is what it can carry. That less the most that the owner took in the last
//! seconds is what can be lent: TCP takes less for a while after each loss, and wants all of it back.

use std::collections::VecDeque;

use units::{Duration, Instant, Rate};

use super::counters::Counters;

/// Between two looks.
pub const TICK: Duration = Duration::from_millis(100);
/// How long packets may wait in queues because of what is lent.
const TARGET: Duration = Duration::from_millis(25);
/// It never gets less: without any packet nothing is heard of queues.
const FLOOR_BPS: f64 = 48_000.0;
/// An owner who takes less uses the link for its household only; so much, and part of what is lent.
const IDLE_BPS: f64 = 100_000.0;
const IDLE_PART: f64 = 0.03;
/// Ticks after which an owner who pauses is done.
const PAUSE_TICKS: u32 = 30;
/// Packets that wait so long wait for others: the link is busy.
const BUSY: Duration = Duration::from_millis(5);
/// How much it may get less at each tick, and how much more, as a part of all traffic.
const LESS: f64 = 0.12;
const MORE: f64 = 0.004;
/// A queue drains well enough while it gets so much of what the owner leaves; up to the other part it gets more soon.
const DRAINS: f64 = 0.85;
const SAFE: f64 = 0.9;
const SOON: f64 = 0.15;
/// Ticks for which it is remembered what the owner took.
const MEMORY_TICKS: usize = 50;
/// Weights of the newest figure in averages.
const NEWEST: f64 = 0.3;
const NEWEST_OF_SPARE: f64 = 0.1;

/// What there is to know about it.
#[derive(Debug)]
pub struct Scavenger {
    cap: Option<Rate>,
    /// What the owner takes, both ways.
    owner_bps: f64,
    /// What they took towards this device at the last ticks.
    owner_down_bps: VecDeque<f64>,
    lent_bps: f64,
    /// What the link can carry towards this device, once that was seen.
    capacity_bps: Option<f64>,
    allowed_bps: f64,
    spare_bps: f64,
    /// Ticks until an owner who has paused is done; 0: the owner wants nothing.
    active_ticks: u32,
    /// The shortest waits of this tick and of the one before.
    waits: [Option<Duration>; 2],
    ticked_at: Instant,
}

/// What passed over the shared interface since the last tick.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Octets, whoever's.
    pub all: Counters,
    /// Octets of them that were lent.
    pub lent: Counters,
    /// Whether more waits to be lent.
    pub waits: bool,
}

impl Scavenger {
    /// With the highest rate that is lent.
    pub const fn new(cap: Option<Rate>) -> Self {
        Self {
            cap,
            owner_bps: 0.0,
            owner_down_bps: VecDeque::new(),
            lent_bps: 0.0,
            capacity_bps: None,
            allowed_bps: FLOOR_BPS,
            spare_bps: 0.0,
            active_ticks: 0,
            waits: [None; 2],
            ticked_at: Instant::ZERO,
        }
    }

    /// A packet has waited so long in queues.
    pub fn heed_wait(&mut self, wait: Duration) {
        self.waits[0] = Some(self.waits[0].map_or(wait, |shortest| shortest.min(wait)));
    }

    /// When the next tick is due.
    pub fn next_at(&self) -> Instant {
        self.ticked_at + TICK
    }

    /// A tick has passed: what may be lent from now on; none: all that there is.
    pub fn tick(&mut self, passed: Passed, now: Instant) -> Option<Rate> {
        let span = now.saturating_since(self.ticked_at).max(Duration::from_millis(1)).as_secs_f64();
        self.ticked_at = now;
        let bps = |bytes: u64| bytes as f64 * 8.0 / span;
        let (all, lent) = (passed.all, passed.lent);
        let owner_down = all.down_bytes.saturating_sub(lent.down_bytes);
        let owner_up = all.up_bytes.saturating_sub(lent.up_bytes);
        self.owner_bps += NEWEST * (bps(owner_down + owner_up) - self.owner_bps);
        let before = self.owner_down_bps.back().copied().unwrap_or(0.0);
        self.owner_down_bps.push_back(before + NEWEST * (bps(owner_down) - before));
        if self.owner_down_bps.len() > MEMORY_TICKS {
            self.owner_down_bps.pop_front();
        }
        self.lent_bps += NEWEST * (bps(lent.down_bytes.max(lent.up_bytes)) - self.lent_bps);
        let was_active = self.active_ticks > 0;
        let is_active = self.owner_bps > IDLE_BPS.max(IDLE_PART * self.lent_bps);
        self.active_ticks = if is_active { PAUSE_TICKS } else { self.active_ticks.saturating_sub(1) };
        let wait = self.waits.into_iter().flatten().min();
        self.waits = [None, self.waits[0]];
        if wait.is_some_and(|wait| wait >= BUSY) {
            let known = self.capacity_bps.get_or_insert(bps(all.down_bytes));
            *known += NEWEST * (bps(all.down_bytes) - *known);
        }
        if self.active_ticks == 0 {
            return self.cap;
        }
        if !was_active {
            self.allowed_bps = self.lent_bps;
            self.spare_bps = self.left_bps().unwrap_or(self.lent_bps);
        }
        if let Some(wait) = wait {
            self.adapt(wait, passed.waits);
        }
        let cap_bps = self.cap.map_or(f64::MAX, |cap| cap.as_bps() as f64);
        self.allowed_bps = self.allowed_bps.min(cap_bps).max(FLOOR_BPS);
        let spare_bps = self.left_bps().unwrap_or(self.allowed_bps).min(cap_bps);
        self.spare_bps += NEWEST_OF_SPARE * (spare_bps - self.spare_bps);
        Some(Rate::from_bps(self.allowed_bps as u64))
    }

    /// What the owner leaves of the link, once it is known what that can carry.
    fn left_bps(&self) -> Option<f64> {
        let most = self.owner_down_bps.iter().copied().fold(0.0, f64::max);
        self.capacity_bps.map(|capacity| (capacity - most).max(0.0))
    }

    fn adapt(&mut self, wait: Duration, more_waits: bool) {
        let target = TARGET.as_secs_f64();
        let off = ((target - wait.as_secs_f64()) / target).clamp(-1.0, 1.0);
        let left = self.left_bps().unwrap_or(0.0);
        if off < 0.0 {
            // What is not used now need not be taken away first.
            let used = self.allowed_bps.min(1.2 * self.lent_bps + FLOOR_BPS);
            self.allowed_bps = (used * (1.0 + LESS * off)).max(used.min(DRAINS * left));
        } else if more_waits {
            self.allowed_bps += off * MORE * (self.owner_bps + self.lent_bps).max(FLOOR_BPS);
            self.allowed_bps += off * SOON * (SAFE * left - self.allowed_bps).max(0.0);
        }
    }

    /// What can be lent now; none: it is not known, since the owner wants nothing and there is no cap.
    pub fn spare(&self) -> Option<Rate> {
        if self.active_ticks == 0 { self.cap } else { Some(Rate::from_bps(self.spare_bps as u64)) }
    }

    /// What is lent, each way.
    pub fn lent(&self) -> Rate {
        Rate::from_bps(self.lent_bps as u64)
    }

    /// What the owner's own traffic takes.
    pub fn owner(&self) -> Rate {
        Rate::from_bps(self.owner_bps as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY_BPS: f64 = 10e6;

    /// A link with a queue, an owner who wants `owner_bps`, and a destination who wants everything. What is lent in the last ten of thirty
    /// seconds, on average, and the mean wait then.
    fn run(owner_bps: impl Fn(u64) -> f64) -> (f64, Duration) {
        let mut scavenger = Scavenger::new(None);
        let (mut queued_bits, mut lent_bits, mut waited, mut allowed) = (0.0_f64, 0.0, Duration::ZERO, None);
        for tick in 1..=300_u64 {
            let step = TICK.as_secs_f64();
            let wanted_bps = allowed.map_or(2.0 * CAPACITY_BPS, |rate: Rate| rate.as_bps() as f64);
            let owner = owner_bps(tick).max(1.0);
            queued_bits += (wanted_bps + owner - CAPACITY_BPS) * step;
            queued_bits = queued_bits.clamp(0.0, 0.3 * CAPACITY_BPS);
            // In a full link each gets its part of what arrives.
            let share = (CAPACITY_BPS / (wanted_bps + owner)).min(1.0);
            let (lent, own) = (wanted_bps * share * step, owner * share * step);
            let wait = Duration::from_secs_f64(queued_bits / CAPACITY_BPS);
            scavenger.heed_wait(wait);
            let down = |bits: f64| Counters { down_bytes: (bits / 8.0) as u64, up_bytes: 0 };
            let passed = Passed { all: down(lent + own), lent: down(lent), waits: true };
            allowed = scavenger.tick(passed, Instant::ZERO + TICK.saturating_mul(tick));
            if tick > 200 {
                lent_bits += lent;
                waited += wait;
            }
        }
        (lent_bits / 10.0, waited.mul_div(1, 100))
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

    #[test]
    fn an_owner_who_wants_nothing_is_not_waited_for() {
        let (lent, _) = run(|_| 20e3);
        assert!(lent > 0.98 * CAPACITY_BPS, "{lent}");
        // One who is done is not waited for any more.
        let (lent, _) = run(|tick| if tick < 150 { 8e6 } else { 0.0 });
        assert!(lent > 0.98 * CAPACITY_BPS, "{lent}");
    }

    #[test]
    fn a_cap_holds_in_any_case() {
        let mut scavenger = Scavenger::new(Some(Rate::from_mbps(1)));
        let down = |down_bytes| Counters { down_bytes, up_bytes: 0 };
        let mut passed = Passed { all: down(12_500), lent: down(12_500), waits: true };
        assert_eq!(scavenger.tick(passed, Instant::from_millis(100)), Some(Rate::from_mbps(1)));
        passed.all = down(100_000);
        for tick in 2..100 {
            scavenger.heed_wait(Duration::ZERO);
            let rate = scavenger.tick(passed, Instant::from_millis(tick * 100)).unwrap();
            assert!(rate <= Rate::from_mbps(1));
        }
        assert!(scavenger.spare().unwrap() > Rate::from_bps(900_000));
    }
}
