//! Limits the rate of one direction. Packets above the rate wait; if too many wait, packets are lost, as in any network
//! queue. Sans-IO.

use std::collections::VecDeque;

use units::{Duration, Instant, Rate};

/// Maximum wait at the limit's rate. A slow limit has room for a TCP window, unless that takes too long, and for a few
/// packets in any case.
const WAIT_MAX: Duration = Duration::from_millis(60);
const WINDOW_BYTES: u64 = 16 * 1500;
const WINDOW_WAIT_MAX: Duration = Duration::from_secs(1);
const PACKETS_MIN: usize = 4;
/// The same during a slow-down, in which packets should not be lost. Its end drops what exceeds the usual room: if that
/// keeps its place until it has gone, less is lent after the owner's end (0.43 instead of 0.65 of the near and steady cell
/// in `table_of_the_owners_end`).
const SLOWED_WAIT_MAX: Duration = Duration::from_secs(1);
/// Maximum credit of an idle shaper. Without it, every late wake-up would cost throughput.
const CREDIT_MAX: Duration = Duration::from_millis(4);
/// The same while packets wait: then the caller is late, and overdue packets go at once.
const LATE_MAX: Duration = Duration::from_millis(50);

/// A limit and the packets that wait for it.
#[derive(Debug)]
pub struct Shaper<T> {
    rate: Option<Rate>,
    /// Lower rate for a moment; arrivals wait meanwhile.
    slowed: Option<Rate>,
    waiting: VecDeque<(T, usize)>,
    waiting_bytes: usize,
    /// When the next packet may go.
    free_at: Instant,
    /// Whether packets have waited ever since the last one went.
    is_backlogged: bool,
}

impl<T> Shaper<T> {
    /// Creates a shaper for `rate`; without a rate it has no limit.
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

