//! Plans the order in which a server's addresses are tried over the uplinks, and the time between attempts.
//!
//! ```text
//! family      the one in which the server speaks MPTCP, if only in one; else the one whose uplinks deliver more, as
//!             far as is known; the one that the resolver names first, if both deliver as much, or the server is known
//!             to speak plain TCP, whose connections stay where they start
//! addresses   families take turns; the other family's first address is tried at once over an uplink that lacks the
//!             first address's family, fails with it, or had no answer with it lately, and over every uplink if the
//!             first address is known to speak plain TCP and the other is unknown; addresses that were silent while
//!             others of the server answered come last
//! one link    two addresses of an uplink share its rate, queue and connections, and its RTT until each has its own
//! ```

use std::net::{IpAddr, SocketAddr};

use units::{Duration, Instant};

use super::{Choice, State, Tier, Weight};

/// Head start of an attempt over the next one: twice its RTT, within these limits.
const HEAD_START_MIN: Duration = Duration::from_millis(50);
const HEAD_START_MAX: Duration = Duration::from_secs(1);
/// An uplink is slow if it delivers less than this part of what the fastest does. For small answers, other differences
/// do not matter.
const SLOW_PARTS: u64 = 4;
/// Assumed rate of an uplink that nothing has filled for long, octets per second: downloads find out. Not assumed if
/// the uplink is further away than this many times the best. Chosen, as the octets below are: four times 8 Mbit/s, at
/// which a megabyte takes a second.
const UNTRIED_BYTES: u64 = 4_000_000;
const UNTRIED_REACH: u64 = 3;
/// Nor is it too far within this RTT: mobile networks are nearer, satellites and long queues are not.
const UNTRIED_REACH_MIN: Duration = Duration::from_millis(150);
/// Octets that a connection transfers at least, as far as is known. The time for them makes a slow uplink count as a
/// far one.
const LIGHT_BYTES: u64 = 16 << 10;
const HEAVY_BYTES: u64 = 1 << 20;
/// Rates are compared as if no uplink delivered less than this part of the best: an unused uplink delivers nothing.
const RATE_FLOOR_PARTS: u64 = 10;

/// A planned attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Local address.
    pub ip: IpAddr,
    /// Address of the server.
    pub remote: SocketAddr,
    /// Time after the previous attempt in the plan.
    pub after: Duration,
}

impl Choice {
    /// Returns a server's addresses in the order in which to try them, without those of a family that no uplink has.
    pub fn order(&self, addresses: &[IpAddr], port: u16, now: Instant) -> Vec<SocketAddr> {
        let usable = addresses.iter().filter(|ip| self.has_family(ip.is_ipv4()));
        let all = usable.map(|ip| SocketAddr::new(*ip, port));
        let (silent, heard): (Vec<_>, Vec<_>) = all.partition(|remote| self.servers.is_silent(*remote, now));
        let mut order = self.in_turns(heard, now);
        order.extend(self.in_turns(silent, now));
        order
    }

    /// Lets the families take turns; within a family, addresses that may speak MPTCP come first.
    fn in_turns(&self, mut all: Vec<SocketAddr>, now: Instant) -> Vec<SocketAddr> {
        let Some(first) = all.first() else { return all };
        let is_ipv4 = first.is_ipv4() != self.is_other_family_worth_more(first.is_ipv4(), &all, now);
        all.sort_by_key(|remote| self.is_plain(*remote, now));
        let (ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|remote| remote.is_ipv4() == is_ipv4);
        let mut others = others.into_iter();
        let mut order: Vec<_> = ours.into_iter().flat_map(|one| core::iter::once(one).chain(others.next())).collect();
        order.extend(others);
        order
    }

