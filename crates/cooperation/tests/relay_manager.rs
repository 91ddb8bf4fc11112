//! The loop of relay selection among relays that die, lie, flap and return, every 100 ms for an hour.

use std::collections::BTreeMap;

use cooperation::relay_selection::energy::EnergyPrice;
use cooperation::relay_selection::manager::{ManagerSettings, RelayManager, Report, SET_RELAYS_MAX};
use cooperation::relay_selection::migration::{Command, LEGS_MAX, PathState};
use cooperation::relay_selection::monitor::Advert;
use cooperation::relay_selection::{
    Choice, Goal, Offer, Reasons, RelayId, RelaySelector, RelaySet, SELECTORS, SelectorSettings, SelectorSpec, build,
};
use proptest::prelude::*;
use units::{Duration, Instant, Prng, Rate};

const F: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);
const RELAYS: u16 = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subflow {
    /// Will be established at this time, if ever.
    Opening(Option<Instant>),
    Open {
        backup: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Relay {
    alive: bool,
    available: Rate,
    /// Factor by which its adverts exceed the truth.
    exaggeration: u64,
}

/// Relays, and what the engine would do with the commands.
struct World {
    manager: RelayManager,
    relays: Vec<Relay>,
    subflows: BTreeMap<RelayId, Subflow>,
    prng: Prng,
    received_bytes: u64,
    now: Instant,
    commands: usize,
    calm: bool,
}

impl World {
    fn new(seed: u64, settings: ManagerSettings, method: &str) -> Self {
        // 0.7, 0.8 ... 1.4 Mbit/s: many sets of three or four are in range.
        let available = (0..u64::from(RELAYS)).map(|relay| Rate::from_bps(700_000 + relay * 100_000));
        Self::with(available, Rate::from_mbps(3), seed, settings, method)
    }

    /// Creates a world of relays that offer `available`.
    fn with(
        available: impl Iterator<Item = Rate>,
        target: Rate,
        seed: u64,
        settings: ManagerSettings,
        method: &str,
    ) -> Self {
        let selector = build(&SelectorSpec::named(method), SelectorSettings::default()).unwrap();
        let manager = RelayManager::new(settings, Goal { target, tolerance: 0.1 }, selector, Prng::new(1));
        let relays = available.map(|available| Relay { alive: true, available, exaggeration: 1 }).collect();
        let (subflows, prng, now) = (BTreeMap::new(), Prng::new(seed), Instant::ZERO);
        Self { manager, relays, subflows, prng, received_bytes: 0, now, commands: 0, calm: false }
    }

    fn ids(&self) -> impl Iterator<Item = RelayId> + use<> {
        (0..self.relays.len() as u16).map(RelayId)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.prng.below(one_in) == 0
    }

    fn advertise(&mut self) {
        for relay in self.ids() {
            let Relay { alive, available, exaggeration } = self.relays[usize::from(relay.0)];
            if alive && (self.calm || !self.chance(10)) {
                // So little that no relay's owner counts as needing the whole link.
                let local = Rate::from_bps(100_000);
                let capacity = Rate::from_bps(available.as_bps() * exaggeration + local.as_bps());
                let energy = EnergyPrice::default();
                self.manager.handle_advert(Advert { relay, at: self.now, capacity, local, energy }, self.now);
            }
        }
        self.obey();
    }

    /// Relays die, come back, lie, leave and reset subflows.
    fn disturb(&mut self) {
        let relay = RelayId(self.prng.below(RELAYS.into()) as u16);
        let state = &mut self.relays[usize::from(relay.0)];
        match self.prng.below(8) {
            0 => state.alive = false,
            1 | 2 => state.alive = true,
            3 => state.exaggeration = [0, 1, 4][self.prng.below(3) as usize],
            4 => self.manager.handle_leave(relay, self.now),
            5 if self.subflows.remove(&relay).is_some() => self.manager.handle_closed(relay, self.now),
            6 => {
                let target = Rate::from_bps(1_000_000 * (1 + self.prng.below(5)));
                self.manager.set_goal(Goal { target, tolerance: 0.1 }, self.now);
            }
            _ => {}
        }
        self.obey();
    }

    /// Carries out the commands, and checks each against the present state.
    fn obey(&mut self) {
        while let Some(command) = self.manager.poll_command() {
            self.commands += 1;
            match command {
                Command::Add(relay) => {
                    let works = self.relays[usize::from(relay.0)].alive && (self.calm || self.prng.below(4) > 0);
                    let at = works.then_some(self.now + STEP);
                    assert!(self.subflows.len() < LEGS_MAX, "no connection has room for it");
                    assert_eq!(self.subflows.insert(relay, Subflow::Opening(at)), None, "{relay:?} is there already");
                }
                Command::SetBackup { relay, backup } => {
                    let before = self.subflows.insert(relay, Subflow::Open { backup });
                    assert_eq!(before, Some(Subflow::Open { backup: !backup }), "{relay:?}");
                }
                Command::Remove { relay, .. } => {
                    let is_open = |subflow: &Subflow| matches!(subflow, Subflow::Open { .. });
                    let removed = self.subflows.remove(&relay).expect("there is something to remove");
                    assert!(!is_open(&removed) || self.subflows.values().any(is_open), "the last subflow is removed");
                }
            }
        }
        while self.manager.poll_report().is_some() {}
    }

    fn establish(&mut self) {
        for relay in self.ids() {
            let due = |subflow: &Subflow| matches!(subflow, Subflow::Opening(Some(at)) if *at <= self.now);
            if self.subflows.get(&relay).is_some_and(due) {
                self.subflows.insert(relay, Subflow::Open { backup: false });
                self.manager.handle_established(relay, self.now);
                self.obey();
            }
        }
    }

    fn throughput(&self) -> Rate {
        let open = |relay: &RelayId| matches!(self.subflows.get(relay), Some(Subflow::Open { backup: false }));
        let carries = self.ids().filter(open).map(|relay| self.relays[usize::from(relay.0)]);
        Rate::from_bps(carries.filter(|relay| relay.alive).map(|relay| relay.available.as_bps()).sum())
    }

    fn step(&mut self, number: u64) {
        self.now += STEP;
        if !self.calm {
            self.disturb();
        }
        self.establish();
        for relay in self.ids() {
            self.received_bytes += if self.calm { 0 } else { self.prng.below(3) };
            let srtt = Some(Duration::from_millis(300));
            self.manager.observe(relay, PathState { srtt, received_bytes: self.received_bytes });
        }
        if self.manager.poll_timeout().is_some_and(|at| at <= self.now) {
            self.manager.handle_timeout(self.now);
            self.obey();
        }
        if number % 20 == 0 {
            self.advertise();
            self.manager.handle_period(self.throughput(), self.now);
            self.obey();
        }
        assert!(self.manager.poll_timeout().is_none_or(|at| at > self.now), "it would be called for ever");
    }

    fn run(&mut self, steps: core::ops::Range<u64>) {
        steps.for_each(|number| self.step(number));
    }
}

fn survives(seed: u64, settings: ManagerSettings, method: &str) {
    let mut world = World::new(seed, settings, method);
    world.advertise();
    world.manager.start(Instant::ZERO);
    world.obey();
    world.run(1..36_001);
    assert!(world.commands > 1000, "nothing was going on: {} commands", world.commands);
    world.calm = true;
    world.relays.iter_mut().for_each(|relay| (relay.alive, relay.exaggeration) = (true, 1));
    let goal = Goal { target: Rate::from_mbps(3), tolerance: 0.1 };
    world.manager.set_goal(goal, world.now);
    world.obey();
    // The longest probation is 16 periods.
    world.run(36_001..37_201);
    let commands = world.commands;
    world.run(37_201..37_601);
    assert_eq!(world.commands, commands, "it does not come to rest");
    assert!(goal.range().contains(world.throughput().as_bps()), "rests at {:?}", world.throughput());
    assert_eq!(world.manager.active(), world.subflows.keys().copied().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_hour_of_trouble_is_survived(seed: u64, selector in prop::sample::select(SELECTORS)) {
        survives(seed, ManagerSettings::build(F), selector.name);
        survives(seed, ManagerSettings::paper(F), selector.name);
    }
}

/// Chooses all relays that offer something, and one that does not exist.
struct Imaginative;

impl RelaySelector for Imaginative {
    fn name(&self) -> &'static str {
        "imaginative"
    }

    fn select(&mut self, offers: &[Offer], _: &Goal, _: &[RelayId], _: &mut Prng) -> Choice {
        let relays = offers.iter().map(|offer| offer.relay).chain([RelayId(u16::MAX)]).collect();
        Choice { active: RelaySet { relays, sum_bps: 3_000_000 }, backup: None, feasible: true }
    }

    fn reasons(&self, _: bool) -> Reasons {
        Reasons { active: "all that are, and one that is not", backup: "none" }
    }
}

#[test]
fn a_relay_that_nobody_knows_is_never_used() {
    let available = [900_000, 1_000_000, 1_100_000].map(Rate::from_bps).into_iter();
    let mut world = World::with(available, Rate::from_mbps(3), 1, ManagerSettings::build(F), "ssrs");
    world.manager =
        RelayManager::new(ManagerSettings::build(F), world.manager.goal(), Box::new(Imaginative), Prng::new(1));
    world.calm = true;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..200);
    assert_eq!(world.manager.active(), [0, 1, 2].map(RelayId));
}

/// Asserts that a set in range is used if there is one, otherwise as much as a connection has room for.
fn uses_what_helps(kbps: &[u64], target_share: f64) {
    let offers: Vec<Rate> = kbps.iter().map(|kbps| Rate::from_bps(kbps * 1000)).collect();
    let sum_bps: u64 = offers.iter().map(|offer| offer.as_bps()).sum();
    let target = Rate::from_bps((sum_bps as f64 * target_share) as u64);
    let mut world = World::with(offers.into_iter(), target, 1, ManagerSettings::build(F), "ssrs");
    world.calm = true;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..200);
    let commands = world.commands;
    world.run(200..400);
    assert_eq!(world.commands, commands, "it does not come to rest");

    let (active, carried) = (world.manager.active(), world.throughput().as_bps());
    let mut descending: Vec<u64> = kbps.iter().map(|kbps| kbps * 1000).collect();
    descending.sort_unstable_by_key(|bps| core::cmp::Reverse(*bps));
    let most_bps: u64 = descending.iter().take(SET_RELAYS_MAX).sum();
    let range = world.manager.goal().range();
    assert!(active.len() <= SET_RELAYS_MAX && !active.is_empty(), "{} relays", active.len());
    if most_bps < range.low_bps {
        assert_eq!(carried, most_bps, "more could be had for {target:?} with {} relays", kbps.len());
    } else if descending.last().is_some_and(|least_bps| *least_bps <= range.high_bps - range.low_bps) {
        // Offers are many and small compared with the width of the range: some set is in it.
        assert!(range.contains(carried), "{carried} bit/s for {target:?} with {} relays", kbps.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_small_relays_are_used(
        kbps in prop::collection::vec(20_u64..200, 5..1000),
        exponent in -2.0_f64..1.0,
    ) {
        uses_what_helps(&kbps, libm::pow(10.0, exponent));
    }
}

#[test]
fn two_hundred_relays_below_two_percent_of_the_target() {
    let kbps: Vec<u64> = (0..200).map(|relay| 50 + relay % 7 * 10).collect();
    // 15.9 Mbit/s in all, each offer below 0.7 % of it: no set of the maximum size reaches the range, so the largest
    // offers are used.
    uses_what_helps(&kbps, 1.25);
    uses_what_helps(&kbps, 0.5);
    uses_what_helps(&kbps, 0.1);
}

#[test]
fn twenty_relays_that_are_not_enough_are_all_used() {
    // The target is 20 Mbit/s, the offers add up to 9.1, and eight relays offer less than 2 % of the target.
    let kbps: Vec<u64> = (0..20).map(|relay| if relay < 8 { 200 } else { 625 }).collect();
    uses_what_helps(&kbps, 2.2);
}

fn reports(manager: &mut RelayManager) -> Vec<Report> {
    core::iter::from_fn(|| manager.poll_report()).collect()
}

#[test]
fn a_lost_relay_is_replaced_at_once_and_then_avoided() {
    let mut world = World::new(1, ManagerSettings::build(F), "ssrs");
    world.calm = true;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..100);
    let active = world.manager.active();
    let gone = active[0];
    world.relays[usize::from(gone.0)].alive = false;
    world.manager.handle_leave(gone, world.now);
    let told = reports(&mut world.manager);
    assert!(matches!(&told[..], [Report::Migration { from, feasible: true, .. }] if *from == active[1..]), "{told:?}");
    world.obey();
    world.run(100..140);
    assert!(!world.manager.active().contains(&gone));
    assert!(world.manager.goal().range().contains(world.throughput().as_bps()));
}

#[test]
fn a_new_target_in_flight_is_reached() {
    let mut world = World::new(1, ManagerSettings::build(F), "ssrs");
    world.calm = true;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..100);
    assert!(world.manager.goal().range().contains(world.throughput().as_bps()));
    let goal = Goal { target: Rate::from_mbps(6), tolerance: 0.1 };
    world.manager.set_goal(goal, world.now);
    world.obey();
    world.run(100..140);
    assert!(goal.range().contains(world.throughput().as_bps()), "{:?}", world.throughput());
}

