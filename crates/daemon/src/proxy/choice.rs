//! Which uplink a connection starts from, and which ones race it. Pure: told what was measured, it gives a plan.
//!
//! With MPTCP the first subflow decides how soon the first octet comes, and the others follow by themselves. Plain TCP stays where
//! it starts, so there the choice also decides who carries what.
//!
//! ```text
//! nothing known            all of the best tier at once
//! known, MPTCP             lowest (base RTT + queue) first, the next after twice that, within [50 ms, 1 s]
//! known, plain TCP         fewest busy connections for what it delivers, among those whose base RTT is at most 1.2 times the
//!                          best; all of the tier, once these are busy
//! failing                  after all others, for 1, 2, 4 ... 64 s
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::{Duration, Instant};

/// How long the first attempt is waited for before the next one begins beside it: twice its RTT, within this.
const HEAD_START_MIN: Duration = Duration::from_millis(50);
const HEAD_START_MAX: Duration = Duration::from_secs(1);
/// A base RTT is the least of this span and the one before.
const BASE_SPAN: Duration = Duration::from_secs(60);
/// What was measured longer ago is forgotten: the uplink may be another one by now.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// For how long an uplink is not tried anew that was slower to answer than another.
const OUTPACED_FOR: Duration = Duration::from_secs(30);
/// An attempt unanswered for so many times its RTT, when another one was answered, was met with silence: so often in a row, and the
/// uplink fails. One may be a lost packet, or a device that was busy.
const SILENT_ROUNDS: u64 = 3;
const SILENCES: u32 = 2;
/// How long an uplink that failed is left alone at first, and at most.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_DOUBLINGS_MAX: u32 = 6;
/// A connection that is not busy by then is no download.
const BEGUN_FOR: Duration = Duration::from_secs(1);
/// Queues up to this are none.
const QUEUE_MIN: Duration = Duration::from_millis(10);
/// Servers whose protocol is remembered, and for how long: a middlebox may go away.
const SERVERS_MAX: usize = 1024;
const SERVER_FOR: Duration = Duration::from_secs(3600);
/// Rates of uplinks are compared as if none delivered less than this part of the best: who is not used delivers nothing.
const RATE_FLOOR_PARTS: u64 = 10;

/// In which order uplinks are used.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Used always.
    Primary,
    /// Connections start here only if they cannot from a primary one.
    Secondary,
    /// Carries data only when no other can.
    Backup,
    /// Not used, until it is given another tier.
    Never,
}

impl Tier {
    /// All, the best first.
    pub const ALL: [Self; 4] = [Self::Primary, Self::Secondary, Self::Backup, Self::Never];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
            Self::Backup => "backup",
            Self::Never => "never",
        }
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|tier| tier.name() == text);
        known.ok_or_else(|| format!("{text:?} is no tier: write {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// An address of the engine, and how it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uplink {
    /// The address.
    pub ip: IpAddr,
    /// When it is used.
    pub tier: Tier,
}

/// An attempt to connect, as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// From where.
    pub ip: IpAddr,
    /// How long after the attempt before it in the plan.
    pub after: Duration,
}

/// What is known of an uplink, for `status`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UplinkView {
    /// Address and tier.
    #[serde(flatten)]
    pub uplink: Uplink,
    /// Least round-trip time of the last minutes.
    pub base_rtt: Option<Duration>,
    /// Time that packets wait in its queues.
    pub queue: Duration,
    /// Octets that it delivers in a second, both ways, when it is used.
    pub rate_bytes: u64,
    /// Busy connections that use this uplink only.
    pub busy: u32,
    /// Failures in a row.
    pub failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Unknown,
    /// Another one answered while this one had not for so long.
    AtLeast(Duration, Instant),
    /// The least of the span that began at the time, and of the span before.
    Known {
        now: Duration,
        before: Duration,
        since: Instant,
        latest: Instant,
    },
}

#[derive(Clone, Debug)]
struct State {
    uplink: Uplink,
    base: Base,
    queue: Duration,
    rate_bytes: u64,
    busy: u32,
    /// When connections began here that stay where they start and are not busy yet.
    begun: VecDeque<Instant>,
    failures: u32,
    /// Attempts in a row that were met with silence.
    silences: u32,
    failing_until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    mptcp: bool,
    at: Instant,
}

