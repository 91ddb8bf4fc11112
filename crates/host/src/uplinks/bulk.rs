//! Whether a connection's further subflows are to carry data yet. Pure.
//!
//! What a peer sends on which subflow is its scheduler's decision, and the kernel's splits what is small as well: an answer of 8 kB
//! then takes the round trip of the longest path. So further subflows join as backups, and are made regular once there is more to send
//! than comes on the first one in the time that the other takes for its first octets.
//!
//! ```text
//! answer   octets from the server that no question interrupts: the client has sent nothing before which there was a pause
//! backlog  octets to the server that it has not acknowledged
//! joins    answer >= 128 kB, for RTT or longer; or answer >= 32 kB, for 3 RTT; or backlog >= 128 kB, for RTT
//! blocks   rate * base > 1.5 MB: then never
//!
//! RTT      least round-trip time of the subflow that is to join
//! base     the same of its uplink, if that is less: a subflow that carries nothing has the one of its handshake only, which may have
//!          met a queue, or a relay that gave way to its owner
//! rate     octets in a second of the answer, or of what was acknowledged of the backlog: the most of any 200 ms, since slow start comes
//!          first
//! ```
//!
//! Why some block: what comes meanwhile on the others waits for what was sent on the one with the long round trip, and the peer must keep
//! it. Linux keeps 1.2 to 1.7 MB, unless it was told otherwise (tcp_wmem), and then sends nothing on any of them.

use transport::ConnectionStats;
use units::{Duration, Instant};

/// An answer, or a backlog, from which on a connection is heavy.
pub const HEAVY_BYTES: u64 = 128 << 10;
/// An answer that is worth a second path if it takes long.
const SLOW_BYTES: u64 = 32 << 10;
/// Round trips that are long.
const SLOW_ROUNDS: u64 = 3;
/// An answer from which on a server is one of downloads.
const DOWNLOAD_BYTES: u64 = 1 << 20;
/// Octets that a peer keeps for a stream that waits.
const KEPT_BYTES: u64 = 3 << 19;
/// A question is one if nothing came for half a round trip, and for this long at least: whoever acknowledges a part of a download to its
/// server's application (HTTP/2 does) asks for nothing new.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Over what time rates are taken.
const RATE_SPAN: Duration = Duration::from_millis(200);
/// After this it is another answer even if nobody has asked.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What one connection has brought of late.
#[derive(Clone, Debug)]
pub struct Bulk {
    pause: Duration,
    answer_bytes: u64,
    since: Instant,
    latest: Instant,
    /// The client has sent something since.
    asked: bool,
    pace: Pace,
    backlog: Option<Backlog>,
    /// What had arrived and what of it was in order at the last look.
    arrived: Arrivals,
    held_up_at: Option<Instant>,
}

/// What a connection's subflows have brought.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// Octets of all of them, what came twice included.
    bytes: u64,
    /// Octets of the stream up to its first hole.
    in_order_bytes: u64,
    /// Octets that wait for a hole to fill.
    waiting_bytes: u64,
}

impl Arrivals {
    fn of(stats: &ConnectionStats) -> Self {
        Self {
            bytes: stats.subflows.iter().map(|subflow| subflow.received_bytes).sum(),
            in_order_bytes: stats.received_bytes,
            waiting_bytes: stats.out_of_order_bytes,
        }
    }
}

/// Octets to the server that have been too many for some time.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    since: Instant,
    latest: Instant,
    pace: Pace,
}

/// How fast octets come.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since: Instant,
    since_bytes: u64,
    /// Octets in a second, at most.
    peak_rate: u64,
}

impl Pace {
    fn new(bytes: u64, now: Instant) -> Self {
        Self { since: now, since_bytes: bytes, peak_rate: 0 }
    }

    /// So many have come in all.
    fn note(&mut self, bytes: u64, now: Instant) {
        let span = now.saturating_since(self.since);
        if span < RATE_SPAN {
            return;
        }
        let added = u128::from(bytes.saturating_sub(self.since_bytes));
        let rate = u64::try_from(added * 1_000_000_000 / u128::from(span.as_nanos())).unwrap_or(u64::MAX);
        *self = Self { since: now, since_bytes: bytes, peak_rate: self.peak_rate.max(rate) };
    }

    /// Whether more would wait for a subflow with this round-trip time than a peer keeps.
    fn blocks(&self, rtt: Duration) -> bool {
        u128::from(self.peak_rate) * u128::from(rtt.as_nanos()) > u128::from(KEPT_BYTES) * 1_000_000_000
    }
}

impl Bulk {
    /// Of a connection whose first subflow has this round-trip time.
    pub fn new(rtt: Duration, now: Instant) -> Self {
        let pause = (rtt / 2).clamp(PAUSE_MIN, PAUSE_MAX);
        Self {
            pause,
            answer_bytes: 0,
            since: now,
            latest: now,
            asked: true,
            pace: Pace::new(0, now),
            backlog: None,
            arrived: Arrivals::default(),
            held_up_at: None,
        }
    }

