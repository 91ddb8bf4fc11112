//! Detects uplinks on which something is unanswered and nothing is heard.
//!
//! An uplink may die silently: its interface is up and its route is there, but the phone drops all packets. The sign of
//! this is that servers do not answer over it. Only servers count that have answered before, or over another uplink: a
//! single server that answers nobody says nothing about the uplink, but two do. Only time counts in which a client
//! waits: what a client no longer wants is not answered either.
//!
//! An answer may be lost in a queue that other programs fill, and on a connection that is idle since then nothing is
//! sent again. So while something is unanswered, the proxy probes a few idle subflows of the uplink at each look. It
//! hears from a working uplink before it would call it silent, or soon after. If nothing is unanswered, it sends no
//! probes.
//!
//! Without a connection nothing can be probed, and nothing is due: soon after the last one has ended, an uplink that was
//! silent no longer counts as silent. Whether it works shows with the next connection.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Serialize;
use transport::error::CloseReason;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowId, SubflowStats};
use units::{Duration, Instant};

use super::Proxy;
use super::session::Stage;
use super::target::without_dot;

/// Answers may take this long without meaning anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// Minimum number of looks that have found something waiting: all but the first probe what is unanswered.
const LOOKS_MIN: u32 = 4;
/// Subflows of each address that are probed at a look, in turn among those heard last: some may be forgotten by a
/// network on the path.
const ASKED_AT_ONCE: usize = 2;
const ASKED_IN_TURN: usize = 8;
/// Unanswered requests that nobody waits for any more count together with those that follow within this time: clients
/// try again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// The same for a silent uplink that MPTCP connections may use: they try to join over it again after 64 s at most, and
/// until then it remains as silent as it was.
const FORGOTTEN_BY_JOINS_AFTER: Duration = Duration::from_secs(90);
/// Interval between looks, and the addition for each client.
const PERIOD: Duration = Duration::from_millis(900);
const PERIOD_OF_CLIENT: Duration = Duration::from_millis(1);

/// What is unanswered on one uplink while nothing is heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unheard {
    /// For how long nothing has been heard on the uplink.
    pub uplink: Option<Duration>,
    /// The silent family, if the uplink has both and the other one is heard or has nothing unanswered.
    pub family: Option<UnheardFamily>,
    /// Where silence ended only because nothing is unanswered any more.
    pub unsettled: Unsettled,
}

/// Where nothing has been heard since a silence that ended because nothing was unanswered any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// On the whole uplink.
    pub uplink: bool,
    /// Over IPv4.
    pub v4: bool,
    /// Over IPv6.
    pub v6: bool,
}

/// A family over which nothing is heard on an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnheardFamily {
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// For how long nothing has been heard.
    pub span: Duration,
}

/// What was heard and what is unanswered, by address of the engine.
#[derive(Debug, Default)]
pub struct Silences {
    known: BTreeMap<IpAddr, Known>,
    look_at: Instant,
    /// Number of looks so far.
    looks: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    heard_at: Option<Instant>,
    /// When the first unanswered request was seen.
    asked_at: Option<Instant>,
    /// For how long clients were seen waiting since then, and at how many looks.
    waited: Duration,
    looks: u32,
    /// When a client was last seen waiting, and whether that was at the latest look.
    waited_at: Instant,
    waits: bool,
    /// When the first unanswered request of a silence was seen that ended because nothing was unanswered any more.
    unsettled_since: Option<Instant>,
}

impl Known {
    /// Whether something has been unanswered for long enough, and at enough looks.
    fn is_in_vain(&self) -> bool {
        self.waited >= PATIENCE && self.looks >= LOOKS_MIN
    }
}

impl Silences {
    /// Notes that something was heard at an address.
    pub fn heard(&mut self, ip: IpAddr, at: Instant) {
        let known = self.known.entry(ip).or_default();
        if known.heard_at.is_none_or(|before| before < at) {
            known.heard_at = Some(at);
            known.asked_at = known.asked_at.filter(|asked| *asked > at);
            known.unsettled_since = known.unsettled_since.filter(|asked| *asked > at);
        }
    }

