//! Adverts: how a relay measures its bandwidth, and how the destination evaluates the adverts.
//!
//! Relay i advertises b_i = max(0, B_i - local_i) (thesis section 4.1.1): B_i is the rate that its cellular link could
//! carry, local_i the rate of its owner's own traffic. Traffic that it forwards for the destination is not local: an
//! active relay would otherwise advertise nothing. `docs/algorithms/migration.md` explains the symbols.

use std::collections::BTreeMap;

use units::{Duration, Instant, Rate};

use super::energy::EnergyPrice;
use super::steady_mean::SteadyMean;
use super::{Offer, RelayId};

/// Maximum share of the link that the relay's own traffic may take if the relay is to be used (the thesis names no
/// number).
const LOCAL_SHARE_MAX: f64 = 0.95;
/// Changes by more than this part of the link's capacity count as a step of the owner's traffic.
const STEP_SHARE: f64 = 0.05;

/// A relay's report about its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// The relay.
    pub relay: RelayId,
    /// Time of measurement, on the relay's clock. It only orders the adverts of one relay, so clocks need not agree.
    pub at: Instant,
    /// Rate that its cellular link could carry (B).
    pub capacity: Rate,
    /// Part of it that the owner's traffic takes.
    pub local: Rate,
    /// Price of forwarding a bit.
    pub energy: EnergyPrice,
}

impl Advert {
    /// Returns the available bandwidth (b).
    pub fn available(&self) -> Rate {
        Rate::from_bps(self.capacity.as_bps().saturating_sub(self.local.as_bps()))
    }

    /// Returns whether the owner needs the link for their own traffic.
    fn is_occupied(&self) -> bool {
        self.local.as_bps() as f64 > LOCAL_SHARE_MAX * self.capacity.as_bps() as f64
    }
}

/// A relay's measurements of its cellular link in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Octets of packets for its owner that have arrived since the run began.
    pub local_bytes: u64,
    /// Octets of all packets that have arrived since the run began, including forwarded ones.
    pub delivered_bytes: u64,
    /// Whether more data were waiting for the link during the whole period, as far as the relay can tell.
    pub backlogged: bool,
    /// Rate that the cell would grant, if the modem reports it.
    pub granted: Option<Rate>,
}

/// A method to estimate the capacity of a link (B).
pub trait CapacityEstimator: Send {
    /// Returns its name in settings.
    fn name(&self) -> &'static str;

    /// Returns the capacity after a period in which the link delivered at `delivered`.
    fn estimate(&mut self, delivered: Rate, measured: &LinkUse) -> Rate;
}

/// The configured capacity: that of the tariff, or of the link in a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Configured(pub Rate);

impl CapacityEstimator for Configured {
    fn name(&self) -> &'static str {
        "configured"
    }

    fn estimate(&mut self, _delivered: Rate, _measured: &LinkUse) -> Rate {
        self.0
    }
}

/// The rate that the cell's scheduler would grant, as the modem reports it; until it does, the given rate.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerShare(pub Rate);

impl CapacityEstimator for SchedulerShare {
    fn name(&self) -> &'static str {
        "scheduler-share"
    }

    fn estimate(&mut self, _delivered: Rate, measured: &LinkUse) -> Rate {
        self.0 = measured.granted.unwrap_or(self.0);
        self.0
    }
}

/// The delivery that was measured: the rate of the latest full period, or a later higher rate. Until the link was full
/// once, only a lower bound is known, so the given rate stands.
///
/// A period counts as full only if the one before was full too: a relay may know merely that data wait at the moment of
/// measuring, and the first period may have begun before the link was measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredDelivery {
    capacity: Rate,
    was_backlogged: bool,
}

impl MeasuredDelivery {
    /// Creates the estimate of a link that was not full yet, of the given `capacity`.
    pub const fn new(capacity: Rate) -> Self {
        Self { capacity, was_backlogged: false }
    }
}

impl CapacityEstimator for MeasuredDelivery {
    fn name(&self) -> &'static str {
        "measured-delivery"
    }

    fn estimate(&mut self, delivered: Rate, measured: &LinkUse) -> Rate {
        let was_backlogged = core::mem::replace(&mut self.was_backlogged, measured.backlogged);
        let is_full = was_backlogged && measured.backlogged;
        self.capacity = if is_full { delivered } else { self.capacity.max(delivered) };
        self.capacity
    }
}

/// The relay's side: turns measurements of its link into adverts.
pub struct LinkMonitor {
    relay: RelayId,
    estimator: Box<dyn CapacityEstimator>,
    latest: Option<(Instant, LinkUse)>,
    /// Rate of the owner's traffic; before the first period, the expected rate.
    local: Rate,
    energy: EnergyPrice,
    /// State for adverts that are more frequent than periods.
    prompt: Option<Prompt>,
}

