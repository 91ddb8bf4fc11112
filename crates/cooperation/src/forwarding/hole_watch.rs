//! The destination's watch over its relays: which relay acknowledged data to the source and never delivered them?
//!
//! Such data leave a lasting hole in the stream. The destination cannot see over which relay they travelled. It
//! therefore excludes relays one after another, the one that has been silent longest first; the source resends an
//! excluded relay's data over others. This closes a hole whichever relay made it. Only the recurrence of holes, or its
//! absence, shows which relay is guilty.
//!
//! ```text
//! T_patience = max(T_set 2^excluded, 3 T_late), at most 16 T_set
//!
//! the same hole for T_patience            exclude the most silent of the remaining relays
//! the same, and nothing arrives at all    first wait 4 T_patience more: links may be down for a while
//! no such hole for 4 T_patience           the latest excluded is guilty, those excluded before it are cleared
//! a hole, and one silent relay left       give up: the source no longer has the data, or nothing can arrive
//! ```
//!
//! Nobody is guilty of a hole that stays open without them: the 4 T_patience begin when it has closed.
//!
//! T_patience doubles with each exclusion until the case is closed: resent data may wait in long queues. It also grows
//! with the queues that honest relays show (T_late): how much later octets arrive than others that overtook them, while
//! no relay is suspected. The repair of a loss in such a queue takes another turn in it.
//!
//! An attacker on the path can also make the source believe that the destination has the data (a forged DATA_ACK, which
//! RFC 8684 does not authenticate). Then nobody can fill the hole, and the destination can only give up.

use std::collections::{BTreeMap, VecDeque};

use units::{Dsn, Duration, Instant};

use crate::relay_selection::RelayId;

/// Checks of the stream per T_patience: the destination must see which relay was silent longest.
const LOOKS: u64 = 32;
/// Multiple of T_patience without a hole after which a case is closed.
const CALM: u64 = 4;
/// Multiple of T_patience to wait for the last relay while it delivers, and for all relays while none does.
const WAITS_MAX: u64 = 4;
/// Maximum number of doublings of T_patience.
const DOUBLINGS_MAX: u32 = 4;
/// T_patience in T_late: a turn in the queue to notice a loss, one to repair it, and one as reserve.
const TURNS: u64 = 3;
/// Checks in the longest T_patience.
const AHEAD_MAX: usize = (LOOKS as usize) << DOUBLINGS_MAX;
/// T_late shrinks by one part in this many with each check of a stream that moves.
const FORGET: u64 = 64;

/// Settings of a [`HoleWatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// T_set: the time that honest hosts and relays need to repair a loss if queues are short. Longer than the longest
    /// retransmission time-out; the source's data-level time-out is twice that.
    pub patience: Duration,
}

impl Default for WatchSettings {
    /// Three seconds.
    fn default() -> Self {
        Self { patience: Duration::from_secs(3) }
    }
}

/// The destination's view of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// The first missing octet.
    pub rcv_nxt: Dsn,
    /// Octets behind it that have arrived.
    pub out_of_order_bytes: u64,
    /// Whether the application waits for it: data behind it have arrived, or the stream is not complete and cannot be
    /// idle.
    pub awaited: bool,
}

/// A conclusion about a relay or the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Close the subflow through this relay, and tell the source over another subflow (REMOVE_ADDR).
    Exclude(RelayId),
    /// This relay swallowed data: it stays excluded.
    Guilty(RelayId),
    /// This relay did not swallow data: it may come back.
    Cleared(RelayId),
    /// The missing data exist nowhere any more: close the connection.
    GiveUp {
        /// The first missing octet.
        missing: Dsn,
        /// Whether nothing arrives over any relay.
        silence: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The first missing octet.
    start: Dsn,
    /// Time at which patience with the hole ends.
    until: Instant,
    /// How often patience with it has ended.
    waited: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    bytes: u64,
    /// Arrival time of the latest octets.
    last_at: Instant,
}

/// Watches the stream of one connection. [`Self::look`] is due at [`Self::next_look`]; take the conclusions with
/// [`Self::poll_verdict`].
#[derive(Debug)]
pub struct HoleWatch {
    settings: WatchSettings,
    relays: BTreeMap<RelayId, Seen>,
    /// The hole that the application waits for.
    hole: Option<Hole>,
    lateness: Lateness,
    /// Relays excluded in the open case, in order of their exclusion.
    excluded: Vec<RelayId>,
    /// Time at which the calm has lasted long enough to close the case. A hole that outlasts patience moves it.
    calm_at: Instant,
    given_up: bool,
    next_look: Instant,
    verdicts: VecDeque<Verdict>,
}

impl HoleWatch {
    /// Creates a watch that has seen nothing.
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

    /// Returns the time of the next check.
    pub const fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Checks the stream, and the octets that have arrived over each relay in use. Only these relays can be excluded.
    pub fn look(&mut self, now: Instant, stream: StreamView, relays: impl Iterator<Item = (RelayId, u64)>) {
        self.next_look = now + self.settings.patience / LOOKS;
        self.note_arrivals(now, relays);
        let same = self.hole.filter(|hole| hole.start == stream.rcv_nxt);
        if stream.awaited && same.is_some_and(|hole| hole.waited > 0) {
            // Without the relays excluded so far, it stays open: the calm has not begun.
            self.expect_calm(now);
        }
        if self.calm_at <= now {
            self.finish();
        }
        self.lateness.look(now, stream, self.excluded.is_empty());
        let hole = same.unwrap_or(Hole { start: stream.rcv_nxt, until: now + self.patience(), waited: 0 });
        self.hole = stream.awaited.then_some(hole);
        if stream.awaited && hole.until <= now && !self.given_up {
            self.exclude_next(hole, now);
            self.hole = Some(Hole { until: now + self.patience(), waited: hole.waited + 1, ..hole });
        }
    }

