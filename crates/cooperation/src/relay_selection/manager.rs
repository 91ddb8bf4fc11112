//! The loop that keeps a connection at its target bit rate: it takes adverts and arrivals, and opens and closes
//! subflows.
//!
//! ```text
//! adverts ──► AdvertBoard ──► RelaySelector ──► Migration ──► commands
//! arrivals, every F ──► Trigger ──┘                 ▲
//! subflow events ───────────────────────────────────┘
//! ```
//!
//! Thesis section 4.1 and SSRS section II-B; `docs/algorithms/migration.md` explains the symbols and the choices that
//! they leave open.

use std::cmp::Reverse;
use std::collections::VecDeque;

use units::{Duration, Instant, Prng, Rate};

use super::credit::{Carried, Credit};
use super::migration::{Command, LEGS_MAX, Migration, PathState, Timing};
use super::monitor::{Advert, AdvertBoard};
use super::play_out::BufferedTolerance;
use super::trigger::{Outage, Trigger};
use super::{Choice, Goal, Offer, RelayId, RelaySelector, RelaySet};

/// Periods that a subflow must last before earlier failures of its relay are forgiven.
const PERIODS_TO_FORGIVE: u64 = 4;
/// If no set has the wanted headroom, a migration must bring the offers nearer to it by at least this part of the
/// target: normal fluctuation of offers is smaller.
const SCARCE_STEP: f64 = 0.05;
/// Maximum number of relays in a set: the rest of [`LEGS_MAX`] is room for relays that replace others.
pub const SET_RELAYS_MAX: usize = LEGS_MAX * 4 / 5;
/// If a set has its maximum number of relays, a relay in use gives way only to one that offers a quarter more: normal
/// fluctuation of offers is smaller.
const KEPT_NUMERATOR: u128 = 5;
const KEPT_DENOMINATOR: u128 = 4;

/// Settings of the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManagerSettings {
    /// Monitor period (F).
    pub period: Duration,
    /// Periods after a migration at whose ends no other begins, unless a relay is lost. Adverts between ends of periods
    /// wait for `quiet` alone.
    pub hold_down_periods: u32,
    /// What starts the search for another set.
    pub trigger: Trigger,
    /// Part of the target by which offers should exceed it. A source that sends no faster than the target cannot catch
    /// up after a link has fallen behind; the headroom makes up for that.
    pub headroom: f64,
    /// Whether relays that delivered far less than they advertised lose credit.
    pub discount: bool,
    /// How far the accepted range of throughput and offers widens while much is left to play.
    pub buffered: Option<BufferedTolerance>,
    /// Time after a migration in which adverts between ends of periods are only recorded.
    pub quiet: Duration,
    /// Time after which an advert expires.
    pub advert_lifetime: Duration,
    /// Share of payload in the subflows' packets: relays advertise packet rates, the target counts payload.
    pub payload_ratio: f64,
    /// Durations of the steps of a migration.
    pub timing: Timing,
}

impl ManagerSettings {
    /// Returns the settings for deployment, for monitor period F.
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

    /// Returns the settings as printed: no hold-down, and no backup priority before removal.
    pub fn paper(period: Duration) -> Self {
        let build = Self::build(period);
        Self { hold_down_periods: 0, timing: Timing { drain: false, ..build.timing }, ..build }
    }
}

/// The reason for leaving a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No set was in use yet.
    Start,
    /// The set was out of the accepted range.
    Outage(Outage),
    /// A relay of the set was lost.
    Loss(RelayId),
    /// The application asked for another rate.
    Goal,
}

/// A report of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A migration begins, or changes its target.
    Migration {
        /// Time of the report.
        at: Instant,
        /// The reason.
        cause: Cause,
        /// The relays that were wanted before and are still there, in ascending order.
        from: Vec<RelayId>,
        /// The relays that are wanted now, with their offers.
        to: RelaySet,
        /// Whether the new set is in the accepted range.
        feasible: bool,
    },
    /// Exactly the wanted subflows are established.
    Settled {
        /// Time of the report.
        at: Instant,
    },
    /// A period has ended.
    Monitored {
        /// Time of the report.
        at: Instant,
        /// Sum of the offers of the relays in use.
        offered: Rate,
        /// Sum of the offers of the next set, if there is one.
        backup: Option<Rate>,
    },
}

