//! Which uplink a connection starts from, and which ones race it. Pure: told what was measured, it gives a plan (`plan.rs`).
//!
//! Small answers come on the first subflow alone (see `bulk.rs`), and plain TCP stays where it starts: so the choice decides how
//! soon the first octet comes, and who carries what.
//!
//! ```text
//! nothing known            all of the best tier at once, the one with the fewest connections first
//! known                    in the order of base RTT + queue, the next after twice that, within [50 ms, 1 s]; but first the one with
//!                          the fewest connections for what it delivers, among those that are near and free
//! near                     base RTT at most 1.2 times the best, with the time that octets take: those of a download over plain TCP, or those of
//!                          small answers on an uplink that is slow
//! slow                     brings less than a quarter of what the fastest does
//! not filled of late       brings what the best does, for all that anybody knows; for downloads 32 Mbit/s, if that is more than four times as much,
//!                          and it is not three times as far
//! free                     no queue, and no more than its share of busy downloads that stay where they are
//! none is near and free    the lowest base RTT + queue of those that have their share of downloads still to get; of all, if none has
//! downloads, plain TCP     near, until these have their share of connections; then all
//! MPTCP is removed there   after those where it is not, if these bring more together, or are as near (see `servers.rs`)
//! failing                  after all others, for 1, 2, 4 ... 64 s
//! portal, or in doubt      after all others, until it is told otherwise (see `portal.rs`)
//! ```

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use units::{Duration, Instant};

mod plan;
mod servers;

pub use plan::Start;
use servers::Servers;

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
/// Queues up to this are none.
const QUEUE_MIN: Duration = Duration::from_millis(10);
/// A queue that nothing was heard of for so long has drained.
const QUEUE_FOR: Duration = Duration::from_secs(2);
/// For so long a server may keep back the acknowledgement of a request (Linux, TCP_DELACK_MIN), until it has an answer.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Samples within one look from which on they are those of an upload, whose acknowledgements nobody keeps back.
const UPLOAD_SAMPLES: u64 = 20;
/// For how long an uplink over which a server was reached beyond doubt is trusted to lead there.
const TRUSTED_FOR: Duration = Duration::from_secs(300);
/// An uplink that nobody has filled for so long may bring anything.
const UNTRIED_FOR: Duration = Duration::from_secs(1800);

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
    /// Which uplink that is: it may have an address of each family.
    #[serde(skip)]
    pub link: usize,
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
    /// Busy connections that use this uplink only, and those that are being opened.
    pub busy: u32,
    /// Failures in a row.
    pub failures: u32,
    /// It answers in the place of servers, as a captive portal does, and is used last.
    pub portal: bool,
}

/// What a connection brings at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Small answers, as far as anybody knows.
    Light,
    /// A download, or an upload.
    Heavy,
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
    queue_at: Instant,
    rate_bytes: u64,
    /// When somebody last took all that it brings: until then nobody knows what it could.
    filled_at: Option<Instant>,
    /// Connections that use this uplink only, and that are busy or being opened.
    light: u32,
    heavy: u32,
    failures: u32,
    /// Attempts in a row that were met with silence.
    silences: u32,
    failing_until: Instant,
    /// Until when it comes last, since it may answer in the place of servers, and since it does.
    doubted_until: Instant,
    portal_until: Instant,
    /// People were told of its portal.
    portal_told: bool,
    /// When a server was last reached over it beyond doubt.
    proven_at: Option<Instant>,
}

