//! Connects to one of several addresses from one of several uplinks; the first answer wins (RFC 8305).
//!
//! Networks that swallow or refuse offers of MPTCP let plain TCP through. If no offer has been answered for a while, or
//! all were refused, the server's addresses are tried without one, in the same order and at the same intervals: the
//! first one may be dead.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use host::uplinks::WITHOUT_OFFER_AFTER;
use smallvec::SmallVec;
use transport::SettingsChange;
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint};
use units::{Duration, Instant};

use super::choice::Choice;
use super::failure::Failure;
use super::session::ROOM_FIRST_BYTES;
use super::target::Target;
use crate::turns::in_turns;

/// Time until the next address of the server is tried (RFC 8305 section 5, Connection Attempt Delay).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Time limit for all attempts together.
pub const DIAL_MAX: Duration = Duration::from_secs(30);
/// After a refusal over one uplink: how many round trips to wait for the server's answer to the same address over the
/// others, and the limits of that time. A middlebox that refuses in the server's place may be near, and the server far.
const REFUSED_ROUNDS: u64 = 3;
const REFUSED_MIN: Duration = Duration::from_secs(1);
const REFUSED_MAX: Duration = Duration::from_secs(3);
/// Maximum number of attempts, or one for each uplink if that is more.
const STEPS_MAX: usize = 16;

/// An attempt that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The engine's identifier.
    pub connection: ConnectionId,
    /// Local address.
    pub local: IpAddr,
    /// Address of the server.
    pub remote: SocketAddr,
    /// When it began.
    pub since: Instant,
    /// Whether it offers MPTCP.
    pub offers: bool,
    /// Whether it is made without an offer because the same one with an offer had no answer, or was refused.
    pub instead: bool,
}

impl Attempt {
    /// Returns what an answer with MPTCP or without shows about the server; `None` if nothing was offered.
    pub fn shows(&self, mptcp: bool) -> Option<bool> {
        (self.offers || self.instead).then_some(mptcp)
    }
}

/// An attempt that is yet to begin.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: Instant,
    local: IpAddr,
    remote: SocketAddr,
    offers: bool,
    instead: bool,
}

/// All attempts to connect for one client.
#[derive(Debug)]
pub struct Dial {
    target: Target,
    /// Addresses of the server.
    addresses: SmallVec<[SocketAddr; 2]>,
    /// Attempts yet to begin, the next one last.
    waiting: Vec<Step>,
    /// Attempts without an offer, in case no offer is answered; the next one last.
    without_offer: Vec<Step>,
    /// They begin earlier, since no offer is left.
    is_hastened: bool,
    open: SmallVec<[Attempt; 2]>,
    failures: Vec<(IpAddr, SocketAddr, CloseReason)>,
    /// Addresses that have refused, and when each first did.
    refused: SmallVec<[(SocketAddr, Instant); 1]>,
    /// How long to wait for an answer over each uplink after a refusal.
    patience: SmallVec<[(IpAddr, Duration); 2]>,
    first: (IpAddr, SocketAddr),
    give_up_at: Instant,
}

