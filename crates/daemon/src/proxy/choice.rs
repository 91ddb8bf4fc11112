//! Chooses the uplink that a connection starts from, and those that race it. Sans-IO: takes measurements, and returns a
//! plan (`plan.rs`).
//!
//! Small answers come on the first subflow alone (see `bulk.rs`), and plain TCP stays where it starts. So the choice
//! decides how soon the first octet comes, and which uplink carries what.
//!
//! ```text
//! nothing known            all uplinks of the best tier at once, the one with the fewest connections first
//! known                    in the order of base RTT + queue, the next after twice that, within [50 ms, 1 s]; but first
//!                          the one with the fewest connections for its rate, among those that are near and free
//! near                     base RTT + transfer time at most 1.2 times the best; the time is that of a download over
//!                          plain TCP, or that of small answers on a slow uplink
//! slow                     delivers less than a quarter of what the fastest does
//! not filled lately        assumed to deliver what the best does; for downloads 32 Mbit/s, if that is more than four
//!                          times as much, and the uplink is at most three times as far, or within 150 ms
//! free                     no queue, and no more than its share of busy downloads that stay where they are
//! none is near and free    the lowest base RTT + queue of those without their share of downloads; of all, if all have
//!                          theirs
//! downloads, plain TCP     near ones, until these have their share of connections; then all
//! MPTCP is removed there   after those where it is not, if these deliver as much together, or are as near (see
//!                          `servers.rs`)
//! in the network of some   only these, if the address is private: other networks may use the same ones
//! failing                  after all others, for 1, 2, 4 ... 64 s; if all fail, tier by tier
//! portal, or suspected     after all others, until the suspicion or the portal is gone (see `portal.rs`)
//! ```

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use linux::uplink::Network;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use units::{Duration, Instant};

use super::target::{Host, private_range};

mod plan;
mod servers;

pub use plan::Start;
use servers::Servers;

/// Length of a measuring span: a base RTT is the minimum of the current span and the one before.
const BASE_SPAN: Duration = Duration::from_secs(60);
/// Measurements older than this are ignored: the uplink may lead elsewhere by now.
const KNOWN_FOR: Duration = Duration::from_secs(300);
/// How long an uplink counts as slow if another one answered before it was ever measured.
const OUTPACED_FOR: Duration = Duration::from_secs(30);
/// An attempt counts as silence if it waited for this many RTTs while another one was answered. After `SILENCES` in a
/// row, the uplink fails: a single one may be a lost packet, or a busy device.
const SILENT_ROUNDS: u64 = 3;
const SILENCES: u32 = 2;
/// Back-off after a failure: initial time, and maximum number of doublings.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_DOUBLINGS_MAX: u32 = 6;
/// Queues up to this count as none.
const QUEUE_MIN: Duration = Duration::from_millis(10);
/// A queue without a sample for this long counts as drained.
const QUEUE_FOR: Duration = Duration::from_secs(2);
/// How long a server may delay the acknowledgement of a request until it has an answer (Linux, TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// If one look finds this many samples, they are those of an upload, whose acknowledgements are not delayed.
const UPLOAD_SAMPLES: u64 = 20;
/// How long an uplink is trusted after it has reached a server beyond doubt.
const TRUSTED_FOR: Duration = Duration::from_secs(300);
/// An uplink that nothing has filled for this long may deliver anything.
const UNTRIED_FOR: Duration = Duration::from_secs(1800);

/// When an uplink is used; better tiers first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Always used.
    Primary,
    /// Connections start here only if they cannot start on a primary uplink.
    Secondary,
    /// Carries data only when no other uplink can.
    Backup,
    /// Not used until it gets another tier.
    Never,
}

impl Tier {
    /// All tiers, the best first.
    pub const ALL: [Self; 4] = [Self::Primary, Self::Secondary, Self::Backup, Self::Never];

