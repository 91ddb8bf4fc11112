//! Chooses the uplinks that carry data for a target bit rate: as few as deliver it; the others are backups. Sans-IO:
//! takes measurements once a second, and returns the choice.
//!
//! ```text
//! every second    delivered by each uplink ──► estimate: the most of the last minute in which it carried
//! estimates       ──► relay selection (SSRS) among those of one tier and price
//! ```
//!
//! All primaries carry data before a secondary does. Within a tier, all cheaper uplinks carry data before a more expensive
//! one does. Among the last ones that are needed, as few carry data as deliver the missing rate.
//!
//! An uplink without an estimate carries data, to get one. If less than the target arrives although programs want data,
//! the active uplinks have shown what they deliver, if only nothing: their estimates fall to that, and others help. An
//! uplink that has delivered nothing is tried again later, beside those that deliver the target. One that is held back
//! shows nothing meanwhile; if that lasts, it is replaced for that time only.

use std::collections::{BTreeSet, VecDeque};

use cooperation::relay_selection::{
    self, Goal, Offer, RelayId, RelaySelector, SelectorError, SelectorSettings, SelectorSpec,
};
use units::{Duration, Instant, Prng, Rate};

use crate::proxy::choice::Tier;

/// Name in the registry.
const SELECTOR: &str = "ssrs";
/// How far a sum may be below the target, as a fraction of it; the papers' theta.
const TOLERANCE: f64 = 0.1;
/// Seconds of carrying over which the maximum rate is the estimate.
const WINDOW: usize = 60;
/// Consecutive seconds below the target, although programs want data, that make a shortfall. Also the seconds for which
/// an uplink is tried again, and those after which one that is held back is replaced: where several transfers compete,
/// the only one that uses it may just pause.
const SHORTFALL: usize = 5;
/// Minimum time after a change before the number of uplinks is reduced.
const REST: Duration = Duration::from_secs(30);
/// How long an estimate stays valid after the uplink last carried data.
const BELIEVED_FOR: Duration = Duration::from_secs(600);

/// Measurements of one uplink over the last second.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Tier that the user has set, or backup while its relay has little left.
    pub tier: Tier,
    /// Price of an octet.
    pub price: u32,
    /// Whether it can be used now.
    pub usable: bool,
    /// Whether it is held back now for all transfers because it made them late.
    pub held_back: bool,
    /// Rate of data received, plus data sent and acknowledged.
    pub rate: Rate,
}

/// History of one uplink.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Rates of the latest seconds in which it was to carry data, bit/s.
    rates: VecDeque<u64>,
    carried_at: Option<Instant>,
    /// Whether it has delivered nothing when it was last to carry data: the path may be dead, or lead to a portal.
    failed: bool,
    /// Consecutive seconds in which it was held back.
    held_back: usize,
}

impl Known {
    /// Returns the estimate, bit/s. An uplink over which nothing has come so far has none, unless it had its chance.
    fn estimate(&self) -> Option<u64> {
        let most = self.rates.iter().copied().max().unwrap_or(0);
        (most > 0 || self.failed).then_some(most)
    }

    /// Whether it is being tried again after it has delivered nothing.
    fn is_tried_again(&self) -> bool {
        self.failed && self.rates.len() < SHORTFALL
    }

    /// Notes whether it has had a chance of `seconds`, and delivered nothing in them.
    fn judge(&mut self, seconds: usize) {
        self.failed |= self.rates.len() >= seconds;
        self.failed &= self.rates.iter().all(|rate| *rate == 0);
    }
}

/// Decides which uplinks carry data.
pub struct Selection {
    target: Rate,
    selector: Box<dyn RelaySelector>,
    known: Vec<Known>,
    carries: Vec<bool>,
    /// When measurements last changed the choice.
    changed_at: Option<Instant>,
    /// Whether the chosen uplinks carry data only to get estimates.
    learns: bool,
    /// Consecutive seconds below the target.
    short: usize,
}