impl Dial {
    /// Prepares attempts to reach `target` at `addresses`, in the order that `choice` plans.
    ///
    /// # Errors
    /// If no uplink has the family of any address.
    pub fn new(target: Target, addresses: &[IpAddr], choice: &Choice, now: Instant) -> Result<Self, Failure> {
        let mut waiting = Vec::new();
        let order = choice.order(addresses, target.port, now);
        for (position, remote) in order.iter().enumerate() {
            let is_asked = position == 1 && choice.is_to_be_asked(order[0], *remote, now);
            let mut at = if is_asked { now } else { now + NEXT_ADDRESS.saturating_mul(position as u64) };
            // Uplinks that lack the first family do not wait for those that have it.
            let other_family = order.iter().find(|other| position == 0 && other.is_ipv4() != remote.is_ipv4());
            let remotes: SmallVec<[SocketAddr; 2]> = core::iter::once(*remote).chain(other_family.copied()).collect();
            for start in choice.plan(&remotes, now) {
                at += start.after;
                if waiting.iter().all(|step: &Step| (step.local, step.remote) != (start.ip, start.remote)) {
                    let offers = !choice.is_without_offer(start.ip, start.remote, now);
                    waiting.push(Step { at, local: start.ip, remote: start.remote, offers, instead: false });
                }
            }
        }
        waiting.sort_by_key(|step| step.at);
        let Some(Step { local, remote, .. }) = waiting.first().copied() else {
            if choice.is_empty() {
                return Err(Failure::NoUplinks(target));
            }
            let family = if addresses.iter().any(IpAddr::is_ipv4) { "IPv4" } else { "IPv6" };
            return Err(Failure::NoUplink { family, target });
        };
        let mut waiting = cut(waiting, choice);
        waiting.reverse();
        let mut without_offer: Vec<Step> = waiting.iter().filter(|it| it.offers).copied().collect();
        for step in &mut without_offer {
            (step.at, step.offers, step.instead) = (step.at + WITHOUT_OFFER_AFTER, false, true);
        }
        let mut patience: SmallVec<[(IpAddr, Duration); 2]> = SmallVec::new();
        for Step { local, .. } in &waiting {
            if patience.iter().all(|(known, _)| known != local) {
                patience.push((*local, patience_after_refusal(choice.round_trip(*local, now))));
            }
        }
        let (open, failures, refused, first) = (SmallVec::new(), Vec::new(), SmallVec::new(), (local, remote));
        let addresses = addresses.iter().map(|ip| SocketAddr::new(*ip, target.port)).collect();
        let give_up_at = now + DIAL_MAX;
        Ok(Self {
            target,
            addresses,
            waiting,
            without_offer,
            is_hastened: false,
            open,
            failures,
            refused,
            patience,
            first,
            give_up_at,
        })
    }

    /// Returns the local and remote address of the first attempt.
    pub fn first(&self) -> (IpAddr, SocketAddr) {
        self.first
    }

    /// Begins the attempts that are due, and in any case the next one if none is open; but none over uplinks that
    /// `choice` has no longer. Returns the new connections.
    pub fn go_on(
        &mut self,
        endpoint: &mut Endpoint,
        config: &ConnectionConfig,
        choice: &Choice,
        now: Instant,
    ) -> SmallVec<[ConnectionId; 2]> {
        let mut begun = SmallVec::new();
        while let Some(step) = self.take_next(now) {
            // Not before its turn: an uplink that is away for a moment is not forgotten.
            if choice.has(step.local) {
                begun.extend(self.begin(step, endpoint, config, now));
            }
        }
        begun
    }

    /// Takes the next step if its time has come, or no open attempt is left to wait for.
    fn take_next(&mut self, now: Instant) -> Option<Step> {
        if self.waiting.last().is_some_and(|step| step.at <= now || self.open.is_empty()) {
            return self.waiting.pop();
        }
        self.hasten(now);
        if self.without_offer.last().is_some_and(|step| step.at <= now) {
            return self.without_offer.pop();
        }
        None
    }

    /// If no offer is left to wait for, or later no attempt at all, those without an offer begin now. The intervals
    /// between them stay.
    fn hasten(&mut self, now: Instant) {
        let offers_left = !self.waiting.is_empty() || self.open.iter().any(|attempt| attempt.offers);
        if offers_left || self.is_hastened && !self.open.is_empty() {
            return;
        }
        self.is_hastened = true;
        let early = self.without_offer.last().map_or(Duration::ZERO, |step| step.at.saturating_since(now));
        self.without_offer.iter_mut().for_each(|step| step.at = step.at.saturating_sub(early));
    }

    fn begin(
        &mut self,
        Step { local, remote, offers, instead, .. }: Step,
        endpoint: &mut Endpoint,
        config: &ConnectionConfig,
        now: Instant,
    ) -> Option<ConnectionId> {
        let config = ConnectionConfig { mptcp: config.mptcp && offers, ..config.clone() };
        let room_bytes = config.receive_buffer_bytes.min(ROOM_FIRST_BYTES);
        let Ok(connection) = endpoint.connect(SocketAddr::new(local, 0), remote, config, now) else {
            self.failures.push((local, remote, CloseReason::Aborted));
            return None;
        };
        // The window scale fits the whole buffer; the window opens as the client reads.
        let first = SettingsChange { receive_buffer_bytes: Some(room_bytes), ..SettingsChange::default() };
        let _ = endpoint.change(connection, &first, now);
        self.open.push(Attempt { connection, local, remote, since: now, offers, instead });
        Some(connection)
    }