    /// Closes the case, because the stream is complete or the calm lasted.
    pub fn finish(&mut self) {
        self.calm_at = Instant::FAR_FUTURE;
        if let Some(guilty) = self.excluded.pop() {
            self.verdicts.push_back(Verdict::Guilty(guilty));
        }
        self.verdicts.extend(self.excluded.drain(..).map(Verdict::Cleared));
    }

    /// Starts the time without a hole that closes the case, if one is open.
    fn expect_calm(&mut self, now: Instant) {
        if !self.excluded.is_empty() {
            self.calm_at = now + self.patience().saturating_mul(CALM);
        }
    }

    /// Returns the next verdict.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.verdicts.pop_front()
    }

    /// Returns T_patience.
    pub fn patience(&self) -> Duration {
        let set = |doublings: u32| self.settings.patience.saturating_mul(1 << doublings);
        let doubled = set(DOUBLINGS_MAX.min(self.excluded.len() as u32));
        doubled.max(self.lateness.late.saturating_mul(TURNS)).min(set(DOUBLINGS_MAX))
    }

    fn is_delivering(&self, now: Instant) -> bool {
        // When patience with a hole ends, the first data behind it are as old as the hole.
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

    /// Excludes the most silent relay, but never the last one: nothing could arrive any more. The missing data may
    /// follow what the last relay delivers, and if nothing arrives at all, the links may be down; but the watch waits
    /// for neither for ever.
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
                self.expect_calm(now);
                self.verdicts.push_back(Verdict::Exclude(relay));
            }
            None => {
                self.given_up = true;
                self.verdicts.push_back(Verdict::GiveUp { missing: hole.start, silence: !is_delivering });
            }
        }
    }
}

/// How late octets arrive that others overtook.
#[derive(Debug, Default)]
struct Lateness {
    /// How much had arrived at earlier checks, as the sequence number that a stream without holes would have reached.
    /// Only entries above the first missing octet.
    ahead: VecDeque<(Instant, Dsn)>,
    rcv_nxt: Dsn,
    /// T_late.
    late: Duration,
}

impl Lateness {
    /// Records the state of the stream; `trusted` says whether lateness comes from honest queues.
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

    /// Checks every second from `from` to `to`; `bytes` are those of each relay, by the second.
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
        // The stream flows for 4 x 8 s, so it was that relay.
        for second in 5..36 {
            assert_eq!(look(&mut watch, second..second + 1, 100 * second, &[BUSY]), [], "{second}");
        }
        assert_eq!(look(&mut watch, 36..37, 9000, &[BUSY]), [Verdict::Guilty(RelayId(1))]);
    }

    #[test]
    fn whoever_was_excluded_in_vain_is_cleared() {
        // Relay 0 is silent because it has nothing to deliver; relay 1 swallows data now and then.
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

    /// The relay that swallows delivers more than the honest one, and remains.
    #[test]
    fn nobody_is_guilty_of_a_hole_that_stays_open_without_them() {
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..5, 100, &[SILENT, BUSY]), [Verdict::Exclude(RelayId(0))]);
        for second in 5..60 {
            let stream = StreamView { rcv_nxt: Dsn(100), out_of_order_bytes: 1000 * second, awaited: true };
            watch.look(at(second), stream, [(RelayId(1), 1000 * second)].into_iter());
            let give_up = Verdict::GiveUp { missing: Dsn(100), silence: false };
            assert_eq!(watch.poll_verdict(), (second == 36).then_some(give_up), "{second}");
        }
    }

    #[test]
    fn the_calm_begins_when_the_hole_has_closed() {
        let mut watch = watch();
        assert_eq!(look(&mut watch, 0..5, 100, &[SILENT, BUSY, BUSY]), [Verdict::Exclude(RelayId(0))]);
        let left = |second: u64| [(RelayId(1), second), (RelayId(2), second)].into_iter();
        let view = |rcv_nxt| StreamView { rcv_nxt: Dsn(rcv_nxt), out_of_order_bytes: 0, awaited: true };
        // The hole is last seen at 10 s, and the calm lasts 4 x 8 s.
        for second in 5..=42 {
            watch.look(at(second), view(if second < 11 { 100 } else { 100 * second }), left(second));
            assert_eq!(watch.poll_verdict(), (second == 42).then_some(Verdict::Guilty(RelayId(0))), "{second}");
        }
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

    /// One relay delivers 100 octets a second, and its queue grows to 6 s; the other delivers 900 at once.
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

    /// At 30 s, the octets from 24,000 on are lost.
    const LOST: StreamView = StreamView { rcv_nxt: Dsn(24_000), out_of_order_bytes: 5400, awaited: true };

    #[test]
    fn a_relay_with_a_long_queue_has_time_to_repair_a_loss() {
        let mut watch = watch();
        learn_of_a_slow_relay(&mut watch);
        // The loss is noticed 6 s later and repaired within 6 more; the watch tolerates 18 s.
        for second in 31..48 {
            watch.look(at(second), LOST, [(RelayId(0), 2400), (RelayId(1), 27_000)].into_iter());
            assert_eq!(watch.poll_verdict(), None, "{second}");
        }
    }

    #[test]
    fn a_relay_that_swallows_is_found_out_beside_one_with_a_long_queue() {
        let mut watch = watch();
        learn_of_a_slow_relay(&mut watch);
        // The slow relay continues; the other acknowledges and delivers nothing.
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
