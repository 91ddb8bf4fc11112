//! The loop that keeps a connection at its target bit rate: adverts and arrivals in, subflows to open and close out.
//!
//! ```text
//! adverts ──► AdvertBoard ──► RelaySelector ──► Migration ──► commands
//! arrivals, every F ──► Trigger ──┘                 ▲
//! subflow events ───────────────────────────────────┘
//! ```
//!
//! Thesis section 4.1 and SSRS section II-B; the symbols and what was left open are in `docs/algorithms/migration.md`.

use std::cmp::Reverse;
use std::collections::VecDeque;

use units::{Duration, Instant, Rate};

use super::credit::Credit;
use super::migration::{Command, LEGS_MAX, Migration, PathState, Timing};
use super::monitor::{Advert, AdvertBoard};
use super::play_out::BufferedTolerance;
use super::trigger::{Outage, Trigger};
use super::{Choice, Goal, Offer, RelayId, RelaySelector, RelaySet};

/// Periods that a subflow must last for its relay to be forgiven earlier failures.
const PERIODS_TO_FORGIVE: u64 = 4;
/// Where no set has the headroom asked for, another is worth a migration if it is nearer to that by this part of the target:
/// offers waver by less.
const SCARCE_STEP: f64 = 0.05;
/// Relays of a set at most: what is left of [`LEGS_MAX`] is room for those that take over from others.
pub const SET_RELAYS_MAX: usize = LEGS_MAX * 4 / 5;
/// Where more would help than a set may have, one in use gives way to one that offers a quarter more: offers waver by less.
const KEPT_NUMERATOR: u128 = 5;
const KEPT_DENOMINATOR: u128 = 4;

/// How the loop runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagerSettings {
    /// Monitor period (F).
    pub period: Duration,
    /// Periods after a migration in which no other begins, unless a relay is lost.
    pub hold_down_periods: u32,
    /// What makes it look for another set.
    pub trigger: Trigger,
    /// Part of the target that offers should exceed it by: room for what a source that sends no faster than the target loses
    /// when a link falls behind.
    pub headroom: f64,
    /// Whether relays that delivered far less than they advertised are believed less.
    pub discount: bool,
    /// How much wider the range is that throughput and offers must stay in while much is left to play.
    pub buffered: Option<BufferedTolerance>,
    /// How long after a migration adverts between ends of periods are only taken note of.
    pub quiet: Duration,
    /// How long an advert stands.
    pub advert_lifetime: Duration,
    /// Share of payload in what subflows send: relays advertise packets, and the target counts payload.
    pub payload_ratio: f64,
    /// How long the steps of a migration take.
    pub timing: Timing,
}

impl ManagerSettings {
    /// As it should be deployed, for monitor period F.
    pub fn build(period: Duration) -> Self {
        let timing = Timing {
            establish: Duration::from_secs(3),
            rtt_default: Duration::from_millis(500),
            drain: true,
            drain_cap_min: period,
        };
        let advert_lifetime = period.mul_div(3, 2);
        Self {
            period,
            hold_down_periods: 1,
            trigger: Trigger::Either,
            headroom: 0.0,
            discount: false,
            buffered: None,
            quiet: Duration::from_millis(1500),
            advert_lifetime,
            payload_ratio: 1.0,
            timing,
        }
    }

    /// As printed: no hold-down, and no backup priority before removal.
    pub fn paper(period: Duration) -> Self {
        let build = Self::build(period);
        Self { hold_down_periods: 0, timing: Timing { drain: false, ..build.timing }, ..build }
    }
}

/// Why a set was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There was none yet.
    Start,
    /// It was out of the accepted range.
    Outage(Outage),
    /// A relay of it was lost.
    Loss(RelayId),
    /// The application asked for another rate.
    Goal,
}

/// What the loop has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A migration begins, or goes elsewhere.
    Migration {
        /// When.
        at: Instant,
        /// Why.
        cause: Cause,
        /// The relays that were wanted so far and still are there, in ascending order.
        from: Vec<RelayId>,
        /// The relays wanted now, with what they offer.
        to: RelaySet,
        /// Whether that is in the accepted range.
        feasible: bool,
    },
    /// What is wanted is there, and nothing else.
    Settled {
        /// When.
        at: Instant,
    },
    /// A period has ended.
    Monitored {
        /// When.
        at: Instant,
        /// What the relays in use offer.
        offered: Rate,
        /// What the set that would be next offers, if there is one.
        backup: Option<Rate>,
    },
}

