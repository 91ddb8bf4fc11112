//! Uplinks that were late, by their addresses here. Pure.
//!
//! Late for one connection, late for all: such an uplink is a backup for 15 s, and if it is late again 30 s, ... 480 s. Once it has carried for four
//! times as long without being late, one of these is forgiven: the rate of a radio link changes, and what is late now need not be bad.

use std::collections::BTreeMap;
use std::net::IpAddr;

use units::{Duration, Instant};

/// For how long an uplink that was late is a backup, at first and at most.
const HELD_BACK_MIN: Duration = Duration::from_secs(15);
const DOUBLINGS_MAX: u32 = 5;
/// One that was let go before its time and is late again within so long: what is late may be from before, or it has not got all of its rate back yet. It
/// is a backup for this long only, once. Both are chosen: a relay's estimate takes some seconds to follow its owner.
const AT_ONCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(3);
/// One time of being late is forgiven who carries for so many times as long as it was held back.
const FORGIVEN_AFTER: u64 = 4;

/// Uplinks that were late.
#[derive(Debug, Default)]
pub struct HeldBack(BTreeMap<IpAddr, Late>);

#[derive(Clone, Copy, Debug)]
struct Late {
    until: Instant,
    times: u32,
    /// It is a backup now.
    holds: bool,
    /// How long it has carried since it was late, or since a time was forgiven.
    carried: Duration,
    /// When it was let go before its time, if it was not late since.
    released_at: Option<Instant>,
}

/// For how long an uplink is held back that was late for the nth time, counted from 0.
fn term(times: u32) -> Duration {
    HELD_BACK_MIN.saturating_mul(1 << times.min(DOUBLINGS_MAX))
}

impl HeldBack {
    /// Whether it is a backup now because it was late.
    pub fn holds(&self, ip: IpAddr) -> bool {
        self.0.get(&ip).is_some_and(|late| late.holds)
    }

    /// It was late. Of one that is held back already that is no news.
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

    /// It has carried for so long, and was not late.
    pub fn carried(&mut self, ip: IpAddr, span: Duration) {
        let Some(late) = self.0.get_mut(&ip).filter(|late| !late.holds && late.times > 0) else { return };
        late.carried += span;
        let forgiven = late.times.min(DOUBLINGS_MAX + 1) - 1;
        if late.carried >= term(forgiven).saturating_mul(FORGIVEN_AFTER) {
            (late.times, late.carried) = (forgiven, Duration::ZERO);
        }
    }

    /// Those that get another chance.
    pub fn due(&mut self, now: Instant) -> Vec<IpAddr> {
        let due = self.0.iter_mut().filter(|(_, late)| late.holds && late.until <= now);
        due.map(|(ip, late)| {
            late.holds = false;
            *ip
        })
        .collect()
    }

    /// It gets another chance before its time; false: it has it already.
    pub fn release(&mut self, ip: IpAddr, now: Instant) -> bool {
        let Some(late) = self.0.get_mut(&ip).filter(|late| late.holds) else { return false };
        (late.holds, late.released_at) = (false, Some(now));
        true
    }

    /// It is a new one, or somebody has said how it is to be used.
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
        // Once, and at once: what is late then is late by itself, for the second time.
        held_back.note(ip, at(10));
        assert!(held_back.due(at(39)).is_empty() && held_back.due(at(40)) == [ip]);
        held_back.note(ip, at(50));
        held_back.release(ip, at(60));
        held_back.note(ip, at(71));
        assert!(held_back.due(at(190)).is_empty() && held_back.due(at(191)) == [ip]);
    }
}
