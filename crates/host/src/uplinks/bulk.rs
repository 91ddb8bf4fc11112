//! Decides whether a connection's additional subflows should carry data yet. Pure.
//!
//! A peer's scheduler decides what the peer sends on which subflow, and the kernel's splits small answers too: an
//! answer of 8 kB then takes the round trip of the longest path. So additional subflows join as backups. They are made
//! regular once there is more to send than arrives on the first subflow in the time that the other needs for its first
//! octets.
//!
//! ```text
//! answer   octets from the server until the next question: until the client sends and the server's octets then pause
//! backlog  octets to the server that it has not acknowledged
//! joins    answer >= 128 KiB, for RTT or longer; or answer >= 32 KiB, for 3 RTT; or backlog >= 128 KiB, for RTT
//! blocks   rate * base > 1.5 MiB: then never
//!
//! RTT      least round-trip time of the subflow that may join
//! base     the same of its uplink, if that is less: a subflow that carries nothing only knows its handshake, which may
//!          have met a queue, or a relay that gave way to its owner
//! rate     octets per second of the answer, or of the acknowledged part of the backlog: the maximum over any 200 ms,
//!          because slow start comes first
//! ```
//!
//! Why some subflows block: what arrives on the others meanwhile waits for what was sent on the one with the long round
//! trip, and the peer must keep it. Linux keeps 1.2 to 1.7 MB by default (tcp_wmem), and then sends nothing on any
//! subflow.

use transport::ConnectionStats;
use units::{Duration, Instant};

/// Size of an answer or backlog from which a connection is heavy.
pub const HEAVY_BYTES: u64 = 128 << 10;
/// Size of an answer that is worth a second path if it takes long.
const SLOW_BYTES: u64 = 32 << 10;
/// Round trips that count as long.
const SLOW_ROUNDS: u64 = 3;
/// Size of an answer from which a server counts as one of downloads: few images of a page are larger, and files of a
/// megabyte are worth a choice of the uplink.
const DOWNLOAD_BYTES: u64 = 1 << 19;
/// Octets that a peer keeps for a stream that waits.
const KEPT_BYTES: u64 = 3 << 19;
/// Minimum pause before a question, which is half a round trip otherwise. A client that acknowledges part of a download
/// to the server's application, as HTTP/2 does, asks for nothing new.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Span over which rates are measured.
const RATE_SPAN: Duration = Duration::from_millis(200);
/// Pause after which a new answer begins even without a question.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Recent transfers of one connection.
#[derive(Clone, Debug)]
pub struct Bulk {
    pause: Duration,
    answer_bytes: u64,
    since: Instant,
    latest: Instant,
    /// Whether the client has sent something since the last octets of the answer.
    asked: bool,
    pace: Pace,
    backlog: Option<Backlog>,
    /// State of the arrivals at the last look.
    arrived: Arrivals,
    held_up_at: Option<Instant>,
}

/// Arrivals on a connection's subflows.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// Octets on all subflows, including duplicates.
    bytes: u64,
    /// Octets of the stream up to its first hole.
    in_order_bytes: u64,
    /// Octets that wait for a hole to be filled.
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

/// A backlog that has been large for some time.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    since: Instant,
    latest: Instant,
    pace: Pace,
}

/// The rate of a transfer.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since: Instant,
    since_bytes: u64,
    /// Maximum rate so far, octets per second.
    peak_rate: u64,
}

impl Pace {
    fn new(bytes: u64, now: Instant) -> Self {
        Self { since: now, since_bytes: bytes, peak_rate: 0 }
    }

    /// Notes the total number of octets.
    fn note(&mut self, bytes: u64, now: Instant) {
        let span = now.saturating_since(self.since);
        if span < RATE_SPAN {
            return;
        }
        let added = u128::from(bytes.saturating_sub(self.since_bytes));
        let rate = u64::try_from(added * 1_000_000_000 / u128::from(span.as_nanos())).unwrap_or(u64::MAX);
        *self = Self { since: now, since_bytes: bytes, peak_rate: self.peak_rate.max(rate) };
    }

