//! A limit on the rate of one direction: what is too fast waits a moment, and what has to wait too long is lost, as in any queue of a
//! network. Sans-IO.

use std::collections::VecDeque;

use units::{Duration, Instant, Rate};

/// Longest wait, by the limit's rate; and packets that may wait in any case, so that a slow limit lets a window of TCP through.
const WAIT_MAX: Duration = Duration::from_millis(60);
const PACKETS_MIN: usize = 16;
/// The same while it is slower for a moment: what is under way then should not be lost.
const SLOWED_WAIT_MAX: Duration = Duration::from_secs(1);
/// A shaper that nothing went through may be so far behind its rate: without it, every late wake-up would cost throughput.
const CREDIT_MAX: Duration = Duration::from_millis(4);
/// The same while packets wait: being late is then the fault of whoever looks, and packets that should have gone go at once.
const LATE_MAX: Duration = Duration::from_millis(50);

/// A limit with the packets that wait for it.
#[derive(Debug)]
pub struct Shaper<T> {
    rate: Option<Rate>,
    /// For a moment it is slower, and what comes meanwhile waits.
    slowed: Option<Rate>,
    waiting: VecDeque<(T, usize)>,
    waiting_bytes: usize,
    /// When the next packet may go.
    free_at: Instant,
    /// Whether it has had something to send ever since the last packet went.
    is_backlogged: bool,
}

impl<T> Shaper<T> {
    /// A shaper for `rate`, or one without a limit.
    pub const fn new(rate: Option<Rate>) -> Self {
        Self {
            rate,
            slowed: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free_at: Instant::ZERO,
            is_backlogged: false,
        }
    }

    /// Another limit from now on; what waits stays.
    pub const fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// For a moment hardly anything is to pass: no faster than `rate`. None: it goes on as before.
    pub fn slow_down(&mut self, rate: Option<Rate>) {
        if rate.is_none() && self.slowed.is_some() {
            (self.free_at, self.is_backlogged) = (Instant::ZERO, false);
        }
        self.slowed = rate;
    }

    /// Whether something waits.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a packet of `bytes` octets; false: it is lost.
    pub fn enter(&mut self, packet: T, bytes: usize) -> bool {
        let wait_max = if self.slowed.is_some() { SLOWED_WAIT_MAX } else { WAIT_MAX };
        let room = self.rate.map_or(usize::MAX, |rate| rate.bytes_in(wait_max) as usize);
        if self.waiting.len() >= PACKETS_MIN && self.waiting_bytes + bytes > room {
            return false;
        }
        self.waiting_bytes += bytes;
        self.waiting.push_back((packet, bytes));
        true
    }

    /// The next packet that may go by now.
    pub fn leave(&mut self, now: Instant) -> Option<T> {
        let rate = self.slowed.or(self.rate);
        if rate.is_some() && now < self.free_at {
            return None;
        }
        let (packet, bytes) = self.waiting.pop_front()?;
        self.waiting_bytes -= bytes;
        if let Some(rate) = rate {
            let behind_max = if self.is_backlogged { LATE_MAX } else { CREDIT_MAX };
            self.free_at = self.free_at.max(now.saturating_sub(behind_max)) + rate.time_to_send(bytes as u64);
        }
        self.is_backlogged = !self.waiting.is_empty();
        Some(packet)
    }

    /// When [`Self::leave`] gives the next packet.
    pub fn next_at(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1250;

    /// Lets packets go until `end`, looking every `step`; how many went, and how many were lost.
    fn run(shaper: &mut Shaper<u32>, end: Instant, step: Duration, per_step: u32) -> (u64, u64) {
        let (mut now, mut gone, mut lost) = (Instant::ZERO, 0, 0);
        while now < end {
            for number in 0..per_step {
                lost += u64::from(!shaper.enter(number, BYTES));
            }
            while shaper.leave(now).is_some() {
                gone += 1;
            }
            now += step;
        }
        (gone, lost)
    }

    #[test]
    fn what_goes_through_is_the_rate_however_late_one_looks() {
        for step in [1, 3, 10, 40] {
            let mut shaper = Shaper::new(Some(Rate::from_bps(10_000_000)));
            let (gone, lost) = run(&mut shaper, Instant::from_millis(10_000), Duration::from_millis(step), 200);
            // 1000 packets of 10,000 bits a second.
            assert!((9_900..=10_050).contains(&gone), "every {step} ms: {gone}");
            assert!(lost > 0);
        }
    }

    #[test]
    fn without_a_limit_everything_goes_at_once() {
        let mut shaper = Shaper::new(None);
        assert!((0..10_000).all(|number| shaper.enter(number, BYTES)));
        assert_eq!(shaper.next_at(), Some(Instant::ZERO));
        assert_eq!((0..10_000).map_while(|_| shaper.leave(Instant::ZERO)).count(), 10_000);
        assert_eq!(shaper.next_at(), None);
    }

    #[test]
    fn what_comes_while_it_is_slower_waits_and_goes_afterwards() {
        let mut shaper = Shaper::new(Some(Rate::from_mbps(10)));
        shaper.slow_down(Some(Rate::from_bps(50_000)));
        // Half a second of its rate.
        assert!((0..500).all(|number| shaper.enter(number, BYTES)));
        let slow = (0..10).filter(|tenth| shaper.leave(Instant::from_millis(tenth * 100)).is_some()).count();
        assert_eq!(slow, 5, "every 200 ms");
        shaper.slow_down(None);
        let mut now = Instant::from_millis(1000);
        while shaper.is_waiting() {
            while shaper.leave(now).is_some() {}
            now += Duration::from_millis(1);
        }
        assert!((1485..=1500).contains(&(now.as_nanos() / 1_000_000)), "at its rate again: {now:?}");
    }

    #[test]
    fn a_slow_shaper_lets_a_window_wait() {
        let mut shaper = Shaper::new(Some(Rate::from_bps(64_000)));
        assert_eq!((0..20).filter(|number| shaper.enter(*number, BYTES)).count(), 16);
        let first = shaper.leave(Instant::from_millis(1000));
        assert_eq!((first, shaper.leave(Instant::from_millis(1000))), (Some(0), None));
        let next = shaper.next_at().unwrap();
        assert!(next > Instant::from_millis(1150) && next < Instant::from_millis(1160), "{next:?}");
        assert_eq!(shaper.leave(next), Some(1));
    }
}
