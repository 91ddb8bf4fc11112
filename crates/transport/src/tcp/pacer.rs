//! Pacing: segments leave no faster than the congestion controller allows, instead of as fast as ACKs arrive.

use units::narrow::u32_from;
use units::{Duration, Instant};

use crate::congestion::send_quantum;

const NANOS_PER_S: u64 = 1_000_000_000;

/// Maximum lateness of the driver that is made up. Without this, every late call would lower the rate.
const LATENESS_MAX: Duration = Duration::from_millis(1);
/// The same for super-segments: from 24 Mbit/s on they take a millisecond each, and a busy machine is later than that.
const SUPER_LATENESS_MAX: Duration = Duration::from_millis(2);

/// Computes when the next segment may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Octets of payload per second; zero if pacing is off.
    rate_bytes_per_s: u64,
    next_at: Instant,
}

impl Pacer {
    /// Sets the rate, or turns pacing off.
    pub(crate) fn set_rate(&mut self, rate_bytes_per_s: Option<u64>) {
        self.rate_bytes_per_s = rate_bytes_per_s.map_or(0, |rate| rate.max(1));
    }

    /// Returns the rate, if pacing is on.
    pub(crate) fn rate_bytes_per_s(&self) -> Option<u64> {
        self.is_on().then_some(self.rate_bytes_per_s)
    }

    /// Whether pacing is on.
    pub(crate) fn is_on(&self) -> bool {
        self.rate_bytes_per_s > 0
    }

    /// Returns the octets of payload that may leave at once, in whole packets of `mss` octets, if pacing is on.
    pub(crate) fn quantum(&self, mss: u32) -> Option<u32> {
        let bytes = u32_from(send_quantum(self.rate_bytes_per_s()?, mss));
        Some((bytes - bytes % mss).max(mss))
    }

    /// Returns when the next segment may leave, if not now.
    pub(crate) fn wait_until(&self, now: Instant) -> Option<Instant> {
        Some(self.next_at).filter(|at| self.rate_bytes_per_s > 0 && *at > now)
    }

    /// Records a departure; more than `mss` octets are a super-segment. The next segment waits for `longest` at most,
    /// whatever the rate.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u32, mss: u32, longest: Duration, now: Instant) {
        if self.rate_bytes_per_s == 0 {
            return;
        }
        let takes = Duration::from_nanos(u64::from(bytes) * NANOS_PER_S / self.rate_bytes_per_s);
        let lateness_max = if bytes > mss { SUPER_LATENESS_MAX } else { LATENESS_MAX };
        let late_by = now.saturating_since(self.next_at);
        let since = if late_by <= lateness_max { self.next_at } else { now };
        let next_at = since.max(self.next_at) + takes;
        self.next_at = next_at.min(now + longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_at(pacer: &mut Pacer, at_us: u64) -> Option<u64> {
        let now = Instant::from_nanos(at_us * 1000);
        pacer.on_sent(1000, 1000, Duration::from_secs(60), now);
        pacer.wait_until(now).map(|at| at.as_nanos() / 1000)
    }

    #[test]
    fn no_rate_is_too_slow_to_go_on() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(0));
        assert_eq!(sent_at(&mut pacer, 100_000), Some(60_100_000));
        assert_eq!(sent_at(&mut pacer, 100_000), Some(60_100_000), "what left unpaced is not added up");
    }

    #[test]
    fn what_leaves_at_once_is_whole_packets() {
        let at = |rate_bytes_per_s| {
            let mut pacer = Pacer::default();
            pacer.set_rate(rate_bytes_per_s);
            [1000, 9000].map(|mss| pacer.quantum(mss))
        };
        assert_eq!(at(None), [None, None]);
        assert_eq!(at(Some(100_000)), [Some(1000), Some(9000)]);
        assert_eq!(at(Some(1_000_000)), [Some(2000), Some(18_000)]);
        assert_eq!(at(Some(5_500_000)), [Some(5000), Some(9000)], "1 ms, and a packet at least");
    }

    #[test]
    fn segments_leave_at_the_rate() {
        let mut pacer = Pacer::default();
        assert_eq!(sent_at(&mut pacer, 50_000), None, "nobody asked for pacing");
        pacer.set_rate(Some(100_000));
        // 1000 octets at 100 kB/s take 10 ms.
        assert_eq!(sent_at(&mut pacer, 100_000), Some(110_000));
        assert_eq!(sent_at(&mut pacer, 110_000), Some(120_000));
        pacer.set_rate(None);
        assert_eq!(pacer.wait_until(Instant::ZERO), None);
    }

    #[test]
    fn a_little_lateness_is_caught_up_and_idling_is_not() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(100_000));
        sent_at(&mut pacer, 100_000);
        assert_eq!(sent_at(&mut pacer, 110_800), Some(120_000));
        assert_eq!(sent_at(&mut pacer, 500_000), Some(510_000));
    }

    #[test]
    fn a_driver_that_is_always_late_has_super_segments_at_the_rate() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(12_500_000));
        let (mut now, mut sent) = (Instant::from_nanos(NANOS_PER_S), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            pacer.on_sent(12_000, 1000, Duration::from_secs(60), now);
            sent += 12_000;
            now = pacer.wait_until(now).map_or(now, |at| at + Duration::from_micros(1500));
        }
        assert!((12_000_000..12_550_000).contains(&sent), "{sent}");
    }

    #[test]
    fn super_segments_do_not_make_up_a_pause() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Some(100_000));
        let at = |pacer: &mut Pacer, at_ms: u64| {
            let now = Instant::from_nanos(at_ms * 1_000_000);
            pacer.on_sent(2000, 1000, Duration::from_secs(60), now);
            pacer.wait_until(now).map(|at| at.as_nanos() / 1_000_000)
        };
        assert_eq!([at(&mut pacer, 100), at(&mut pacer, 122), at(&mut pacer, 170)], [Some(120), Some(140), Some(190)]);
    }
}