    /// Notes what was heard on a connection's subflows.
    fn heard_on(&mut self, connection: ConnectionId, stats: &ConnectionStats, endpoint: &Endpoint) {
        for subflow in stats.subflows.iter().filter(|subflow| subflow.established_at.is_some()) {
            if let Some(hearing) = endpoint.hearing(connection, subflow.id) {
                self.heard(subflow.local.ip(), hearing.heard_at);
            }
        }
    }

    /// Notes that something waits for an answer at an address.
    pub fn asked(&mut self, ip: IpAddr, now: Instant) {
        let known = self.known.entry(ip).or_default();
        match known.asked_at {
            None => (known.asked_at, known.waited, known.looks) = (Some(now), Duration::ZERO, 0),
            Some(_) if known.waits => known.waited += now.saturating_since(known.waited_at),
            Some(_) => {}
        }
        (known.waits, known.waited_at, known.looks) = (true, now, known.looks.saturating_add(1));
    }

    /// Notes that nothing waits for an answer at any other address. Requests that nobody has waited for recently are
    /// forgotten; `joins` tells whether MPTCP connections may soon wait there again.
    fn asked_only(&mut self, asked: &BTreeSet<IpAddr>, joins: bool, now: Instant) {
        for known in self.known.iter_mut().filter(|(ip, _)| !asked.contains(ip)).map(|(_, known)| known) {
            known.waits = false;
            let is_in_vain = known.is_in_vain();
            let patience = if is_in_vain && joins { FORGOTTEN_BY_JOINS_AFTER } else { FORGOTTEN_AFTER };
            if now.saturating_since(known.waited_at) >= patience {
                let asked_at = known.asked_at.take();
                known.unsettled_since = known.unsettled_since.or(asked_at.filter(|_| is_in_vain));
            }
        }
    }

    /// Whether nothing has been heard at an address since `at`.
    fn is_unheard_since(&self, ip: IpAddr, at: Instant) -> bool {
        self.known.get(&ip).and_then(|known| known.heard_at).is_none_or(|heard_at| heard_at <= at)
    }

    /// Returns the addresses with something unanswered that was requested before this look.
    fn owed(&self, now: Instant) -> impl Iterator<Item = IpAddr> {
        let is_owed = move |known: &Known| known.asked_at.is_some_and(|asked| asked < now);
        self.known.iter().filter(move |(_, known)| is_owed(known)).map(|(ip, _)| *ip)
    }

    /// Forgets an address whose uplink is gone.
    pub fn forget(&mut self, ip: IpAddr) {
        self.known.remove(&ip);
    }

    /// Returns what is silent on the uplink with these addresses.
    pub fn of(&self, ips: &[IpAddr], now: Instant) -> Unheard {
        let (v4, v6): (Vec<_>, Vec<_>) = ips.iter().partition(|ip| ip.is_ipv4());
        let silent = |family, ips: &[IpAddr]| Some(UnheardFamily { family, span: self.span(ips, now)? });
        let family = match (silent("IPv4", &v4), silent("IPv6", &v6)) {
            (Some(family), None) | (None, Some(family)) if !v4.is_empty() && !v6.is_empty() => Some(family),
            _ => None,
        };
        let unsettled =
            Unsettled { uplink: self.is_unsettled(ips), v4: self.is_unsettled(&v4), v6: self.is_unsettled(&v6) };
        Unheard { uplink: self.span(ips, now), family, unsettled }
    }

    /// Whether nothing has been heard at these addresses since a silence that ended because nothing was unanswered.
    fn is_unsettled(&self, ips: &[IpAddr]) -> bool {
        let known = || ips.iter().filter_map(|ip| self.known.get(ip));
        let heard_at = known().filter_map(|known| known.heard_at).max();
        known().filter_map(|known| known.unsettled_since).any(|asked| Some(asked) > heard_at)
    }

    /// Returns for how long something has been unanswered at these addresses, if longer than answers take. Octets heard
    /// at one of them count for all.
    fn span(&self, ips: &[IpAddr], now: Instant) -> Option<Duration> {
        let known = || ips.iter().filter_map(|ip| self.known.get(ip));
        let heard_at = known().filter_map(|known| known.heard_at).max();
        let in_vain = known().filter(|known| known.is_in_vain()).filter_map(|known| known.asked_at);
        in_vain.filter(|asked| Some(*asked) > heard_at).min().map(|asked| now.saturating_since(asked))
    }
}