/// The loop. After any input poll [`Self::poll_command`] and [`Self::poll_report`] until they give nothing, then
/// [`Self::poll_timeout`].
pub struct RelayManager {
    settings: ManagerSettings,
    goal: Goal,
    selector: Box<dyn RelaySelector>,
    board: AdvertBoard,
    migration: Migration,
    /// Relays whose subflows are established, and since when.
    lasting: Vec<(RelayId, Instant)>,
    /// Whether the latest migration has ended.
    settled: bool,
    /// Periods left in which nothing begins.
    hold_down: u32,
    /// Until when reviews change nothing.
    quiet_until: Instant,
    credit: Credit,
    /// Relays that were to carry data all through the period that is under way.
    carriers: Vec<RelayId>,
    /// What is left to play.
    level: Duration,
    reports: VecDeque<Report>,
}

impl RelayManager {
    /// A loop without relays.
    pub fn new(settings: ManagerSettings, goal: Goal, selector: Box<dyn RelaySelector>) -> Self {
        Self {
            board: AdvertBoard::new(settings.advert_lifetime, settings.payload_ratio),
            migration: Migration::new(settings.timing),
            settings,
            goal,
            selector,
            lasting: Vec::new(),
            settled: true,
            hold_down: 0,
            quiet_until: Instant::ZERO,
            credit: Credit::default(),
            carriers: Vec::new(),
            level: Duration::ZERO,
            reports: VecDeque::new(),
        }
    }

    /// What the application asks for.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// The relays whose subflows are established and wanted, in ascending order.
    pub fn active(&self) -> Vec<RelayId> {
        self.migration.active().collect()
    }

    /// How many subflows carry new data: the size of the active set. During a migration the old ones count until the new
    /// ones are up.
    pub fn carrying(&self) -> usize {
        self.migration.carrying()
    }

    /// The relays that are wanted, in ascending order, with what they offer.
    pub fn offers_in_use(&self, now: Instant) -> Vec<(RelayId, Rate)> {
        let target = self.migration.target();
        target.map(|relay| (relay, self.board.available(relay, now).unwrap_or_default())).collect()
    }

    /// The relays that are wanted, in ascending order.
    pub fn target(&self) -> Vec<RelayId> {
        self.migration.target().collect()
    }

    /// Chooses the first relays from what they advertised.
    pub fn start(&mut self, now: Instant) {
        self.decide(Cause::Start, now);
    }

    /// The application asks for another rate. The set in use stays if it serves that too.
    pub fn set_goal(&mut self, goal: Goal, now: Instant) {
        self.goal = goal;
        if !self.wanted().range().contains(self.offered(now).as_bps()) {
            self.decide(Cause::Goal, now);
        }
    }

    /// A relay tells of its bandwidth, and what it pays.
    pub fn handle_advert(&mut self, advert: Advert, now: Instant) {
        if self.board.post(advert, now) {
            self.selector.hear_price(advert.relay, advert.energy);
        }
    }

    /// A new channel leads to a relay: whatever its clock showed before, its next advert is the newest.
    pub fn handle_channel(&mut self, relay: RelayId) {
        self.board.forget_stamp(relay);
    }

    /// A relay says that it leaves, or is known to be gone.
    pub fn handle_leave(&mut self, relay: RelayId, now: Instant) {
        self.board.withdraw(relay);
        self.lose(relay, now);
    }

    /// The subflow through `relay` is established.
    pub fn handle_established(&mut self, relay: RelayId, now: Instant) {
        if self.migration.relays().any(|known| known == relay) {
            self.lasting.retain(|(known, _)| *known != relay);
            self.lasting.push((relay, now));
        }
        self.migration.established(relay, now);
        self.after(now);
    }

    /// The subflow through `relay` has ended, or could not be opened. What follows a [`Command::Remove`] need not be told.
    pub fn handle_closed(&mut self, relay: RelayId, now: Instant) {
        if self.migration.closed(relay, now) {
            self.board.put_on_probation(relay, self.settings.period, now);
            self.decide(Cause::Loss(relay), now);
        }
        self.after(now);
    }

    /// Takes note of the state of a relay's path; to be done for all before time-outs, ends of periods and established
    /// subflows.
    pub fn observe(&mut self, relay: RelayId, path: PathState) {
        self.migration.observe(relay, path);
    }

