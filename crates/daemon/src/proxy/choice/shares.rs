//! How connections are shared out: by what uplinks can bring, and by what those that are there have still to get.
//!
//! ```text
//! ends     base RTT + the longer of queue and awaited / rate + own octets / rate
//! awaited  over plain TCP: 1 MiB for each download, and 16 kB for each other connection that waits for an answer or is being opened, but for five
//! rate     the last that is known; else what is hoped for
//! hoped    downloads: what the best brings; small answers: the same or 32 Mbit/s, less by as much as the uplink is further away than the
//!          nearest, as TCP's rate falls with the round-trip time
//! never    an uplink that nobody has tried, beside one that somebody has: once four are there, and where others compete if it is far. Who stays
//!          there may be the last by far
//! ```

use units::{Duration, Instant};

use super::{State, Weight};

/// An uplink is slow that brings less than this part of what the fastest does. Small answers take as long over what comes in between.
const SLOW_PARTS: u64 = 4;
/// What an uplink may bring that nobody has filled for long, octets in a second: downloads find out. One that is further away than so many
/// times the best is not tried for it.
/// Chosen, as the octets below are: four times 8 Mbit/s, at which a megabyte takes a second.
const UNTRIED_BYTES: u64 = 4_000_000;
const UNTRIED_REACH: u64 = 3;
/// Where several compete, one within this is tried as well: mobile networks are, satellites and what stands in a long queue are not.
const COMPETING_REACH: Duration = Duration::from_millis(150);
/// What a connection brings at least, as far as anybody knows: the time for so many octets makes a slow uplink a far one.
const LIGHT_BYTES: u64 = 16 << 10;
const HEAVY_BYTES: u64 = 1 << 20;
/// Connections that wait for small answers and fill nothing: with one more a browser's six for a page.
const WAITING_FREE: u32 = 5;
/// Downloads that find out what an uplink brings. Chosen: half of eight that begin at once, and no more of a hundred.
const FINDING_OUT: u32 = 4;
/// Rounds until a download over plain TCP has its rate: six doublings from ten segments to [`HEAVY_BYTES`]. One alone may be far larger, and
/// has as many anywhere that it hardly matters; of many each has to be there.
const SLOW_START_ROUNDS: u64 = 6;
/// Rates of uplinks are compared as if none delivered less than this part of the best: who is not used delivers nothing.
const RATE_FLOOR_PARTS: u64 = 10;

/// Of the uplinks that are known.
pub(super) struct Shares {
    /// Of those whose capacity is known, octets in a second.
    fastest: u64,
    /// The most that any has brought.
    most: u64,
    /// The least base RTT.
    least: Duration,
    /// Whether somebody has found out what one of them brings.
    is_one_tried: bool,
    /// Whether a download that stays where it is goes on already.
    pub(super) competes: bool,
    pub(super) now: Instant,
}

impl Shares {
    pub(super) fn of(known: &[&State], now: Instant) -> Self {
        let fastest = known.iter().filter_map(|state| state.capacity_bytes(now)).max().unwrap_or(0);
        let most = known.iter().map(|state| state.rate_bytes).max().unwrap_or(0);
        let least = known.iter().filter_map(|state| state.base(now)).min().unwrap_or(Duration::ZERO);
        let competes = known.iter().any(|state| state.heavy > 0);
        let is_one_tried = known.iter().any(|state| !state.is_untried(now));
        Self { fastest, most, least, is_one_tried, competes, now }
    }