    /// Whether the other family delivers more than that of a server's first address. A connection with MPTCP joins by
    /// both, but by the second one only where an uplink lacks the first; a connection without MPTCP stays on one
    /// uplink.
    fn is_other_family_worth_more(&self, is_first_ipv4: bool, all: &[SocketAddr], now: Instant) -> bool {
        let of_family = |is_ipv4: bool| all.iter().filter(move |remote| remote.is_ipv4() == is_ipv4);
        let has_mptcp = |is_ipv4| of_family(is_ipv4).any(|remote| self.servers.speaks_mptcp(*remote, now));
        let is_plain = |is_ipv4| !has_mptcp(is_ipv4) && of_family(is_ipv4).any(|remote| self.is_plain(*remote, now));
        if of_family(!is_first_ipv4).next().is_none() || is_plain(!is_first_ipv4) {
            return false;
        }
        let healthy = || self.uplinks.iter().filter(|state| !state.is_failing(now) && !state.is_unheard(now));
        let Some(tier) = healthy().map(|state| state.uplink.tier).min() else { return false };
        let states: Vec<State> = healthy().filter(|it| it.uplink.tier == tier).map(|it| self.whole(it, now)).collect();
        let shares = Shares::of(&states.iter().collect::<Vec<_>>(), now);
        let worths = |is_ipv4: bool| {
            let of_family = states.iter().filter(move |state| state.uplink.ip.is_ipv4() == is_ipv4);
            of_family.map(|state| shares.weight(state))
        };
        let other: u128 = worths(!is_first_ipv4).sum();
        match is_plain(is_first_ipv4) {
            true => has_mptcp(!is_first_ipv4) && other > 0 && worths(is_first_ipv4).all(|alone| alone <= other),
            false => other > worths(is_first_ipv4).sum(),
        }
    }

    /// Whether to try the second one of a server's addresses at once, to find out whether it speaks MPTCP: the first
    /// one does not, and is of the other family. The result is remembered for an hour.
    pub fn is_to_be_asked(&self, first: SocketAddr, second: SocketAddr, now: Instant) -> bool {
        let is_unknown = !self.is_known(second, now) && !self.servers.is_silent(second, now);
        self.links().len() > 1 && first.is_ipv4() != second.is_ipv4() && is_unknown && self.is_plain(first, now)
    }

    /// Returns the attempts to connect to a server, in order. `remotes` is one address of it, or one of each family,
    /// the better one first. Returns nothing if no uplink has their family.
    pub fn plan(&self, remotes: &[SocketAddr], now: Instant) -> Vec<Start> {
        let candidates = self.candidates(remotes, now);
        // The other family is for uplinks that lack the first one.
        let is_plain = remotes.first().is_some_and(|remote| self.is_plain(*remote, now));
        let is_heavy = remotes.iter().any(|remote| self.weight(*remote, now) == Weight::Heavy);
        let plain = is_plain.then_some(if is_heavy { Weight::Heavy } else { Weight::Light });
        let mut plan = Vec::new();
        // Head start of the previous attempt.
        let mut after = Duration::ZERO;
        for tier in [Tier::Primary, Tier::Secondary, Tier::Backup] {
            let healthy = candidates.iter().filter(|state| state.uplink.tier == tier && !state.is_failing(now));
            let (mut known, unknown): (Vec<_>, Vec<_>) = healthy.partition(|state| state.base(now).is_some());
            let shares = Shares::of(&known, now);
            known.sort_by_key(|state| Some(state.round_trip(now)? + shares.slowness(state, plain)));
            spread(&mut known, &shares, plain);
            let is_stripped = |state: &State| {
                let remote = remotes.iter().find(|remote| remote.is_ipv4() == state.uplink.ip.is_ipv4());
                remote.is_some_and(|remote| self.servers.is_stripped(*remote, state.uplink.link, now))
            };
            lead_with_mptcp(&mut known, &shares, is_heavy, is_stripped);
            let mut waits = after;
            // Unknown uplinks race the first known one, so that they become known. Of equally near ones, the first to
            // begin wins.
            let mut racing: Vec<_> = known.iter().take(1).chain(&unknown).collect();
            racing.sort_by_key(|state| state.load());
            let racers = racing.len();
            for (position, state) in racing.into_iter().chain(known.iter().skip(1)).enumerate() {
                let at_once = position > 0 && position < racers;
                let after = if at_once && !plan.is_empty() { Duration::ZERO } else { waits };
                plan.push((state.uplink.ip, after));
                waits = head_start(state.round_trip(now));
            }
            after = if plan.is_empty() { Duration::ZERO } else { waits };
        }
        plan_failing(&candidates, after, now, &mut plan);
        let remote = |ip: IpAddr| remotes.iter().find(|remote| remote.is_ipv4() == ip.is_ipv4());
        plan.into_iter().filter_map(|(ip, after)| Some(Start { ip, remote: *remote(ip)?, after })).collect()
    }

