//! The limits of what a relay lends: a rate and a volume.
//!
//! Packets for the destination leave through a link of their own at the given rate, with a short queue before it, so
//! the source discovers the rate as at any bottleneck. When most of the volume is spent, the relay offers nothing more,
//! so relay selection turns elsewhere in time. When all of it is spent, the relay forwards no more data, and spliced
//! subflows end.

use std::collections::VecDeque;

use units::{Duration, Instant, Rate};
use wire::{Flags, Segment};

use crate::channel::to_destination::Advert;

/// Limits of lending; by default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LendingLimits {
    /// Rate of IP packets for the destination.
    pub rate: Option<Rate>,
    /// Volume of IP packets for the destination and from it, octets.
    pub volume_bytes: Option<u64>,
}

/// Maximum waiting time of a packet; packets that would wait longer are dropped.
const WAIT_MAX: Duration = Duration::from_millis(200);
/// Octets for which the queue always has room.
const QUEUE_BYTES_MIN: u64 = 15_000;
/// Percent of the volume after which nothing is offered.
const OFFERED_PERCENT: u64 = 80;

/// Enforces the limits.
#[derive(Debug, Default)]
pub(super) struct Lending {
    limits: LendingLimits,
    lent_bytes: u64,
    /// Time at which the next packet may leave.
    free_at: Instant,
    waiting: VecDeque<Segment>,
    waiting_bytes: u64,
}

impl Lending {
    pub fn within(limits: LendingLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the rate of its limits.
    pub fn rate(&self) -> Option<Rate> {
        self.limits.rate
    }

    /// Returns whether the volume is spent.
    pub fn is_spent(&self) -> bool {
        self.limits.volume_bytes.is_some_and(|volume| self.lent_bytes >= volume)
    }

    /// Returns whether `segment` may not pass any more: it opens a connection, or carries data. Other segments are few
    /// octets, and let both ends close what is open.
    pub fn is_refused(&self, segment: &Segment) -> bool {
        self.is_spent() && (segment.flags.contains(Flags::SYN) || !segment.payload.is_empty())
    }

    /// Counts a segment that passes; [`Self::take`] counts the segments that it accepts.
    pub fn count(&mut self, segment: &Segment) {
        if self.limits.volume_bytes.is_some() {
            self.lent_bytes += segment.emitted_len() as u64;
        }
    }

    /// Queues a segment for the destination; returns it if its turn has come already. Drops it if the queue is full.
    #[inline]
    pub fn take(&mut self, segment: Segment, now: Instant) -> Option<Segment> {
        let Some(rate) = self.limits.rate else {
            self.count(&segment);
            return Some(segment);
        };
        let bytes = segment.emitted_len() as u64;
        if self.waiting.is_empty() && self.free_at <= now {
            self.count(&segment);
            self.free_at = now + rate.time_to_send(bytes);
            return Some(segment);
        }
        if self.waiting_bytes + bytes <= rate.bytes_in(WAIT_MAX).max(QUEUE_BYTES_MIN) {
            self.count(&segment);
            self.waiting_bytes += bytes;
            self.waiting.push_back(segment);
        }
        None
    }

    /// Returns the next segment whose turn has come.
    pub fn release(&mut self, now: Instant) -> Option<Segment> {
        let rate = self.limits.rate?;
        if self.free_at > now {
            return None;
        }
        let segment = self.waiting.pop_front()?;
        let bytes = segment.emitted_len() as u64;
        self.waiting_bytes -= bytes;
        self.free_at += rate.time_to_send(bytes);
        Some(segment)
    }

    /// Returns when [`Self::release`] has a segment.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.free_at)
    }

    /// Returns `advert` with no larger an offer than the relay may make.
    pub fn cap(&self, advert: Advert) -> Advert {
        let spare = advert.capacity.as_bps().saturating_sub(advert.local.as_bps());
        let most = if self.is_nearly_spent() { 0 } else { self.limits.rate.map_or(u64::MAX, Rate::as_bps) };
        if spare <= most {
            return advert;
        }
        Advert { capacity: Rate::from_bps(advert.local.as_bps() + most), ..advert }
    }

