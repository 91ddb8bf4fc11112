//! Tells the source about relays: what only they can see of its paths.
//!
//! The connection's token at the source and the identifier of the destination's address (RFC 8684 section 3.2) name a
//! path; NATs change neither. Reports about a path without a subflow wait until it has one.
//!
//! Relays report at about the same time. The destination gathers their reports for a moment, so few segments carry
//! them.
//!
//! The source ignores reports that are not newer. They carry the destination's time of reception, because a relay's
//! clock may restart.
//!
//! Reports expire after three periods, as they do at the source: to a connection or path that is new there, an older
//! one would be news. What has expired is not forgotten, because a channel that reopens may repeat it.

use std::collections::{BTreeMap, BTreeSet};

use transport::{ConnectionId, Endpoint, Event};
use units::{Duration, Instant};
use wire::mptcp::{AddressId, Token};

use super::lines::Lines;
use super::{DestinationSettings, GATHER, KnownSource};
use crate::bandwidth_sharing::LIFETIME_PERIODS;
use crate::channel::to_destination::{Delay, Load};
use crate::channel::to_source::ToSource;
use crate::relay_selection::RelayId;

/// A report with the relay's timestamp, which distinguishes new reports from repeated ones.
struct Heard<T> {
    stamp: Instant,
    word: T,
}

/// The kind of a report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Load,
    Delay,
}

#[derive(Default)]
pub(super) struct ToSourceWords {
    loads: BTreeMap<RelayId, Heard<Load>>,
    delays: BTreeMap<RelayId, Heard<Delay>>,
    /// Relays with new reports.
    news: BTreeSet<(RelayId, Kind)>,
    /// Time at which to send them.
    tell_at: Option<Instant>,
    /// Connections of the application.
    connections: Vec<ConnectionId>,
}

impl ToSourceWords {
    pub fn on_load(&mut self, relay: RelayId, load: Load, now: Instant) {
        // A channel that reopens repeats its latest reports.
        if self.loads.get(&relay).is_none_or(|known| known.stamp != load.at) {
            self.loads.insert(relay, Heard { stamp: load.at, word: Load { at: now, ..load } });
        }
        self.note((relay, Kind::Load), now);
    }

    pub fn on_delay(&mut self, relay: RelayId, delay: Delay, now: Instant) {
        if self.delays.get(&relay).is_none_or(|known| known.stamp != delay.at) {
            self.delays.insert(relay, Heard { stamp: delay.at, word: Delay { at: now, ..delay } });
        }
        self.note((relay, Kind::Delay), now);
    }

    fn note(&mut self, news: (RelayId, Kind), now: Instant) {
        self.news.insert(news);
        self.tell_at.get_or_insert(now + GATHER);
    }

    /// Schedules all reports, because the source has not received any yet, or not for this path.
    pub fn repeat(&mut self, now: Instant) {
        let loads = self.loads.keys().map(|relay| (*relay, Kind::Load));
        let all: Vec<_> = loads.chain(self.delays.keys().map(|relay| (*relay, Kind::Delay))).collect();
        all.into_iter().for_each(|news| self.note(news, now));
    }

    /// Returns when [`Self::speak`] has something to send.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.tell_at
    }

    pub fn handle_event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::SubflowEstablished { connection, .. } => {
                if !self.connections.contains(connection) {
                    self.connections.push(*connection);
                }
                self.repeat(now);
            }
            Event::Closed { connection, .. } => self.connections.retain(|known| known != connection),
            _ => {}
        }
    }

    /// Sends all pending reports that have not expired. If the source's channel is not open, the source receives
    /// everything when it opens.
    pub fn speak(&mut self, settings: &DestinationSettings, lines: &mut Lines, endpoint: &mut Endpoint, now: Instant) {
        if self.tell_at.is_none_or(|at| at > now) {
            return;
        }
        self.tell_at = None;
        let news = core::mem::take(&mut self.news);
        let Some(source) = &settings.source_agent else { return };
        let connections = self.connections.clone();
        for connection in connections {
            let Some(stats) = endpoint.stats(connection) else { continue };
            let Some(token) = stats.remote_token.map(Token) else { continue };
            for (relay, kind) in &news {
                let path = settings.path_of(*relay);
                let alive = |subflow: &&transport::SubflowStats| {
                    subflow.established_at.is_some() && subflow.closed_at.is_none()
                };
                let mut subflows = stats.subflows.iter().filter(alive);
                let Some(subflow) = subflows.find(|subflow| Some(subflow.local.ip()) == path) else { continue };
                let of = (token, AddressId(subflow.local_address_id));
                if let Some(word) = self.word(*relay, *kind, of, source, now) {
                    // One matter for each connection, path and kind.
                    let matter = u64::from(token.0) << 9 | u64::from(of.1.0) << 1 | *kind as u64;
                    lines.tell_source(matter, word, endpoint, now);
                }
            }
        }
    }

    /// Returns the latest report of this kind, unless it has expired.
    fn word(
        &self,
        relay: RelayId,
        kind: Kind,
        (connection, address_id): (Token, AddressId),
        source: &KnownSource,
        now: Instant,
    ) -> Option<ToSource> {
        match kind {
            Kind::Load => {
                let load = self.loads.get(&relay)?.word;
                let is_fresh = is_fresh(load.at, source.load_period, now);
                is_fresh.then_some(ToSource::Load { connection, address_id, load })
            }
            Kind::Delay => {
                let delay = self.delays.get(&relay)?.word;
                let is_fresh = is_fresh(delay.at, source.delay_period, now);
                is_fresh.then_some(ToSource::Delay { connection, address_id, delay })
            }
        }
    }
}

