//! Which subflows and uplinks nothing is heard over, although something should be. Sans-IO: takes what the kernel says of
//! each subflow, and what came of attempts to make others.
//!
//! A subflow over which nothing comes while its connection gets on elsewhere is dead, or the peer's scheduler does
//! without it. The receiver cannot tell one from the other without asking: an attempt to put another one in its place.

use std::collections::{BTreeMap, BTreeSet};

use linux::mptcp::Ends;
use units::{Duration, Instant};

use super::meters::Look;

/// After so long without a segment, a subflow that has carried data is asked about.
const QUIET: Duration = Duration::from_secs(6);
/// The same for one that has not, such as a backup's, and the pause between two questions.
const PAUSE: Duration = Duration::from_secs(120);
/// Octets of a subflow that has carried data.
const CARRIED_MIN: u64 = 64 * 1024;
/// Least rate at which another subflow of the connection gets on, bit/s.
const RATE_MIN_BPS: u64 = 128_000;
/// Least time between two looks: over less, rates say little.
const SPAN_MIN: Duration = Duration::from_secs(1);

/// What is heard over subflows and uplinks.
#[derive(Debug, Default)]
pub struct Silence {
    /// By cookie.
    subflows: BTreeMap<u64, Subflow>,
    /// By position.
    uplinks: Vec<Uplink>,
    looked_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Subflow {
    name: Name,
    segments: u32,
    bytes: u64,
    /// When something was last heard, or nothing was due, or a question asked.
    quiet_since: Instant,
    was_asked: bool,
    gets_on: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Uplink {
    heard_at: Option<Instant>,
    silent_since: Option<Instant>,
}

/// A subflow: its connection's token, and its ends.
pub type Name = (u32, Ends);

/// What a look has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Subflows to ask about.
    pub quiet: Vec<Name>,
    /// Subflows that were asked about, and are heard again.
    pub heard: Vec<Name>,
}

impl Silence {
    /// Takes the state of all subflows, with their connections' tokens.
    pub fn look(&mut self, looks: &[(u32, Look)], now: Instant) -> News {
        let span = Some(now.saturating_since(self.looked_at)).filter(|span| *span >= SPAN_MIN);
        let before = core::mem::take(&mut self.subflows);
        let mut heard = Vec::new();
        for (token, look) in looks {
            let seen = before.get(&look.cookie).copied();
            self.subflows.insert(look.cookie, Subflow::new((*token, look.ends), look, seen, span, now));
            if let Some(seen) = seen.filter(|seen| seen.segments != look.traffic.received_segments) {
                look.uplink.into_iter().for_each(|uplink| self.heard(uplink, now));
                heard.extend(seen.was_asked.then_some((*token, look.ends)));
            }
        }
        if span.is_none() {
            return News { heard, ..News::default() };
        }
        self.looked_at = now;
        News { quiet: self.ask(looks, now), heard }
    }

    fn ask(&mut self, looks: &[(u32, Look)], now: Instant) -> Vec<Name> {
        let mut places: BTreeMap<u32, Vec<Option<usize>>> = BTreeMap::new();
        for (token, look) in looks.iter().filter(|(_, look)| self.subflows[&look.cookie].gets_on) {
            places.entry(*token).or_default().push(look.uplink);
        }
        let gets_on_beside = |token: &u32, uplink: Option<usize>| {
            places.get(token).is_some_and(|over| over.iter().any(|it| *it != uplink))
        };
        let mut asked = Vec::new();
        for (token, look) in looks {
            let Some(subflow) = self.subflows.get_mut(&look.cookie) else { continue };
            if !gets_on_beside(token, look.uplink) {
                // Nothing is due.
                subflow.quiet_since = now;
            } else if subflow.is_quiet(now) {
                asked.push((*token, look.ends));
            }
        }
        asked
    }

    /// Notes about which of the quiet subflows a question is asked. The others are named again at the next look.
    pub fn note_asked(&mut self, asked: &BTreeSet<Name>, now: Instant) {
        for subflow in self.subflows.values_mut().filter(|subflow| asked.contains(&subflow.name)) {
            (subflow.quiet_since, subflow.was_asked) = (now, true);
        }
    }