/// What is known of uplinks and servers.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    uplinks: Vec<State>,
    servers: BTreeMap<SocketAddr, Server>,
}

impl State {
    fn new(uplink: Uplink) -> Self {
        let (base, queue, at) = (Base::Unknown, Duration::ZERO, Instant::ZERO);
        Self {
            uplink,
            base,
            queue,
            rate_bytes: 0,
            busy: 0,
            begun: VecDeque::new(),
            failures: 0,
            silences: 0,
            failing_until: at,
        }
    }

    /// The base RTT, as far as it is known now.
    fn base(&self, now: Instant) -> Option<Duration> {
        match self.base {
            Base::Known { now: least, before, latest, .. } if now.saturating_since(latest) < KNOWN_FOR => {
                Some(least.min(before))
            }
            Base::AtLeast(bound, at) if now.saturating_since(at) < OUTPACED_FOR => Some(bound),
            _ => None,
        }
    }

    /// What a round trip takes now.
    fn round_trip(&self, now: Instant) -> Option<Duration> {
        Some(self.base(now)? + self.queue)
    }

    fn note_rtt(&mut self, rtt: Duration, now: Instant) {
        self.silences = 0;
        self.base = match self.base {
            Base::Known { now: least, before, since, latest } if now.saturating_since(latest) < KNOWN_FOR => {
                match now.saturating_since(since) >= BASE_SPAN {
                    true => Base::Known { now: rtt, before: least, since: now, latest: now },
                    false => Base::Known { now: least.min(rtt), before, since, latest: now },
                }
            }
            _ => Base::Known { now: rtt, before: rtt, since: now, latest: now },
        };
    }

    /// Connections that share it: those that are busy, and those that are about to be.
    fn load(&self, now: Instant) -> u32 {
        let begun = self.begun.iter().filter(|at| now.saturating_since(**at) < BEGUN_FOR).count();
        self.busy.saturating_add(u32::try_from(begun).unwrap_or(u32::MAX))
    }

    fn is_failing(&self, now: Instant) -> bool {
        self.failing_until > now
    }

    fn fail(&mut self, now: Instant) {
        let doublings = self.failures.min(BACKOFF_DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        self.failing_until = now + BACKOFF_MIN.saturating_mul(1 << doublings);
    }

    fn has_queue(&self, base: Duration) -> bool {
        self.queue > QUEUE_MIN.max(base / 2)
    }
}

impl Choice {
    /// An uplink is there, or has another tier.
    pub fn add(&mut self, uplink: Uplink) {
        match self.get_mut(uplink.ip) {
            Some(known) => known.uplink = uplink,
            None => self.uplinks.push(State::new(uplink)),
        }
    }

    /// An uplink is gone.
    pub fn remove(&mut self, ip: IpAddr) {
        self.uplinks.retain(|state| state.uplink.ip != ip);
    }

    /// Whether an uplink has this address.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip == ip)
    }