impl LinkMonitor {
    /// Creates a monitor of `relay`, whose owner is expected to use `local` until a period has been measured.
    pub fn new(relay: RelayId, estimator: Box<dyn CapacityEstimator>, local: Rate) -> Self {
        Self { relay, estimator, latest: None, local, energy: EnergyPrice::default(), prompt: None }
    }

    /// Sets the energy price.
    pub fn paying(self, energy: EnergyPrice) -> Self {
        Self { energy, ..self }
    }

    /// Prepares for `per_period` adverts in each period: the rate of the owner's traffic is then a mean over the
    /// adverts since its latest step.
    pub fn prompt(self, per_period: usize) -> Self {
        let (mean, disturbed) = (SteadyMean::over(per_period), per_period);
        Self { prompt: Some(Prompt { mean, forwards: false, disturbed: 0, disturbed_max: disturbed }), ..self }
    }

    /// Returns the advert for the period since the previous call.
    pub fn advert(&mut self, measured: LinkUse, now: Instant) -> Advert {
        let (mut delivered, before) = (Rate::ZERO, self.local);
        if let Some((since, before)) = self.latest {
            let rate = |bytes: u64, before: u64| {
                Rate::from_bytes_per(bytes.saturating_sub(before), now.saturating_since(since))
            };
            self.local = rate(measured.local_bytes, before.local_bytes);
            delivered = rate(measured.delivered_bytes, before.delivered_bytes);
        }
        let is_first = self.latest.replace((now, measured)).is_none();
        let capacity = self.estimator.estimate(delivered, &measured);
        if let Some(prompt) = self.prompt.as_mut().filter(|_| !is_first) {
            self.local = prompt.local(before, self.local, delivered, capacity);
        }
        Advert { relay: self.relay, at: now, capacity, local: self.local, energy: self.energy }
    }
}

/// The rate of the owner's traffic, moment by moment.
struct Prompt {
    mean: SteadyMean,
    /// Whether the relay forwarded traffic in the last moment.
    forwards: bool,
    /// Adverts left until the queue before the link is full, or empty, again.
    disturbed: usize,
    disturbed_max: usize,
}

impl Prompt {
    /// Returns the new value of `before` after a moment in which `local` arrived for the owner, of `delivered` in all.
    /// While a queue fills with forwarded traffic, or drains, the rate of arrivals for the owner is not the rate of
    /// sending to the owner.
    fn local(&mut self, before: Rate, local: Rate, delivered: Rate, capacity: Rate) -> Rate {
        let step = Rate::from_bps((capacity.as_bps() as f64 * STEP_SHARE) as u64);
        let forwards = delivered.as_bps() > local.as_bps() + step.as_bps();
        if core::mem::replace(&mut self.forwards, forwards) != forwards {
            self.disturbed = self.disturbed_max;
        }
        if self.disturbed > 0 {
            self.disturbed -= 1;
            return before;
        }
        self.mean.add(local, step)
    }
}

/// The destination's side: the latest advert of each relay, and which relays are on probation.
#[derive(Debug)]
pub struct AdvertBoard {
    lifetime: Duration,
    payload_ratio: f64,
    entries: BTreeMap<RelayId, Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    latest: Option<Posted>,
    /// The relay's timestamp on the newest advert ever accepted: older ones are replays.
    newest: Option<Instant>,
    probation_until: Instant,
    /// Consecutive failures.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Posted {
    advert: Advert,
    arrived: Instant,
}

/// Consecutive failures after which probation stops growing: 16 periods.
const FAILURES_MAX: u32 = 5;

impl AdvertBoard {
    /// Creates a board on which adverts expire after `lifetime`. Links carry packets but targets count payload, so
    /// offers are `payload_ratio` times the advertised rate.
    pub fn new(lifetime: Duration, payload_ratio: f64) -> Self {
        Self { lifetime, payload_ratio, entries: BTreeMap::new() }
    }

    fn payload(&self, packets: Rate) -> Rate {
        Rate::from_bps((packets.as_bps() as f64 * self.payload_ratio).round() as u64)
    }

    /// Posts an advert. Returns false if it is no newer than an earlier one, as a replay is.
    pub fn post(&mut self, advert: Advert, now: Instant) -> bool {
        let entry = self.entries.entry(advert.relay).or_default();
        if entry.newest.is_some_and(|newest| newest >= advert.at) {
            return false;
        }
        entry.newest = Some(advert.at);
        entry.latest = Some(Posted { advert, arrived: now });
        true
    }