    /// Notes that something was heard over an uplink.
    pub fn heard(&mut self, uplink: usize, now: Instant) {
        *self.uplink(uplink) = Uplink { heard_at: Some(now), silent_since: None };
    }

    /// Notes that an attempt over an uplink, begun at `begun`, was not answered. The uplink is silent if nothing else was
    /// heard over it since.
    pub fn unanswered(&mut self, uplink: usize, begun: Instant) {
        let state = self.uplink(uplink);
        if state.heard_at.is_none_or(|at| at < begun) {
            state.silent_since = state.silent_since.or(Some(begun));
        }
    }

    /// Forgets what is known of an uplink: it was lost or has changed.
    pub fn forget(&mut self, uplink: usize) {
        *self.uplink(uplink) = Uplink::default();
    }

    /// Returns since when an uplink is silent, if it is.
    pub fn silent_since(&self, uplink: usize) -> Option<Instant> {
        self.uplinks.get(uplink)?.silent_since
    }

    fn uplink(&mut self, index: usize) -> &mut Uplink {
        if self.uplinks.len() <= index {
            self.uplinks.resize(index + 1, Uplink::default());
        }
        &mut self.uplinks[index]
    }
}

impl Subflow {
    /// Updates a subflow; `span` is the time since its octets were last counted, if it is long enough for a rate.
    fn new(name: Name, look: &Look, seen: Option<Self>, span: Option<Duration>, now: Instant) -> Self {
        let segments = look.traffic.received_segments;
        let bytes = look.traffic.up_bytes.saturating_add(look.traffic.down_bytes);
        let Some(mut subflow) = seen else {
            return Self { name, segments, bytes, quiet_since: now, was_asked: false, gets_on: false };
        };
        if let Some(span) = span {
            let bits = bytes.saturating_sub(subflow.bytes).saturating_mul(8);
            subflow.gets_on = bits.saturating_mul(1000) >= RATE_MIN_BPS.saturating_mul(span.as_nanos() / 1_000_000);
            subflow.bytes = bytes;
        }
        if segments != subflow.segments {
            subflow = Self { segments, quiet_since: now, was_asked: false, ..subflow };
        }
        subflow
    }

    fn is_quiet(&self, now: Instant) -> bool {
        let patience = if self.bytes >= CARRIED_MIN && !self.was_asked { QUIET } else { PAUSE };
        now.saturating_since(self.quiet_since) >= patience
    }
}

#[cfg(test)]
mod tests {
    use linux::mptcp::Traffic;

    use super::*;

    fn look(cookie: u64, uplink: usize, received_segments: u32, down_bytes: u64) -> (u32, Look) {
        let ends = Ends { local: ([192, 168, 42, 10], cookie as u16).into(), remote: ([10, 9, 9, 9], 80).into() };
        let uplink = Some(uplink);
        (7, Look { cookie, ends, uplink, traffic: Traffic { received_segments, down_bytes, ..Traffic::default() } })
    }

    impl Silence {
        /// Looks, and asks about all quiet subflows.
        fn look_and_ask(&mut self, looks: &[(u32, Look)], now: Instant) -> News {
            let news = self.look(looks, now);
            self.note_asked(&news.quiet.iter().copied().collect(), now);
            news
        }
    }

    /// Looks every two seconds at a subflow over uplink 0 that brings `rate` octets in each, and at one over uplink 1 that
    /// has brought `carried` and falls silent at second 4. Returns when the second one is asked about.
    fn asked_about(rate: u64, carried: u64, seconds: u64) -> Vec<u64> {
        let mut silence = Silence::default();
        let mut asked = Vec::new();
        for second in (2..seconds).step_by(2) {
            let looks = [look(1, 0, second as u32, second * rate / 2), look(2, 1, second.min(4) as u32, carried)];
            let News { quiet, heard } = silence.look_and_ask(&looks, Instant::from_secs(second));
            assert!(heard.is_empty() && quiet.iter().all(|it| *it == (7, looks[1].1.ends)));
            asked.extend(quiet.iter().map(|_| second));
        }
        asked
    }