    /// Adverts came between two ends of periods: leaves the set in use at once if its offers are out of range, instead of when
    /// the period ends. Not while a migration is under way, nor right after one.
    pub fn review(&mut self, now: Instant) {
        self.expire(now);
        let offered = self.offered(now);
        if self.settled && now >= self.quiet_until && !self.kept(self.wanted()).range().contains(offered.as_bps()) {
            let choice = self.choose(now);
            self.leave_for(choice, offered, Cause::Outage(Outage::Advert), now);
        }
        self.after(now);
    }

    /// In the period that ends now data arrived through `relay` at `delivered`; to be told before [`Self::handle_period`].
    pub fn handle_carried(&mut self, relay: RelayId, delivered: Rate, now: Instant) {
        if let Some(advertised) = self.board.available(relay, now).filter(|_| self.carriers.contains(&relay)) {
            self.credit.carried(relay, advertised, delivered);
        }
    }

    /// So much of what arrived in order is left to play at the target bit rate.
    pub fn set_level(&mut self, level: Duration) {
        self.level = level;
    }

    /// A period has ended in which data arrived at `throughput` over all subflows.
    pub fn handle_period(&mut self, throughput: Rate, now: Instant) {
        self.expire(now);
        self.forgive(now);
        self.rest();
        let offered = self.offered(now);
        let choice = self.choose(now);
        let backup = choice.backup.as_ref().map(|set| Rate::from_bps(set.sum_bps));
        self.reports.push_back(Report::Monitored { at: now, offered, backup });
        if !self.settled {
            return;
        }
        if self.hold_down > 0 {
            self.hold_down -= 1;
        } else if let Some(outage) = self.outage(throughput, offered) {
            self.leave_for(choice, offered, Cause::Outage(outage), now);
        }
        self.after(now);
    }

