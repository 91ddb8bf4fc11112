//! The rate of joins to addresses that the peer announced.
//!
//! A peer may announce whatever addresses it likes, withdraw them and announce others (RFC 8684 section 3.4). Each makes
//! a path manager send a SYN from every local address. Without a limit, a peer could make this host scan a network, or
//! flood a third party: one ADD_ADDR and one REMOVE_ADDR for each SYN.

use units::{Duration, Instant};

/// Interval at which another join becomes possible.
const INTERVAL: Duration = Duration::from_secs(1);

/// A token bucket, full at first. What a withdrawal ends is not given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinBudget {
    /// When the bucket will be full again.
    full_at: Instant,
}

impl Default for JoinBudget {
    fn default() -> Self {
        Self { full_at: Instant::ZERO }
    }
}

impl JoinBudget {
    /// Returns how many joins are possible now if a full bucket allows `max`.
    pub(super) fn left(&self, max: usize, now: Instant) -> usize {
        let missing = self.full_at.saturating_since(now).as_nanos().div_ceil(INTERVAL.as_nanos());
        max.saturating_sub(usize::try_from(missing).unwrap_or(usize::MAX))
    }

    /// Counts a join.
    pub(super) fn take(&mut self, now: Instant) {
        self.full_at = self.full_at.max(now) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many joins are possible one after the other.
    fn take_all(budget: &mut JoinBudget, max: usize, now: Instant) -> usize {
        let mut taken = 0;
        while budget.left(max, now) > 0 {
            budget.take(now);
            taken += 1;
        }
        taken
    }

    #[test]
    fn several_at_once_and_then_one_a_second() {
        let (mut budget, start) = (JoinBudget::default(), Instant::from_secs(100));
        assert_eq!(take_all(&mut budget, 8, start), 8);
        assert_eq!(take_all(&mut budget, 8, start + Duration::from_millis(999)), 0);
        let later: usize = (1..=30).map(|s| take_all(&mut budget, 8, start + Duration::from_secs(s))).sum();
        assert_eq!(later, 30);
        assert_eq!(take_all(&mut budget, 8, start + Duration::from_secs(34)), 4);
        assert_eq!(take_all(&mut budget, 8, start + Duration::from_secs(1000)), 8);
    }
}