    fn is_nearly_spent(&self) -> bool {
        let spent = |volume: u64| u128::from(self.lent_bytes) * 100 >= u128::from(volume) * u128::from(OFFERED_PERCENT);
        self.limits.volume_bytes.is_some_and(spent)
    }
}

#[cfg(test)]
mod tests {
    use units::SeqNr;
    use wire::Payload;

    use super::*;
    use crate::relay_selection::energy::EnergyPrice;

    fn segment(number: u32, octets: usize) -> Segment {
        let mut segment = Segment::new(([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into());
        segment.seq = SeqNr(number);
        segment.flags = Flags::ACK;
        segment.payload = Payload::Bytes(vec![0; octets].into());
        segment
    }

    /// Each packet has 40 octets of headers.
    fn lending(rate_bps: Option<u64>, volume_bytes: Option<u64>) -> Lending {
        Lending::within(LendingLimits { rate: rate_bps.map(Rate::from_bps), volume_bytes })
    }

    fn advert(capacity_bps: u64, local_bps: u64) -> Advert {
        let (capacity, local) = (Rate::from_bps(capacity_bps), Rate::from_bps(local_bps));
        Advert { at: Instant::ZERO, capacity, local, energy: EnergyPrice::default() }
    }

    #[test]
    fn data_leave_at_the_rate_in_order_and_the_queue_is_short() {
        let mut lending = lending(Some(800_000), None);
        assert!(lending.take(segment(0, 960), Instant::ZERO).is_some(), "1000 octets, 10 ms");
        for number in 1..100 {
            assert!(lending.take(segment(number, 960), Instant::ZERO).is_none());
        }
        assert_eq!(lending.poll_timeout(), Some(Instant::from_millis(10)));
        assert!(lending.release(Instant::from_millis(9)).is_none());
        let mut left = Vec::new();
        for at_ms in (10..=1000).step_by(10) {
            left.extend(lending.release(Instant::from_millis(at_ms)).map(|segment| (at_ms, segment.seq.0)));
            assert!(lending.release(Instant::from_millis(at_ms)).is_none());
        }
        let wanted: Vec<_> = (1..=20).map(|number| (10 * u64::from(number), number)).collect();
        assert_eq!(left, wanted, "200 ms of it, in order");
    }

    #[test]
    fn nothing_is_offered_once_most_is_spent_and_no_data_pass_once_all_is() {
        let mut lending = lending(None, Some(10_000));
        let all = advert(5_000_000, 1_000_000);
        for number in 0..8 {
            assert_eq!(lending.cap(all), all);
            lending.count(&segment(number, 960));
        }
        assert_eq!(lending.cap(all), advert(1_000_000, 1_000_000));
        assert!(!lending.is_refused(&segment(8, 960)));
        (8..10).for_each(|number| lending.count(&segment(number, 960)));
        assert!(lending.is_spent() && lending.is_refused(&segment(10, 960)) && !lending.is_refused(&segment(10, 0)));
    }

    #[test]
    fn what_is_dropped_is_not_lent() {
        let mut lending = lending(Some(800_000), Some(1_000_000));
        for number in 0..100 {
            lending.take(segment(number, 960), Instant::ZERO);
        }
        assert_eq!(lending.lent_bytes, 21_000, "one at once, and 200 ms that wait");
    }

    #[test]
    fn no_more_is_offered_than_the_rate() {
        let limited = lending(Some(2_000_000), None);
        assert_eq!(limited.cap(advert(5_000_000, 1_000_000)), advert(3_000_000, 1_000_000));
        assert_eq!(limited.cap(advert(2_500_000, 1_000_000)), advert(2_500_000, 1_000_000));
        assert_eq!(lending(None, None).cap(advert(5, 9)), advert(5, 9));
    }
}