    /// Takes note of the time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.migration.handle_timeout(now);
        self.after(now);
    }

    /// When [`Self::handle_timeout`] must be called next; ends of periods are the caller's.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.migration.poll_timeout()
    }

    /// The next command, if any.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.migration.poll_command()
    }

    /// The next report, if any.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// What the relays that are wanted offer together.
    fn offered(&self, now: Instant) -> Rate {
        let believed = |relay| Some(self.believed(relay, self.board.available(relay, now)?));
        let offers = self.migration.target().filter_map(believed);
        Rate::from_bps(offers.map(Rate::as_bps).fold(0, u64::saturating_add))
    }

    fn choose(&mut self, now: Instant) -> Choice {
        let mut offers = self.board.offers(now);
        for offer in &mut offers {
            offer.available = self.believed(offer.relay, offer.available);
        }
        let (in_use, wanted) = (self.target(), self.wanted());
        let choice = self.selector.select(&offers, &wanted, &in_use);
        let fits = |set: &RelaySet| set.relays.len() <= SET_RELAYS_MAX;
        if fits(&choice.active) && choice.backup.as_ref().is_none_or(fits) {
            return choice;
        }
        keep_largest(&mut offers, &in_use);
        self.selector.select(&offers, &wanted, &in_use)
    }

    /// Why the set in use should be left, if it should.
    fn outage(&self, throughput: Rate, offered: Rate) -> Option<Outage> {
        let (trigger, goal, wanted) = (self.settings.trigger, self.kept(self.goal), self.kept(self.wanted()));
        // Headroom is asked of what is offered, not of what arrived.
        let by_throughput = trigger.check(&goal, throughput, goal.target);
        by_throughput.or_else(|| trigger.check(&wanted, wanted.target, offered))
    }

    /// What is accepted of a set in use, where `goal` is asked of a new one.
    fn kept(&self, goal: Goal) -> Goal {
        let tolerance = self.settings.buffered.map_or(goal.tolerance, |wide| wide.at(self.level, goal.tolerance));
        Goal { tolerance, ..goal }
    }

    fn believed(&self, relay: RelayId, offered: Rate) -> Rate {
        if self.settings.discount { self.credit.believed(relay, offered) } else { offered }
    }

    /// Relays that had nothing to prove are trusted more again.
    fn rest(&mut self) {
        let target = self.target();
        let others = self.board.relays().filter(|relay| !target.contains(relay));
        others.for_each(|relay| self.credit.rested(relay));
        self.carriers = if self.settled { target } else { Vec::new() };
    }

    /// What the relays should offer together.
    fn wanted(&self) -> Goal {
        let target_bps = self.goal.target.as_bps() as f64 * (1.0 + self.settings.headroom);
        Goal { target: Rate::from_bps(target_bps.round() as u64), ..self.goal }
    }

    /// Relays whose adverts have expired are gone.
    fn expire(&mut self, now: Instant) {
        for relay in self.migration.relays().collect::<Vec<_>>() {
            if !self.board.is_fresh(relay, now) {
                self.lose(relay, now);
            }
        }
    }

    fn lose(&mut self, relay: RelayId, now: Instant) {
        self.lasting.retain(|(known, _)| *known != relay);
        if self.migration.lost(relay, now) {
            self.board.put_on_probation(relay, self.settings.period, now);
            self.decide(Cause::Loss(relay), now);
        }
        self.after(now);
    }

    fn forgive(&mut self, now: Instant) {
        let long = self.settings.period.saturating_mul(PERIODS_TO_FORGIVE);
        let (active, board) = (self.migration.active().collect::<Vec<_>>(), &mut self.board);
        self.lasting.retain(|(relay, since)| {
            let proved = now.saturating_since(*since) >= long;
            if proved {
                board.forgive(*relay);
            }
            !proved && active.contains(relay)
        });
    }

    /// Goes to the best set there is, because the set in use is no set any more, or never was.
    fn decide(&mut self, cause: Cause, now: Instant) {
        let Choice { active, backup, feasible } = self.choose(now);
        let is_in_range = self.wanted().range().contains(self.offered(now).as_bps());
        match backup {
            // A backup is for a set in use: the very first set is the active one (SSRS (4)).
            Some(backup) if self.is_in_use() => self.migrate(backup, cause, now),
            // What is left serves.
            None if self.is_in_use() && feasible && is_in_range => {}
            _ => self.migrate(active, cause, now),
        }
        self.after(now);
    }

    /// Leaves a set that is out of range: for the backup, or, where nothing is in range, for what comes nearer to it.
    fn leave_for(&mut self, choice: Choice, offered: Rate, cause: Cause, now: Instant) {
        let range = self.wanted().range();
        let Choice { active, backup, feasible } = choice;
        if !feasible && self.settings.headroom > 0.0 {
            let step_bps = (self.goal.target.as_bps() as f64 * SCARCE_STEP) as u64;
            if range.distance(active.sum_bps).saturating_add(step_bps) <= range.distance(offered.as_bps()) {
                self.migrate(active, cause, now);
            }
            return;
        }
        let is_nearer = range.distance(active.sum_bps) < range.distance(offered.as_bps());
        match backup {
            Some(backup) if self.is_in_use() => self.migrate(backup, cause, now),
            // Where there is no backup, the set in use is the best that its rule finds.
            None if self.is_in_use() && !is_nearer => {}
            _ => self.migrate(active, cause, now),
        }
    }

    fn is_in_use(&self) -> bool {
        self.migration.target().next().is_some()
    }

    fn migrate(&mut self, to: RelaySet, cause: Cause, now: Instant) {
        let from = self.target();
        if to.relays.is_empty() {
            // With nothing to wait for, the next period looks again.
            self.settled |= !self.migration.keep(now);
            return;
        }
        if to.relays == from {
            return;
        }
        self.migration.set_target(to.relays.iter().copied(), now);
        self.settled = false;
        let feasible = [self.goal, self.wanted()].iter().any(|goal| goal.range().contains(to.sum_bps));
        self.reports.push_back(Report::Migration { at: now, cause, from, to, feasible });
    }

    /// Follows up what the migration found.
    fn after(&mut self, now: Instant) {
        while let Some(relay) = self.migration.poll_failed() {
            self.board.put_on_probation(relay, self.settings.period, now);
            self.decide(Cause::Loss(relay), now);
        }
        if !self.settled && self.migration.is_settled() {
            self.settled = true;
            self.hold_down = self.settings.hold_down_periods;
            self.quiet_until = now + self.settings.quiet;
            self.reports.push_back(Report::Settled { at: now });
        }
    }
}

/// Leaves the largest [`SET_RELAYS_MAX`] offers, in ascending order of relays; those `in_use` count for more.
fn keep_largest(offers: &mut Vec<Offer>, in_use: &[RelayId]) {
    let weight = |offer: &Offer| {
        let factor = if in_use.contains(&offer.relay) { KEPT_NUMERATOR } else { KEPT_DENOMINATOR };
        u128::from(offer.available.as_bps()) * factor
    };
    offers.sort_by_key(|offer| (Reverse(weight(offer)), offer.relay));
    offers.truncate(SET_RELAYS_MAX);
    offers.sort_by_key(|offer| offer.relay);
}