    /// Forgets a relay's timestamps: its channel is new, and its clock may have restarted. Messages of the earlier
    /// channel cannot be replayed on the new one.
    pub fn forget_stamp(&mut self, relay: RelayId) {
        if let Some(entry) = self.entries.get_mut(&relay) {
            entry.newest = None;
        }
    }

    /// Removes the offer of a relay that announced its departure.
    pub fn withdraw(&mut self, relay: RelayId) {
        if let Some(entry) = self.entries.get_mut(&relay) {
            entry.latest = None;
        }
    }

    /// Puts a relay that failed on probation: no offers for `period`, doubled with each further consecutive failure.
    pub fn put_on_probation(&mut self, relay: RelayId, period: Duration, now: Instant) {
        let entry = self.entries.entry(relay).or_default();
        entry.failures = (entry.failures + 1).min(FAILURES_MAX);
        entry.probation_until = now + period.saturating_mul(1 << (entry.failures - 1));
    }

    /// Forgives the failures of a relay that proved itself.
    pub fn forgive(&mut self, relay: RelayId) {
        if let Some(entry) = self.entries.get_mut(&relay) {
            entry.failures = 0;
        }
    }

    /// Returns every relay that has ever been heard, in ascending order.
    pub fn relays(&self) -> impl Iterator<Item = RelayId> + '_ {
        self.entries.keys().copied()
    }

    /// Returns whether the relay's advert has not expired.
    pub fn is_fresh(&self, relay: RelayId, now: Instant) -> bool {
        self.entries.get(&relay).is_some_and(|entry| entry.advert(self.lifetime, now).is_some())
    }

    /// Returns the offer of `relay`, whether it is worth choosing or not; `None` if its advert has expired.
    pub fn available(&self, relay: RelayId, now: Instant) -> Option<Rate> {
        Some(self.payload(self.entries.get(&relay)?.advert(self.lifetime, now)?.available()))
    }

    /// Returns the offers that have not expired, in ascending order of relays. Leaves out relays on probation, relays
    /// whose owners need their links, and empty offers. The selector decides which offers are too small to be worth a
    /// subflow: if all are small, all are needed.
    pub fn offers(&self, now: Instant) -> Vec<Offer> {
        let posted = self.entries.iter().filter(|(_, entry)| entry.probation_until <= now);
        let adverts = posted.filter_map(|(_, entry)| entry.advert(self.lifetime, now));
        let willing = adverts.filter(|advert| !advert.is_occupied());
        let offers = willing.map(|advert| Offer { relay: advert.relay, available: self.payload(advert.available()) });
        offers.filter(|offer| offer.available > Rate::ZERO).collect()
    }
}

