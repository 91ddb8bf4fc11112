//! The destination's watch over its relays: who acknowledged data to the source and never delivered them?
//!
//! Such data leave a hole in the stream that stays. The destination cannot see over which relay they came, so it excludes
//! one after the other, whoever has been silent for longest first; what an excluded relay owes, the source sends by others.
//! That closes a hole whoever made it: only holes that come again, or do not, tell who it was.
//!
//! ```text
//! T_patience = max(T_set 2^excluded, 3 T_late), at most 16 T_set
//!
//! the same hole for T_patience            exclude the most silent of those left
//! the same, and nothing comes at all      wait 4 T_patience more before that: links may be down for a while
//! none for 4 T_patience after that        the latest excluded is guilty, those excluded before it are cleared
//! a hole, and one silent relay left       give up: the source no longer has what is missing, or nothing can come
//! ```
//!
//! T_patience doubles with each exclusion until the case is closed: what is sent again may wait in long queues. It also grows
//! with what honest relays show of their queues (T_late): how much later octets come than others that they overtook, while
//! nobody is suspected. A loss in such a queue is repaired after another turn in it.
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
/// Times T_patience for which the last relay is waited for while it delivers, and all are while none does.
const WAITS_MAX: u64 = 4;
/// T_patience doubles so often at most.
const DOUBLINGS_MAX: u32 = 4;
/// T_patience in T_late: a turn in the queue to notice a loss, one to repair it, and one for what comes in between.
const TURNS: u64 = 3;
/// Looks in the longest T_patience.
const AHEAD_MAX: usize = (LOOKS as usize) << DOUBLINGS_MAX;
/// T_late shrinks by this part with each look at a stream that moves.
const FORGET: u64 = 64;

/// Settings of a [`HoleWatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// T_set: what honest hosts and relays need to repair a loss where queues are short. Longer than the longest
    /// retransmission time-out; the source's data-level time-out is twice that.
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
    /// Octets behind it that have arrived.
    pub out_of_order_bytes: u64,
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
        /// Nothing comes over any relay.
        silence: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The first octet of it.
    start: Dsn,
    /// When patience with it ends.
    until: Instant,
    /// How often it has ended.
    waited: u64,
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
    /// The one that is awaited.
    hole: Option<Hole>,
    lateness: Lateness,
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
            lateness: Lateness::default(),
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
        self.lateness.look(now, stream, self.excluded.is_empty());
        let same = self.hole.filter(|hole| hole.start == stream.rcv_nxt);
        let hole = same.unwrap_or(Hole { start: stream.rcv_nxt, until: now + self.patience(), waited: 0 });
        self.hole = stream.awaited.then_some(hole);
        if stream.awaited && hole.until <= now && !self.given_up {
            self.exclude_next(hole, now);
            self.hole = Some(Hole { until: now + self.patience(), waited: hole.waited + 1, ..hole });
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

    /// T_patience.
    fn patience(&self) -> Duration {
        let set = |doublings: u32| self.settings.patience.saturating_mul(1 << doublings);
        let doubled = set(DOUBLINGS_MAX.min(self.excluded.len() as u32));
        doubled.max(self.lateness.late.saturating_mul(TURNS)).min(set(DOUBLINGS_MAX))
    }

    fn is_delivering(&self, now: Instant) -> bool {
        // When patience with a hole ends, what came behind it at first is as old as the hole.
        let recent = self.patience() / 2;
        self.relays.values().any(|seen| now.saturating_since(seen.last_at) < recent)
    }

    fn note_arrivals(&mut self, now: Instant, relays: impl Iterator<Item = (RelayId, u64)>) {
        let mut before = core::mem::take(&mut self.relays);
        for (relay, bytes) in relays {
            let seen = before.remove(&relay).filter(|seen| seen.bytes == bytes);
            self.relays.insert(relay, seen.unwrap_or(Seen { bytes, last_at: now }));
        }
    }

    /// The last relay is not excluded: nothing could come any more. What is missing may be behind what it delivers, and where nothing comes at all
    /// the links may be down; but neither for ever.
    fn exclude_next(&mut self, hole: Hole, now: Instant) {
        let (is_delivering, is_last) = (self.is_delivering(now), self.relays.len() <= 1);
        if hole.waited < WAITS_MAX && (is_last || !is_delivering) {
            return;
        }
        let most_silent = self.relays.iter().min_by_key(|(relay, seen)| (seen.last_at, seen.bytes, **relay));
        match most_silent.filter(|_| !is_last).map(|(relay, _)| *relay) {
            Some(relay) => {
                self.relays.remove(&relay);
                self.excluded.push(relay);
                self.calm_at = now + self.patience().saturating_mul(CALM);
                self.verdicts.push_back(Verdict::Exclude(relay));
            }
            None => {
                self.given_up = true;
                self.verdicts.push_back(Verdict::GiveUp { missing: hole.start, silence: !is_delivering });
            }
        }
    }
}

/// How late octets come that others overtook.
#[derive(Debug, Default)]
struct Lateness {
    /// How much had arrived at earlier looks, as the sequence number that a stream without holes would have reached: only what
    /// is beyond the first missing octet.
    ahead: VecDeque<(Instant, Dsn)>,
    rcv_nxt: Dsn,
    /// T_late.
    late: Duration,
}