impl Proxy {
    /// Returns what is silent on each uplink, given as a list of its addresses.
    pub fn silences(&mut self, uplinks: &[Vec<IpAddr>], endpoint: &mut Endpoint, now: Instant) -> Vec<Unheard> {
        self.look_for_answers(endpoint, now);
        uplinks.iter().map(|ips| self.silences.of(ips, now)).collect()
    }

    /// Looks at all connections, unless the last look was recent.
    fn look_for_answers(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if now < self.silences.look_at {
            return;
        }
        self.silences.looks += 1;
        self.silences.look_at = now + PERIOD + PERIOD_OF_CLIENT.saturating_mul(self.sessions.len() as u64);
        let (mut asked, mut unanswered, mut joins) = (BTreeSet::new(), Vec::new(), false);
        for server in self.sessions.iter().filter_map(|(_, session)| session.server.as_ref()) {
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            self.silences.heard_on(server.connection, &stats, endpoint);
            joins |= stats.mptcp;
            let open = stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none());
            for subflow in open {
                let ip = subflow.local.ip();
                if subflow.established_at.is_none() || subflow.in_flight_bytes > 0 {
                    asked.insert(ip);
                    continue;
                }
                // A download requests nothing by itself, but a look at its subflows sends probes.
                let hearing = endpoint.hearing(server.connection, subflow.id);
                let since = hearing.and_then(|hearing| server.harm.unanswered_since(subflow.id, hearing.heard_at));
                unanswered.extend(since.map(|since| (ip, since)));
            }
        }
        // If others on the uplink were answered since, the uplink is not at fault, and needs no more probes.
        unanswered.retain(|(ip, since)| self.silences.is_unheard_since(*ip, *since));
        asked.extend(unanswered.into_iter().map(|(ip, _)| ip));
        asked.extend(self.asked_by_dials(now));
        // Their server has answered another attempt.
        asked.extend(self.losers.iter().map(|loser| loser.local()));
        asked.retain(|ip| self.choice.has(*ip));
        asked.iter().for_each(|ip| self.silences.asked(*ip, now));
        self.silences.asked_only(&asked, joins, now);
        self.ask_where_unanswered(endpoint, now);
    }

    /// Sends probes on a few idle subflows of addresses with something unanswered. Data in flight are sent again
    /// without them.
    fn ask_where_unanswered(&self, endpoint: &mut Endpoint, now: Instant) {
        let mut owed: BTreeMap<IpAddr, Vec<_>> = self.silences.owed(now).map(|ip| (ip, Vec::new())).collect();
        if owed.is_empty() {
            return;
        }
        for server in self.sessions.iter().filter_map(|(_, session)| session.server.as_ref()) {
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            for subflow in stats.subflows.iter().filter(|it| answers_when_asked(it)) {
                let Some(idle) = owed.get_mut(&subflow.local.ip()) else { continue };
                let Some(hearing) = endpoint.hearing(server.connection, subflow.id) else { continue };
                idle.push((Reverse(hearing.heard_at), server.connection, subflow.id));
            }
        }
        for mut idle in owed.into_values() {
            idle.sort_unstable();
            idle.truncate(ASKED_IN_TURN);
            let count = idle.len().min(ASKED_AT_ONCE);
            let first = self.silences.looks * ASKED_AT_ONCE;
            for (_, connection, id) in (first..first + count).map(|turn| idle[turn % idle.len()]) {
                // A subflow that is gone by now needs no probe.
                let _ = endpoint.probe_subflow(connection, id, now);
            }
        }
    }

    /// Returns the local addresses of open attempts that count: their server has answered before, or several servers
    /// are being connected to.
    fn asked_by_dials(&self, now: Instant) -> BTreeSet<IpAddr> {
        let dials = || {
            self.sessions.iter().filter_map(|(_, session)| match &session.stage {
                Stage::Dialing(dial, ..) => Some(dial),
                _ => None,
            })
        };
        let hosts: BTreeSet<String> =
            dials().map(|dial| without_dot(&dial.target().host.to_string()).to_owned()).collect();
        let attempts = dials().flat_map(|dial| dial.open());
        let told = attempts.filter(|attempt| hosts.len() > 1 || self.choice.is_known(attempt.remote, now));
        told.map(|attempt| attempt.local).collect()
    }

    /// Notes what was heard on a connection that is about to be released, since later looks no longer see it.
    pub(super) fn note_last_words(&mut self, connection: ConnectionId, stats: &ConnectionStats, endpoint: &Endpoint) {
        self.silences.heard_on(connection, stats, endpoint);
    }

    /// Notes that a subflow was refused, which is a sign of life.
    pub(super) fn note_refusal(
        &mut self,
        (connection, id): (ConnectionId, SubflowId),
        reason: CloseReason,
        endpoint: &Endpoint,
        now: Instant,
    ) {
        if !is_answer(reason) {
            return;
        }
        let stats = endpoint.stats(connection);
        let subflow = stats.iter().flat_map(|stats| &stats.subflows).find(|subflow| subflow.id == id);
        if let Some(subflow) = subflow {
            self.silences.heard(subflow.local.ip(), now);
        }
    }
}