    /// When the uplink of an address is used.
    pub fn tier(&self, ip: IpAddr) -> Option<Tier> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).map(|state| state.uplink.tier)
    }

    /// Whether an uplink has addresses of this family.
    pub fn has_family(&self, is_ipv4: bool) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip.is_ipv4() == is_ipv4)
    }

    /// What is known of each uplink.
    pub fn view(&self, now: Instant) -> Vec<UplinkView> {
        let view = |state: &State| UplinkView {
            uplink: state.uplink,
            base_rtt: state.base(now),
            queue: state.queue,
            rate_bytes: state.rate_bytes,
            busy: state.busy,
            failures: state.failures,
        };
        self.uplinks.iter().map(view).collect()
    }

    /// From where to connect to `remote`, in this order; nothing if no uplink is of its family.
    pub fn plan(&self, remote: SocketAddr, now: Instant) -> Vec<Start> {
        let mut plan = Vec::new();
        // What the attempt before is given.
        let mut after = Duration::ZERO;
        for tier in [Tier::Primary, Tier::Secondary, Tier::Backup] {
            let healthy = self.uplinks.iter().filter(|state| {
                state.uplink.tier == tier && state.uplink.ip.is_ipv4() == remote.is_ipv4() && !state.is_failing(now)
            });
            let (known, unknown): (Vec<_>, Vec<_>) = healthy.partition(|state| state.base(now).is_some());
            let mut known = known;
            known.sort_by_key(|state| state.round_trip(now));
            if self.is_plain(remote, now) {
                spread(&mut known, now);
            }
            let mut waits = after;
            // Those that nothing is known of race whoever is first, so that something is.
            for (position, state) in known.iter().take(1).chain(&unknown).chain(known.iter().skip(1)).enumerate() {
                let at_once = position > 0 && position <= unknown.len();
                plan.push(Start {
                    ip: state.uplink.ip,
                    after: if at_once && !plan.is_empty() { Duration::ZERO } else { waits },
                });
                waits = head_start(state.round_trip(now));
            }
            after = if plan.is_empty() { Duration::ZERO } else { waits };
        }
        self.plan_failing(remote, after, now, &mut plan);
        plan
    }

    /// Those that fail, at last; at once if there are no others.
    fn plan_failing(&self, remote: SocketAddr, after: Duration, now: Instant, plan: &mut Vec<Start>) {
        let of_family = |state: &&State| state.uplink.ip.is_ipv4() == remote.is_ipv4();
        let mut failing: Vec<_> = self.uplinks.iter().filter(of_family).filter(|state| state.is_failing(now)).collect();
        failing.sort_by_key(|state| (state.uplink.tier, state.failing_until));
        let after = if plan.is_empty() { Duration::ZERO } else { after };
        plan.extend(failing.iter().enumerate().map(|(position, state)| Start {
            ip: state.uplink.ip,
            after: if position == 0 { after } else { Duration::ZERO },
        }));
    }

    /// Whether the server is known to answer without MPTCP.
    pub fn is_plain(&self, remote: SocketAddr, now: Instant) -> bool {
        let server = self.servers.get(&remote).filter(|server| now.saturating_since(server.at) < SERVER_FOR);
        server.is_some_and(|server| !server.mptcp)
    }

    /// An attempt from `ip` succeeded after `took`.
    pub fn succeeded(&mut self, ip: IpAddr, remote: SocketAddr, took: Duration, mptcp: bool, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.failures = 0;
            state.failing_until = Instant::ZERO;
            state.note_rtt(took, now);
        }
        self.note_server(remote, Server { mptcp, at: now });
    }

    /// A server turned out to speak plain TCP, or the way to it lets nothing else through.
    pub fn found_plain(&mut self, remote: SocketAddr, now: Instant) {
        self.note_server(remote, Server { mptcp: false, at: now });
    }

    fn note_server(&mut self, remote: SocketAddr, server: Server) {
        if self.servers.len() >= SERVERS_MAX && !self.servers.contains_key(&remote) {
            let oldest = self.servers.iter().min_by_key(|(_, server)| server.at).map(|(remote, _)| *remote);
            oldest.and_then(|remote| self.servers.remove(&remote));
        }
        self.servers.insert(remote, server);
    }

    /// Nobody answered an attempt from `ip`. That a server refuses is an answer, and tells nothing bad of the uplink.
    pub fn failed(&mut self, ip: IpAddr, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.fail(now);
        }
    }

    /// An attempt from `ip` was given up after `waited`, because another one succeeded.
    pub fn outpaced(&mut self, ip: IpAddr, waited: Duration, now: Instant) {
        let Some(state) = self.get_mut(ip) else { return };
        match state.base {
            Base::Known { .. } => {
                let expected = state.round_trip(now).unwrap_or(waited);
                state.silences += u32::from(waited >= expected.saturating_mul(SILENT_ROUNDS));
                if state.silences >= SILENCES {
                    state.fail(now);
                }
            }
            // It is slower, nobody knows by how much: it comes behind those that have answered.
            Base::Unknown | Base::AtLeast(..) => state.base = Base::AtLeast(waited.saturating_mul(2), now),
        }
    }

    /// What a subflow from `ip` has measured: smoothed and least round-trip time.
    pub fn measured(&mut self, ip: IpAddr, srtt: Duration, least: Duration, now: Instant) {
        let Some(state) = self.get_mut(ip) else { return };
        state.note_rtt(least, now);
        let queue = srtt.saturating_sub(least);
        // An eighth of the new, as sRTT has it (RFC 6298).
        state.queue = (state.queue.saturating_mul(7) + queue) / 8;
    }

    /// What an uplink delivered, both ways, within `span`; called at even intervals while anything is busy.
    pub fn delivered(&mut self, ip: IpAddr, bytes: u64, span: Duration) {
        let Some(state) = self.get_mut(ip) else { return };
        let nanos = u128::from(span.as_nanos().max(1));
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        // A short silence is no slowness: the rate falls by a sixteenth at a time.
        state.rate_bytes = rate.max(state.rate_bytes - state.rate_bytes / 16);
        if bytes == 0 {
            state.queue = state.queue.saturating_mul(7) / 8;
        }
    }

    /// An attempt from `ip` begins. Of several that begin at once each has to know of the others, where it stays where it starts.
    pub fn begun(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        if !self.is_plain(remote, now) {
            return;
        }
        if let Some(state) = self.get_mut(ip) {
            state.begun.retain(|at| now.saturating_since(*at) < BEGUN_FOR);
            state.begun.push_back(now);
        }
    }

    /// A connection that uses `ip` only is busy, or no longer.
    pub fn set_busy(&mut self, ip: IpAddr, busy: bool) {
        if let Some(state) = self.get_mut(ip) {
            if busy {
                state.begun.pop_front();
            }
            state.busy = if busy { state.busy + 1 } else { state.busy.saturating_sub(1) };
        }
    }

    fn get_mut(&mut self, ip: IpAddr) -> Option<&mut State> {
        self.uplinks.iter_mut().find(|state| state.uplink.ip == ip)
    }
}