    /// Octets have moved between client and server.
    pub fn moved(&mut self, up_bytes: u64, down_bytes: u64, now: Instant) {
        self.asked |= up_bytes > 0;
        if down_bytes == 0 {
            return;
        }
        let pause = now.saturating_since(self.latest);
        if self.asked && pause >= self.pause || pause >= PAUSE_MAX {
            (self.answer_bytes, self.since, self.pace) = (0, now, Pace::new(0, now));
        }
        self.asked = false;
        self.answer_bytes += down_bytes;
        self.latest = now;
        self.pace.note(self.answer_bytes, now);
    }

    /// Looks at what the connection's statistics say now; to be called often while octets move.
    pub fn look(&mut self, stats: &ConnectionStats, now: Instant) {
        self.note_backlog(stats.written_bytes.saturating_sub(stats.acked_bytes), stats.acked_bytes, now);
        self.note_arrivals(Arrivals::of(stats), now);
    }

    /// What has arrived until now. While a hole keeps it from the client, or what comes is there already, nothing moves; the answer goes on all the
    /// same.
    fn note_arrivals(&mut self, arrivals: Arrivals, now: Instant) {
        let before = core::mem::replace(&mut self.arrived, arrivals);
        let comes = arrivals.waiting_bytes > 0 || arrivals.bytes != before.bytes;
        if comes && arrivals.in_order_bytes == before.in_order_bytes {
            self.held_up_at = Some(now);
            self.latest = now;
        }
    }

    /// When something was last seen to wait, or to come twice, while the stream stood still.
    pub fn held_up_at(&self) -> Option<Instant> {
        self.held_up_at
    }

    /// What the server has not acknowledged, and what it has, of all that was sent.
    fn note_backlog(&mut self, backlog_bytes: u64, acked_bytes: u64, now: Instant) {
        self.backlog = (backlog_bytes >= HEAVY_BYTES).then(|| {
            let pace = Pace::new(acked_bytes, now);
            let mut backlog = self.backlog.unwrap_or(Backlog { since: now, latest: now, pace });
            backlog.pace.note(acked_bytes, now);
            Backlog { latest: now, ..backlog }
        });
    }

    /// Whether it is a download or an upload now, rather than small answers.
    pub fn is_heavy(&self) -> bool {
        self.answer_bytes >= HEAVY_BYTES || self.backlog.is_some()
    }

    /// Whether there is an answer, or a backlog, that may be worth another path.
    pub fn may_grow(&self) -> bool {
        self.answer_bytes >= SLOW_BYTES || self.backlog.is_some()
    }

    /// Whether it is as large as those for which people wait.
    pub fn is_download(&self) -> bool {
        self.answer_bytes >= DOWNLOAD_BYTES
    }

    /// Whether a subflow with this least round-trip time is to carry data, over an uplink with that one.
    pub fn is_worth(&self, rtt: Duration, base: Duration) -> bool {
        let span = self.latest.saturating_since(self.since);
        let is_slow = self.answer_bytes >= SLOW_BYTES && span >= rtt.saturating_mul(SLOW_ROUNDS);
        let is_large = self.answer_bytes >= HEAVY_BYTES && span >= rtt;
        let answer = (is_slow || is_large) && !self.pace.blocks(base);
        answer || self.backlog.is_some_and(|backlog| backlog.is_worth(rtt, base))
    }
}