/// Whether the peer must answer a probe on this subflow, provided that the probe and the answer arrive.
fn answers_when_asked(subflow: &SubflowStats) -> bool {
    subflow.state == "ESTABLISHED"
        && subflow.established_at.is_some()
        && subflow.closed_at.is_none()
        && subflow.in_flight_bytes == 0
}

/// Whether the reason means that somebody answered, and refused.
pub(super) fn is_answer(reason: CloseReason) -> bool {
    matches!(reason, CloseReason::Refused | CloseReason::Reset | CloseReason::Violation(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn an_uplink_is_silent_from_the_first_question_that_is_not_answered() {
        let [v4, v6] = [IpAddr::from([10, 99, 0, 2]), "fd99::2".parse().unwrap()];
        let mut silences = Silences::default();
        let of = |silences: &Silences, now| silences.of(&[v4, v6], at(now)).uplink.map(|span| span.as_millis() / 1000);
        assert_eq!(of(&silences, 100), None, "nobody has asked");
        silences.heard(v4, at(10));
        [40, 42, 44].iter().for_each(|secs| silences.asked(v4, at(*secs)));
        assert_eq!(of(&silences, 44), None, "it was quiet before, and not asked");
        silences.asked(v4, at(45));
        assert_eq!(of(&silences, 45), Some(5));
        silences.asked(v4, at(50));
        assert_eq!(of(&silences, 74), Some(34));
        // What is heard on one subflow counts for all, but only if it is newer than the request.
        silences.heard(v4, at(39));
        assert_eq!(of(&silences, 74), Some(34));
        silences.heard(v6, at(60));
        assert_eq!(of(&silences, 74), None, "the same uplink");
        [70, 72, 74, 80].iter().for_each(|secs| silences.asked(v6, at(*secs)));
        assert_eq!(of(&silences, 80), Some(10));
        silences.heard(v4, at(80));
        assert_eq!(of(&silences, 90), None);
        silences.asked(v6, at(90));
        silences.asked(v4, at(95));
        silences.forget(v4);
        silences.forget(v6);
        assert_eq!(of(&silences, 200), None);
    }

    #[test]
    fn a_family_may_be_silent_alone() {
        let [v4, v6] = [IpAddr::from([10, 99, 0, 2]), "fd99::2".parse().unwrap()];
        let mut silences = Silences::default();
        let mut look = |heard: &[IpAddr], asked: &[IpAddr], secs: u64| {
            asked.iter().for_each(|ip| silences.asked(*ip, at(secs)));
            heard.iter().for_each(|ip| silences.heard(*ip, at(secs)));
            let Unheard { uplink, family, .. } = silences.of(&[v4, v6], at(secs));
            let seconds = |span: Duration| span.as_millis() / 1000;
            (uplink.map(seconds), family.map(|it| (it.family, seconds(it.span))))
        };
        for secs in [10, 12, 14] {
            assert_eq!(look(&[], &[v6], secs), (None, None));
        }
        assert_eq!(look(&[], &[v6], 16), (Some(6), Some(("IPv6", 6))), "nobody has asked over the other one");
        assert_eq!(look(&[v4], &[v6], 18), (None, Some(("IPv6", 8))));
        // Now nothing answers.
        for secs in [20, 22, 24] {
            assert_eq!(look(&[], &[v4, v6], secs), (None, Some(("IPv6", secs - 10))));
        }
        assert_eq!(look(&[], &[v4, v6], 26), (Some(6), None));
        assert_eq!(look(&[v6], &[v4], 30), (None, Some(("IPv4", 10))));
        assert_eq!(look(&[v4], &[], 31), (None, None));
    }

    #[test]
    fn what_nobody_waits_for_any_more_says_nothing() {
        let ip = IpAddr::from([10, 99, 0, 2]);
        let mut silences = Silences::default();
        let mut look = |is_asked: bool, secs: u64| {
            let asked: BTreeSet<IpAddr> = is_asked.then_some(ip).into_iter().collect();
            asked.iter().for_each(|ip| silences.asked(*ip, at(secs)));
            silences.asked_only(&asked, false, at(secs));
            silences.of(&[ip], at(secs)).uplink.map(|span| span.as_millis() / 1000)
        };
        // A client leaves after two seconds; long after that, another one comes.
        for (is_asked, secs) in
            [(true, 10), (true, 12), (false, 13), (false, 19), (false, 22), (true, 100), (true, 102), (true, 104)]
        {
            assert_eq!(look(is_asked, secs), None, "{secs}");
        }
        assert_eq!(look(true, 105), Some(5));
        assert_eq!(look(false, 114), Some(14), "another client may come soon");
        assert_eq!(look(false, 115), None, "nothing is unanswered");
    }

    #[test]
    fn a_silence_that_nothing_was_heard_after_is_not_settled() {
        let [v4, v6] = [IpAddr::from([10, 99, 0, 2]), "fd99::2".parse().unwrap()];
        let mut silences = Silences::default();
        let nobody = BTreeSet::new();
        [10, 12, 14, 16].iter().for_each(|secs| silences.asked(v6, at(*secs)));
        silences.asked_only(&nobody, true, at(105));
        assert_eq!(silences.of(&[v4, v6], at(105)).uplink, Some(Duration::from_secs(95)), "joins follow");
        silences.asked_only(&nobody, true, at(106));
        let lapsed = silences.of(&[v4, v6], at(106));
        assert_eq!((lapsed.uplink, lapsed.family), (None, None));
        assert_eq!(lapsed.unsettled, Unsettled { uplink: true, v4: false, v6: true });
        // What arrives over the other family says that the uplink lives.
        silences.heard(v4, at(110));
        assert_eq!(silences.of(&[v4, v6], at(110)).unsettled, Unsettled { uplink: false, v4: false, v6: true });
        silences.heard(v6, at(111));
        assert_eq!(silences.of(&[v4, v6], at(111)).unsettled, Unsettled::default());
    }

    #[test]
    fn a_question_or_two_without_an_answer_are_no_silence() {
        let ip = IpAddr::from([10, 99, 0, 2]);
        let mut silences = Silences::default();
        let mut look = |secs: u64| {
            silences.asked(ip, at(secs));
            (silences.owed(at(secs)).next().is_some(), silences.of(&[ip], at(secs)).uplink.is_some())
        };
        assert_eq!(look(10), (false, false), "its answer may be on its way");
        // Looks far apart: two of them have sent probes.
        assert_eq!([20, 30, 40].map(&mut look), [false, false, true].map(|is_silent| (true, is_silent)));
        silences.heard(ip, at(41));
        assert_eq!(silences.owed(at(50)).next(), None);
        assert!(silences.is_unheard_since(ip, at(41)) && !silences.is_unheard_since(ip, at(40)));
    }

    #[test]
    fn whoever_tries_again_waits_on() {
        let ip = IpAddr::from([10, 99, 0, 2]);
        let mut silences = Silences::default();
        for (from, to) in [(10, 12), (15, 17), (19, 20)] {
            assert_eq!(silences.of(&[ip], at(from)), Unheard::default());
            silences.asked(ip, at(from));
            silences.asked(ip, at(to));
            silences.asked_only(&BTreeSet::new(), false, at(to + 1));
        }
        assert_eq!(silences.of(&[ip], at(21)).uplink, Some(Duration::from_secs(11)));
    }
}