    /// Returns the best address of each uplink that may lead to the server: one that does not fail if possible, then one
    /// that other uplinks have not outpaced lately, then the first one in the order of `remotes`.
    fn candidates(&self, remotes: &[SocketAddr], now: Instant) -> Vec<State> {
        let rank = |state: &State| {
            let place = remotes.iter().position(|remote| remote.is_ipv4() == state.uplink.ip.is_ipv4())?;
            if !self.may_lead_to(&state.uplink, remotes[place].ip()) {
                return None;
            }
            Some((state.is_failing(now), state.is_unheard(now), place))
        };
        let of_link = |link: usize| self.uplinks.iter().filter(move |state| state.uplink.link == link);
        let candidate = |state: &State| {
            let own = rank(state)?;
            let is_best = of_link(state.uplink.link).filter_map(rank).all(|other| own <= other);
            is_best.then(|| self.whole(state, now))
        };
        self.uplinks.iter().filter_map(candidate).collect()
    }

    /// Returns the state of an address, completed with that of the uplink's other address.
    fn whole(&self, state: &State, now: Instant) -> State {
        let mut whole = state.clone();
        let is_other = |it: &&State| it.uplink.link == state.uplink.link && it.uplink.ip != state.uplink.ip;
        for other in self.uplinks.iter().filter(is_other) {
            if whole.base(now).is_none() {
                // Assume that the other family takes the same path.
                whole.base = other.base;
            }
            whole.light += other.light;
            whole.heavy += other.heavy;
            whole.rate_bytes = whole.rate_bytes.max(other.rate_bytes);
            whole.filled_at = whole.filled_at.max(other.filled_at);
            if other.queue(now) > whole.queue(now) {
                (whole.queue, whole.queue_at) = (other.queue, other.queue_at);
            }
        }
        whole
    }
}

/// Appends failing uplinks to the plan; at once if there are no others. Those of a tier begin together, and have the
/// usual head start over the next tier: they may work again, and a backup is for when no other does.
fn plan_failing(candidates: &[State], after: Duration, now: Instant, plan: &mut Vec<(IpAddr, Duration)>) {
    let mut failing: Vec<_> = candidates.iter().filter(|state| state.is_failing(now)).collect();
    failing.sort_by_key(|state| (state.is_suspect(now), state.uplink.tier, state.failing_until));
    let mut after = if plan.is_empty() { Duration::ZERO } else { after };
    let mut before: Option<&State> = None;
    for state in failing {
        if let Some(before) = before.filter(|before| before.uplink.tier < state.uplink.tier) {
            after = head_start(before.round_trip(now));
        }
        plan.push((state.uplink.ip, after));
        (after, before) = (Duration::ZERO, Some(state));
    }
}

fn head_start(round_trip: Option<Duration>) -> Duration {
    round_trip.map_or(HEAD_START_MAX, |rtt| rtt.saturating_mul(2).clamp(HEAD_START_MIN, HEAD_START_MAX))
}

/// Moves the uplink that gets the next connection to the front. `plain`: what the connection will transfer, if it is to
/// stay where it starts. `known` is sorted by round-trip time, plus transfer time on slow uplinks.
fn spread(known: &mut [&State], shares: &Shares, plain: Option<Weight>) {
    let now = shares.now;
    let reach = |state: &State| state.base(now).map_or(Duration::MAX, |base| base + shares.slowness(state, plain));
    let Some(best) = known.iter().map(|state| reach(state)).min() else { return };
    let is_near = |state: &State| reach(state).saturating_mul(5) <= best.saturating_mul(6);
    let all = || 0..known.len();
    let pick = |among: &dyn Fn(&State) -> bool, added: u32, count: fn(&State) -> u32| {
        all().filter(|index| among(known[*index])).min_by(|a, b| shares.compare(known[*a], known[*b], added, count))
    };
    let is_free =
        |state: &State, count: fn(&State) -> u32| !shares.has_its_share(state, known, count) && !state.has_queue(now);
    let chosen = if plain == Some(Weight::Heavy) {
        let near_is_free = known.iter().any(|state| is_near(state) && is_free(state, State::load));
        pick(&|state| is_near(state) || !near_is_free, 1, State::load)
    } else {
        // A connection with MPTCP spreads once it is a download, so it need not avoid uplinks with downloads.
        let heavy: fn(&State) -> u32 = if plain.is_some() { |state| state.heavy } else { |_| 0 };
        // Idle uplinks compare as equal: of them, the one with the lowest round-trip time is taken.
        pick(&|state| is_near(state) && is_free(state, heavy), 0, State::load)
            .or_else(|| all().find(|index| !shares.has_its_share(known[*index], known, heavy)))
    };
    if let Some(chosen) = chosen {
        known[..=chosen].rotate_right(1);
    }
}