    /// Returns when to call [`Self::go_on`] or [`Self::take_late`] next, or when to give up.
    pub fn next_at(&self) -> Instant {
        let late = self.open.iter().filter_map(|attempt| self.until(attempt)).min();
        let next = [&self.waiting, &self.without_offer].into_iter().filter_map(|steps| Some(steps.last()?.at)).min();
        [late, next].into_iter().flatten().fold(self.give_up_at, Instant::min)
    }

    /// Returns when to stop waiting for an attempt whose server has refused over another uplink.
    fn until(&self, attempt: &Attempt) -> Option<Instant> {
        let (_, refused_at) = self.refused.iter().find(|(remote, _)| *remote == attempt.remote)?;
        let patience = self.patience.iter().find(|(ip, _)| *ip == attempt.local);
        Some(attempt.since.max(*refused_at) + patience.map_or(REFUSED_MAX, |(_, span)| *span))
    }

    /// Takes the attempts that have waited long enough after their server's refusal over another uplink.
    pub fn take_late(&mut self, now: Instant) -> SmallVec<[Attempt; 2]> {
        let (late, open): (SmallVec<_>, SmallVec<_>) =
            core::mem::take(&mut self.open).into_iter().partition(|it| self.until(it).is_some_and(|at| at <= now));
        self.open = open;
        self.failures
            .extend(late.iter().map(|attempt: &Attempt| (attempt.local, attempt.remote, CloseReason::TimedOut)));
        late
    }

    /// Removes an attempt that failed, and returns it.
    pub fn failed(&mut self, connection: ConnectionId, reason: CloseReason, now: Instant) -> Option<Attempt> {
        let position = self.open.iter().position(|attempt| attempt.connection == connection)?;
        let attempt = self.open.swap_remove(position);
        self.failures.push((attempt.local, attempt.remote, reason));
        if reason == CloseReason::Refused && self.refused.iter().all(|(remote, _)| *remote != attempt.remote) {
            self.refused.push((attempt.remote, now));
        }
        // A lost head start need not be awaited.
        if let Some(next) = self.waiting.last_mut() {
            next.at = now;
        }
        Some(attempt)
    }

    /// Ends the dial with the attempt that succeeded. Returns it, and the others, which are no longer needed.
    pub fn succeeded(mut self, connection: ConnectionId) -> Option<(Attempt, SmallVec<[Attempt; 2]>)> {
        let position = self.open.iter().position(|attempt| attempt.connection == connection)?;
        let winner = self.open.swap_remove(position);
        Some((winner, self.open))
    }

    /// Returns the server's addresses, including those that no uplink can reach now.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns what it connects to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the attempts that wait for an answer.
    pub fn open(&self) -> &[Attempt] {
        &self.open
    }

    /// Returns the local addresses over which an address of the server still owes an answer that it gives elsewhere: it
    /// `is_known` to answer, or has refused over another uplink. One that answers nobody says nothing about uplinks.
    pub fn silent_uplinks(&self, is_known: impl Fn(SocketAddr) -> bool) -> BTreeSet<IpAddr> {
        let has_refused = |remote| self.refused.iter().any(|(known, _)| *known == remote);
        let owed = self.open.iter().filter(|attempt| is_known(attempt.remote) || has_refused(attempt.remote));
        owed.map(|attempt| attempt.local).collect()
    }

    /// Whether no attempt is left, or the time is up.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.give_up_at || self.waiting.is_empty() && self.without_offer.is_empty() && self.open.is_empty()
    }

    /// Says why no address was reached; `names` are the uplinks' names by local address.
    pub fn verdict(&self, names: &BTreeMap<IpAddr, String>) -> Failure {
        let silent = self.open.iter().map(|attempt| (attempt.local, attempt.remote, CloseReason::TimedOut));
        let mut all: Vec<_> = Vec::new();
        // An attempt with an offer and one without may fail alike: report that once.
        for failure in self.failures.iter().copied().chain(silent) {
            if !all.contains(&failure) {
                all.push(failure);
            }
        }
        // A refusal by the server says more than missing answers.
        let refused = all.iter().find(|(.., reason)| *reason == CloseReason::Refused);
        let reason = refused.or(all.last()).map_or(CloseReason::TimedOut, |(.., reason)| *reason);
        let called = |ip: &IpAddr| names.get(ip).cloned().unwrap_or_else(|| ip.to_string());
        let texts = all.iter().map(|(local, remote, reason)| match reason {
            CloseReason::TimedOut => format!("no answer from {remote} over {}", called(local)),
            CloseReason::Aborted => format!("no port left for {remote} over {}", called(local)),
            reason => format!("{remote} over {}: {reason}", called(local)),
        });
        Failure::Unreachable { target: self.target.clone(), reason, attempts: texts.collect::<Vec<_>>().join("; ") }
    }
}