/// The loop. After any input, poll [`Self::poll_command`] and [`Self::poll_report`] until they return nothing, then
/// [`Self::poll_timeout`].
pub struct RelayManager {
    settings: ManagerSettings,
    goal: Goal,
    selector: Box<dyn RelaySelector>,
    prng: Prng,
    board: AdvertBoard,
    migration: Migration,
    /// Relays whose subflows are established, and since when they have served without a break.
    lasting: Vec<(RelayId, Instant)>,
    /// Whether the latest migration has ended.
    settled: bool,
    /// Periods left of the hold-down.
    hold_down: u32,
    /// Time until which reviews change nothing.
    quiet_until: Instant,
    credit: Credit,
    /// Relays that should carry data during the whole current period.
    carriers: Vec<RelayId>,
    /// What they carried, until the period ends.
    carried: Vec<Carried>,
    /// Playing time left in the buffer.
    level: Duration,
    /// Least time that a subflow must last before earlier failures of its relay are forgiven.
    proof: Duration,
    reports: VecDeque<Report>,
}

impl RelayManager {
    /// Creates a loop without relays. The selector draws from `prng`.
    pub fn new(settings: ManagerSettings, goal: Goal, selector: Box<dyn RelaySelector>, prng: Prng) -> Self {
        Self {
            board: AdvertBoard::new(settings.advert_lifetime, settings.payload_ratio),
            migration: Migration::new(settings.timing),
            settings,
            goal,
            selector,
            prng,
            lasting: Vec::new(),
            settled: true,
            hold_down: 0,
            quiet_until: Instant::ZERO,
            credit: Credit::default(),
            carriers: Vec::new(),
            carried: Vec::new(),
            level: Duration::ZERO,
            proof: Duration::ZERO,
            reports: VecDeque::new(),
        }
    }

    /// Returns the rate that the application asks for.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// Returns the relays whose subflows are established and wanted, in ascending order.
    pub fn active(&self) -> Vec<RelayId> {
        self.migration.active().collect()
    }

    /// Returns how many subflows carry new data: the size of the active set. During a migration, the old subflows count
    /// until the new ones are established.
    pub fn carrying(&self) -> usize {
        self.migration.carrying()
    }

    /// Returns the wanted relays, in ascending order, with their offers.
    pub fn offers_in_use(&self, now: Instant) -> Vec<(RelayId, Rate)> {
        let target = self.migration.target();
        target.map(|relay| (relay, self.board.available(relay, now).unwrap_or_default())).collect()
    }

    /// Returns the wanted relays, in ascending order.
    pub fn target(&self) -> Vec<RelayId> {
        self.migration.target().collect()
    }

    /// Makes all commands wait for [`Self::release_attempts`], because the connection can have no subflow but its first
    /// one yet. Call this before anything else.
    pub fn hold_attempts(&mut self) {
        self.migration.hold_attempts();
    }

    /// Begins to open subflows: the connection can have several now. The first one, if it is there already, is not
    /// opened again.
    pub fn release_attempts(&mut self, now: Instant) {
        self.migration.release_attempts(now);
        self.after(now);
    }

    /// Chooses the first relays from their adverts.
    pub fn start(&mut self, now: Instant) {
        self.decide(Cause::Start, now);
    }

    /// Sets another rate for the application. The set in use stays if it serves that rate too.
    pub fn set_goal(&mut self, goal: Goal, now: Instant) {
        self.goal = goal;
        if !self.wanted().range().contains(self.offered(now).as_bps()) {
            self.decide(Cause::Goal, now);
        }
    }

    /// Handles a relay's advert of its bandwidth and energy price.
    pub fn handle_advert(&mut self, advert: Advert, now: Instant) {
        if self.board.post(advert, now) {
            self.selector.hear_price(advert.relay, advert.energy);
        }
    }