fn head_start(round_trip: Option<Duration>) -> Duration {
    round_trip.map_or(HEAD_START_MAX, |rtt| rtt.saturating_mul(2).clamp(HEAD_START_MIN, HEAD_START_MAX))
}

/// Moves to the front who is to carry one more connection that stays where it starts.
fn spread(known: &mut [&State], now: Instant) {
    let base = |state: &State| state.base(now).unwrap_or(Duration::MAX);
    let Some(best) = known.iter().map(|state| base(state)).min() else { return };
    let fastest = known.iter().map(|state| state.rate_bytes).max().unwrap_or(0);
    // What nothing was delivered on yet counts as the best: it will show.
    let weight = |state: &State| match state.rate_bytes {
        0 => fastest.max(1),
        rate => rate.max(fastest / RATE_FLOOR_PARTS).max(1),
    };
    let weights: u128 = known.iter().map(|state| u128::from(weight(state))).sum();
    let connections: u128 = known.iter().map(|state| u128::from(state.load(now))).sum::<u128>() + 1;
    let is_near = |state: &State| base(state).saturating_mul(5) <= best.saturating_mul(6);
    // One more would be more than its share: (busy + 1) / connections > weight / weights.
    let is_busy = |state: &State| {
        state.load(now) > 0 && u128::from(state.load(now) + 1) * weights > connections * u128::from(weight(state))
            || state.has_queue(base(state))
    };
    let all = known.iter().filter(|state| is_near(state)).all(|state| is_busy(state));
    // The least (busy + 1) / weight, as products.
    let chosen = (0..known.len()).filter(|index| all || is_near(known[*index])).min_by(|a, b| {
        let (a, b) = (known[*a], known[*b]);
        let load = |one: &State, other: &State| u128::from(one.load(now) + 1) * u128::from(weight(other));
        load(a, b).cmp(&load(b, a)).then(a.round_trip(now).cmp(&b.round_trip(now)))
    });
    if let Some(chosen) = chosen {
        known[..=chosen].rotate_right(1);
    }
}

#[cfg(test)]
mod tests;
