//! Uplinks on which something was asked, and nothing is heard since.
//!
//! An uplink may die without a word: its interface is up, its route is there, and the phone drops what comes. What tells is that servers
//! which were asked there do not answer. Only those count that have answered before, or over another uplink: one that answers nobody says
//! nothing of the uplink, but two do. And only the time counts in which somebody waits: what a client no longer wants is not answered either.
//!
//! One answer may be lost, in a queue that other programs fill, and nobody asks again on a connection that is idle since. So as long as something
//! is unanswered, subflows that are idle there are asked for a sign of life, a few at each look: an uplink that lives is heard before it is
//! called silent, or soon after. Where nothing is owed, nothing is asked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Serialize;
use transport::error::CloseReason;
use transport::{ConnectionId, ConnectionStats, Endpoint, SubflowId, SubflowStats};
use units::{Duration, Instant};

use super::Proxy;
use super::session::Stage;

/// Answers take up to this without meaning anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many looks must have found somebody waiting: what is unanswered is asked again at each but the first.
const LOOKS_MIN: u32 = 4;
/// Subflows that are asked at a look, of each address, in turn of those that were heard last: some may have been forgotten on their way.
const ASKED_AT_ONCE: usize = 2;
const ASKED_IN_TURN: usize = 8;
/// Questions that nobody waits for any more tell something together with those that follow within this: clients try again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// How often it is looked, and how much later for each client.
const PERIOD: Duration = Duration::from_millis(900);
const PERIOD_OF_CLIENT: Duration = Duration::from_millis(1);

/// Where something was asked and nothing is heard, of one uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unheard {
    /// For how long nothing is heard on the uplink.
    pub uplink: Option<Duration>,
    /// Of an uplink that has both families, the one over which nothing is heard, if over the other one something is or nothing was asked.
    pub family: Option<UnheardFamily>,
}

/// A family over which nothing is heard on an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnheardFamily {
    /// IPv4 or IPv6.
    pub family: &'static str,
    /// For how long.
    pub span: Duration,
}

/// What was heard and asked, by the engine's addresses.
#[derive(Debug, Default)]
pub struct Silences {
    known: BTreeMap<IpAddr, Known>,
    look_at: Instant,
    /// Looks until now.
    looks: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    heard_at: Option<Instant>,
    /// When the first question was seen that is not answered.
    asked_at: Option<Instant>,
    /// For how long somebody was seen waiting since then, and at how many looks.
    waited: Duration,
    looks: u32,
    /// When somebody was last seen waiting, and whether that was at the latest look.
    waited_at: Instant,
    waits: bool,
}

impl Known {
    /// Whether what is not answered was asked for long and often enough.
    fn is_in_vain(&self) -> bool {
        self.waited >= PATIENCE && self.looks >= LOOKS_MIN
    }
}

impl Silences {
    /// Somebody was heard there.
    pub fn heard(&mut self, ip: IpAddr, at: Instant) {
        let known = self.known.entry(ip).or_default();
        if known.heard_at.is_none_or(|before| before < at) {
            known.heard_at = Some(at);
            known.asked_at = known.asked_at.filter(|asked| *asked > at);
        }
    }

    /// What was heard on a connection's subflows.
    fn heard_on(&mut self, connection: ConnectionId, stats: &ConnectionStats, endpoint: &Endpoint) {
        for subflow in stats.subflows.iter().filter(|subflow| subflow.established_at.is_some()) {
            if let Some(hearing) = endpoint.hearing(connection, subflow.id) {
                self.heard(subflow.local.ip(), hearing.heard_at);
            }
        }
    }

    /// Something waits for an answer there.
    pub fn asked(&mut self, ip: IpAddr, now: Instant) {
        let known = self.known.entry(ip).or_default();
        match known.asked_at {
            None => (known.asked_at, known.waited, known.looks) = (Some(now), Duration::ZERO, 0),
            Some(_) if known.waits => known.waited += now.saturating_since(known.waited_at),
            Some(_) => {}
        }
        (known.waits, known.waited_at, known.looks) = (true, now, known.looks.saturating_add(1));
    }

    /// Nothing waits for an answer but there. What nobody has waited for long enough says nothing of the uplink, and is forgotten.
    fn asked_only(&mut self, asked: &BTreeSet<IpAddr>, now: Instant) {
        for known in self.known.iter_mut().filter(|(ip, _)| !asked.contains(ip)).map(|(_, known)| known) {
            known.waits = false;
            if !known.is_in_vain() && now.saturating_since(known.waited_at) >= FORGOTTEN_AFTER {
                known.asked_at = None;
            }
        }
    }

    /// Whether nobody was heard there since then.
    fn is_unheard_since(&self, ip: IpAddr, at: Instant) -> bool {
        self.known.get(&ip).and_then(|known| known.heard_at).is_none_or(|heard_at| heard_at <= at)
    }

    /// Where something is not answered that was asked before this look.
    fn owed(&self, now: Instant) -> impl Iterator<Item = IpAddr> {
        let is_owed = move |known: &Known| known.asked_at.is_some_and(|asked| asked < now);
        self.known.iter().filter(move |(_, known)| is_owed(known)).map(|(ip, _)| *ip)
    }

    /// The uplink of an address is gone.
    pub fn forget(&mut self, ip: IpAddr) {
        self.known.remove(&ip);
    }

    /// What is not heard on the uplink of these addresses.
    pub fn of(&self, ips: &[IpAddr], now: Instant) -> Unheard {
        let (v4, v6): (Vec<_>, Vec<_>) = ips.iter().partition(|ip| ip.is_ipv4());
        let silent = |family, ips: &[IpAddr]| Some(UnheardFamily { family, span: self.span(ips, now)? });
        let family = match (silent("IPv4", &v4), silent("IPv6", &v6)) {
            (Some(family), None) | (None, Some(family)) if !v4.is_empty() && !v6.is_empty() => Some(family),
            _ => None,
        };
        Unheard { uplink: self.span(ips, now), family }
    }

