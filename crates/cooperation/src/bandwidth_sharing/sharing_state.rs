//! The source's side: the relays' signals, smoothed, until they expire.

use std::collections::BTreeMap;

use transport::congestion::Competition;
use units::{Duration, Instant};

use super::{RATIO_MAX, Signal};
use crate::relay_selection::RelayId;

/// Weight of a new ratio in the moving average (the thesis names none).
const NEW_WEIGHT: f64 = 0.5;
/// Periods after which a signal expires.
pub const LIFETIME_PERIODS: u64 = 3;

/// The source's knowledge of the flows at its relays.
#[derive(Clone, Debug)]
pub struct SharingState {
    lifetime: Duration,
    relays: BTreeMap<RelayId, Told>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    competition: Competition,
    /// The relay's timestamp on the newest signal.
    at: Instant,
    expires_at: Instant,
}

impl SharingState {
    /// Creates the state for relays that signal every `period` (F).
    pub fn new(period: Duration) -> Self {
        Self { lifetime: period.saturating_mul(LIFETIME_PERIODS), relays: BTreeMap::new() }
    }

    /// Records a signal. Returns false if it is no newer than an earlier one or holds impossible numbers.
    pub fn on_signal(&mut self, now: Instant, signal: &Signal) -> bool {
        let is_number = |value: f64| value.is_finite() && value > 0.0;
        let before = self.relays.get(&signal.relay);
        let is_replay = before.is_some_and(|told| told.at >= signal.at);
        if is_replay || ![signal.ratio, signal.increase, signal.decrease].into_iter().all(is_number) {
            return false;
        }
        let ratio = signal.ratio.min(RATIO_MAX);
        let ratio = match before.filter(|told| told.expires_at > now) {
            Some(told) => NEW_WEIGHT * ratio + (1.0 - NEW_WEIGHT) * told.competition.ratio,
            None => ratio,
        };
        let competition = Competition { ratio, increase: signal.increase, decrease: signal.decrease };
        self.relays.insert(signal.relay, Told { competition, at: signal.at, expires_at: now + self.lifetime });
        true
    }

    /// Returns the competition that a subflow through `relay` faces; `None` if it is unknown or expired: the subflow
    /// then behaves as without competition.
    pub fn current(&self, relay: RelayId, now: Instant) -> Option<Competition> {
        self.relays.get(&relay).filter(|told| told.expires_at > now).map(|told| told.competition)
    }

    /// Returns when the next competition that [`Self::current`] returns at `now` expires.
    pub fn next_expiry(&self, now: Instant) -> Option<Instant> {
        self.relays.values().map(|told| told.expires_at).filter(|expires_at| *expires_at > now).min()
    }

    /// Forgets a relay that is gone for good, including its timestamps.
    pub fn forget(&mut self, relay: RelayId) {
        self.relays.remove(&relay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: Duration = Duration::from_secs(2);

    fn signal(relay: u16, at_s: u64, ratio: f64) -> Signal {
        Signal { relay: RelayId(relay), ratio, increase: 0.7, decrease: 0.625, at: Instant::from_secs(at_s) }
    }

    fn told(state: &SharingState, relay: u16, now_s: u64) -> Option<f64> {
        state.current(RelayId(relay), Instant::from_secs(now_s)).map(|competition| competition.ratio)
    }

    fn take(state: &mut SharingState, now_s: u64, signal: Signal) -> bool {
        state.on_signal(Instant::from_secs(now_s), &signal)
    }

    #[test]
    fn ratios_are_averaged_and_the_rest_is_taken_as_told() {
        let mut state = SharingState::new(F);
        assert_eq!(told(&state, 1, 0), None);
        assert!(take(&mut state, 2, signal(1, 2, 5.0)));
        assert_eq!(told(&state, 1, 2), Some(5.0));
        assert!(take(&mut state, 4, signal(1, 4, 1.0)));
        assert_eq!(told(&state, 1, 4), Some(3.0));
        assert!(take(&mut state, 6, Signal { increase: 1.0, decrease: 0.5, ..signal(1, 6, 1.0) }));
        assert_eq!(
            state.current(RelayId(1), Instant::from_secs(6)),
            Some(Competition { ratio: 2.0, increase: 1.0, decrease: 0.5 })
        );
    }

    #[test]
    fn what_was_told_expires_after_three_periods_and_is_not_averaged_with() {
        let mut state = SharingState::new(F);
        take(&mut state, 2, signal(1, 2, 5.0));
        take(&mut state, 4, signal(2, 4, 3.0));
        assert_eq!(state.next_expiry(Instant::from_secs(4)), Some(Instant::from_secs(8)));
        assert_eq!((told(&state, 1, 7), told(&state, 1, 8)), (Some(5.0), None));
        assert_eq!(state.next_expiry(Instant::from_secs(8)), Some(Instant::from_secs(10)));
        assert_eq!(state.next_expiry(Instant::from_secs(10)), None);
        take(&mut state, 12, signal(1, 12, 2.0));
        assert_eq!(told(&state, 1, 12), Some(2.0));
    }

    #[test]
    fn replays_and_signals_out_of_order_change_nothing() {
        let mut state = SharingState::new(F);
        take(&mut state, 4, signal(1, 4, 5.0));
        assert!(!take(&mut state, 5, signal(1, 4, 1.0)));
        assert!(!take(&mut state, 5, signal(1, 2, 1.0)));
        // A replay is refused even after the signal has expired.
        assert!(!take(&mut state, 60, signal(1, 4, 1.0)));
        assert_eq!((told(&state, 1, 5), told(&state, 1, 60)), (Some(5.0), None));
        // A relay that restarts has a new clock.
        state.forget(RelayId(1));
        assert!(take(&mut state, 61, signal(1, 1, 1.0)));
    }

    #[test]
    fn absurd_numbers_are_not_taken() {
        let mut state = SharingState::new(F);
        for number in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(!take(&mut state, 2, signal(1, 2, number)));
            assert!(!take(&mut state, 2, Signal { increase: number, ..signal(1, 2, 1.0) }));
            assert!(!take(&mut state, 2, Signal { decrease: number, ..signal(1, 2, 1.0) }));
        }
        assert!(take(&mut state, 2, signal(1, 2, 1e300)));
        assert_eq!(told(&state, 1, 2), Some(50.0));
    }
}
