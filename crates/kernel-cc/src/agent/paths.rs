//! What is known of paths, and for how long it is valid.

use std::collections::BTreeMap;

use cooperation::agent::source::SourceSettings;
use cooperation::bandwidth_sharing::{LIFETIME_PERIODS, SharingState};
use cooperation::channel::PublicKey;
use cooperation::channel::to_destination::Delay;
use cooperation::channel::to_source::ToSource;
use cooperation::relay_selection::RelayId;
use units::{Duration, Instant};

use crate::clock::wall;
use crate::{PathId, Told};

/// The relay of a path: each path has only one.
const THE_RELAY: RelayId = RelayId(0);
/// Periods after which a relay's delay expires, as in the engine's agent.
const WAY_PERIODS: u64 = 3;
/// Maximum number of known paths: callers may name connections that never existed.
const PATHS_MAX: usize = 4096;

/// Known paths.
pub(super) struct Paths {
    /// Interval of the relays' reports on their owners' flows, if the controller yields to those.
    sharing_period: Option<Duration>,
    /// How long the delay of a path is valid, if adaptive congestion control compares delays.
    way_holds: Option<Duration>,
    holds: Duration,
    paths: BTreeMap<PathId, Known>,
}

struct Known {
    /// The peer that reports on the path's connection: others do not count, because SYNs show the token to everybody.
    peer: PublicKey,
    sharing: Option<SharingState>,
    way: Option<Way>,
    heard_at: Instant,
    /// Until when the competition reported to the kernel is valid.
    competes_until: Option<Instant>,
}

/// Delay from the relay to the destination.
#[derive(Clone, Copy)]
struct Way {
    delay: Delay,
    /// Until when it is valid: a relay that stands still sends no report, and neither does one that is gone. `None` once
    /// it has expired; it stays, because a repetition of it is not news.
    until: Option<Instant>,
}

impl Known {
    /// Returns when the first of the reports expires.
    fn next_expiry(&self) -> Option<Instant> {
        [self.competes_until, self.way.and_then(|way| way.until)].into_iter().flatten().min()
    }
}

impl Paths {
    /// Creates the paths of a source with `settings`; `yields` says whether its controller yields to other flows.
    pub fn new(settings: &SourceSettings, yields: bool) -> Self {
        let sharing_period = settings.sharing_period.filter(|_| yields);
        let adapting_period = settings.adapting.map(|adapting| adapting.period);
        let longest = sharing_period.max(adapting_period).unwrap_or_default();
        let holds = longest.saturating_mul(LIFETIME_PERIODS);
        let way_holds = adapting_period.map(|period| period.saturating_mul(WAY_PERIODS));
        Self { sharing_period, way_holds, holds, paths: BTreeMap::new() }
    }

    /// Returns how long reports to the kernel are valid.
    pub const fn holds(&self) -> Duration {
        self.holds
    }

    /// Returns what the kernel must be told of a path after `word` of `peer`, or `None` if nothing changes: also if
    /// another peer reports on this connection.
    pub fn hear(&mut self, peer: PublicKey, word: &ToSource, now: Instant) -> Option<(PathId, Told)> {
        let (ToSource::Load { connection, address_id, .. } | ToSource::Delay { connection, address_id, .. }) = word;
        let path = PathId { token: connection.0, address_id: address_id.0 };
        if self.peer_of(path.token).is_some_and(|known| known != peer) {
            return None;
        }
        let is_news = match word {
            ToSource::Load { load, .. } => {
                let period = self.sharing_period?;
                let sharing = &mut self.known(path, peer, now).sharing;
                sharing.get_or_insert_with(|| SharingState::new(period)).on_signal(now, &load.by(THE_RELAY))
            }
            ToSource::Delay { delay, .. } => {
                let until = now + self.way_holds?;
                let way = &mut self.known(path, peer, now).way;
                let is_news = way.is_none_or(|known| delay.at > known.delay.at);
                if is_news {
                    *way = Some(Way { delay: *delay, until: Some(until) });
                }
                is_news
            }
        };
        is_news.then(|| (path, self.told(path, now)))
    }

    /// Returns when [`Self::expire`] has something next.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.paths.values().filter_map(Known::next_expiry).min()
    }

    /// Returns a path of which a report has expired, and what the kernel must be told of it now: otherwise that report
    /// would be valid as long as the other one, which may be renewed without end.
    pub fn expire(&mut self, now: Instant) -> Option<(PathId, Told)> {
        let has_expired = |known: &Known| known.next_expiry().is_some_and(|until| until <= now);
        let path = *self.paths.iter().find(|(_, known)| has_expired(known))?.0;
        Some((path, self.told(path, now)))
    }

    /// Forgets a path whose connection has ended.
    pub fn forget(&mut self, path: PathId) {
        self.paths.remove(&path);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the peer that reports on the connection with this token.
    fn peer_of(&self, token: u32) -> Option<PublicKey> {
        let [first, last] = [u8::MIN, u8::MAX].map(|address_id| PathId { token, address_id });
        self.paths.range(first..=last).next().map(|(_, known)| known.peer)
    }

    fn known(&mut self, path: PathId, peer: PublicKey, now: Instant) -> &mut Known {
        if self.paths.len() >= PATHS_MAX && !self.paths.contains_key(&path) {
            let oldest = self.paths.iter().min_by_key(|(_, known)| known.heard_at).map(|(path, _)| *path);
            oldest.and_then(|oldest| self.paths.remove(&oldest));
        }
        let known = self.paths.entry(path).or_insert(Known {
            peer,
            sharing: None,
            way: None,
            heard_at: now,
            competes_until: None,
        });
        known.heard_at = now;
        known
    }

    fn told(&mut self, path: PathId, now: Instant) -> Told {
        let Some(known) = self.paths.get_mut(&path) else { return Told::default() };
        if let Some(way) = &mut known.way {
            way.until = way.until.filter(|until| now < *until);
        }
        known.competes_until = known.sharing.as_ref().and_then(|sharing| sharing.next_expiry(now));
        Told {
            competition: known.sharing.as_ref().and_then(|sharing| sharing.current(THE_RELAY, now)),
            way: known
                .way
                .filter(|way| way.until.is_some())
                .map(|way| way.delay.delay)
                .filter(|way| !way.is_zero())
                .map(wall),
        }
    }
}