    /// Name as people write it.
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
        known.ok_or_else(|| format!("{text:?} is not a tier: write {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// An address of the engine, with its tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uplink {
    /// The address.
    pub ip: IpAddr,
    /// Tier.
    pub tier: Tier,
    /// Number of the uplink, which may have an address of each family.
    #[serde(skip)]
    pub link: usize,
    /// The network of this family that the uplink is connected to: its hosts are reached without a gateway.
    #[serde(skip)]
    pub near: Option<Network>,
}

impl Uplink {
    /// Whether `remote` is a private address in the uplink's own network. Other addresses are the same host's wherever
    /// they are asked, and a network that states a shorter prefix than the private range would keep other uplinks from
    /// reaching their hosts.
    fn is_near(&self, remote: IpAddr) -> bool {
        let within = |network: Network| private_range(remote).is_some_and(|it| it.prefix_len <= network.prefix_len);
        self.near.is_some_and(|network| network.contains(remote) && within(network))
    }
}

/// What the proxy knows about an uplink, for `status`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UplinkView {
    /// Address and tier.
    #[serde(flatten)]
    pub uplink: Uplink,
    /// Minimum round-trip time of the last minutes.
    pub base_rtt: Option<Duration>,
    /// Time that packets wait in the uplink's queues.
    pub queue: Duration,
    /// Octets per second that it delivers while in use, both directions together.
    pub rate_bytes: u64,
    /// Connections that use only this uplink and are busy or being opened.
    pub busy: u32,
    /// Consecutive failures.
    pub failures: u32,
    /// Whether it is behind a captive portal, which answers in place of servers; it is used last then.
    pub portal: bool,
}

/// What a connection transfers at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Small answers, as far as is known.
    Light,
    /// A download, or an upload.
    Heavy,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Unknown,
    /// Never measured, and another uplink answered first: assumed RTT, and when.
    AtLeast(Duration, Instant),
    /// Minimum of the span that began at `since`, and minimum of the span before.
    Known {
        now: Duration,
        before: Duration,
        since: Instant,
        /// When it was last confirmed.
        latest: Instant,
    },
}

#[derive(Clone, Debug)]
struct State {
    uplink: Uplink,
    base: Base,
    queue: Duration,
    queue_at: Instant,
    rate_bytes: u64,
    /// When a transfer last used all that the uplink delivers: only that shows its capacity.
    filled_at: Option<Instant>,
    /// Connections that use only this uplink and are busy or being opened.
    light: u32,
    heavy: u32,
    failures: u32,
    /// Consecutive attempts that met silence.
    silences: u32,
    failing_until: Instant,
    /// Until when it comes last: because it may be behind a portal, and because it is.
    doubted_until: Instant,
    portal_until: Instant,
    /// The portal has been reported.
    portal_told: bool,
    /// Host to which the portal redirects, if known.
    portal_host: Option<Host>,
    /// When it last reached a server beyond doubt.
    proven_at: Option<Instant>,
}

/// What the proxy knows about uplinks and servers.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    uplinks: Vec<State>,
    servers: Servers,
}

impl State {
    fn new(uplink: Uplink) -> Self {
        let (base, queue, at) = (Base::Unknown, Duration::ZERO, Instant::ZERO);
        Self {
            uplink,
            base,
            queue,
            queue_at: at,
            rate_bytes: 0,
            filled_at: None,
            light: 0,
            heavy: 0,
            failures: 0,
            silences: 0,
            failing_until: at,
            doubted_until: at,
            portal_until: at,
            portal_told: false,
            portal_host: None,
            proven_at: None,
        }
    }

    /// Returns the base RTT, measured or assumed.
    fn base(&self, now: Instant) -> Option<Duration> {
        match self.base {
            Base::Known { now: least, before, latest, .. } if now.saturating_since(latest) < KNOWN_FOR => {
                Some(least.min(before))
            }
            Base::AtLeast(bound, at) if now.saturating_since(at) < OUTPACED_FOR => Some(bound),
            _ => None,
        }
    }

    /// Returns the base RTT only if it was measured. An assumed one places the uplink in a plan, but is no distance.
    fn measured_base(&self, now: Instant) -> Option<Duration> {
        self.base(now).filter(|_| matches!(self.base, Base::Known { .. }))
    }

    /// Returns the current round-trip time.
    fn round_trip(&self, now: Instant) -> Option<Duration> {
        Some(self.base(now)? + self.queue(now))
    }

    fn queue(&self, now: Instant) -> Duration {
        if now.saturating_since(self.queue_at) < QUEUE_FOR { self.queue } else { Duration::ZERO }
    }

