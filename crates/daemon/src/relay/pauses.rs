//! Pauses of lent traffic, in which only the owner's traffic is seen; no probes are sent. Sans-IO.
//!
//! A full queue looks the same whoever fills it. After lent traffic has drained, the next packets in the queue are the
//! owner's. If they take the link's whole capacity, the owner wants more than there is; otherwise their rate is what
//! the owner wants. This works without knowing the path's round-trip time without queues, which cannot be measured if
//! the queues were full from the start.

use units::{Duration, Instant};

/// Time from one pause to the next.
const EVERY: Duration = Duration::from_secs(10);
/// The same, if there is something to find out.
const GAP: Duration = Duration::from_millis(2500);
/// Lent traffic has drained when it is below this part of all traffic,
const DRAINED: f64 = 0.05;
/// or below this multiple of the minimum that is always lent.
const LITTLE: f64 = 1.25;
/// Ticks for which only the owner is observed, and how many of them, the last ones, count.
const LOOK_TICKS: u32 = 4;
const COUNTED_TICKS: u32 = 2;
/// Maximum length of a pause, ticks, while the queue still drains or the owner's TCP still probes for its rate.
const TICKS_MAX: u32 = 24;
/// Relative change from which the wait counts as falling, or the owner's rate as growing.
const CHANGES: f64 = 0.1;
/// Ticks of long waits in a row that are no accident.
const LONG_WAIT_TICKS: u32 = 10;
/// Relative difference to the last pause from which the owner's demand has changed.
const DIFFERS: f64 = 0.3;
/// Part of the capacity that counts as all of it. The rest is lost to fades of the radio and to TCP's loss recovery.
const ALL: f64 = 0.93;

/// Measurements of one tick.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The owner's rate towards this device, bit/s.
    pub owner_bps: f64,
    /// Its average.
    pub owner_mean_bps: f64,
    /// The lent rate.
    pub lent_bps: f64,
    /// The rate that is always lent.
    pub floor_bps: f64,
    /// The link's capacity, if known.
    pub capacity_bps: Option<f64>,
    /// Shortest wait of a packet, if seen.
    pub wait: Option<Duration>,
    /// Whether that wait is long.
    pub is_long: bool,
    /// Wait below which the queue is empty; `None`: the shortest round trip is unknown, and waits may be longer than
    /// they look.
    pub empty: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Lending,
    Draining,
    /// Only the owner is observed: for this many ticks; the sum of its rates in the ticks that count, and its last
    /// rate.
    Looking {
        ticks: u32,
        sum_bps: f64,
        last_bps: f64,
    },
}

/// The schedule of pauses, and the result of the last one.
#[derive(Debug)]
pub struct Pauses {
    phase: Phase,
    /// Ticks since the last pause began.
    ticks: u32,
    last_wait: Option<Duration>,
    ended_at: Instant,
    waiting_ticks: u32,
    alone_bps: Option<f64>,
    is_backlogged: bool,
}

impl Pauses {
    /// Creates a schedule without any pause yet.
    pub const fn new() -> Self {
        Self {
            phase: Phase::Lending,
            ticks: 0,
            last_wait: None,
            ended_at: Instant::ZERO,
            waiting_ticks: 0,
            alone_bps: None,
            is_backlogged: false,
        }
    }

    /// Returns whether there is a pause now.
    pub const fn is_pausing(&self) -> bool {
        !matches!(self.phase, Phase::Lending)
    }

    /// Returns whether the owner wanted more than the capacity in the last pause.
    pub const fn is_backlogged(&self) -> bool {
        self.is_backlogged
    }

    /// Returns the owner's rate in the last pause, bit/s, if there was one.
    pub const fn alone_bps(&self) -> Option<f64> {
        self.alone_bps
    }

    /// Handles a tick in which the owner uses the link. Returns true at the end of a pause.
    pub fn tick(&mut self, seen: Seen, now: Instant) -> bool {
        self.waiting_ticks = if seen.is_long { self.waiting_ticks + 1 } else { 0 };
        self.ticks += 1;
        match self.phase {
            Phase::Lending if self.is_due(seen, now) => {
                (self.phase, self.ticks, self.last_wait) = (Phase::Draining, 0, None);
            }
            Phase::Lending => {}
            Phase::Draining => {
                let drained_bps = (DRAINED * (seen.owner_bps + seen.lent_bps)).max(LITTLE * seen.floor_bps);
                if seen.lent_bps <= drained_bps || self.ticks >= TICKS_MAX {
                    self.phase = Phase::Looking { ticks: 1, sum_bps: 0.0, last_bps: seen.owner_bps };
                }
            }
            Phase::Looking { ticks, sum_bps, last_bps } => return self.look(ticks, sum_bps, last_bps, seen, now),
        }
        false
    }

    fn look(&mut self, ticks: u32, sum_bps: f64, last_bps: f64, seen: Seen, now: Instant) -> bool {
        let falls = |wait: Duration, before: Duration| wait.as_secs_f64() < (1.0 - CHANGES) * before.as_secs_f64();
        let drains = seen.is_long && seen.wait.zip(self.last_wait).is_some_and(|(wait, before)| falls(wait, before));
        let grows = seen.owner_bps > (1.0 + CHANGES) * last_bps;
        self.last_wait = seen.wait.or(self.last_wait);
        let last_bps = seen.owner_bps;
        if (drains || grows) && self.ticks < TICKS_MAX {
            self.phase = Phase::Looking { ticks: LOOK_TICKS - COUNTED_TICKS, sum_bps: 0.0, last_bps };
            return false;
        }
        let sum_bps = sum_bps + if ticks + COUNTED_TICKS >= LOOK_TICKS { seen.owner_bps } else { 0.0 };
        self.phase = Phase::Looking { ticks: ticks + 1, sum_bps, last_bps };
        if ticks + 1 < LOOK_TICKS {
            return false;
        }
        self.end(sum_bps / f64::from(COUNTED_TICKS), seen, now);
        true
    }