/// Leaves out what is too much of `steps`, but no uplink: with many addresses and head starts, later uplinks would not
/// be tried at all.
fn cut(steps: Vec<Step>, choice: &Choice) -> Vec<Step> {
    let links: Vec<Option<usize>> = steps.iter().map(|step| choice.link(step.local)).collect();
    let mut kept = in_turns(&links);
    kept.truncate(STEPS_MAX.max(choice.links().len()));
    kept.sort_unstable();
    kept.into_iter().map(|position| steps[position]).collect()
}

/// Returns how long to wait for an answer after a refusal over another uplink.
fn patience_after_refusal(round_trip: Option<Duration>) -> Duration {
    round_trip.map_or(REFUSED_MAX, |rtt| rtt.saturating_mul(REFUSED_ROUNDS).clamp(REFUSED_MIN, REFUSED_MAX))
}

#[cfg(test)]
mod tests {
    use linux::uplink::Network;
    use transport::EndpointConfig;

    use super::super::choice::{Tier, Uplink};
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn choice(uplinks: &[&str]) -> Choice {
        let mut choice = Choice::default();
        let uplinks = ips(uplinks).into_iter().enumerate();
        uplinks.for_each(|(link, ip)| choice.add(Uplink { ip, tier: Tier::Primary, link, near: None }));
        choice
    }

    fn dial(addresses: &[&str], uplinks: &[&str]) -> Result<Dial, Failure> {
        let target = Target::parse("server.example:80", None).unwrap();
        Dial::new(target, &ips(addresses), &choice(uplinks), Instant::ZERO)
    }

    /// Goes on while all uplinks are there.
    fn go_on(
        dial: &mut Dial,
        endpoint: &mut Endpoint,
        config: &ConnectionConfig,
        now: Instant,
    ) -> SmallVec<[ConnectionId; 2]> {
        let locals: Vec<String> = dial.patience.iter().map(|(ip, _)| ip.to_string()).collect();
        let locals: Vec<&str> = locals.iter().map(String::as_str).collect();
        dial.go_on(endpoint, config, &choice(&locals), now)
    }