/// What is known of uplinks and servers.
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
            proven_at: None,
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

    /// The base RTT as it was measured. That another uplink was faster says where one comes in a plan, and not how far it is.
    fn measured_base(&self, now: Instant) -> Option<Duration> {
        self.base(now).filter(|_| matches!(self.base, Base::Known { .. }))
    }

    /// What a round trip takes now.
    fn round_trip(&self, now: Instant) -> Option<Duration> {
        Some(self.base(now)? + self.queue(now))
    }

    fn queue(&self, now: Instant) -> Duration {
        if now.saturating_since(self.queue_at) < QUEUE_FOR { self.queue } else { Duration::ZERO }
    }

    /// A round trip took so long, of which `elsewhere` may be somebody's pause.
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

    /// Octets in a second that it can bring, if anybody has tried.
    fn capacity_bytes(&self, now: Instant) -> Option<u64> {
        self.filled_at.filter(|at| now.saturating_since(*at) < KNOWN_FOR).map(|_| self.rate_bytes)
    }

    /// Whether nobody has found out for long what it can bring.
    fn is_untried(&self, now: Instant) -> bool {
        self.filled_at.is_none_or(|at| now.saturating_since(at) >= UNTRIED_FOR)
    }

    /// Connections that share it.
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

    /// Whether an answer was waited for there in vain of late, and none ever came.
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
    /// An uplink is there, or has another tier.
    pub fn add(&mut self, uplink: Uplink) {
        match self.get_mut(uplink.ip) {
            Some(known) => known.uplink = uplink,
            None => self.uplinks.push(State::new(uplink)),
        }
    }

    /// An uplink is gone.
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

    /// When the uplink of an address is used.
    pub fn tier(&self, ip: IpAddr) -> Option<Tier> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).map(|state| state.uplink.tier)
    }

    /// Whether there is no uplink now.
    pub fn is_empty(&self) -> bool {
        self.uplinks.is_empty()
    }

    /// Whether an uplink has addresses of this family.
    pub fn has_family(&self, is_ipv4: bool) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip.is_ipv4() == is_ipv4)
    }

    /// The addresses of all uplinks.
    pub fn ips(&self) -> Vec<IpAddr> {
        self.uplinks.iter().map(|state| state.uplink.ip).collect()
    }

    /// The addresses of each uplink.
    pub fn links(&self) -> Vec<SmallVec<[IpAddr; 2]>> {
        let links: BTreeSet<usize> = self.uplinks.iter().map(|state| state.uplink.link).collect();
        let of_link = |link| self.uplinks.iter().filter(move |it| it.uplink.link == link).map(|it| it.uplink.ip);
        links.into_iter().map(|link| of_link(link).collect()).collect()
    }

    /// What is known of each uplink.
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

    /// Whether the server is known to answer without MPTCP, whatever the uplink.
    pub fn is_plain(&self, remote: SocketAddr, now: Instant) -> bool {
        self.servers.is_plain(remote, now)
    }

    /// Whether the server has answered of late.
    pub fn is_known(&self, remote: SocketAddr, now: Instant) -> bool {
        self.servers.is_known(remote, now)
    }

    /// What a connection to a server will be, going by those before it.
    pub fn weight(&self, remote: SocketAddr, now: Instant) -> Weight {
        self.servers.weight(remote, now)
    }

    /// A connection to a server turned out to be a download, or has ended without being one.
    pub fn turned_out(&mut self, remote: SocketAddr, weight: Weight) {
        self.servers.turned_out(remote, weight);
    }

    /// An attempt from `ip` succeeded after `took`.
    pub fn succeeded(&mut self, ip: IpAddr, remote: SocketAddr, took: Duration, mptcp: bool, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.failures = 0;
            state.failing_until = Instant::ZERO;
            state.note_rtt(took, now);
            state.note_queue(took, Duration::ZERO, now);
        }
        if mptcp {
            // What answers in the place of servers does not speak it.
            self.trust(ip, now);
        }
        self.note_answer(ip, remote, mptcp, now);
    }

    /// A server was reached over an uplink beyond doubt.
    pub fn trust(&mut self, ip: IpAddr, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            (state.proven_at, state.portal_told) = (Some(now), false);
            (state.doubted_until, state.portal_until) = (Instant::ZERO, Instant::ZERO);
        }
    }

    /// Whether that was so of late.
    pub fn is_trusted(&self, ip: IpAddr, now: Instant) -> bool {
        let proven_at = self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.proven_at);
        proven_at.is_some_and(|at| now.saturating_since(at) < TRUSTED_FOR)
    }

    /// Whether there is another uplink of the same family.
    pub fn has_other(&self, ip: IpAddr) -> bool {
        self.uplinks.iter().any(|state| state.uplink.ip != ip && state.uplink.ip.is_ipv4() == ip.is_ipv4())
    }

    /// An uplink comes after all others until then, since it may answer in the place of servers.
    pub fn doubt(&mut self, ip: IpAddr, until: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.doubted_until = until;
        }
    }

    /// The same, since it does; whether that is news.
    pub fn found_portal(&mut self, ip: IpAddr, until: Instant) -> bool {
        let Some(state) = self.get_mut(ip) else { return false };
        state.portal_until = until;
        !core::mem::replace(&mut state.portal_told, true)
    }

    /// An attempt from `ip` was answered after `took`, too late to be used.
    pub fn answered(&mut self, ip: IpAddr, remote: SocketAddr, took: Duration, mptcp: bool, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.note_rtt(took, now);
            state.note_queue(took, Duration::ZERO, now);
        }
        self.note_answer(ip, remote, mptcp, now);
    }

    /// A server turned out to speak plain TCP, or the way from `ip` to it lets nothing else through.
    pub fn found_plain(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        self.note_answer(ip, remote, false, now);
    }

    /// A subflow from `ip` has joined a connection.
    pub fn joined(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        self.note_answer(ip, remote, true, now);
    }

    /// A server answered an attempt from `ip` that offered nothing, after those that offered MPTCP had no answer or were refused.
    pub fn wanted_no_offer(&mut self, ip: IpAddr, remote: SocketAddr, now: Instant) {
        if let Some(link) = self.link(ip) {
            self.servers.wanted_no_offer(remote, link, now);
        }
    }

    /// Whether to ask a server without an offer of MPTCP from `ip`.
    pub fn is_without_offer(&self, ip: IpAddr, remote: SocketAddr, now: Instant) -> bool {
        self.link(ip).is_some_and(|link| self.servers.is_without_offer(remote, link, now))
    }

    /// An address of a server did not answer attempts that began at `since`, while another one did.
    pub fn kept_silent(&mut self, remote: SocketAddr, since: Instant, now: Instant) {
        self.servers.kept_silent(remote, since, now);
    }

    fn note_answer(&mut self, ip: IpAddr, remote: SocketAddr, mptcp: bool, now: Instant) {
        if let Some(link) = self.link(ip) {
            self.servers.answered(remote, link, mptcp, now);
        }
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

    /// The least round-trip time that a subflow from `ip` has measured.
    pub fn measured(&mut self, ip: IpAddr, least: Duration, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            state.note_rtt(least, now);
        }
    }

    /// What round trips from `ip` took of late: the mean of so many.
    pub fn measured_of_late(&mut self, ip: IpAddr, mean: Duration, samples: u64, now: Instant) {
        if let Some(state) = self.get_mut(ip) {
            let elsewhere = if samples < UPLOAD_SAMPLES { DELAYED_ACK } else { Duration::ZERO };
            state.note_queue(mean, elsewhere, now);
        }
    }

    /// What an uplink delivered, both ways, within `span`; called at even intervals while anything is busy. `filled` says that somebody
    /// there took all that came: only then does little mean that it is slow.
    pub fn delivered(&mut self, ip: IpAddr, bytes: u64, span: Duration, filled: bool, now: Instant) {
        let Some(state) = self.get_mut(ip) else { return };
        let nanos = u128::from(span.as_nanos().max(1));
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        // A short silence is no slowness: the rate falls by a sixteenth at a time.
        let kept = if filled { state.rate_bytes - state.rate_bytes / 16 } else { state.rate_bytes };
        state.rate_bytes = rate.max(kept);
        if filled {
            state.filled_at = Some(now);
        }
    }

    /// What a round trip takes now on the uplink of an address, as far as it is known.
    pub fn round_trip(&self, ip: IpAddr, now: Instant) -> Option<Duration> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.round_trip(now))
    }

    /// The least round-trip time on the uplink of an address, if it was measured.
    pub fn base(&self, ip: IpAddr, now: Instant) -> Option<Duration> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).and_then(|state| state.measured_base(now))
    }

    /// A connection that uses `ip` only is being opened there, or is busy. Of several that begin at once each has to know of the
    /// others.
    pub fn count(&mut self, ip: IpAddr, weight: Weight) {
        if let Some(state) = self.get_mut(ip) {
            *state.counted(weight) += 1;
        }
    }

    /// It is no longer.
    pub fn discount(&mut self, ip: IpAddr, weight: Weight) {
        if let Some(state) = self.get_mut(ip) {
            let counted = state.counted(weight);
            *counted = counted.saturating_sub(1);
        }
    }

    fn link(&self, ip: IpAddr) -> Option<usize> {
        self.uplinks.iter().find(|state| state.uplink.ip == ip).map(|state| state.uplink.link)
    }

    fn get_mut(&mut self, ip: IpAddr) -> Option<&mut State> {
        self.uplinks.iter_mut().find(|state| state.uplink.ip == ip)
    }
}

#[cfg(test)]
mod tests;