impl Selection {
    /// Starts with `uplinks` uplinks, all of which carry data at first.
    ///
    /// # Errors
    /// If the selector does not exist.
    pub fn new(target: Rate, uplinks: usize) -> Result<Self, SelectorError> {
        let selector = relay_selection::build(&SelectorSpec::named(SELECTOR), SelectorSettings::default())?;
        let known = vec![Known::default(); uplinks];
        Ok(Self { target, selector, known, carries: vec![true; uplinks], changed_at: None, learns: false, short: 0 })
    }

    /// Returns the target bit rate.
    pub fn target(&self) -> Rate {
        self.target
    }

    /// Sets another target bit rate.
    pub fn set_target(&mut self, target: Rate) {
        self.target = target;
        self.changed_at = None;
    }

    /// Puts another uplink at this position, an existing one or the next. It has no estimate, so it carries data.
    pub fn renew(&mut self, index: usize) {
        let len = self.known.len().max(index + 1);
        self.known.resize(len, Known::default());
        self.carries.resize(len, true);
        (self.known[index], self.carries[index]) = (Known::default(), true);
    }

    /// Tries an uplink again that has delivered nothing: it was held back meanwhile.
    pub fn try_again(&mut self, index: usize) {
        self.known.get_mut(index).filter(|known| known.failed).into_iter().for_each(|known| known.rates.clear());
    }

    /// Whether the uplink at this position carries data.
    pub fn carries(&self, index: usize) -> bool {
        self.carries.get(index).copied().unwrap_or(true)
    }

    /// Returns the estimated rate of an uplink.
    pub fn estimate(&self, index: usize) -> Option<Rate> {
        self.known.get(index)?.estimate().map(Rate::from_bps)
    }

    /// Takes the measurements of the last second; `busy` means that clients' octets moved in it. Returns whether the
    /// choice has changed.
    pub fn look(&mut self, measured: &[Measured], busy: bool, now: Instant) -> bool {
        for (index, uplink) in measured.iter().enumerate() {
            self.note(index, *uplink, busy, now);
        }
        let total: u64 = measured.iter().map(|uplink| uplink.rate.as_bps()).fold(0, u64::saturating_add);
        self.short = if busy && total < self.least() { self.short + 1 } else { 0 };
        if self.short >= SHORTFALL {
            self.believe_what_was_seen(measured);
            self.short = 0;
        }
        let wanted = self.decide(measured, now);
        let changes = wanted != self.carries;
        if changes {
            self.carries = wanted;
            // Do not rest while measuring: reduce to as few as possible once estimates are there.
            self.changed_at = Some(now).filter(|_| !self.learns);
        }
        changes
    }

    /// Returns the least sufficient sum, bit/s.
    fn least(&self) -> u64 {
        least(self.target)
    }

    fn note(&mut self, index: usize, uplink: Measured, busy: bool, now: Instant) {
        let carries = self.carries(index) && uplink.usable && !uplink.held_back && busy;
        let Some(known) = self.known.get_mut(index) else { return };
        known.held_back = if uplink.held_back { known.held_back.saturating_add(1) } else { 0 };
        if carries {
            known.rates.push_back(uplink.rate.as_bps());
            keep_latest(&mut known.rates, WINDOW);
            known.carried_at = Some(now);
            known.judge(WINDOW);
        }
        let is_old = known.carried_at.is_some_and(|at| now.saturating_since(at) > BELIEVED_FOR);
        if is_old || !uplink.usable {
            let (failed, held_back) = (known.failed && uplink.usable, known.held_back);
            *known = Known { failed, held_back, ..Known::default() };
        }
    }

    /// Limits the estimates of the active uplinks to the rates of the last seconds.
    fn believe_what_was_seen(&mut self, measured: &[Measured]) {
        for ((known, carries), uplink) in self.known.iter_mut().zip(&self.carries).zip(measured) {
            if *carries && !uplink.held_back {
                keep_latest(&mut known.rates, SHORTFALL);
                known.judge(SHORTFALL);
            }
        }
    }