    /// Returns whether more octets than a peer keeps would wait for a subflow with this round-trip time.
    fn blocks(&self, rtt: Duration) -> bool {
        u128::from(self.peak_rate) * u128::from(rtt.as_nanos()) > u128::from(KEPT_BYTES) * 1_000_000_000
    }
}

impl Bulk {
    /// Creates the state of a connection whose first subflow has this round-trip time.
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

    /// Notes octets that moved between client and server.
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

    /// Takes the connection's present statistics. To be called often while octets move.
    pub fn look(&mut self, stats: &ConnectionStats, now: Instant) {
        self.note_backlog(stats.written_bytes.saturating_sub(stats.acked_bytes), stats.acked_bytes, now);
        self.note_arrivals(Arrivals::of(stats), now);
    }

    /// Notes arrivals. If a hole holds them back from the client, or they are duplicates, nothing moves; the answer
    /// continues nevertheless.
    fn note_arrivals(&mut self, arrivals: Arrivals, now: Instant) {
        let before = core::mem::replace(&mut self.arrived, arrivals);
        let comes = arrivals.waiting_bytes > 0 || arrivals.bytes != before.bytes;
        if comes && arrivals.in_order_bytes == before.in_order_bytes {
            self.held_up_at = Some(now);
            self.latest = now;
        }
    }

    /// Returns when octets last waited or were duplicates while the stream stood still.
    pub fn held_up_at(&self) -> Option<Instant> {
        self.held_up_at
    }

    /// Notes the unacknowledged octets and the total of acknowledged ones.
    fn note_backlog(&mut self, backlog_bytes: u64, acked_bytes: u64, now: Instant) {
        self.backlog = (backlog_bytes >= HEAVY_BYTES).then(|| {
            let pace = Pace::new(acked_bytes, now);
            let mut backlog = self.backlog.unwrap_or(Backlog { since: now, latest: now, pace });
            backlog.pace.note(acked_bytes, now);
            Backlog { latest: now, ..backlog }
        });
    }

    /// Returns whether this is a download or an upload now, rather than small answers.
    pub fn is_heavy(&self) -> bool {
        self.answer_bytes >= HEAVY_BYTES || self.backlog.is_some()
    }

    /// Returns whether there is an answer or a backlog that may be worth another path.
    pub fn may_grow(&self) -> bool {
        self.answer_bytes >= SLOW_BYTES || self.backlog.is_some()
    }

    /// Returns whether the answer is so large that people wait for it.
    pub fn is_download(&self) -> bool {
        self.answer_bytes >= DOWNLOAD_BYTES
    }

    /// Returns whether a subflow with this least round-trip time should carry data, over an uplink with least
    /// round-trip time `base`.
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
        // First the arrivals of another subflow wait; then the hole stays and nothing arrives; then duplicates arrive.
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
        // 10 Mbit/s: 128 KiB arrive within 105 ms.
        assert!(!download(10, 103).is_worth(ms(80), ms(80)));
        assert!(download(10, 106).is_worth(ms(80), ms(80)));
        assert!(!download(10, 106).is_worth(ms(110), ms(110)));
        assert!(download(10, 111).is_worth(ms(110), ms(110)));
        assert!(download(10, 106).is_heavy() && !download(10, 106).is_download());
        assert!(!download(10, 418).is_download() && download(10, 419).is_download());
    }

    #[test]
    fn a_slow_answer_needs_it_though_it_is_small() {
        // 1 Mbit/s: 32 KiB arrive within 263 ms.
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
        // 30 Mbit/s for 600 ms are 2.25 MB, 20 Mbit/s are 1.5 MB: less than the 1.57 MB that a peer keeps.
        assert!(!download(30, 5000).is_worth(ms(600), ms(600)));
        assert!(download(20, 5000).is_worth(ms(600), ms(600)));
        assert!(download(30, 5000).is_worth(ms(300), ms(300)));
        // A slow start makes no difference.
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