    /// Takes a round trip of `rtt`, of which `elsewhere` may be a pause of the server.
    fn note_queue(&mut self, rtt: Duration, elsewhere: Duration, now: Instant) {
        let Some(base) = self.base(now) else { return };
        let queue = rtt.saturating_sub(base + elsewhere);
        self.queue = (self.queue(now) + queue) / 2;
        self.queue_at = now;
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

    /// Notes that it carries octets: it is not silent, and leads where it did. A subflow that only receives measures
    /// nothing.
    fn note_use(&mut self, now: Instant) {
        self.silences = 0;
        match &mut self.base {
            Base::Known { latest, .. } if now.saturating_since(*latest) < KNOWN_FOR => *latest = now,
            _ => {}
        }
    }

    /// Returns its capacity in octets per second, if a transfer has filled it lately.
    fn capacity_bytes(&self, now: Instant) -> Option<u64> {
        self.filled_at.filter(|at| now.saturating_since(*at) < KNOWN_FOR).map(|_| self.rate_bytes)
    }

    /// Whether no transfer has shown its capacity for long.
    fn is_untried(&self, now: Instant) -> bool {
        self.filled_at.is_none_or(|at| now.saturating_since(at) >= UNTRIED_FOR)
    }

    /// Number of connections that share it.
    fn load(&self) -> u32 {
        self.light.saturating_add(self.heavy)
    }

    fn counted(&mut self, weight: Weight) -> &mut u32 {
        match weight {
            Weight::Light => &mut self.light,
            Weight::Heavy => &mut self.heavy,
        }
    }

    fn is_failing(&self, now: Instant) -> bool {
        self.failing_until > now || self.is_suspect(now)
    }

    /// Whether another uplink recently answered before this one, and this one has never been measured.
    fn is_unheard(&self, now: Instant) -> bool {
        matches!(self.base, Base::AtLeast(..)) && self.base(now).is_some()
    }

    fn is_suspect(&self, now: Instant) -> bool {
        self.doubted_until.max(self.portal_until) > now
    }

    fn fail(&mut self, now: Instant) {
        let doublings = self.failures.min(BACKOFF_DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        self.failing_until = now + BACKOFF_MIN.saturating_mul(1 << doublings);
    }

    fn has_queue(&self, now: Instant) -> bool {
        self.base(now).is_some_and(|base| self.queue(now) > QUEUE_MIN.max(base / 2))
    }
}

impl Choice {
    /// Adds an uplink, or changes its tier.
    pub fn add(&mut self, uplink: Uplink) {
        match self.get_mut(uplink.ip) {
            Some(known) => known.uplink = uplink,
            None => self.uplinks.push(State::new(uplink)),
        }
    }

    /// Removes an uplink that is gone.
    pub fn remove(&mut self, ip: IpAddr) {
        let link = self.link(ip);
        self.uplinks.retain(|state| state.uplink.ip != ip);
        if let Some(link) = link.filter(|link| self.uplinks.iter().all(|state| state.uplink.link != *link)) {
            self.servers.forget(link);
        }
    }

    /// Whether an uplink has this address.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip == ip)
    }

    /// Returns the tier of the uplink with this address.
    pub fn tier(&self, ip: IpAddr) -> Option<Tier> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).map(|state| state.uplink.tier)
    }

    /// Whether `remote` is a private address in the network of an uplink. Behind another uplink, it may be somebody else's.
    pub fn is_near(&self, remote: IpAddr) -> bool {
        self.uplinks.iter().any(|state| state.uplink.is_near(remote))
    }

    /// Whether connections to `remote` may start on an uplink: if it is near some uplinks, only on these.
    fn may_lead_to(&self, uplink: &Uplink, remote: IpAddr) -> bool {
        uplink.is_near(remote) || !self.is_near(remote)
    }

    /// Whether there is no uplink now.
    pub fn is_empty(&self) -> bool {
        self.uplinks.is_empty()
    }

    /// Whether an uplink has addresses of this family.
    pub fn has_family(&self, is_ipv4: bool) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip.is_ipv4() == is_ipv4)
    }

    /// Returns the addresses of all uplinks.
    pub fn ips(&self) -> Vec<IpAddr> {
        self.uplinks.iter().map(|state| state.uplink.ip).collect()
    }

    /// Returns the addresses of each uplink.
    pub fn links(&self) -> Vec<SmallVec<[IpAddr; 2]>> {
        let links: BTreeSet<usize> = self.uplinks.iter().map(|state| state.uplink.link).collect();
        let of_link = |link| self.uplinks.iter().filter(move |it| it.uplink.link == link).map(|it| it.uplink.ip);
        links.into_iter().map(|link| of_link(link).collect()).collect()
    }

    /// Returns what is known about each uplink.
    pub fn view(&self, now: Instant) -> Vec<UplinkView> {
        let view = |state: &State| UplinkView {
            uplink: state.uplink,
            base_rtt: state.measured_base(now),
            queue: state.queue(now),
            rate_bytes: state.rate_bytes,
            busy: state.load(),
            failures: state.failures,
            portal: state.portal_until > now,
        };
        self.uplinks.iter().map(view).collect()
    }

    /// Whether the server is known to answer without MPTCP over every uplink.
    pub fn is_plain(&self, remote: SocketAddr, now: Instant) -> bool {
        self.servers.is_plain(remote, now)
    }

    /// Whether the server has answered lately.
    pub fn is_known(&self, remote: SocketAddr, now: Instant) -> bool {
        self.servers.is_known(remote, now)
    }

    /// Predicts what a connection to a server will transfer, from previous ones.
    pub fn weight(&self, remote: SocketAddr, now: Instant) -> Weight {
        self.servers.weight(remote, now)
    }

    /// Notes that a connection to a server was a download, or has ended without being one.
    pub fn turned_out(&mut self, remote: SocketAddr, weight: Weight) {
        self.servers.turned_out(remote, weight);
    }

    /// Notes that an attempt from `ip` succeeded after `took`, with MPTCP or without; `None`: nothing was offered.
    pub fn succeeded(
        &mut self,
        ip: IpAddr,
        remote: SocketAddr,
        took: Duration,
        mptcp: impl Into<Option<bool>>,
        now: Instant,
    ) {
        let mptcp = mptcp.into();
        if let Some(state) = self.get_mut(ip) {
            state.failures = 0;
            state.failing_until = Instant::ZERO;
            state.note_rtt(took, now);
            state.note_queue(took, Duration::ZERO, now);
        }
        if mptcp == Some(true) {
            // A portal, which answers in place of servers, does not speak MPTCP.
            self.trust(ip, now);
        }
        self.note_answer(ip, remote, mptcp, now);
    }

    /// Notes that an uplink reached a server beyond doubt.
    pub fn trust(&mut self, ip: IpAddr, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            (state.proven_at, state.portal_told, state.portal_host) = (Some(now), false, None);
            (state.doubted_until, state.portal_until) = (Instant::ZERO, Instant::ZERO);
        }
    }

    /// Whether the uplink reached a server beyond doubt lately.
    pub fn is_trusted(&self, ip: IpAddr, now: Instant) -> bool {
        let proven_at = self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.proven_at);
        proven_at.is_some_and(|at| now.saturating_since(at) < TRUSTED_FOR)
    }

    /// Whether there is another uplink of the same family.
    pub fn has_other(&self, ip: IpAddr) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip != ip && state.uplink.ip.is_ipv4() == ip.is_ipv4())
    }

    /// Puts an uplink after all others until `until`, because it may be behind a portal.
    pub fn doubt(&mut self, ip: IpAddr, until: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.doubted_until = until;
        }
    }

    /// As [`Self::doubt`], because it is behind one, which redirects to `host`. Returns whether that is news.
    pub fn found_portal(&mut self, ip: IpAddr, host: Option<Host>, until: Instant) -> bool {
        let Some(state) = self.get_mut(ip) else { return false };
        state.portal_until = until;
        // An answer that names no host does not mean that the known one is no longer the portal's.
        state.portal_host = host.or(state.portal_host.take());
        !core::mem::replace(&mut state.portal_told, true)
    }

    /// Returns the host to which the portal of an uplink redirects, until the uplink is trusted.
    pub fn portal_host(&self, ip: IpAddr) -> Option<&Host> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip)?.portal_host.as_ref()
    }

    /// Whether an uplink may be behind a portal, or is.
    pub fn is_suspected(&self, ip: IpAddr, now: Instant) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip == ip && state.is_suspect(now))
    }

    /// Notes that an attempt from `ip` was answered after `took`, too late to be used; the rest as for
    /// [`Self::succeeded`].
    pub fn answered(
        &mut self,
        ip: IpAddr,
        remote: SocketAddr,
        took: Duration,
        mptcp: impl Into<Option<bool>>,
        now: Instant,
    ) {
        if let Some(state) = self.get_mut(ip) {
            state.note_rtt(took, now);
            state.note_queue(took, Duration::ZERO, now);
        }
        self.note_answer(ip, remote, mptcp.into(), now);
    }

    /// Notes that a server speaks plain TCP, or that the path from `ip` to it lets nothing else through.
    pub fn found_plain(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        self.note_answer(ip, remote, Some(false), now);
    }

    /// Notes that a subflow from `ip` has joined a connection.
    pub fn joined(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        self.note_answer(ip, remote, Some(true), now);
    }

    /// Notes that a server answered an attempt from `ip` without an offer of MPTCP, after those with one had no answer
    /// or were refused. `host` is the server as the client has named it.
    pub fn wanted_no_offer(&mut self, ip: IpAddr, remote: SocketAddr, host: &Host, now: Instant) {
        if let Some(link) = self.link(ip) {
            self.servers.wanted_no_offer(remote, host, link, now);
        }
    }

    /// Whether to connect to a server from `ip` without an offer of MPTCP.
    pub fn is_without_offer(&self, ip: IpAddr, remote: SocketAddr, now: Instant) -> bool {
        self.link(ip).is_some_and(|link| self.servers.is_without_offer(remote, link, now))
    }

    /// Notes that a server's address did not answer attempts that began at `since`, while another one did.
    pub fn kept_silent(&mut self, remote: SocketAddr, since: Instant, now: Instant) {
        self.servers.kept_silent(remote, since, now);
    }

    fn note_answer(&mut self, ip: IpAddr, remote: SocketAddr, mptcp: Option<bool>, now: Instant) {
        if let Some(link) = self.link(ip) {
            self.servers.answered(remote, link, mptcp, now);
        }
    }

    /// Notes that an attempt from `ip` got no answer, although the server gives some. A refusal is an answer, and says
    /// nothing bad about the uplink.
    pub fn failed(&mut self, ip: IpAddr, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.fail(now);
        }
    }

    /// Notes that an attempt from `ip` was abandoned after `waited`, because another one succeeded.
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
            // It is slower by an unknown amount, so it comes after those that have answered.
            Base::Unknown | Base::AtLeast(..) => state.base = Base::AtLeast(waited.saturating_mul(2), now),
        }
    }

    /// Takes the minimum round-trip time of a subflow from `ip` that has just measured one.
    pub fn measured(&mut self, ip: IpAddr, least: Duration, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.note_rtt(least, now);
        }
    }

    /// Takes the mean of the latest round-trip times from `ip`, and their number.
    pub fn measured_of_late(&mut self, ip: IpAddr, mean: Duration, samples: u64, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            let elsewhere = if samples < UPLOAD_SAMPLES { DELAYED_ACK } else { Duration::ZERO };
            state.note_queue(mean, elsewhere, now);
        }
    }

    /// Takes what an uplink delivered within `span`, both directions together; called at even intervals while anything
    /// is busy. `filled`: a transfer took all that came. Only then does a low rate mean a slow uplink.
    pub fn delivered(&mut self, ip: IpAddr, bytes: u64, span: Duration, filled: bool, now: Instant) {
        let Some(state) = self.get_mut(ip) else { return };
        let nanos = u128::from(span.as_nanos().max(1));
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        // A short silence is not slowness: the rate falls by a sixteenth at most each time.
        let kept = if filled { state.rate_bytes - state.rate_bytes / 16 } else { state.rate_bytes };
        state.rate_bytes = rate.max(kept);
        if filled {
            state.filled_at = Some(now);
        }
        if bytes > 0 {
            state.note_use(now);
        }
    }

    /// Returns the current round-trip time on the uplink with this address, if known.
    pub fn round_trip(&self, ip: IpAddr, now: Instant) -> Option<Duration> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.round_trip(now))
    }

    /// Returns the minimum round-trip time on the uplink with this address, if measured.
    pub fn base(&self, ip: IpAddr, now: Instant) -> Option<Duration> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.measured_base(now))
    }

    /// Counts a connection that uses only `ip` and is being opened or busy. Those being opened count, since several
    /// that begin at once must know of each other.
    pub fn count(&mut self, ip: IpAddr, weight: Weight) {
        if let Some(state) = self.get_mut(ip) {
            *state.counted(weight) += 1;
        }
    }

    /// Ends the effect of [`Self::count`].
    pub fn discount(&mut self, ip: IpAddr, weight: Weight) {
        if let Some(state) = self.get_mut(ip) {
            let counted = state.counted(weight);
            *counted = counted.saturating_sub(1);
        }
    }

    /// Returns the number of the uplink with this address.
    pub fn link(&self, ip: IpAddr) -> Option<usize> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).map(|state| state.uplink.link)
    }

    fn get_mut(&mut self, ip: IpAddr) -> Option<&mut State> {
        self.uplinks.iter_mut().find(|state| state.uplink.ip == ip)
    }
}

#[cfg(test)]
mod tests;