    fn decide(&mut self, measured: &[Measured], now: Instant) -> Vec<bool> {
        self.learns = false;
        let among: Vec<usize> = (0..measured.len()).filter(|index| self.may_carry(*index, measured[*index])).collect();
        let chosen = self.choose_first(&among, measured, now).unwrap_or(among);
        // The choice of one that is held back waits until it no longer is.
        let stays = |index: usize| measured[index].held_back && self.carries(index);
        (0..measured.len()).map(|index| chosen.contains(&index) || stays(index)).collect()
    }

    /// Whether an uplink may be chosen to carry data.
    fn may_carry(&self, index: usize, uplink: Measured) -> bool {
        let is_held_back = self.known.get(index).is_some_and(|known| known.held_back >= SHORTFALL);
        uplink.usable && !is_held_back && uplink.tier <= Tier::Secondary
    }

    /// Returns those of `among` that should carry data, secondaries and more expensive ones only if primaries and
    /// cheaper ones do not deliver enough. `None`: all together do not.
    fn choose_first(&mut self, among: &[usize], measured: &[Measured], now: Instant) -> Option<Vec<usize>> {
        let rank = |index: usize| (measured[index].tier, measured[index].price);
        let ranks: BTreeSet<(Tier, u32)> = among.iter().map(|index| rank(*index)).collect();
        let mut first: Vec<usize> = Vec::new();
        for level in ranks {
            let level: Vec<usize> = among.iter().copied().filter(|index| rank(*index) == level).collect();
            if level.iter().any(|index| self.estimate(*index).is_none()) {
                self.learns = true;
                return Some([first, level].concat());
            }
            let (before, sum) = (self.sum_bps(&first), self.sum_bps(&level));
            let (tried, known): (Vec<usize>, Vec<usize>) =
                level.into_iter().partition(|index| self.known.get(*index).is_some_and(Known::is_tried_again));
            if before.saturating_add(sum) >= self.least() {
                let missing = Rate::from_bps(self.target.as_bps().saturating_sub(before));
                let chosen = self.choose(&known, missing, now);
                return Some([first, chosen, tried].concat());
            }
            let delivering = known.into_iter().filter(|index| self.sum_bps(&[*index]) > 0);
            first.extend(delivering.chain(tried));
        }
        None
    }

    /// Returns the sum of the estimates, bit/s.
    fn sum_bps(&self, set: &[usize]) -> u64 {
        set.iter().filter_map(|index| self.estimate(*index)).map(Rate::as_bps).fold(0, u64::saturating_add)
    }

    /// Returns some of `among`, which all have estimates and together deliver `target`.
    fn choose(&mut self, among: &[usize], target: Rate, now: Instant) -> Vec<usize> {
        let least = least(target);
        let rate = |index: &usize| self.estimate(*index).unwrap_or_default().as_bps().min(target.as_bps());
        let sum = |set: &[usize]| set.iter().map(rate).fold(0, u64::saturating_add);
        let in_use: Vec<usize> = among.iter().copied().filter(|index| self.carries(*index)).collect();
        let rests = self.changed_at.is_some_and(|at| now.saturating_since(at) < REST);
        if rests && sum(&in_use) >= least {
            return in_use;
        }
        let id = |index: &usize| RelayId(u16::try_from(*index).unwrap_or(u16::MAX));
        let offers: Vec<Offer> =
            among.iter().map(|index| Offer { relay: id(index), available: Rate::from_bps(rate(index)) }).collect();
        let goal = Goal { target, tolerance: TOLERANCE };
        let used: Vec<RelayId> = in_use.iter().map(id).collect();
        // SSRS draws nothing.
        let found = self
            .selector
            .choose(&offers, &goal, &used, &mut Prng::new(0))
            .unwrap_or_else(|unknown| unknown.rest)
            .active;
        let mut chosen: Vec<usize> = found.relays.iter().map(|relay| usize::from(relay.0)).collect();
        // The nearest miss may be too little: add the smallest uplink that makes it enough, or else the largest.
        let rate = |index: &usize| self.estimate(*index).unwrap_or_default().as_bps().min(target.as_bps());
        let sum = |set: &[usize]| set.iter().map(rate).fold(0, u64::saturating_add);
        while sum(&chosen) < least {
            let missing = least - sum(&chosen);
            let others = || among.iter().filter(|index| !chosen.contains(index));
            let enough = others().filter(|index| rate(index) >= missing).min_by_key(|index| rate(index));
            let Some(next) = enough.or_else(|| others().max_by_key(|index| rate(index))) else { break };
            chosen.push(*next);
        }
        chosen
    }
}

