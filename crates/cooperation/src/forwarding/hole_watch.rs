//! The destination's watch over its relays: who acknowledged data to the source and never delivered them?
//!
//! Such data leave a hole in the stream that stays. The destination cannot see over which relay they came, so it excludes
//! one after the other, whoever has been silent for longest first; what an excluded relay owes, the source sends by others.
//! That closes a hole whoever made it: only holes that come again, or do not, tell who it was.
//!
//! ```text
//! the same hole for T_patience            exclude the most silent of those left
//! none for 4 T_patience after that        the latest excluded is guilty, those excluded before it are cleared
//! a hole, and only one relay left         give up: the source no longer has what is missing
//! ```
//!
//! T_patience doubles with each exclusion until the case is closed: what is sent again may wait in long queues.
//!
//! Somebody on the way can also make the source believe that the destination has the data (a forged DATA_ACK, which RFC 8684
//! does not authenticate). Then nobody can fill the hole, and giving up is all that is left.

use std::collections::{BTreeMap, VecDeque};

use units::{Dsn, Duration, Instant};

use crate::relay_selection::RelayId;

/// Looks at the stream in T_patience: who was silent for longest must be seen.
const LOOKS: u64 = 32;
/// Times T_patience without a hole after which a case is closed.
const CALM: u64 = 4;
/// T_patience doubles so often at most.
const DOUBLINGS_MAX: usize = 4;

/// Settings of a [`HoleWatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// T_patience: what honest hosts and relays need to repair a loss. Longer than the longest retransmission time-out; the
    /// source's data-level time-out is twice that.
    pub patience: Duration,
}

impl Default for WatchSettings {
    /// Three seconds.
    fn default() -> Self {
        Self { patience: Duration::from_secs(3) }
    }
}

/// What the destination sees of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// The first octet that is missing.
    pub rcv_nxt: Dsn,
    /// The application waits for it: data behind it have arrived, or the stream is not complete and cannot be idle.
    pub awaited: bool,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Close the subflow through this relay, and tell the source by another (REMOVE_ADDR).
    Exclude(RelayId),
    /// It swallowed data: it stays excluded.
    Guilty(RelayId),
    /// It did not: it may come back.
    Cleared(RelayId),
    /// Nobody has what is missing: close the connection.
    GiveUp {
        /// The first octet of it.
        missing: Dsn,
    },
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    bytes: u64,
    /// When the latest of them arrived.
    last_at: Instant,
}

/// Watches the stream of one connection. [`Self::look`] is due at [`Self::next_look`]; what follows is taken with
/// [`Self::poll_verdict`].
#[derive(Debug)]
pub struct HoleWatch {
    settings: WatchSettings,
    relays: BTreeMap<RelayId, Seen>,
    /// The first missing octet, while it is awaited, and when patience with it ends.
    hole: Option<(Dsn, Instant)>,
    /// In this order, since there was calm.
    excluded: Vec<RelayId>,
    calm_at: Instant,
    given_up: bool,
    next_look: Instant,
    verdicts: VecDeque<Verdict>,
}

impl HoleWatch {
    /// Has seen nothing.
    pub fn new(settings: WatchSettings, now: Instant) -> Self {
        Self {
            settings,
            relays: BTreeMap::new(),
            hole: None,
            excluded: Vec::new(),
            calm_at: Instant::FAR_FUTURE,
            given_up: false,
            next_look: now,
            verdicts: VecDeque::new(),
        }
    }

    /// When to look next.
    pub const fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks at the stream, and at the octets that came over each relay in use so far. Only these can be excluded.
    pub fn look(&mut self, now: Instant, stream: StreamView, relays: impl Iterator<Item = (RelayId, u64)>) {
        self.next_look = now + self.settings.patience / LOOKS;
        self.note_arrivals(now, relays);
        if self.calm_at <= now {
            self.finish();
        }
        let patience = self.patience();
        let same = self.hole.filter(|(start, _)| stream.awaited && *start == stream.rcv_nxt);
        let (start, until) = same.unwrap_or((stream.rcv_nxt, now + patience));
        self.hole = stream.awaited.then_some((start, until));
        if self.hole.is_some() && until <= now && !self.given_up {
            self.exclude_next(start, now);
            self.hole = Some((start, now + self.patience()));
        }
    }

    /// The stream is complete, or there was calm: the case is closed.
    pub fn finish(&mut self) {
        self.calm_at = Instant::FAR_FUTURE;
        if let Some(guilty) = self.excluded.pop() {
            self.verdicts.push_back(Verdict::Guilty(guilty));
        }
        self.verdicts.extend(self.excluded.drain(..).map(Verdict::Cleared));
    }