    /// How long it takes until what a connection is for is there, of which `plain` says what it will be if it stays where it starts.
    pub(super) fn ends(&self, state: &State, plain: Option<Weight>) -> Duration {
        let Some(base) = state.base(self.now) else { return Duration::MAX };
        let (queue, own) = (state.queue(self.now), self.slowness(state, plain));
        let Some(weight) = plain else { return base + queue + own };
        let Some(rate) = self.rate(state, weight) else { return Duration::MAX };
        let waiting = state.light.saturating_sub(WAITING_FREE);
        let awaited_bytes = u64::from(waiting) * LIGHT_BYTES + u64::from(state.heavy) * HEAVY_BYTES;
        // Part of it is in the queue already.
        let waits = queue.max(time_for(awaited_bytes, rate));
        match weight {
            Weight::Heavy if self.competes => {
                base.saturating_mul(SLOW_START_ROUNDS) + waits + time_for(HEAVY_BYTES, rate)
            }
            _ => base + waits + own,
        }
    }

    /// How long the octets of a download take that stays where it starts and is alone; for small answers, how much longer they take on an
    /// uplink that is slow.
    pub(super) fn slowness(&self, state: &State, plain: Option<Weight>) -> Duration {
        let capacity = state.capacity_bytes(self.now).map(|capacity| capacity.max(1));
        let (bytes, capacity) = match plain {
            Some(Weight::Heavy) => (HEAVY_BYTES, Some(capacity.unwrap_or_else(|| self.hoped(state)))),
            _ => (LIGHT_BYTES, capacity.filter(|capacity| capacity.saturating_mul(SLOW_PARTS) < self.most)),
        };
        capacity.filter(|capacity| *capacity > 0).map_or(Duration::ZERO, |capacity| time_for(bytes, capacity))
    }

    /// What one more connection may find there, octets in a second; nothing where it is not to try.
    fn rate(&self, state: &State, weight: Weight) -> Option<u64> {
        let base = state.base(self.now).unwrap_or(self.least).max(Duration::from_nanos(1));
        if !state.is_untried(self.now) {
            return Some(state.rate_bytes.max(1));
        }
        // One that was only outpaced may be near.
        let reach = self.least.saturating_mul(UNTRIED_REACH).max(COMPETING_REACH);
        let is_far = state.measured_base(self.now).is_some_and(|base| base > reach);
        // Small answers stay on the nearest one, whatever it brings.
        let has_enough = state.load() >= FINDING_OUT && (weight == Weight::Heavy || base > self.least);
        if self.is_one_tried && (has_enough || self.competes && is_far) {
            return None;
        }
        Some(match weight {
            Weight::Heavy => self.hoped(state).max(1),
            Weight::Light => scaled(self.most.max(UNTRIED_BYTES), self.least, base).max(state.rate_bytes).max(1),
        })
    }

    /// What a download may find on an uplink of which it is not known.
    fn hoped(&self, state: &State) -> u64 {
        let reach = self.least.saturating_mul(UNTRIED_REACH);
        let is_to_try = state.is_untried(self.now) && state.base(self.now).is_some_and(|base| base <= reach);
        if is_to_try && self.most.saturating_mul(SLOW_PARTS) < UNTRIED_BYTES { UNTRIED_BYTES } else { self.most }
    }

    /// One that nobody has tried counts as the best: it will show.
    pub(super) fn weight(&self, state: &State) -> u128 {
        let floor = self.fastest / RATE_FLOOR_PARTS;
        let bytes = state.capacity_bytes(self.now).map_or(self.fastest.max(state.rate_bytes), |bytes| bytes.max(floor));
        u128::from(bytes.max(1))
    }

    /// By `(connections + added) / weight`, as products.
    pub(super) fn compare(&self, a: &State, b: &State, added: u32) -> core::cmp::Ordering {
        let load = |one: &State, other: &State| u128::from(one.load() + added) * self.weight(other);
        load(a, b).cmp(&load(b, a))
    }
}

/// For so many octets at so many in a second, which are not none.
fn time_for(bytes: u64, rate: u64) -> Duration {
    Duration::from_secs(1).mul_div(bytes, rate)
}

/// `bytes * part / whole`.
fn scaled(bytes: u64, part: Duration, whole: Duration) -> u64 {
    let scaled = u128::from(bytes) * u128::from(part.as_nanos()) / u128::from(whole.as_nanos());
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
