//! What is known of paths, and what of it holds.

use std::collections::BTreeMap;

use cooperation::agent::source::SourceSettings;
use cooperation::bandwidth_sharing::{LIFETIME_PERIODS, SharingState};
use cooperation::channel::to_destination::Delay;
use cooperation::channel::to_source::ToSource;
use cooperation::relay_selection::RelayId;
use units::{Duration, Instant};

use crate::clock::wall;
use crate::{PathId, Told};

/// The relay of a path: one, since a path is one.
const THE_RELAY: RelayId = RelayId(0);
/// Paths that are known at most: callers may name connections that there never were.
const PATHS_MAX: usize = 4096;

/// By path.
pub(super) struct Paths {
    /// How often relays tell of their owners' flows, where somebody yields to those.
    sharing_period: Option<Duration>,
    /// Whether somebody compares delays.
    compares: bool,
    holds: Duration,
    paths: BTreeMap<PathId, Known>,
}

struct Known {
    sharing: Option<SharingState>,
    way: Option<Delay>,
    heard_at: Instant,
    /// Until when the kernel believes rightly that somebody competes.
    competes_until: Option<Instant>,
}

impl Paths {
    /// Of a source that does what `settings` say; `yields` tells whether its controller yields to others.
    pub fn new(settings: &SourceSettings, yields: bool) -> Self {
        let sharing_period = settings.sharing_period.filter(|_| yields);
        let adapting_period = settings.adapting.map(|adapting| adapting.period);
        let longest = sharing_period.max(adapting_period).unwrap_or_default();
        let holds = longest.saturating_mul(LIFETIME_PERIODS);
        Self { sharing_period, compares: adapting_period.is_some(), holds, paths: BTreeMap::new() }
    }

    /// How long the kernel is to believe what it is told.
    pub const fn holds(&self) -> Duration {
        self.holds
    }

    /// What the kernel is to know of a path after `word`; nothing if that changes nothing.
    pub fn hear(&mut self, word: &ToSource, now: Instant) -> Option<(PathId, Told)> {
        let (ToSource::Load { connection, address_id, .. } | ToSource::Delay { connection, address_id, .. }) = word;
        let path = PathId { token: connection.0, address_id: address_id.0 };
        let is_news = match word {
            ToSource::Load { load, .. } => {
                let period = self.sharing_period?;
                let sharing = &mut self.known(path, now).sharing;
                sharing.get_or_insert_with(|| SharingState::new(period)).on_signal(now, &load.by(THE_RELAY))
            }
            ToSource::Delay { delay, .. } => {
                let way = &mut self.compares.then(|| self.known(path, now))?.way;
                let is_news = way.is_none_or(|known| delay.at > known.at);
                if is_news {
                    *way = Some(*delay);
                }
                is_news
            }
        };
        is_news.then(|| (path, self.told(path, now)))
    }

    /// When [`Self::expire`] has something next.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.paths.values().filter_map(|known| known.competes_until).min()
    }

    /// A path whose flows nobody tells of any more, and what the kernel is to know of it now: what it was told together with the delay would hold
    /// for as long as that.
    pub fn expire(&mut self, now: Instant) -> Option<(PathId, Told)> {
        let has_expired = |known: &Known| known.competes_until.is_some_and(|until| until <= now);
        let path = *self.paths.iter().find(|(_, known)| has_expired(known))?.0;
        Some((path, self.told(path, now)))
    }

    /// Its connection is no more.
    pub fn forget(&mut self, path: PathId) {
        self.paths.remove(&path);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    fn known(&mut self, path: PathId, now: Instant) -> &mut Known {
        if self.paths.len() >= PATHS_MAX && !self.paths.contains_key(&path) {
            let oldest = self.paths.iter().min_by_key(|(_, known)| known.heard_at).map(|(path, _)| *path);
            oldest.and_then(|oldest| self.paths.remove(&oldest));
        }
        let known =
            self.paths.entry(path).or_insert(Known { sharing: None, way: None, heard_at: now, competes_until: None });
        known.heard_at = now;
        known
    }

    fn told(&mut self, path: PathId, now: Instant) -> Told {
        let Some(known) = self.paths.get_mut(&path) else { return Told::default() };
        known.competes_until = known.sharing.as_ref().and_then(|sharing| sharing.next_expiry(now));
        Told {
            competition: known.sharing.as_ref().and_then(|sharing| sharing.current(THE_RELAY, now)),
            way: known.way.map(|way| way.delay).filter(|way| !way.is_zero()).map(wall),
        }
    }
}