/// Returns whether a report counts that was received at this time, if one follows in each `period`.
fn is_fresh(received_at: Instant, period: Option<Duration>, now: Instant) -> bool {
    period.is_none_or(|period| now.saturating_since(received_at) <= period.saturating_mul(LIFETIME_PERIODS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Identity;

    const RELAY: RelayId = RelayId(3);
    const F: Duration = Duration::from_secs(2);

    fn load(stamp_s: u64) -> Load {
        Load { ratio: 1.0, increase: 1.0, decrease: 0.5, at: Instant::from_secs(stamp_s) }
    }

    /// Returns the reports that the source would receive at this time.
    fn told(words: &ToSourceWords, now_s: u64) -> Vec<ToSource> {
        let source = KnownSource {
            address: "10.0.0.1:40001".parse().expect("an address"),
            key: Identity::from_secret([1; 32]).public(),
            load_period: Some(F),
            delay_period: Some(F.saturating_mul(2)),
        };
        let path = (Token(7), AddressId(1));
        let word = |kind| words.word(RELAY, kind, path, &source, Instant::from_secs(now_s));
        [Kind::Load, Kind::Delay].into_iter().filter_map(word).collect()
    }

    #[test]
    fn words_expire_after_three_periods_and_stay_so_when_they_are_repeated() {
        let mut words = ToSourceWords::default();
        let delay = |stamp_s| Delay { at: Instant::from_secs(stamp_s), delay: Duration::from_millis(400) };
        words.on_load(RELAY, load(500), Instant::from_secs(10));
        words.on_delay(RELAY, delay(500), Instant::from_secs(10));
        assert_eq!([16, 17, 22, 23].map(|now_s| told(&words, now_s).len()), [2, 1, 1, 0]);
        // The relay's channel opens again, and repeats the latest.
        words.on_load(RELAY, load(500), Instant::from_secs(24));
        words.on_delay(RELAY, delay(500), Instant::from_secs(24));
        assert_eq!(told(&words, 24), []);
        words.on_delay(RELAY, delay(515), Instant::from_secs(25));
        assert!(matches!(told(&words, 25)[..], [ToSource::Delay { .. }]));
    }

    /// To the source, each report is newer than the last, whatever the relay's clock shows.
    #[test]
    fn words_of_a_relay_whose_clock_begins_anew_are_newer_than_those_before() {
        let mut words = ToSourceWords::default();
        let mut told = Vec::new();
        for (now_s, stamp_s) in [(10, 500), (12, 502), (20, 1), (22, 3)] {
            words.on_load(RELAY, load(stamp_s), Instant::from_secs(now_s));
            told.push(words.loads[&RELAY].word.at);
        }
        assert_eq!(told, [10, 12, 20, 22].map(Instant::from_secs));
    }

    #[test]
    fn a_word_that_is_repeated_is_the_same_word() {
        let mut words = ToSourceWords::default();
        words.on_load(RELAY, load(500), Instant::from_secs(10));
        words.on_load(RELAY, load(500), Instant::from_secs(13));
        assert_eq!(words.loads[&RELAY].word.at, Instant::from_secs(10));
    }
}