/// Returns the least sufficient sum for `target`, bit/s.
fn least(target: Rate) -> u64 {
    (target.as_bps() as f64 * (1.0 - TOLERANCE)) as u64
}

fn keep_latest(rates: &mut VecDeque<u64>, most: usize) {
    rates.drain(..rates.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: bool = true;

    /// Uplinks that deliver up to `mbps` each, and programs that want `wanted_mbps` in all.
    struct World {
        selection: Selection,
        tiers: Vec<Tier>,
        prices: Vec<u32>,
        mbps: Vec<u64>,
        /// Which are there, but deliver nothing.
        silent: Vec<usize>,
        /// Which are held back.
        held_back: Vec<usize>,
        wanted_mbps: u64,
        second: u64,
        changes: usize,
    }

    impl World {
        fn new(target_mbps: u64, uplinks: &[(Tier, u64)]) -> Self {
            Self {
                selection: Selection::new(Rate::from_bps(target_mbps * 1_000_000), uplinks.len()).unwrap(),
                tiers: uplinks.iter().map(|(tier, _)| *tier).collect(),
                prices: vec![0; uplinks.len()],
                mbps: uplinks.iter().map(|(_, mbps)| *mbps).collect(),
                silent: Vec::new(),
                held_back: Vec::new(),
                wanted_mbps: 1000,
                second: 0,
                changes: 0,
            }
        }

        fn run(&mut self, seconds: u64) -> Vec<usize> {
            for _ in 0..seconds {
                self.second += 1;
                let mut left = self.wanted_mbps;
                let measured: Vec<Measured> = (0..self.mbps.len())
                    .map(|index| {
                        let held_back = self.held_back.contains(&index);
                        let carries = self.selection.carries(index) && !self.silent.contains(&index) && !held_back;
                        let mbps = if carries { self.mbps[index].min(left) } else { 0 };
                        left -= mbps;
                        let (tier, price, usable) = (self.tiers[index], self.prices[index], self.mbps[index] > 0);
                        Measured { tier, price, usable, held_back, rate: Rate::from_bps(mbps * 1_000_000) }
                    })
                    .collect();
                self.changes += usize::from(self.selection.look(&measured, BUSY, Instant::from_secs(self.second)));
            }
            (0..self.mbps.len()).filter(|index| self.selection.carries(*index)).collect()
        }
    }

    use Tier::{Backup, Primary, Secondary};

    #[test]
    fn as_few_as_deliver_the_target_carry() {
        assert_eq!(World::new(8, &[(Primary, 20), (Primary, 9), (Primary, 5)]).run(100).len(), 1);
        let mut world = World::new(8, &[(Primary, 5), (Primary, 4), (Primary, 6), (Primary, 3)]);
        let set = world.run(100);
        let sum: u64 = set.iter().map(|index| world.mbps[*index]).sum();
        assert!((7..=9).contains(&sum), "{set:?}");
        assert!(world.changes <= 3, "{} changes", world.changes);
    }

    #[test]
    fn where_none_is_enough_all_carry() {
        assert_eq!(World::new(80, &[(Primary, 20), (Secondary, 10), (Primary, 5)]).run(100), [0, 1, 2]);
    }

    #[test]
    fn a_sum_above_the_target_serves_better_than_the_nearest_miss_below() {
        assert_eq!(World::new(8, &[(Primary, 6), (Primary, 6)]).run(100), [0, 1]);
    }

    #[test]
    fn secondaries_carry_where_primaries_do_not_reach_the_target_and_backups_never() {
        assert_eq!(World::new(8, &[(Primary, 10), (Secondary, 10), (Backup, 10)]).run(100), [0]);
        let mut world = World::new(8, &[(Primary, 5), (Secondary, 10), (Backup, 10)]);
        assert_eq!(world.run(100), [0, 1], "it helps, and the primary goes on");
    }

    #[test]
    fn a_dear_uplink_carries_only_what_cheap_ones_do_not_deliver() {
        let priced = |target: u64, mbps: &[u64], prices: &[u32]| {
            let uplinks: Vec<_> = mbps.iter().map(|mbps| (Primary, *mbps)).collect();
            let mut world = World::new(target, &uplinks);
            world.prices = prices.into();
            world
        };
        let mut world = priced(8, &[20, 9], &[5, 1]);
        assert_eq!(world.run(100), [1], "the faster one is dearer");
        world.mbps[1] = 3;
        assert_eq!(world.run(100), [0, 1], "it helps, and the cheap one goes on");
        // The cheap uplink leaves 8 of 12 missing: the fitting one of the two at price 1 carries, the most expensive
        // does not.
        assert_eq!(priced(12, &[4, 5, 8, 30], &[0, 1, 1, 2]).run(100), [0, 2]);
        assert_eq!(priced(80, &[4, 20, 8], &[0, 1, 2]).run(100), [0, 1, 2]);
        // A cheap secondary is still a secondary.
        let mut world = World::new(8, &[(Primary, 10), (Secondary, 10)]);
        world.prices = vec![9, 0];
        assert_eq!(world.run(100), [0]);
        let mut world = World::new(8, &[(Primary, 5), (Secondary, 10)]);
        world.prices = vec![3, 0];
        assert_eq!(world.run(100), [0, 1], "it helps, and the primary goes on");
    }

    #[test]
    fn where_a_dear_uplink_is_left_out_unknown_few_of_the_others_carry_soon() {
        let mut world = World::new(4, &[(Primary, 20), (Primary, 10), (Primary, 5)]);
        world.prices = vec![3, 0, 0];
        world.wanted_mbps = 0;
        assert_eq!(world.run(1), [1, 2], "nothing is known: both become known");
        world.wanted_mbps = 1000;
        assert_eq!(world.run(2).len(), 1);
    }

    #[test]
    fn when_one_delivers_less_others_help() {
        let mut world = World::new(8, &[(Primary, 10), (Primary, 9)]);
        let first = world.run(60);
        assert_eq!(first.len(), 1);
        world.mbps[first[0]] = 3;
        let second = world.run(20);
        assert!(second.iter().map(|index| world.mbps[*index]).sum::<u64>() >= 8, "{second:?}");
        world.mbps[first[0]] = 0;
        assert!(!world.run(2).contains(&first[0]), "it is gone");
    }

    #[test]
    fn one_that_delivers_nothing_does_not_keep_others_from_helping() {
        for (tier, price) in [(Secondary, 0), (Primary, 3)] {
            let mut world = World::new(8, &[(Primary, 4), (Primary, 5), (tier, 10)]);
            world.prices[2] = price;
            assert_eq!(world.run(30), [0, 1]);
            world.silent = vec![1];
            assert!(world.run(12).contains(&2), "{tier:?} at {price}");
            assert!(world.run(300).contains(&2), "it stays: {tier:?} at {price}");
            // From the start.
            let mut world = World::new(8, &[(Primary, 4), (Primary, 5), (tier, 10)]);
            (world.prices[2], world.silent) = (price, vec![1]);
            assert!(world.run(12).contains(&2), "{tier:?} at {price}");
        }
    }

    #[test]
    fn one_that_delivers_nothing_does_not_keep_the_others_from_being_few() {
        let mut world = World::new(8, &[(Primary, 20), (Primary, 10), (Primary, 5)]);
        world.silent = vec![2];
        world.wanted_mbps = 25;
        assert_eq!(world.run(WINDOW as u64 + 2).len(), 1);
    }

    #[test]
    fn one_that_delivered_nothing_is_tried_again_beside_those_that_deliver_enough() {
        let mut world = World::new(8, &[(Primary, 4), (Primary, 9), (Secondary, 10)]);
        world.silent = vec![1];
        assert_eq!(world.run(60), [0, 2]);
        let (mut seconds, mut without) = (0, 0);
        // What is known of the first one becomes old as well: that it delivers too little shows in a second or two.
        for _ in 0..1800 {
            let carry = world.run(1);
            seconds += usize::from(carry.contains(&1));
            without += usize::from(!carry.contains(&2));
        }
        assert!((10..200).contains(&seconds) && without < 10, "{seconds} s, {without} s without the secondary");
        world.silent.clear();
        assert_eq!(world.run(700), [1], "it delivers, so the secondary does not carry");
        world.silent = vec![1];
        assert_eq!(world.run(60), [0, 2]);
        world.silent.clear();
        world.selection.try_again(1);
        assert_eq!(world.run(60), [1], "at once");
    }

    #[test]
    fn one_that_is_held_back_is_replaced_for_that_time_only() {
        for (tier, price) in [(Secondary, 0), (Primary, 3)] {
            let mut world = World::new(8, &[(Primary, 5), (Primary, 4), (tier, 10)]);
            world.prices[2] = price;
            assert_eq!(world.run(60), [0, 1]);
            world.held_back = vec![1];
            assert!(world.run(SHORTFALL as u64).contains(&2), "{tier:?} at {price}");
            assert!(world.run(100).contains(&2), "it stays: {tier:?} at {price}");
            world.held_back.clear();
            assert_eq!(world.run(2), [0, 1], "{tier:?} at {price}");
            assert_eq!(world.run(60), [0, 1], "{tier:?} at {price}");
        }
        let mut world = World::new(8, &[(Primary, 20)]);
        world.held_back = vec![0];
        assert_eq!(world.run(20), [0], "there is no other");
    }

    #[test]
    fn one_that_is_held_back_now_and_then_is_not_replaced() {
        let mut world = World::new(8, &[(Primary, 5), (Primary, 4), (Secondary, 10)]);
        assert_eq!(world.run(60), [0, 1]);
        let before = world.changes;
        for _ in 0..20 {
            world.held_back = vec![1];
            world.run(SHORTFALL as u64 - 1);
            world.held_back.clear();
            assert_eq!(world.run(1), [0, 1]);
        }
        assert_eq!(world.changes, before);
    }

    #[test]
    fn what_nothing_is_known_of_carries() {
        let mut world = World::new(8, &[(Primary, 10), (Primary, 9)]);
        world.wanted_mbps = 0;
        assert_eq!(world.run(30), [0, 1]);
    }

    #[test]
    fn odd_numbers_end_in_some_choice() {
        let mut selection = Selection::new(Rate::from_bps(0), 1).unwrap();
        let measured =
            Measured { tier: Primary, price: 0, usable: true, held_back: false, rate: Rate::from_bps(u64::MAX) };
        selection.look(&[measured, measured], BUSY, Instant::ZERO);
        selection.look(&[], !BUSY, Instant::FAR_FUTURE);
        assert!(selection.carries(7));
    }
}