impl Entry {
    fn advert(&self, lifetime: Duration, now: Instant) -> Option<Advert> {
        let fresh = self.latest.filter(|posted| now.saturating_since(posted.arrived) <= lifetime);
        fresh.map(|posted| posted.advert)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: Duration = Duration::from_secs(2);

    fn advert(relay: u16, at_s: u64, capacity_kbps: u64, local_kbps: u64) -> Advert {
        let [capacity, local] = [capacity_kbps, local_kbps].map(|kbps| Rate::from_bps(kbps * 1000));
        let energy = EnergyPrice::default();
        Advert { relay: RelayId(relay), at: Instant::from_secs(at_s), capacity, local, energy }
    }

    fn offered(board: &AdvertBoard, now_s: u64) -> Vec<(u16, u64)> {
        let offers = board.offers(Instant::from_secs(now_s));
        offers.iter().map(|offer| (offer.relay.0, offer.available.as_bps() / 1000)).collect()
    }

    #[test]
    fn forwarded_octets_are_not_local() {
        let estimator = Box::new(Configured(Rate::from_mbps(2)));
        let mut monitor = LinkMonitor::new(RelayId(4), estimator, Rate::from_bps(700_000));
        let start = monitor.advert(LinkUse::default(), Instant::ZERO);
        assert_eq!(start.available(), Rate::from_bps(1_300_000));
        // 125 kB for the owner in 2 s are 0.5 Mbit/s; 250 kB more are forwarded.
        let measured = LinkUse { local_bytes: 125_000, delivered_bytes: 375_000, ..LinkUse::default() };
        let next = monitor.advert(measured, Instant::from_secs(2));
        assert_eq!((next.available(), next.local), (Rate::from_bps(1_500_000), Rate::from_bps(500_000)));
    }

    #[test]
    fn a_full_link_is_as_fast_as_it_was_seen_to_be() {
        let mut monitor = LinkMonitor::new(RelayId(0), Box::new(MeasuredDelivery::new(Rate::from_mbps(5))), Rate::ZERO);
        let mut after = |now_s, delivered_bytes, backlogged| {
            let measured = LinkUse { delivered_bytes, backlogged, ..LinkUse::default() };
            monitor.advert(measured, Instant::from_secs(now_s)).capacity.as_bps()
        };
        assert_eq!(after(0, 0, false), 5_000_000);
        // 500 kB in 2 s with more waiting, and again: 2 Mbit/s, whatever the estimate was before.
        assert_eq!(after(2, 500_000, true), 5_000_000);
        assert_eq!(after(4, 1_000_000, true), 2_000_000);
        assert_eq!(after(6, 1_100_000, false), 2_000_000);
        assert_eq!(after(8, 1_850_000, false), 3_000_000);
        // Data that wait now and then do not make a full link.
        assert_eq!(after(10, 1_900_000, true), 3_000_000);
        assert_eq!(after(12, 1_950_000, false), 3_000_000);
    }

    #[test]
    fn a_link_that_is_busy_when_its_relay_starts_is_not_taken_for_none() {
        let estimator = Box::new(MeasuredDelivery::new(Rate::from_mbps(5)));
        let mut monitor = LinkMonitor::new(RelayId(0), estimator, Rate::ZERO);
        let busy = LinkUse { backlogged: true, ..LinkUse::default() };
        assert_eq!(monitor.advert(busy, Instant::ZERO).available(), Rate::from_mbps(5));
    }

    #[test]
    fn the_modem_is_believed_once_it_tells() {
        let mut share = SchedulerShare(Rate::from_mbps(1));
        assert_eq!(share.estimate(Rate::ZERO, &LinkUse::default()), Rate::from_mbps(1));
        let told = LinkUse { granted: Some(Rate::from_mbps(3)), ..LinkUse::default() };
        assert_eq!(share.estimate(Rate::ZERO, &told), Rate::from_mbps(3));
        assert_eq!(share.estimate(Rate::ZERO, &LinkUse::default()), Rate::from_mbps(3));
    }

    #[test]
    fn busy_relays_and_those_with_nothing_are_not_offered() {
        let mut board = AdvertBoard::new(F, 1.0);
        // 1.95 of 2 Mbit/s is 97.5 %, 1.9 of 2 Mbit/s is 95 %; the last owner takes more than the link carries.
        for advert in [advert(0, 1, 2000, 1950), advert(1, 1, 50, 0), advert(2, 1, 2000, 1900), advert(3, 1, 800, 900)]
        {
            assert!(board.post(advert, Instant::from_secs(1)));
        }
        assert_eq!(offered(&board, 1), [(1, 50), (2, 100)]);
        assert_eq!(board.available(RelayId(3), Instant::from_secs(1)), Some(Rate::ZERO));
    }

    #[test]
    fn offers_count_payload() {
        // 1428 of 1500 octets are payload.
        let mut board = AdvertBoard::new(F, 0.952);
        board.post(advert(5, 1, 2000, 1000), Instant::ZERO);
        assert_eq!(offered(&board, 0), [(5, 952)]);
        assert_eq!(board.available(RelayId(5), Instant::ZERO), Some(Rate::from_bps(952_000)));
    }

    #[test]
    fn adverts_expire_and_replays_are_refused() {
        let mut board = AdvertBoard::new(F, 1.0);
        assert!(board.post(advert(7, 100, 1000, 0), Instant::from_secs(10)));
        assert_eq!((offered(&board, 12), offered(&board, 13)), (vec![(7, 1000)], vec![]));
        assert!(!board.post(advert(7, 100, 1000, 0), Instant::from_secs(13)));
        assert!(!board.post(advert(7, 99, 1000, 0), Instant::from_secs(13)));
        assert!(board.post(advert(7, 101, 900, 0), Instant::from_secs(13)));
        board.withdraw(RelayId(7));
        assert_eq!(offered(&board, 13), []);
        // A relay that left and returns continues with its timestamps.
        assert!(!board.post(advert(7, 101, 900, 0), Instant::from_secs(14)));
    }

    #[test]
    fn probation_doubles_until_a_relay_proves_itself() {
        let mut board = AdvertBoard::new(Duration::from_secs(1000), 1.0);
        board.post(advert(1, 1, 1000, 0), Instant::ZERO);
        let mut fail = |at_s| board.put_on_probation(RelayId(1), F, Instant::from_secs(at_s));
        fail(10);
        fail(20);
        assert_eq!((offered(&board, 23), offered(&board, 24)), (vec![], vec![(1, 1000)]));
        board.forgive(RelayId(1));
        board.put_on_probation(RelayId(1), F, Instant::from_secs(30));
        assert_eq!((offered(&board, 31), offered(&board, 32)), (vec![], vec![(1, 1000)]));
    }
}