    /// For how long something has waited in vain for an answer at these addresses, if for longer than answers take. What is heard at one of them
    /// is heard at all.
    fn span(&self, ips: &[IpAddr], now: Instant) -> Option<Duration> {
        let known = || ips.iter().filter_map(|ip| self.known.get(ip));
        let heard_at = known().filter_map(|known| known.heard_at).max();
        let in_vain = known().filter(|known| known.is_in_vain()).filter_map(|known| known.asked_at);
        in_vain.filter(|asked| Some(*asked) > heard_at).min().map(|asked| now.saturating_since(asked))
    }
}

impl Proxy {
    /// What is not heard on the uplink of each of these lists of addresses.
    pub fn silences(&mut self, uplinks: &[Vec<IpAddr>], endpoint: &mut Endpoint, now: Instant) -> Vec<Unheard> {
        self.look_for_answers(endpoint, now);
        uplinks.iter().map(|ips| self.silences.of(ips, now)).collect()
    }

    /// Looks at all connections, but not again and again.
    fn look_for_answers(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if now < self.silences.look_at {
            return;
        }
        self.silences.looks += 1;
        self.silences.look_at = now + PERIOD + PERIOD_OF_CLIENT.saturating_mul(self.sessions.len() as u64);
        let (mut asked, mut unanswered) = (BTreeSet::new(), Vec::new());
        for server in self.sessions.iter().filter_map(|(_, session)| session.server.as_ref()) {
            let Some(stats) = endpoint.stats(server.connection) else { continue };
            self.silences.heard_on(server.connection, &stats, endpoint);
            let open = stats.subflows.iter().filter(|subflow| subflow.closed_at.is_none());
            for subflow in open {
                let ip = subflow.local.ip();
                if subflow.established_at.is_none() || subflow.in_flight_bytes > 0 {
                    asked.insert(ip);
                    continue;
                }
                // A download asks nothing by itself: who looks at it has.
                let hearing = endpoint.hearing(server.connection, subflow.id);
                let since = hearing.and_then(|hearing| server.harm.unanswered_since(subflow.id, hearing.heard_at));
                unanswered.extend(since.map(|since| (ip, since)));
            }
        }
        // Where others were answered since it is not the uplink, nor need it be asked again.
        unanswered.retain(|(ip, since)| self.silences.is_unheard_since(*ip, *since));
        asked.extend(unanswered.into_iter().map(|(ip, _)| ip));
        asked.extend(self.asked_by_dials(now));
        // Another server there has answered too.
        asked.extend(self.losers.iter().map(|loser| loser.local()));
        asked.retain(|ip| self.choice.has(*ip));
        asked.iter().for_each(|ip| self.silences.asked(*ip, now));
        self.silences.asked_only(&asked, now);
        self.ask_where_unanswered(endpoint, now);
    }

    /// Asks for a sign of life where something is unanswered, on a few subflows that are idle. Where something is under way, it is
    /// sent again by itself.
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
                // One that is gone meanwhile needs no question.
                let _ = endpoint.probe_subflow(connection, id, now);
            }
        }
    }

    /// Addresses from which answers to first attempts are waited for, of servers that have answered before or are several.
    fn asked_by_dials(&self, now: Instant) -> BTreeSet<IpAddr> {
        let dials = || {
            self.sessions.iter().filter_map(|(_, session)| match &session.stage {
                Stage::Dialing(dial, ..) => Some(dial),
                _ => None,
            })
        };
        let hosts: BTreeSet<String> = dials().map(|dial| dial.target().host.to_string()).collect();
        let attempts = dials().flat_map(|dial| dial.open());
        let told = attempts.filter(|attempt| hosts.len() > 1 || self.choice.is_known(attempt.remote, now));
        told.map(|attempt| attempt.local).collect()
    }

    /// A connection is about to be forgotten: what was heard on it is not, since nobody looks at it any more.
    pub(super) fn note_last_words(&mut self, connection: ConnectionId, stats: &ConnectionStats, endpoint: &Endpoint) {
        self.silences.heard_on(connection, stats, endpoint);
    }

    /// A subflow is gone: who refuses it was heard.
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

/// Whether the peer certainly answers on a subflow when it is asked for a sign of life, if that and the answer arrive.
fn answers_when_asked(subflow: &SubflowStats) -> bool {
    subflow.state == "ESTABLISHED"
        && subflow.established_at.is_some()
        && subflow.closed_at.is_none()
        && subflow.in_flight_bytes == 0
}

/// Whether somebody was heard, who said no.
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
        // What is heard of one subflow answers for all, but not what was heard before the question.
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
            let Unheard { uplink, family } = silences.of(&[v4, v6], at(secs));
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
            silences.asked_only(&asked, at(secs));
            silences.of(&[ip], at(secs)).uplink.map(|span| span.as_millis() / 1000)
        };
        // Somebody has left after two seconds, and long after that somebody comes.
        for (is_asked, secs) in
            [(true, 10), (true, 12), (false, 13), (false, 19), (false, 22), (true, 100), (true, 102), (true, 104)]
        {
            assert_eq!(look(is_asked, secs), None, "{secs}");
        }
        assert_eq!(look(true, 105), Some(5));
        assert_eq!(look(false, 200), Some(100), "it was silent, and nothing has shown that it is not any more");
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
        // Looks that are far apart: what is unanswered was asked again at two of them.
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
            silences.asked_only(&BTreeSet::new(), at(to + 1));
        }
        assert_eq!(silences.of(&[ip], at(21)).uplink, Some(Duration::from_secs(11)));
    }
}