    #[test]
    fn a_family_without_an_uplink_is_told() {
        let failure = dial(&["2001:db8::a"], &["10.0.0.1"]).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "no uplink has IPv6, which server.example:80 needs: wait for one, or connect one; `anabranch doctor` finds out why"
        );
        assert_eq!(failure.socks_reply(), 3);
    }

    #[test]
    fn attempts_begin_at_their_time_or_when_one_fails() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let config = ConnectionConfig::default();
        let mut dial = dial(&["192.0.2.1", "192.0.2.2"], &["10.0.0.1", "10.0.0.2"]).unwrap();
        // Nothing is known of either uplink: both race.
        let first = go_on(&mut dial, &mut endpoint, &config, Instant::ZERO);
        assert_eq!(first.len(), 2);
        assert_eq!(dial.next_at(), Instant::from_millis(250));
        assert!(go_on(&mut dial, &mut endpoint, &config, Instant::from_millis(249)).is_empty());
        assert!(dial.failed(first[0], CloseReason::Refused, Instant::from_millis(20)).is_some());
        assert_eq!(dial.next_at(), Instant::from_millis(20));
        let second = go_on(&mut dial, &mut endpoint, &config, Instant::from_millis(249));
        assert_eq!(second.len(), 1, "the next one begins, the last one waits for its time");
        assert!(!dial.is_over(Instant::from_millis(20)) && dial.is_over(Instant::from_secs(30)));
        let names = BTreeMap::from([("10.0.0.1".parse().unwrap(), "usb0".to_owned())]);
        let failure = dial.verdict(&names);
        assert!(failure.to_string().contains("over usb0"), "{failure}");
        assert_eq!((failure.socks_reply(), failure.http_status().0), (5, 502));
        let (winner, losers) = dial.succeeded(second[0]).unwrap();
        assert_eq!((winner.remote.ip(), losers.len()), (ips(&["192.0.2.2"])[0], 1));
    }

    #[test]
    fn a_host_of_an_uplinks_own_network_is_looked_for_nowhere_else() {
        let network = |text: &str, prefix_len| Some(Network { address: text.parse().unwrap(), prefix_len });
        // The last one claims half of the Internet.
        let nears = [
            network("192.168.1.5", 24),
            network("192.168.42.10", 24),
            network("192.168.1.7", 24),
            network("1.2.3.4", 1),
        ];
        let mut choice = Choice::default();
        for (link, (ip, near)) in
            ips(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]).into_iter().zip(nears).enumerate()
        {
            choice.add(Uplink { ip, tier: Tier::Primary, link, near });
        }
        let from = |remote: &str| {
            let target = Target::parse("server.example:80", None).unwrap();
            let dial = Dial::new(target, &ips(&[remote]), &choice, Instant::ZERO).unwrap();
            let mut locals: Vec<String> = dial.waiting.iter().map(|step| step.local.to_string()).collect();
            locals.sort();
            locals.join(" ")
        };
        assert_eq!(from("192.168.1.1"), "10.0.0.1 10.0.0.3", "two uplinks to one network, or to two alike");
        assert_eq!(from("192.168.42.129"), "10.0.0.2");
        assert_eq!(from("192.168.2.1"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", "behind some gateway");
        assert_eq!(from("10.20.0.1"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", "no private network is that large");
        assert_eq!(from("93.184.216.34"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4", "the same host behind all of them");
    }

    #[test]
    fn every_uplink_is_tried_whatever_the_number_of_addresses() {
        let addresses: Vec<String> = (1..=16).map(|number| format!("192.0.2.{number}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        for count in [5, 32] {
            let uplinks: Vec<IpAddr> = (1..=count).map(|number| IpAddr::from([10, 0, 0, number])).collect();
            let mut choice = Choice::default();
            for (link, ip) in uplinks.iter().enumerate() {
                choice.add(Uplink { ip: *ip, tier: Tier::Primary, link, near: None });
                // A head start of a second for each.
                choice.measured(*ip, Duration::from_millis(500), Instant::ZERO);
            }
            let target = Target::parse("server.example:80", None).unwrap();
            let dial = Dial::new(target, &ips(&addresses), &choice, Instant::ZERO).unwrap();
            assert!(uplinks.iter().all(|ip| dial.waiting.iter().any(|step| step.local == *ip)), "{count}");
            assert_eq!(dial.waiting.len(), STEPS_MAX.max(uplinks.len()));
            assert!(dial.waiting.is_sorted_by(|a, b| a.at >= b.at), "the next one last");
        }
    }

    #[test]
    fn who_refuses_with_and_without_an_offer_is_told_once() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let mut dial = dial(&["192.0.2.1"], &["10.0.0.1"]).unwrap();
        for ms in [0, 20] {
            let begun = go_on(&mut dial, &mut endpoint, &ConnectionConfig::default(), Instant::from_millis(ms));
            dial.failed(begun[0], CloseReason::Refused, Instant::from_millis(ms + 10));
        }
        let failure = dial.verdict(&BTreeMap::new()).to_string();
        assert_eq!(failure.matches("over 10.0.0.1").count(), 1, "{failure}");
    }

    #[test]
    fn a_server_that_is_plain_in_one_family_is_asked_in_the_other_at_once() {
        let own = ips(&["10.0.0.1", "2001:db8::1", "10.0.0.2"]);
        let mut choice = Choice::default();
        let uplinks = own.iter().zip([0, 0, 1]);
        uplinks.for_each(|(ip, link)| choice.add(Uplink { ip: *ip, tier: Tier::Primary, link, near: None }));
        let begun_at_once = |choice: &Choice| {
            let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
            let target = Target::parse("server.example:80", None).unwrap();
            let mut dial = Dial::new(target, &ips(&["192.0.2.1", "2001:db8:1::a"]), choice, Instant::ZERO).unwrap();
            go_on(&mut dial, &mut endpoint, &ConnectionConfig::default(), Instant::ZERO);
            dial.open().iter().map(|attempt| attempt.local).collect::<Vec<_>>()
        };
        assert_eq!(begun_at_once(&choice), [own[0], own[2]]);
        choice.found_plain(own[0], "192.0.2.1:80".parse().unwrap(), Instant::ZERO);
        let mut begun = begun_at_once(&choice);
        begun.sort_unstable();
        assert_eq!(begun, [own[0], own[2], own[1]]);
    }

    #[test]
    fn a_server_is_asked_without_an_offer_where_none_is_answered() {
        let [mut first, mut second, mut third] =
            [1, 2, 3].map(|seed| Endpoint::with_seed(EndpointConfig::default(), seed));
        let (config, at) = (ConnectionConfig::default(), Instant::from_millis);
        let uplinks = ["10.0.0.1", "10.0.0.2"];
        let without = |dial: &mut Dial, endpoint: &mut Endpoint, now| {
            go_on(dial, endpoint, &config, now);
            let open = dial.open().iter().filter(|attempt| !attempt.offers);
            open.map(|attempt| attempt.local).collect::<Vec<_>>()
        };
        let mut silent = dial(&["192.0.2.1", "192.0.2.2"], &uplinks).unwrap();
        assert!(without(&mut silent, &mut first, at(1_999)).is_empty() && silent.next_at() == at(2_000));
        assert_eq!(without(&mut silent, &mut first, at(2_000)).len(), 2, "over both uplinks, to the first address");
        assert_eq!(silent.next_at(), at(2_250));
        assert_eq!(without(&mut silent, &mut first, at(2_250)).len(), 4, "it may be dead");
        // All have refused offers: at once.
        let mut refused = dial(&["192.0.2.1"], &uplinks).unwrap();
        assert!(without(&mut refused, &mut second, at(0)).is_empty());
        for (local, begun) in uplinks.into_iter().zip([0, 2]) {
            refused.failed(attempt(&refused, local, "192.0.2.1"), CloseReason::Refused, at(20));
            assert!(!refused.is_over(at(20)));
            assert_eq!(
                without(&mut refused, &mut second, at(20)).len(),
                begun,
                "the other uplink may let offers through"
            );
        }
        // What is known is used at once, and no attempt is made twice.
        let mut choice = choice(&uplinks);
        let server = "192.0.2.1:80".parse().unwrap();
        let target = Target::parse("server.example:80", None).unwrap();
        ips(&uplinks).into_iter().for_each(|ip| choice.wanted_no_offer(ip, server, &target.host, at(0)));
        let mut known = Dial::new(target, &ips(&["192.0.2.1"]), &choice, at(0)).unwrap();
        assert_eq!(without(&mut known, &mut third, at(0)).len(), 2);
        assert_eq!((known.open().len(), known.next_at()), (2, Instant::from_secs(30)));
    }

    #[test]
    fn each_address_that_refused_an_offer_is_asked_without_one() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let (config, at) = (ConnectionConfig::default(), Instant::from_millis);
        let mut dial = dial(&["192.0.2.1", "192.0.2.2"], &["10.0.0.1"]).unwrap();
        let asked = |dial: &Dial| dial.open().iter().map(|it| (it.remote.ip(), it.offers)).collect::<Vec<_>>();
        let refuse = |dial: &mut Dial, endpoint: &mut Endpoint, now| {
            dial.failed(dial.open()[0].connection, CloseReason::Refused, now);
            go_on(dial, endpoint, &config, now);
        };
        let [first, second]: [IpAddr; 2] = ips(&["192.0.2.1", "192.0.2.2"]).try_into().unwrap();
        go_on(&mut dial, &mut endpoint, &config, at(0));
        refuse(&mut dial, &mut endpoint, at(10));
        assert_eq!(asked(&dial), [(second, true)]);
        refuse(&mut dial, &mut endpoint, at(20));
        assert_eq!((asked(&dial), dial.next_at()), (vec![(first, false)], at(270)), "no offer is left");
        go_on(&mut dial, &mut endpoint, &config, at(269));
        assert_eq!(asked(&dial), [(first, false)]);
        go_on(&mut dial, &mut endpoint, &config, at(270));
        assert_eq!(asked(&dial), [(first, false), (second, false)]);
        refuse(&mut dial, &mut endpoint, at(280));
        refuse(&mut dial, &mut endpoint, at(280));
        assert!(dial.is_over(at(280)));
    }

    #[test]
    fn the_next_address_does_not_wait_for_one_that_refuses_without_an_offer() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let (config, at) = (ConnectionConfig::default(), Instant::from_millis);
        let mut dial = dial(&["192.0.2.1", "192.0.2.2"], &["10.0.0.1"]).unwrap();
        for refusals in 0..4 {
            go_on(&mut dial, &mut endpoint, &config, at(refusals));
            assert_eq!(dial.open().len(), 1, "{refusals}");
            dial.failed(dial.open()[0].connection, CloseReason::Refused, at(refusals));
        }
        assert!(dial.is_over(at(4)));
    }

    #[test]
    fn an_uplink_that_was_away_for_a_moment_is_tried_without_an_offer_too() {
        let uplinks = ["10.0.0.1", "10.0.0.2"];
        let (config, at) = (ConnectionConfig::default(), Instant::from_millis);
        let (both, one) = (choice(&uplinks), choice(&uplinks[..1]));
        for (later, without_offer) in [(&both, 2), (&one, 1)] {
            let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
            let mut dial = dial(&["192.0.2.1"], &uplinks).unwrap();
            assert_eq!(dial.go_on(&mut endpoint, &config, &both, at(0)).len(), 2);
            dial.failed(attempt(&dial, uplinks[1], "192.0.2.1"), CloseReason::Aborted, at(500));
            assert!(dial.go_on(&mut endpoint, &config, &one, at(500)).is_empty());
            assert_eq!(dial.go_on(&mut endpoint, &config, later, at(2_000)).len(), without_offer);
        }
    }

    /// Attempts that have all begun by now, except those without an offer.
    fn begun(addresses: &[&str], choice: &Choice) -> (Dial, Endpoint) {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let target = Target::parse("server.example:80", None).unwrap();
        let mut dial = Dial::new(target, &ips(addresses), choice, Instant::ZERO).unwrap();
        dial.without_offer.clear();
        go_on(&mut dial, &mut endpoint, &ConnectionConfig::default(), Instant::from_secs(3));
        (dial, endpoint)
    }

    fn attempt(dial: &Dial, local: &str, remote: &str) -> ConnectionId {
        let is = |attempt: &&Attempt| attempt.local == ips(&[local])[0] && attempt.remote.ip() == ips(&[remote])[0];
        dial.open().iter().find(is).unwrap().connection
    }

    #[test]
    fn a_refusal_over_one_uplink_leaves_the_others_little_time() {
        let (near, far) = ("10.0.0.1", "10.0.0.2");
        // The other uplink is unknown; it is near; it is far.
        for (rtt_ms, patience_ms) in [(None, 3_000), (Some(40), 1_000), (Some(600), 1_800), (Some(1_500), 3_000)] {
            let mut choice = choice(&[near, far]);
            rtt_ms.into_iter().for_each(|ms| choice.measured(ips(&[far])[0], Duration::from_millis(ms), Instant::ZERO));
            let (mut dial, _endpoint) = begun(&["192.0.2.1"], &choice);
            let at = |ms: u64| Instant::from_millis(3_020 + ms);
            assert!(dial.take_late(at(0)).is_empty() && dial.next_at() == Instant::from_secs(30));
            dial.failed(attempt(&dial, near, "192.0.2.1"), CloseReason::Refused, at(0));
            assert_eq!(dial.next_at(), at(patience_ms), "{rtt_ms:?}");
            assert!(dial.take_late(at(patience_ms - 1)).is_empty() && !dial.is_over(at(patience_ms - 1)));
            let late = dial.take_late(at(patience_ms));
            assert_eq!((late.len(), dial.is_over(at(patience_ms))), (1, true), "{rtt_ms:?}");
            let failure = dial.verdict(&BTreeMap::new());
            assert_eq!(failure.socks_reply(), 5, "refused");
            assert!(failure.to_string().contains("no answer from 192.0.2.1:80 over 10.0.0.2"), "{failure}");
        }
    }

    #[test]
    fn addresses_that_have_not_refused_keep_their_time() {
        let (mut dial, _endpoint) = begun(&["192.0.2.1", "192.0.2.2"], &choice(&["10.0.0.1", "10.0.0.2"]));
        let refused_at = Instant::from_millis(3_020);
        dial.failed(attempt(&dial, "10.0.0.1", "192.0.2.1"), CloseReason::Refused, refused_at);
        dial.failed(attempt(&dial, "10.0.0.1", "192.0.2.2"), CloseReason::TimedOut, refused_at);
        let late = dial.take_late(Instant::from_secs(10));
        assert_eq!((late.len(), late[0].remote.ip()), (1, ips(&["192.0.2.1"])[0]));
        assert_eq!((dial.open().len(), dial.next_at()), (1, Instant::from_secs(30)));
        assert!(!dial.is_over(Instant::from_secs(29)) && dial.is_over(Instant::from_secs(30)));
        assert_eq!(dial.verdict(&BTreeMap::new()).socks_reply(), 5);
    }
}