    fn end(&mut self, alone_bps: f64, seen: Seen, now: Instant) {
        (self.phase, self.ended_at, self.waiting_ticks) = (Phase::Lending, now, 0);
        self.alone_bps = Some(alone_bps);
        let takes_all = seen.capacity_bps.is_some_and(|capacity| alone_bps >= ALL * capacity);
        let is_empty = self.last_wait.zip(seen.empty).is_some_and(|(wait, empty)| wait < empty);
        self.is_backlogged = takes_all && !is_empty;
    }

    fn is_due(&self, seen: Seen, now: Instant) -> bool {
        let span = now.saturating_since(self.ended_at);
        let differs = |alone: f64| (seen.owner_mean_bps - alone).abs() > DIFFERS * alone;
        let asks = self.alone_bps.is_none_or(differs) || self.waiting_ticks >= LONG_WAIT_TICKS && !self.is_backlogged;
        span >= EVERY || asks && span >= GAP
    }

    /// Forgets the results, because the owner wants nothing any more.
    pub fn forget(&mut self) {
        (self.phase, self.last_wait, self.alone_bps, self.is_backlogged) = (Phase::Lending, None, None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY_BPS: f64 = 10e6;
    const TICK: Duration = Duration::from_millis(100);

    fn seen(owner_bps: f64, lent_bps: f64, wait_ms: Option<u64>) -> Seen {
        let wait = wait_ms.map(Duration::from_millis);
        Seen {
            owner_bps,
            owner_mean_bps: owner_bps,
            lent_bps,
            floor_bps: 48e3,
            capacity_bps: Some(CAPACITY_BPS),
            wait,
            is_long: wait_ms.is_some_and(|wait| wait > 25),
            empty: None,
        }
    }

    /// Runs until a pause ends; `look` gives the measurements within it. Returns the number of ticks.
    fn pause(pauses: &mut Pauses, now: &mut Instant, mut look: impl FnMut(u32) -> Seen) -> u32 {
        let mut ticks = 0;
        loop {
            *now += TICK;
            ticks += 1;
            assert!(ticks < 200, "it ends");
            let shown = if pauses.is_pausing() { look(pauses.ticks) } else { seen(3e6, 7e6, None) };
            if pauses.tick(shown, *now) {
                return ticks;
            }
        }
    }

    #[test]
    fn what_the_owner_takes_alone_is_what_they_want() {
        let (mut pauses, mut now) = (Pauses::new(), Instant::ZERO);
        pause(&mut pauses, &mut now, |tick| seen(3e6, if tick < 2 { 7e6 } else { 0.0 }, None));
        assert_eq!((pauses.alone_bps(), pauses.is_backlogged()), (Some(3e6), false));
        let begin = now;
        pause(&mut pauses, &mut now, |_| seen(9.8e6, 0.0, None));
        assert!(now.saturating_since(begin) > EVERY, "there was nothing to find out");
        assert!(pauses.is_backlogged());
        let begin = now;
        pause(&mut pauses, &mut now, |_| seen(3e6, 0.0, None));
        assert!(!pauses.is_backlogged());
        assert!(now.saturating_since(begin) < EVERY, "3 Mbit/s are not what was seen last");
        pauses.forget();
        assert_eq!((pauses.alone_bps(), pauses.is_pausing()), (None, false));
    }

    #[test]
    fn a_queue_that_drains_and_an_owner_who_takes_more_and_more_are_waited_for() {
        let (mut pauses, mut now) = (Pauses::new(), Instant::ZERO);
        // The owner's own earlier packets: 600 ms of them.
        let drains = |tick: u32| match tick {
            0..6 => seen(9.9e6, 0.0, Some(600 - u64::from(tick) * 100)),
            _ => seen(3e6, 0.0, Some(0)),
        };
        pause(&mut pauses, &mut now, drains);
        assert_eq!((pauses.alone_bps(), pauses.is_backlogged()), (Some(3e6), false));
        // Slow start.
        pause(&mut pauses, &mut now, |tick| seen((0.5e6 * f64::from(1 << tick.min(5))).min(9.9e6), 0.0, None));
        assert!(pauses.is_backlogged());
        let ticks = pause(&mut pauses, &mut now, |tick| seen(1e3 * f64::from(2_u32.pow(tick)), 0.0, None));
        assert!(ticks <= 100 + TICKS_MAX + LOOK_TICKS, "not for ever: {ticks}");
    }

    #[test]
    fn a_full_link_without_a_queue_is_not_all_that_an_owner_wants() {
        let (mut pauses, mut now) = (Pauses::new(), Instant::ZERO);
        for (wait_ms, is_backlogged) in [(1, false), (30, true)] {
            let empty = Some(Duration::from_millis(5));
            pause(&mut pauses, &mut now, |_| Seen { empty, ..seen(9.5e6, 0.0, Some(wait_ms)) });
            assert_eq!(pauses.is_backlogged(), is_backlogged);
        }
    }
}