impl Backlog {
    fn is_worth(&self, rtt: Duration, base: Duration) -> bool {
        self.latest.saturating_since(self.since) >= rtt && !self.pace.blocks(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A download at `mbit` Mbit/s that has lasted for `span_ms`, over a first path of 20 ms.
    fn download(mbit: u64, span_ms: u64) -> Bulk {
        let mut bulk = Bulk::new(ms(20), Instant::ZERO);
        bulk.moved(100, 0, Instant::ZERO);
        for milli in 0..=span_ms {
            bulk.moved(0, mbit * 125, Instant::from_millis(20 + milli));
        }
        bulk
    }

    #[test]
    fn a_page_of_small_answers_needs_no_other_path() {
        let mut bulk = Bulk::new(ms(40), Instant::ZERO);
        for round in 0..100 {
            bulk.moved(400, 0, Instant::from_millis(round * 50));
            for piece in 0..6 {
                bulk.moved(0, 1400, Instant::from_millis(round * 50 + 40 + piece));
                assert!(!bulk.is_worth(ms(1), ms(1)) && !bulk.may_grow() && !bulk.is_heavy());
            }
        }
    }

    #[test]
    fn a_stream_that_waits_for_a_hole_goes_on() {
        let mut bulk = download(10, 106);
        let at = |second| Instant::from_millis(126) + Duration::from_secs(second);
        let arrivals = |bytes, in_order_bytes, waiting_bytes| Arrivals { bytes, in_order_bytes, waiting_bytes };
        bulk.note_arrivals(arrivals(132_500, 132_500, 0), at(0));
        assert_eq!(bulk.held_up_at(), None);
        // What another subflow brings waits; then the hole is not filled, and nothing comes; then what is there already comes again.
        bulk.note_arrivals(arrivals(500_000, 132_500, 367_500), at(1));
        bulk.note_arrivals(arrivals(500_000, 132_500, 367_500), at(2));
        bulk.note_arrivals(arrivals(600_000, 500_000, 0), at(3));
        assert_eq!(bulk.held_up_at(), Some(at(2)));
        bulk.note_arrivals(arrivals(700_000, 500_000, 0), at(4));
        assert_eq!(bulk.held_up_at(), Some(at(4)));
        bulk.moved(0, 1400, at(4) + ms(990));
        assert!(bulk.is_heavy(), "it is the same answer");
        bulk.note_arrivals(arrivals(700_000, 500_000, 0), at(6));
        assert_eq!(bulk.held_up_at(), Some(at(4)), "nothing comes, and nothing waits");
        bulk.moved(0, 1400, at(6));
        assert!(!bulk.is_heavy(), "it is another one");
    }

    #[test]
    fn a_handshake_that_took_long_blocks_no_near_uplink() {
        let bulk = download(30, 1000);
        assert!(!bulk.is_worth(ms(480), ms(480)) && bulk.is_worth(ms(480), ms(20)));
    }

    #[test]
    fn a_download_needs_it_after_a_round_trip_of_it() {
        // 10 Mbit/s: 128 KiB come within 105 ms.
        assert!(!download(10, 103).is_worth(ms(80), ms(80)));
        assert!(download(10, 106).is_worth(ms(80), ms(80)));
        assert!(!download(10, 106).is_worth(ms(110), ms(110)));
        assert!(download(10, 111).is_worth(ms(110), ms(110)));
        assert!(download(10, 106).is_heavy() && !download(10, 106).is_download());
        assert!(download(10, 840).is_download());
    }

    #[test]
    fn a_slow_answer_needs_it_though_it_is_small() {
        // 1 Mbit/s: 32 KiB come within 263 ms.
        assert!(!download(1, 261).is_worth(ms(40), ms(40)));
        assert!(download(1, 264).is_worth(ms(40), ms(40)));
        assert!(!download(1, 264).is_worth(ms(100), ms(100)));
        assert!(download(1, 301).is_worth(ms(100), ms(100)));
    }

    #[test]
    fn what_acknowledges_parts_is_no_question() {
        let mut bulk = download(10, 50);
        bulk.moved(40, 0, Instant::from_millis(71));
        bulk.moved(0, 1400, Instant::from_millis(72));
        assert!(bulk.may_grow());
        bulk.moved(40, 0, Instant::from_millis(73));
        bulk.moved(0, 1400, Instant::from_millis(93));
        assert!(!bulk.may_grow(), "an answer after a pause is another one");
        let mut bulk = download(10, 50);
        bulk.moved(0, 1400, Instant::from_millis(1069));
        assert!(bulk.may_grow());
        bulk.moved(0, 1400, Instant::from_millis(2069));
        assert!(!bulk.may_grow(), "so is one after a second");
    }

    #[test]
    fn one_that_would_block_the_others_is_never_needed() {
        // 30 Mbit/s for 600 ms are 2.25 MB, 20 Mbit/s are 1.5 MB: less than the 1.57 MB that are kept.
        assert!(!download(30, 5000).is_worth(ms(600), ms(600)));
        assert!(download(20, 5000).is_worth(ms(600), ms(600)));
        assert!(download(30, 5000).is_worth(ms(300), ms(300)));
        // That it began slowly makes no difference.
        let mut bulk = download(1, 400);
        (0..400).for_each(|milli| bulk.moved(0, 30 * 125, Instant::from_millis(421 + milli)));
        assert!(!bulk.is_worth(ms(600), ms(600)));
    }

    #[test]
    fn an_upload_needs_it_while_it_waits() {
        let mut bulk = Bulk::new(ms(20), Instant::ZERO);
        let look = |bulk: &mut Bulk, backlog_bytes, rate_mbit: u64, milli: u64| {
            bulk.note_backlog(backlog_bytes, rate_mbit * 125 * milli, Instant::from_millis(milli));
        };
        look(&mut bulk, HEAVY_BYTES - 1, 10, 0);
        assert!(!bulk.is_heavy());
        look(&mut bulk, 1 << 20, 10, 100);
        assert!(bulk.is_heavy() && !bulk.is_worth(ms(60), ms(60)));
        look(&mut bulk, 1 << 20, 10, 160);
        assert!(bulk.is_worth(ms(60), ms(60)) && !bulk.is_worth(ms(61), ms(61)));
        look(&mut bulk, 0, 10, 180);
        assert!(!bulk.is_worth(ms(60), ms(60)), "it is done");
        look(&mut bulk, 1 << 20, 30, 200);
        look(&mut bulk, 1 << 20, 30, 1000);
        assert!(!bulk.is_worth(ms(600), ms(600)) && bulk.is_worth(ms(300), ms(300)));
    }
}