    /// The next verdict.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdicts.pop_front()
    }

    /// What is left of it after so many exclusions.
    fn patience(&self) -> Duration {
        self.settings.patience.saturating_mul(1 << self.excluded.len().min(DOUBLINGS_MAX))
    }

    fn note_arrivals(&mut self, now: Instant, relays: impl Iterator<Item = (RelayId, u64)>) {
        let mut before = core::mem::take(&mut self.relays);
        for (relay, bytes) in relays {
            let seen = before.remove(&relay).filter(|seen| seen.bytes == bytes);
            self.relays.insert(relay, seen.unwrap_or(Seen { bytes, last_at: now }));
        }
    }

    /// The last relay is not excluded: nothing could come any more.
    fn exclude_next(&mut self, missing: Dsn, now: Instant) {
        let most_silent = self.relays.iter().min_by_key(|(relay, seen)| (seen.last_at, seen.bytes, **relay));
        match most_silent.filter(|_| self.relays.len() > 1).map(|(relay, _)| *relay) {
            Some(relay) => {
                self.relays.remove(&relay);
                self.excluded.push(relay);
                self.calm_at = now + self.patience().saturating_mul(CALM);
                self.verdicts.push_back(Verdict::Exclude(relay));
            }
            None => {
                self.given_up = true;
                self.verdicts.push_back(Verdict::GiveUp { missing });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn watch() -> HoleWatch {
        HoleWatch::new(WatchSettings { patience: Duration::from_secs(4) }, at(0))
    }

    /// Looks every second from `from` to `to`; `bytes` are those of each relay, by the second.
    fn look(
        watch: &mut HoleWatch,
        seconds: core::ops::Range<u64>,
        start: u64,
        bytes: &[fn(u64) -> u64],
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for second in seconds {
            assert!(watch.next_look() <= at(second));
            let stream = StreamView { rcv_nxt: Dsn(start), awaited: true };
            let relays = bytes.iter().zip(0..).map(|(bytes, relay)| (RelayId(relay), bytes(second)));
            watch.look(at(second), stream, relays);
            verdicts.extend(core::iter::from_fn(|| watch.poll_verdict()));
        }
        verdicts
    }

    const SILENT: fn(u64) -> u64 = |_| 500;
    const BUSY: fn(u64) -> u64 = |second| second * 1000;

    #[test]
    fn patience_comes_first_and_then_the_most_silent_goes() {
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..4, 100, &[BUSY, SILENT, BUSY]), []);
        assert_eq!(look(&mut watch, 4..5, 100, &[BUSY, SILENT, BUSY]), [Verdict::Exclude(RelayId(1))]);
        // The stream goes on for 4 x 8 s: it was that one.
        for second in 5..36 {
            assert_eq!(look(&mut watch, second..second + 1, 100 * second, &[BUSY]), [], "{second}");
        }
        assert_eq!(look(&mut watch, 36..37, 9000, &[BUSY]), [Verdict::Guilty(RelayId(1))]);
    }

    #[test]
    fn whoever_was_excluded_in_vain_is_cleared() {
        // Relay 0 is silent because it has nothing to deliver; relay 1 swallows now and then.
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..5, 100, &[SILENT, BUSY, BUSY]), [Verdict::Exclude(RelayId(0))]);
        let left = |second: u64| [(RelayId(1), 5), (RelayId(2), second)].into_iter();
        for second in 5..=13 {
            // The hole fills, another one opens, and patience is 8 s.
            assert_eq!(watch.poll_verdict(), None, "{second}");
            watch.look(at(second), StreamView { rcv_nxt: Dsn(200), awaited: true }, left(second));
        }
        assert_eq!(watch.poll_verdict(), Some(Verdict::Exclude(RelayId(1))));
        watch.finish();
        assert_eq!(watch.poll_verdict(), Some(Verdict::Guilty(RelayId(1))));
        assert_eq!(watch.poll_verdict(), Some(Verdict::Cleared(RelayId(0))));
        assert_eq!(watch.poll_verdict(), None);
    }

    #[test]
    fn a_stream_that_moves_and_one_that_is_idle_rouse_no_suspicion() {
        let mut watch = watch();
        for second in 0..100 {
            let relays = [(RelayId(0), 0), (RelayId(1), second)].into_iter();
            let rcv_nxt = Dsn(if second < 50 { second / 3 } else { 7 });
            watch.look(at(second), StreamView { rcv_nxt, awaited: second < 50 }, relays);
            assert_eq!(watch.poll_verdict(), None, "{second}");
        }
    }

    #[test]
    fn the_last_relay_is_not_excluded_and_giving_up_is_said_once() {
        let mut watch = watch();
        let give_up = Verdict::GiveUp { missing: Dsn(100) };
        assert_eq!(look(&mut watch, 0..40, 100, &[BUSY]), [give_up]);
    }
}
