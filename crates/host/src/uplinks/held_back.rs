//! Uplinks that were late, by their local addresses. Pure.
//!
//! An uplink that is late for one connection counts as late for all. It is a backup for 15 s, and after further times
//! for 30 s, ... 480 s. If it has then carried for four times as long without being late, one time is forgiven: the
//! rate of a radio link changes, and an uplink that was late need not stay bad.

use std::collections::BTreeMap;
use std::net::IpAddr;

use units::{Duration, Instant};

/// Time for which a late uplink is a backup: initial, and number of doublings.
const HELD_BACK_MIN: Duration = Duration::from_secs(15);
const DOUBLINGS_MAX: u32 = 5;
/// An uplink that was released early and is late again within the first span may still show the old lateness, or may
/// not have regained its whole rate. It is a backup for the second span only, once. Both are chosen: a relay's estimate
/// takes some seconds to follow its owner.
const AT_ONCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(3);
/// An uplink that carries for this many times as long as it was held back is forgiven one time.
const FORGIVEN_AFTER: u64 = 4;

/// Uplinks that were late.
#[derive(Debug, Default)]
pub struct HeldBack(BTreeMap<IpAddr, Late>);

#[derive(Clone, Copy, Debug)]
struct Late {
    until: Instant,
    times: u32,
    /// Whether it is a backup now.
    holds: bool,
    /// How long it has carried since it was late or was forgiven a time.
    carried: Duration,
    /// When it was released early, if it was not late since.
    released_at: Option<Instant>,
}

/// Returns how long an uplink is held back that was late for the nth time, counted from 0.
fn term(times: u32) -> Duration {
    HELD_BACK_MIN.saturating_mul(1 << times.min(DOUBLINGS_MAX))
}

impl HeldBack {
    /// Returns whether it is a backup now because it was late.
    pub fn holds(&self, ip: IpAddr) -> bool {
        self.0.get(&ip).is_some_and(|late| late.holds)
    }

    /// As [`Self::holds`], for people to read. An uplink whose time is over is none, though [`Self::due`] may be called
    /// much later: while nothing moves, nobody needs it.
    pub fn is_held(&self, ip: IpAddr, now: Instant) -> bool {
        self.0.get(&ip).is_some_and(|late| late.holds && now < late.until)
    }

    /// Notes that it was late. If it is held back already, nothing changes.
    pub fn note(&mut self, ip: IpAddr, now: Instant) {
        let new = Late { until: now, times: 0, holds: false, carried: Duration::ZERO, released_at: None };
        let late = self.0.entry(ip).or_insert(new);
        if late.holds {
            return;
        }
        (late.holds, late.carried) = (true, Duration::ZERO);
        if late.released_at.take().is_some_and(|at| now.saturating_since(at) <= AT_ONCE) {
            late.until = now + AGAIN;
            return;
        }
        late.until = now + term(late.times);
        late.times += 1;
    }

    /// Notes that it has carried for `span` without being late.
    pub fn carried(&mut self, ip: IpAddr, span: Duration) {
        let Some(late) = self.0.get_mut(&ip).filter(|late| !late.holds && late.times > 0) else { return };
        late.carried += span;
        let forgiven = late.times.min(DOUBLINGS_MAX + 1) - 1;
        if late.carried >= term(forgiven).saturating_mul(FORGIVEN_AFTER) {
            (late.times, late.carried) = (forgiven, Duration::ZERO);
        }
    }

    /// Releases the uplinks whose time is over. Returns their addresses.
    pub fn due(&mut self, now: Instant) -> Vec<IpAddr> {
        let due = self.0.iter_mut().filter(|(_, late)| late.holds && late.until <= now);
        due.map(|(ip, late)| {
            late.holds = false;
            *ip
        })
        .collect()
    }

    /// Releases an uplink early. Returns false if it is not held back.
    pub fn release(&mut self, ip: IpAddr, now: Instant) -> bool {
        let Some(late) = self.0.get_mut(&ip).filter(|late| late.holds) else { return false };
        (late.holds, late.released_at) = (false, Some(now));
        true
    }

    /// Forgets an uplink: it is a new one, or the user has set its tier.
    pub fn forget(&mut self, ip: IpAddr) {
        self.0.remove(&ip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_late_again_waits_longer() {
        let (mut held_back, ip) = (HeldBack::default(), IpAddr::from([10, 0, 0, 1]));
        let mut now = Instant::ZERO;
        let mut waits_secs = Vec::new();
        for _ in 0..7 {
            held_back.note(ip, now);
            held_back.note(ip, now);
            let since = now;
            while held_back.holds(ip) {
                now += Duration::from_secs(1);
                held_back.due(now);
            }
            waits_secs.push(now.saturating_since(since).as_millis() / 1000);
        }
        assert_eq!(waits_secs, [15, 30, 60, 120, 240, 480, 480]);
    }

    #[test]
    fn who_carries_long_is_forgiven() {
        let (mut held_back, ip) = (HeldBack::default(), IpAddr::from([10, 0, 0, 1]));
        let mut now = Instant::ZERO;
        let mut wait_secs = |held_back: &mut HeldBack| {
            held_back.note(ip, now);
            let since = now;
            while held_back.holds(ip) {
                now += Duration::from_secs(1);
                held_back.due(now);
            }
            now.saturating_since(since).as_millis() / 1000
        };
        assert_eq!([wait_secs(&mut held_back), wait_secs(&mut held_back)], [15, 30]);
        held_back.carried(ip, Duration::from_secs(119));
        assert_eq!(wait_secs(&mut held_back), 60, "not long enough");
        for _ in 0..240 {
            held_back.carried(ip, Duration::from_secs(1));
        }
        assert_eq!(wait_secs(&mut held_back), 60);
        for _ in 0..1000 {
            held_back.carried(ip, Duration::from_secs(10));
        }
        assert_eq!(wait_secs(&mut held_back), 15);
    }

    #[test]
    fn who_is_released_is_released_once() {
        let (mut held_back, ip, now) = (HeldBack::default(), IpAddr::from([10, 0, 0, 1]), Instant::ZERO);
        assert!(!held_back.release(ip, now));
        held_back.note(ip, now);
        assert!(held_back.release(ip, now) && !held_back.release(ip, now) && !held_back.holds(ip));
        assert!(held_back.due(Instant::from_secs(100)).is_empty());
    }

    #[test]
    fn who_was_released_and_is_late_at_once_is_let_go_soon() {
        let (mut held_back, ip, at) = (HeldBack::default(), IpAddr::from([10, 0, 0, 1]), Instant::from_secs);
        held_back.note(ip, at(0));
        held_back.release(ip, at(5));
        held_back.note(ip, at(6));
        assert!(held_back.holds(ip) && held_back.due(at(8)).is_empty());
        assert_eq!(held_back.due(at(9)), [ip]);
        // Once only: the next lateness is new, and counts as the second time.
        held_back.note(ip, at(10));
        assert!(held_back.due(at(39)).is_empty() && held_back.due(at(40)) == [ip]);
        held_back.note(ip, at(50));
        held_back.release(ip, at(60));
        held_back.note(ip, at(71));
        assert!(held_back.due(at(190)).is_empty() && held_back.due(at(191)) == [ip]);
    }
}