impl Lateness {
    /// Takes note of the stream; `trusted` says whether lateness is the honest one of queues.
    fn look(&mut self, now: Instant, stream: StreamView, trusted: bool) {
        if stream.rcv_nxt.after(self.rcv_nxt) {
            let late = self.ahead.front().map_or(Duration::ZERO, |(since, _)| now.saturating_since(*since));
            if trusted {
                self.late = late.max(self.late - self.late / FORGET);
            }
        }
        self.rcv_nxt = stream.rcv_nxt;
        while self.ahead.front().is_some_and(|(_, reached)| reached.before_or_at(stream.rcv_nxt)) {
            self.ahead.pop_front();
        }
        let reached = stream.rcv_nxt + stream.out_of_order_bytes;
        let news = self.ahead.back().is_none_or(|(_, before)| reached.after(*before));
        if stream.out_of_order_bytes > 0 && news && self.ahead.len() < AHEAD_MAX {
            self.ahead.push_back((now, reached));
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
            let stream = StreamView { rcv_nxt: Dsn(start), out_of_order_bytes: 0, awaited: true };
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
            let stream = StreamView { rcv_nxt: Dsn(200), out_of_order_bytes: 0, awaited: true };
            watch.look(at(second), stream, left(second));
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
            watch.look(at(second), StreamView { rcv_nxt, out_of_order_bytes: 0, awaited: second < 50 }, relays);
            assert_eq!(watch.poll_verdict(), None, "{second}");
        }
    }

    #[test]
    fn the_last_relay_is_not_excluded_and_giving_up_is_said_once() {
        let mut watch = watch();
        // Patience of 4 s ends at 4, 8, 12, 16 and 20 s.
        let give_up = Verdict::GiveUp { missing: Dsn(100), silence: true };
        assert_eq!(look(&mut watch, 0..20, 100, &[SILENT]), []);
        assert_eq!(look(&mut watch, 20..60, 100, &[SILENT]), [give_up]);
    }

    #[test]
    fn while_nothing_comes_over_any_relay_nobody_is_excluded_for_a_while() {
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..20, 100, &[SILENT, SILENT]), []);
        assert_eq!(look(&mut watch, 20..21, 100, &[SILENT, SILENT]), [Verdict::Exclude(RelayId(0))]);
    }

    #[test]
    fn the_last_relay_is_waited_for_while_it_delivers_but_not_for_ever() {
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..20, 100, &[BUSY]), []);
        assert_eq!(look(&mut watch, 20..40, 100, &[BUSY]), [Verdict::GiveUp { missing: Dsn(100), silence: false }]);
    }

    /// One relay delivers 100 octets a second, and its queue grows to 6 s; the other one delivers 900 at once.
    fn learn_of_a_slow_relay(watch: &mut HoleWatch) {
        for second in 0..=30_u64 {
            let delivered = (second / 2).max(second.saturating_sub(6));
            let rcv_nxt = Dsn(1000 * delivered);
            let stream = StreamView { rcv_nxt, out_of_order_bytes: 900 * (second - delivered), awaited: true };
            let relays = [(RelayId(0), 100 * delivered), (RelayId(1), 900 * second)].into_iter();
            watch.look(at(second), stream, relays);
            assert_eq!(watch.poll_verdict(), None, "{second}");
        }
    }

    /// At 30 s the octets from 24,000 on are lost.
    const LOST: StreamView = StreamView { rcv_nxt: Dsn(24_000), out_of_order_bytes: 5400, awaited: true };

    #[test]
    fn a_relay_with_a_long_queue_has_time_to_repair_a_loss() {
        let mut watch = watch();
        learn_of_a_slow_relay(&mut watch);
        // It is noticed 6 s later and repaired within 6 more; 18 s are tolerated.
        for second in 31..48 {
            watch.look(at(second), LOST, [(RelayId(0), 2400), (RelayId(1), 27_000)].into_iter());
            assert_eq!(watch.poll_verdict(), None, "{second}");
        }
    }

    #[test]
    fn a_relay_that_swallows_is_found_out_beside_one_with_a_long_queue() {
        let mut watch = watch();
        learn_of_a_slow_relay(&mut watch);
        // The slow one goes on; the other one acknowledges and delivers nothing.
        let mut verdicts = (31..60).filter_map(|second| {
            watch.look(at(second), LOST, [(RelayId(0), 100 * second), (RelayId(1), 27_000)].into_iter());
            watch.poll_verdict().map(|verdict| (second, verdict))
        });
        assert_eq!(verdicts.next(), Some((48, Verdict::Exclude(RelayId(1)))));
    }

    #[test]
    fn nobody_makes_the_watch_patient_for_ever() {
        let mut watch = watch();
        for second in 0..1000 {
            let stream = StreamView { rcv_nxt: Dsn(second / 200), out_of_order_bytes: 1000 + second, awaited: false };
            watch.look(at(second), stream, core::iter::empty());
        }
        assert_eq!(watch.patience(), Duration::from_secs(64));
        assert!(watch.lateness.ahead.len() <= AHEAD_MAX);
    }
}