    /// Handles a new channel to a relay: its next advert counts as the newest, whatever its clock showed before.
    pub fn handle_channel(&mut self, relay: RelayId) {
        self.board.forget_stamp(relay);
    }

    /// Handles a relay that announces its departure, or is known to be gone.
    pub fn handle_leave(&mut self, relay: RelayId, now: Instant) {
        self.board.withdraw(relay);
        self.lose(relay, now);
    }

    /// Handles the establishment of the subflow through `relay`.
    pub fn handle_established(&mut self, relay: RelayId, now: Instant) {
        if self.migration.relays().any(|known| known == relay) {
            self.lasting.retain(|(known, _)| *known != relay);
            self.lasting.push((relay, now));
        }
        self.migration.established(relay, now);
        self.after(now);
    }

    /// Handles the end of the subflow through `relay`, or a failure to open it. Not needed after a [`Command::Remove`].
    pub fn handle_closed(&mut self, relay: RelayId, now: Instant) {
        if self.migration.closed(relay, now) {
            self.board.put_on_probation(relay, self.settings.period, now);
            self.decide(Cause::Loss(relay), now);
        }
        self.after(now);
    }

    /// Records the state of a relay's path. Call this for all relays before time-outs, ends of periods and established
    /// subflows.
    pub fn observe(&mut self, relay: RelayId, path: PathState) {
        self.migration.observe(relay, path);
    }

    /// Reviews adverts between ends of periods: leaves the set in use at once if its offers are out of range, without
    /// waiting for the end of the period. Does nothing during a migration or right after one, or where only the
    /// throughput counts.
    pub fn review(&mut self, now: Instant) {
        self.expire(now);
        let offered = self.offered(now);
        if let Some(outage) = self.outage_of_offers(offered).filter(|_| self.settled && now >= self.quiet_until) {
            let choice = self.choose(now);
            self.leave_for(choice, offered, Cause::Outage(outage), now);
        }
        self.after(now);
    }

    /// Records that data arrived through `relay` at `delivered` in the period that ends now; call before
    /// [`Self::handle_period`].
    pub fn handle_carried(&mut self, relay: RelayId, delivered: Rate, now: Instant) {
        if let Some(advertised) = self.board.available(relay, now).filter(|_| self.carriers.contains(&relay)) {
            self.carried.push(Carried { relay, advertised, delivered });
        }
    }

    /// Sets how much of the data that arrived in order is left to play at the target bit rate.
    pub fn set_level(&mut self, level: Duration) {
        self.level = level;
    }

    /// Sets how long a subflow must last, beside four periods, before earlier failures of its relay are forgiven: the
    /// time that others need to find out whether it delivers.
    pub fn set_proof(&mut self, proof: Duration) {
        self.proof = proof;
    }

    /// Handles the end of a period in which data arrived at `throughput` over all subflows.
    pub fn handle_period(&mut self, throughput: Rate, now: Instant) {
        self.expire(now);
        self.forgive(now);
        self.credit.judge(&core::mem::take(&mut self.carried));
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

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.migration.handle_timeout(now);
        self.after(now);
    }