    /// Changes the limit; waiting packets stay.
    pub const fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate;
    }

    /// Slows down to `rate` for a moment; `None` ends that.
    pub fn slow_down(&mut self, rate: Option<Rate>) {
        if rate.is_none() && self.slowed.is_some() {
            (self.free_at, self.is_backlogged) = (Instant::ZERO, false);
        }
        self.slowed = rate;
    }

    /// Discards the waiting packets that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.waiting.retain(|(packet, _)| keep(packet));
        self.waiting_bytes = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        self.is_backlogged &= !self.waiting.is_empty();
    }

    /// Returns whether packets wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a packet of `bytes` octets. Afterwards [`Self::lost`] returns the packets that exceed the room.
    pub fn enter(&mut self, packet: T, bytes: usize) {
        self.waiting_bytes += bytes;
        self.waiting.push_back((packet, bytes));
    }

    /// Returns the next lost packet while more packets wait than there is room for: the last but one. The latest packet
    /// stays, so it is there when a limit ends, and its acknowledgement tells the sender about all losses; otherwise
    /// the sender would wait for a time-out. The oldest packets stay too: if they were lost, a BBR sender that probes
    /// for the round-trip time would stall until its time-out.
    pub fn lost(&mut self) -> Option<T> {
        if self.waiting.len() <= PACKETS_MIN || self.waiting_bytes <= self.room_bytes() {
            return None;
        }
        let (packet, bytes) = self.waiting.remove(self.waiting.len() - 2)?;
        self.waiting_bytes -= bytes;
        Some(packet)
    }

    fn room_bytes(&self) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        if self.slowed.is_some() {
            return rate.bytes_in(SLOWED_WAIT_MAX) as usize;
        }
        let window = WINDOW_BYTES.min(rate.bytes_in(WINDOW_WAIT_MAX));
        rate.bytes_in(WAIT_MAX).max(window) as usize
    }

    /// Returns the next packet that may go by now.
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

    /// Returns when [`Self::leave`] returns the next packet.
    pub fn next_at(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1250;

    /// Runs until `end`, with `per_step` arrivals every `step`. Returns how many packets went and how many were lost.
    fn run(shaper: &mut Shaper<u32>, end: Instant, step: Duration, per_step: u32) -> (u64, u64) {
        let (mut now, mut gone, mut lost) = (Instant::ZERO, 0, 0);
        while now < end {
            for number in 0..per_step {
                shaper.enter(number, BYTES);
                lost += core::iter::from_fn(|| shaper.lost()).count() as u64;
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
            // 1000 packets of 10,000 bits per second.
            assert!((9_900..=10_050).contains(&gone), "every {step} ms: {gone}");
            assert!(lost > 0);
        }
    }

    #[test]
    fn without_a_limit_everything_goes_at_once() {
        let mut shaper = Shaper::new(None);
        (0..10_000).for_each(|number| shaper.enter(number, BYTES));
        assert_eq!(shaper.lost(), None);
        assert_eq!(shaper.next_at(), Some(Instant::ZERO));
        assert_eq!((0..10_000).map_while(|_| shaper.leave(Instant::ZERO)).count(), 10_000);
        assert_eq!(shaper.next_at(), None);
    }

    #[test]
    fn what_comes_while_it_is_slower_waits_and_goes_afterwards() {
        let mut shaper = Shaper::new(Some(Rate::from_mbps(10)));
        shaper.slow_down(Some(Rate::from_bps(50_000)));
        // Half a second at the limit's rate.
        (0..500).for_each(|number| shaper.enter(number, BYTES));
        assert_eq!(shaper.lost(), None);
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

    /// Returns how many of `count` simultaneous packets have room.
    fn have_room(rate: Rate, count: u32) -> usize {
        let mut shaper = Shaper::new(Some(rate));
        (0..count).for_each(|number| shaper.enter(number, BYTES));
        count as usize - core::iter::from_fn(|| shaper.lost()).count()
    }

    #[test]
    fn a_slow_limit_has_room_for_a_window_or_a_second() {
        assert_eq!(have_room(Rate::from_mbps(100), 1000), 600, "60 ms");
        assert_eq!(have_room(Rate::from_mbps(1), 1000), 19, "16 packets of 1500 octets");
        assert_eq!(have_room(Rate::from_bps(64_000), 1000), 6);
        assert_eq!(have_room(Rate::from_bps(8000), 1000), 4, "a few in any case");
    }

    #[test]
    fn a_limit_that_falls_has_no_room_for_what_waits_but_the_latest_goes_on() {
        let mut shaper = Shaper::new(Some(Rate::from_mbps(10)));
        shaper.slow_down(Some(Rate::from_bps(50_000)));
        (0..500).for_each(|number| shaper.enter(number, BYTES));
        assert_eq!(shaper.leave(Instant::from_millis(1000)), Some(0));
        shaper.slow_down(None);
        shaper.set_rate(Some(Rate::from_bps(50_000)));
        let lost: Vec<_> = core::iter::from_fn(|| shaper.lost()).collect();
        assert!(lost == (5..499).rev().collect::<Vec<_>>(), "{lost:?}");
        shaper.set_rate(None);
        assert_eq!(
            core::iter::from_fn(|| shaper.leave(Instant::from_millis(1000))).collect::<Vec<_>>(),
            [1, 2, 3, 4, 499]
        );
    }

    #[test]
    fn what_is_not_kept_leaves_its_room_to_others() {
        let mut shaper = Shaper::new(Some(Rate::from_mbps(100)));
        (0..600).for_each(|number| shaper.enter(number, BYTES));
        shaper.retain(|number| number % 2 == 1);
        (600..900).for_each(|number| shaper.enter(number, BYTES));
        assert_eq!(shaper.lost(), None);
        assert_eq!([1, 2].map(|second| shaper.leave(Instant::from_secs(second))), [Some(1), Some(3)]);
    }

    #[test]
    fn a_slow_limit_is_kept() {
        let mut shaper = Shaper::new(Some(Rate::from_bps(64_000)));
        (0..3).for_each(|number| shaper.enter(number, BYTES));
        let first = shaper.leave(Instant::from_millis(1000));
        assert_eq!((first, shaper.leave(Instant::from_millis(1000))), (Some(0), None));
        let next = shaper.next_at().unwrap();
        assert!(next > Instant::from_millis(1150) && next < Instant::from_millis(1160), "{next:?}");
        assert_eq!(shaper.leave(next), Some(1));
    }
}