#[test]
fn the_last_relay_stays_though_it_is_silent() {
    let mut world = World::new(1, ManagerSettings::build(F), "ssrs");
    world.calm = true;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..10);
    world.relays.iter_mut().for_each(|relay| relay.alive = false);
    world.run(10..600);
    assert!(!world.subflows.is_empty());
    world.relays.iter_mut().for_each(|relay| relay.alive = true);
    world.run(600..1400);
    assert!(world.manager.goal().range().contains(world.throughput().as_bps()), "{:?}", world.throughput());
}

/// Greedy adjusts the set in use, and does not look for another one. If its rule finds nothing to change, the set stays
/// although less arrives than was offered.
#[test]
fn greedy_stays_where_it_has_nothing_to_change() {
    let offers = [1_000_000, 1_000_000, 1_000_000, 3_100_000].map(Rate::from_bps);
    let target = Rate::from_mbps(3);
    let mut world = World::with(offers.into_iter(), target, 1, ManagerSettings::build(F), "greedy-thesis");
    world.calm = true;
    world.relays[3].alive = false;
    world.advertise();
    world.manager.start(world.now);
    world.obey();
    world.run(1..100);
    assert_eq!(world.manager.active(), [0, 1, 2].map(RelayId));
    world.relays[3].alive = true;
    world.run(100..121);
    let commands = world.commands;
    for _ in 0..3 {
        world.manager.handle_period(Rate::from_mbps(2), world.now);
        world.obey();
    }
    assert_eq!(world.commands, commands);
    // The loss of one of them does cause a change.
    world.relays[0].alive = false;
    world.manager.handle_leave(RelayId(0), world.now);
    world.obey();
    assert!(world.commands > commands);
}

/// If no set is in use, the best set is taken, not the backup that would replace it.
#[test]
fn nothing_is_replaced_by_the_best() {
    let offers = [1_400_000, 1_400_000, 1_500_000, 1_500_000].map(Rate::from_bps);
    let mut world = World::with(offers.into_iter(), Rate::from_mbps(3), 1, ManagerSettings::build(F), "ssrs");
    world.calm = true;
    // No advert has arrived when the connection begins.
    world.manager.start(world.now);
    world.obey();
    assert!(world.manager.target().is_empty());
    world.run(1..100);
    assert_eq!(world.manager.active(), [2, 3].map(RelayId));
}