    /// Returns when [`Self::handle_timeout`] must be called next; the caller keeps track of ends of periods.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.migration.poll_timeout()
    }

    /// Returns the next command, if any.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.migration.poll_command()
    }

    /// Returns the next report, if any.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns the sum of the wanted relays' offers.
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
        let choice = self.ask(&offers, &wanted, &in_use);
        let fits = |set: &RelaySet| set.relays.len() <= SET_RELAYS_MAX;
        if fits(&choice.active) && choice.backup.as_ref().is_none_or(fits) {
            return choice;
        }
        keep_largest(&mut offers, &in_use);
        self.ask(&offers, &wanted, &in_use)
    }

    /// Asks the selector. Relays that make no offer are left out: the connection goes on with the others.
    fn ask(&mut self, offers: &[Offer], wanted: &Goal, in_use: &[RelayId]) -> Choice {
        self.selector.choose(offers, wanted, in_use, &mut self.prng).unwrap_or_else(|unknown| unknown.rest)
    }

    /// Returns why the set in use should be left, if it should.
    fn outage(&self, throughput: Rate, offered: Rate) -> Option<Outage> {
        let goal = self.kept(self.goal);
        let by_throughput = self.settings.trigger.check(&goal, throughput, goal.target);
        by_throughput.or_else(|| self.outage_of_offers(offered))
    }

    /// The same by the offers alone. The headroom applies to them, not to the throughput.
    fn outage_of_offers(&self, offered: Rate) -> Option<Outage> {
        let wanted = self.kept(self.wanted());
        self.settings.trigger.check(&wanted, wanted.target, offered)
    }

    /// Returns the goal for the set in use, where a new set must meet `goal`.
    fn kept(&self, goal: Goal) -> Goal {
        let tolerance = self.settings.buffered.map_or(goal.tolerance, |wide| wide.at(self.level, goal.tolerance));
        Goal { tolerance, ..goal }
    }

    fn believed(&self, relay: RelayId, offered: Rate) -> Rate {
        if self.settings.discount { self.credit.believed(relay, offered) } else { offered }
    }

    /// Restores some credit of relays that carried no data, and notes the carriers of the next period.
    fn rest(&mut self) {
        let target = self.target();
        let others = self.board.relays().filter(|relay| !target.contains(relay));
        others.for_each(|relay| self.credit.rested(relay));
        self.carriers = if self.settled { target } else { Vec::new() };
    }

    /// Returns the goal for the sum of the offers.
    fn wanted(&self) -> Goal {
        let target_bps = self.goal.target.as_bps() as f64 * (1.0 + self.settings.headroom);
        Goal { target: Rate::from_bps(target_bps.round() as u64), ..self.goal }
    }

    /// Treats relays with expired adverts as lost.
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
        // The failure that ended a service is not among those before it.
        let active = self.active();
        self.lasting.retain(|(relay, _)| active.contains(relay));
        let long = self.settings.period.saturating_mul(PERIODS_TO_FORGIVE).max(self.proof);
        for (relay, _) in self.lasting.iter().filter(|(_, since)| now.saturating_since(*since) >= long) {
            self.board.forgive(*relay);
        }
        // Relays that were taken back with the subflow that they had.
        let back = active.into_iter().filter(|relay| self.lasting.iter().all(|(known, _)| known != relay));
        let back: Vec<_> = back.map(|relay| (relay, now)).collect();
        self.lasting.extend(back);
    }

    /// Changes to the best set available, because the set in use lost a relay, or none is in use.
    fn decide(&mut self, cause: Cause, now: Instant) {
        let Choice { active, backup, feasible } = self.choose(now);
        let is_in_range = self.wanted().range().contains(self.offered(now).as_bps());
        match backup {
            // A backup replaces a set in use; the very first set is the active one (SSRS (4)).
            Some(backup) if self.is_in_use() => self.migrate(backup, cause, now),
            // The remaining relays suffice.
            None if self.is_in_use() && feasible && is_in_range => {}
            _ => self.migrate(active, cause, now),
        }
        self.after(now);
    }

    /// Leaves a set that is out of range: for the backup, or, if no set is in range, for one that is nearer to the
    /// range.
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
            // Without a backup, the set in use is the best that its rule finds.
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
            // Nothing is pending, so the next period tries again.
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

    /// Acts on the migration's results.
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

/// Keeps the largest [`SET_RELAYS_MAX`] offers, in ascending order of relays; those `in_use` have more weight.
fn keep_largest(offers: &mut Vec<Offer>, in_use: &[RelayId]) {
    let weight = |offer: &Offer| {
        let factor = if in_use.contains(&offer.relay) { KEPT_NUMERATOR } else { KEPT_DENOMINATOR };
        u128::from(offer.available.as_bps()) * factor
    };
    offers.sort_by_key(|offer| (Reverse(weight(offer)), offer.relay));
    offers.truncate(SET_RELAYS_MAX);
    offers.sort_by_key(|offer| offer.relay);
}