/// If the first uplink removes MPTCP, moves the first one that does not to the front: for a download if all that do not
/// deliver as much together, for small answers if it is as near.
fn lead_with_mptcp(known: &mut [&State], shares: &Shares, is_heavy: bool, is_stripped: impl Fn(&State) -> bool) {
    let now = shares.now;
    let Some(first) = known.first().filter(|state| is_stripped(state)) else { return };
    let Some(place) = known.iter().position(|state| !is_stripped(state)) else { return };
    let together: u128 = known.iter().filter(|state| !is_stripped(state)).map(|state| shares.weight(state)).sum();
    let reach = |state: &State| state.round_trip(now).unwrap_or(Duration::MAX);
    let is_better = match is_heavy {
        true => together >= shares.weight(first),
        false => reach(known[place]).saturating_mul(5) <= reach(first).saturating_mul(6),
    };
    if is_better {
        known[..=place].rotate_right(1);
    }
}

/// Shares of connections, according to what uplinks can deliver.
struct Shares {
    /// Highest known capacity, octets per second.
    fastest: u64,
    /// Highest rate that any uplink has delivered.
    most: u64,
    /// Maximum base RTT of an untried uplink for which downloads hope.
    reach: Duration,
    now: Instant,
}

impl Shares {
    fn of(known: &[&State], now: Instant) -> Self {
        let fastest = known.iter().filter_map(|state| state.capacity_bytes(now)).max().unwrap_or(0);
        let most = known.iter().map(|state| state.rate_bytes).max().unwrap_or(0);
        let least = known.iter().filter_map(|state| state.base(now)).min();
        let reach = least.map_or(Duration::ZERO, |least| least.saturating_mul(UNTRIED_REACH).max(UNTRIED_REACH_MIN));
        Self { fastest, most, reach, now }
    }

    /// Returns the transfer time of a download that stays where it starts; for small answers, the additional time on a
    /// slow uplink.
    fn slowness(&self, state: &State, plain: Option<Weight>) -> Duration {
        let capacity = state.capacity_bytes(self.now).map(|capacity| capacity.max(1));
        let (bytes, capacity) = match plain {
            Some(Weight::Heavy) => (HEAVY_BYTES, Some(capacity.unwrap_or_else(|| self.hoped(state)))),
            _ => (LIGHT_BYTES, capacity.filter(|capacity| capacity.saturating_mul(SLOW_PARTS) < self.most)),
        };
        let capacity = capacity.filter(|capacity| *capacity > 0);
        capacity.map_or(Duration::ZERO, |capacity| Duration::from_secs(1).mul_div(bytes, capacity))
    }

    /// Returns the rate that a download may find on an uplink of unknown capacity.
    fn hoped(&self, state: &State) -> u64 {
        let is_to_try = state.is_untried(self.now) && state.base(self.now).is_some_and(|base| base <= self.reach);
        if is_to_try && self.most.saturating_mul(SLOW_PARTS) < UNTRIED_BYTES { UNTRIED_BYTES } else { self.most }
    }

    /// An uplink of unknown capacity counts as the best: its use will show.
    fn weight(&self, state: &State) -> u128 {
        let floor = self.fastest / RATE_FLOOR_PARTS;
        let bytes = state.capacity_bytes(self.now).map_or(self.fastest.max(state.rate_bytes), |bytes| bytes.max(floor));
        u128::from(bytes.max(1))
    }

    /// Compares `(count + added) / weight`, as products.
    fn compare(&self, a: &State, b: &State, added: u32, count: fn(&State) -> u32) -> core::cmp::Ordering {
        let load = |one: &State, other: &State| u128::from(count(one) + added) * self.weight(other);
        load(a, b).cmp(&load(b, a))
    }

    /// Whether one more connection would exceed its share: `(count + 1) / connections > weight / weights`.
    fn has_its_share(&self, state: &State, known: &[&State], count: fn(&State) -> u32) -> bool {
        let weights: u128 = known.iter().map(|state| self.weight(state)).sum();
        let connections: u128 = known.iter().map(|state| u128::from(count(state))).sum::<u128>() + 1;
        count(state) > 0 && u128::from(count(state) + 1) * weights > connections * self.weight(state)
    }
}