    #[test]
    fn a_subflow_that_falls_silent_while_another_gets_on_is_asked_about() {
        assert_eq!(asked_about(1_000_000, 100_000, 140), [10, 130]);
        assert_eq!(asked_about(1_000_000, 0, 140), [124], "a backup's");
        assert!(asked_about(20_000, 100_000, 140).is_empty(), "the connection has little to do");
    }

    #[test]
    fn who_was_asked_about_and_is_heard_again_is_told_once() {
        let mut silence = Silence::default();
        let mut told = Vec::new();
        for second in (2..40).step_by(2) {
            let segments = if second < 20 { 3 } else { second as u32 };
            let looks = [look(1, 0, second as u32, second * 1_000_000), look(2, 1, segments, 100_000)];
            let News { quiet, heard } = silence.look_and_ask(&looks, Instant::from_secs(second));
            told.extend(quiet.iter().chain(&heard).map(|(_, ends)| (second, ends.local.port())));
        }
        assert_eq!(told, [(8, 2), (20, 2)]);
    }

    #[test]
    fn all_subflows_of_an_idle_connection_may_be_quiet() {
        assert!(asked_about(0, 100_000, 1000).is_empty());
    }

    #[test]
    fn a_pause_of_the_whole_connection_is_no_silence() {
        let mut silence = Silence::default();
        // Both subflows have carried data, and then rest for a minute. What follows fits on the first one.
        let down =
            |second: u64| if second < 4 { 500_000 * second } else { 2_000_000 + 500_000 * second.saturating_sub(60) };
        let mut asked = Vec::new();
        for second in (2..80).step_by(2) {
            let segments = (down(second) / 1000) as u32;
            let looks = [look(1, 0, segments, down(second)), look(2, 1, segments.min(2000), 100_000)];
            asked.extend(silence.look_and_ask(&looks, Instant::from_secs(second)).quiet.iter().map(|_| second));
        }
        assert_eq!(asked, [66], "six seconds after the first look that shows progress again");
    }

    #[test]
    fn what_is_heard_between_two_looks_counts() {
        let mut silence = Silence::default();
        for second in [2, 4, 6, 8, 10] {
            silence.look_and_ask(
                &[look(1, 0, second, u64::from(second) * 1_000_000), look(2, 1, 3, 100_000)],
                Instant::from_secs(second.into()),
            );
        }
        let soon = Instant::from_millis(10_300);
        let news = silence.look_and_ask(&[look(1, 0, 11, 11_000_000), look(2, 1, 4, 100_000)], soon);
        assert_eq!((news.quiet.len(), news.heard.len()), (0, 1));
    }

    #[test]
    fn what_could_not_be_asked_is_named_again() {
        let mut silence = Silence::default();
        let mut named = Vec::new();
        for second in (2..20).step_by(2) {
            let looks = [look(1, 0, second as u32, second * 1_000_000), look(2, 1, 3, 100_000)];
            named.extend(silence.look(&looks, Instant::from_secs(second)).quiet.iter().map(|_| second));
        }
        assert_eq!(named, [8, 10, 12, 14, 16, 18]);
    }

    #[test]
    fn an_uplink_is_silent_once_an_attempt_is_not_answered_until_it_is_heard() {
        let at = Instant::from_secs;
        let mut silence = Silence::default();
        silence.heard(1, at(5));
        silence.unanswered(1, at(4));
        assert_eq!(silence.silent_since(1), None, "heard since the attempt began");
        silence.unanswered(1, at(6));
        silence.unanswered(1, at(15));
        assert_eq!(silence.silent_since(1), Some(at(6)));
        silence.look(&[look(1, 1, 3, 0)], at(20));
        assert_eq!(silence.silent_since(1), Some(at(6)), "a subflow that was not seen before says nothing");
        silence.look(&[look(1, 1, 4, 0)], at(22));
        assert_eq!(silence.silent_since(1), None);
        silence.unanswered(0, at(30));
        assert_eq!(silence.silent_since(0), Some(at(30)));
        silence.forget(0);
        assert_eq!(silence.silent_since(0), None);
    }
}
