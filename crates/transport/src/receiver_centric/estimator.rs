//! The desired sending rate estimator (DSRor) of one path, at the receiver of data (section 4.1).
//!
//! At the end of each round it takes a sample
//!
//! ```text
//! s = max( n * P / T, W * P / rtt )                          octets/s
//!
//!   n  packets received in the round      P  their mean payload, octets
//!   T  duration of the round              W  the emulated window, packets
//! ```
//!
//! The paper prints `P / (n * RTT)`, which falls as more packets arrive. `n * P` over the round's duration is the
//! arrival rate. W lets the rate rise above it: a rate that only follows arrivals never finds more.
//!
//! A report is due when the first packet arrives, when the rate seen in a round differs from the last wish, one rtt
//! after the start of a round, and one retransmission time-out after a report without an answer.
//!
//! A path is silent if nothing arrives for a retransmission time-out. What happened in the round until then says nothing
//! about the path, because the sender may have had nothing to send: a round begins with the first packet after it, and a
//! report is due.

use units::narrow::low_u32;
use units::{Duration, Instant, SeqNr};
use wire::mptcp::{PathId, Round};

use super::emulated_window::{EmulatedWindow, Place};
use super::rate::SmoothedRate;
use super::round_clock::RoundClock;
use super::{Reading, ReceiverCentric};

/// Minimum interval between reports, even if a peer guesses rounds.
const REPORT_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Data of a path, with the round that they carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaggedData {
    pub(crate) round: Round,
    /// Subflow sequence number of the first octet.
    pub(crate) seq: SeqNr,
    pub(crate) bytes: u32,
    /// Largest payload of one packet. More data arrived as several packets.
    pub(crate) packet_bytes: u32,
}

/// Content of a report, without the blocks held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) path: PathId,
    pub(crate) round: u8,
    pub(crate) timestamp_ms: u32,
    pub(crate) desired_bytes_per_s: u32,
}

/// Arrivals since the round began.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u32,
    bytes: u64,
    missing_bytes: u64,
}

/// One path's estimator.
#[derive(Debug)]
pub(crate) struct RateEstimator {
    settings: ReceiverCentric,
    clock: RoundClock,
    window: EmulatedWindow,
    rate: SmoothedRate,
    path: Option<PathId>,
    /// End of the highest octets that arrived.
    highest: Option<SeqNr>,
    /// First missing octet of the watched hole, below `highest`.
    hole: Option<SeqNr>,
    tally: Tally,
    round_started_at: Instant,
    report_due: bool,
    reported_at: Option<Instant>,
    reported_bytes_per_s: f64,
    /// When the next report is due in any case.
    report_timer: Instant,
    /// When the path counts as silent.
    silence_timer: Instant,
}

impl RateEstimator {
    /// `rto_min` is that of the connection.
    pub(crate) fn new(settings: ReceiverCentric, rto_min: Duration) -> Self {
        Self {
            settings,
            clock: RoundClock::new(settings.rtt_old_eighths, rto_min),
            window: EmulatedWindow::new(),
            rate: SmoothedRate::new(settings.lossy_weight),
            path: None,
            highest: None,
            hole: None,
            tally: Tally::default(),
            round_started_at: Instant::ZERO,
            report_due: false,
            reported_at: None,
            reported_bytes_per_s: 0.0,
            report_timer: Instant::FAR_FUTURE,
            silence_timer: Instant::FAR_FUTURE,
        }
    }

    /// Takes data that arrived within the subflow's window.
    pub(crate) fn on_data(&mut self, data: &TaggedData, now: Instant) {
        self.note_silence(now);
        if self.is_silent() {
            self.begin_anew(now);
        }
        if self.path.replace(data.round.path) != Some(data.round.path) && self.reported_at.is_none() {
            self.round_started_at = now;
            self.report_due = true;
        }
        if self.clock.on_packet(data.round.id, now) {
            self.end_round(now);
        }
        let packets = data.bytes.div_ceil(data.packet_bytes.max(1));
        let place = self.place(data.seq, data.seq + data.bytes);
        self.window.on_packets(place, packets);
        self.tally.packets = self.tally.packets.saturating_add(packets);
        self.tally.bytes += u64::from(data.bytes);
        self.silence_timer = now + self.clock.rto();
    }

    /// Whether nothing has arrived for a retransmission time-out since the last data.
    fn is_silent(&self) -> bool {
        self.path.is_some() && self.silence_timer == Instant::FAR_FUTURE
    }

    fn note_silence(&mut self, now: Instant) {
        if self.silence_timer <= now {
            self.silence_timer = Instant::FAR_FUTURE;
            self.clock.on_silence();
            self.window.on_time_out();
        }
    }

    /// Begins a round with the first packet after silence.
    fn begin_anew(&mut self, now: Instant) {
        self.clock.forget_reports();
        self.tally = Tally::default();
        self.round_started_at = now;
        self.report_due = true;
    }

    fn place(&mut self, start: SeqNr, end: SeqNr) -> Place {
        let highest = self.highest.unwrap_or(start);
        self.highest = Some(highest.max(end));
        if start.after(highest) {
            self.hole.get_or_insert(highest);
            self.tally.missing_bytes += u64::from(start.since(highest));
            return Place::BehindHole;
        }
        if start == highest {
            return Place::InOrder;
        }
        let fills = self.hole.take_if(|hole| start.before_or_at(*hole) && end.after(*hole)).is_some();
        if fills { Place::FillsHole } else { Place::Old }
    }

    /// Samples the round that ended. The first packet of the next round has arrived.
    fn end_round(&mut self, now: Instant) {
        let tally = core::mem::take(&mut self.tally);
        let lasted = now.saturating_since(self.round_started_at);
        self.round_started_at = now;
        let Some(rtt) = self.clock.rtt() else { return };
        if tally.packets > 0 && !lasted.is_zero() {
            self.sample(tally, lasted, rtt);
        }
        self.window.on_round();
        self.report_timer = now + rtt;
    }

    fn sample(&mut self, tally: Tally, lasted: Duration, rtt: Duration) {
        let seen_bytes_per_s = tally.bytes as f64 / lasted.as_secs_f64();
        let packet_bytes = tally.bytes as f64 / f64::from(tally.packets);
        let window_bytes_per_s = self.window.packets() * packet_bytes / rtt.as_secs_f64();
        let lost_share = tally.missing_bytes as f64 / (tally.missing_bytes + tally.bytes) as f64;
        let sample_bytes_per_s = match self.settings.reading {
            Reading::Build => seen_bytes_per_s.max(window_bytes_per_s),
            Reading::Paper => packet_bytes / (f64::from(tally.packets) * rtt.as_secs_f64()),
        };
        self.rate.on_sample(sample_bytes_per_s, lost_share >= self.settings.lossy_share);
        let change = (seen_bytes_per_s - self.reported_bytes_per_s).abs();
        self.report_due |= change > self.settings.report_change * self.reported_bytes_per_s;
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.report_timer.min(self.silence_timer)
    }

    /// Handles expired timers.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.note_silence(now);
        if self.report_timer <= now {
            self.report_timer = Instant::FAR_FUTURE;
            self.report_due = true;
        }
    }

    /// Whether a report is due.
    pub(crate) fn is_report_due(&self, now: Instant) -> bool {
        self.report_due && self.reported_at.is_none_or(|at| now.saturating_since(at) >= REPORT_INTERVAL_MIN)
    }

    /// Builds the report to send now.
    pub(crate) fn report(&mut self, now: Instant) -> Option<Wish> {
        let path = self.path?;
        let desired = self.rate.smoothed().unwrap_or(0.0);
        self.report_due = false;
        self.reported_at = Some(now);
        self.reported_bytes_per_s = desired;
        // Report silence only once: reports to a sender without data would never end.
        self.report_timer = if self.is_silent() { Instant::FAR_FUTURE } else { now + self.clock.rto() };
        let round = self.clock.on_report(now);
        let timestamp_ms = low_u32(now.as_millis());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates: more than 34 Gbit/s is said as that"
        )]
        let desired_bytes_per_s = desired as u32;
        Some(Wish { path, round, timestamp_ms, desired_bytes_per_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn packet(round: u8, number: u32) -> TaggedData {
        let round = Round { path: PathId::new(2).unwrap(), id: round };
        TaggedData { round, seq: SeqNr(u32::MAX - 1500) + number * PACKET, bytes: PACKET, packet_bytes: PACKET }
    }

    fn estimator() -> RateEstimator {
        RateEstimator::new(ReceiverCentric::default(), Duration::from_millis(200))
    }

    /// Ten packets, a report at 0 ms, its answer at 100 ms: 10 packets arrived in 100 ms, and slow start wants 20, so
    /// the rate is 20 kB in 100 ms.
    #[test]
    fn the_first_round_gives_rtt_and_rate() {
        let mut estimator = estimator();
        estimator.on_data(&packet(0, 0), at(0));
        assert!(estimator.is_report_due(at(0)));
        let wish = estimator.report(at(0)).unwrap();
        assert_eq!((wish.path.number(), wish.round, wish.desired_bytes_per_s), (2, 1, 0), "no rate yet");
        for number in 1..10 {
            estimator.on_data(&packet(0, number), at(10 * u64::from(number)));
        }
        estimator.on_data(&packet(1, 10), at(100));
        assert!(estimator.is_report_due(at(100)));
        let wish = estimator.report(at(100)).unwrap();
        assert_eq!((wish.round, wish.timestamp_ms, wish.desired_bytes_per_s), (2, 100, 200_000));
        assert_eq!(estimator.next_timeout(), at(400), "rtt 100 ms, rto 300 ms");
    }

    /// The wish was 200 kB/s. The next round brings 20 packets in 100 ms, so no report is due before an rtt has passed.
    #[test]
    fn a_sender_that_obeys_is_told_again_after_an_rtt() {
        let mut estimator = estimator();
        estimator.on_data(&packet(0, 0), at(0));
        estimator.report(at(0));
        (1..10).for_each(|number| estimator.on_data(&packet(0, number), at(10 * u64::from(number))));
        estimator.on_data(&packet(1, 10), at(100));
        estimator.report(at(100));
        (11..30).for_each(|number| estimator.on_data(&packet(1, number), at(150)));
        estimator.on_data(&packet(2, 30), at(200));
        assert!(!estimator.is_report_due(at(200)), "20 packets in 100 ms are what was wanted");
        assert_eq!(estimator.next_timeout(), at(300));
        estimator.on_timeout(at(300));
        assert!(estimator.is_report_due(at(300)));
    }

    /// One packet of 1000 octets, over ten of them in 100 ms each: 1 kB/s.
    #[test]
    fn as_printed_more_packets_mean_a_lower_rate() {
        let mut estimator = RateEstimator::new(ReceiverCentric::AS_PRINTED, Duration::from_millis(200));
        estimator.on_data(&packet(0, 0), at(0));
        estimator.report(at(0));
        (1..10).for_each(|number| estimator.on_data(&packet(0, number), at(10 * u64::from(number))));
        estimator.on_data(&packet(1, 10), at(100));
        assert_eq!(estimator.report(at(100)).unwrap().desired_bytes_per_s, 1000);
    }

    #[test]
    fn a_report_without_an_answer_is_repeated_until_the_path_is_silent() {
        let mut estimator = estimator();
        estimator.on_data(&packet(0, 0), at(0));
        estimator.report(at(0));
        assert_eq!(estimator.next_timeout(), at(1000));
        estimator.on_timeout(at(1000));
        assert_eq!(estimator.report(at(1000)).unwrap().round, 2);
        assert_eq!(estimator.next_timeout(), Instant::FAR_FUTURE, "nobody is there");
        estimator.on_data(&packet(2, 1), at(5000));
        assert!(estimator.next_timeout() < Instant::FAR_FUTURE);
    }

    /// Rounds of ten packets in 100 ms, until the sender pauses for 5 s. The pause is neither a round-trip time nor part
    /// of a round.
    #[test]
    fn a_pause_of_the_sender_says_nothing_about_the_path() {
        let mut estimator = estimator();
        let mut wish = None;
        for (start_ms, round, number) in [(0, 0, 0), (100, 1, 10), (200, 2, 20), (300, 3, 30)] {
            for packet_ms in (0..10_u8).map(|packet| 10 * packet) {
                let arrives = at(start_ms + u64::from(packet_ms));
                estimator.on_timeout(arrives);
                estimator.on_data(&packet(round, number + u32::from(packet_ms) / 10), arrives);
                wish = wish.filter(|_| packet_ms > 0).or_else(|| estimator.report(arrives));
            }
        }
        let (rtt, rate) = (estimator.clock.rtt(), wish.unwrap().desired_bytes_per_s);
        assert_eq!((rtt, wish.unwrap().round), (Some(Duration::from_millis(100)), 4));
        // Nobody calls `on_timeout`, as if packet and timer came together.
        estimator.on_data(&packet(4, 40), at(5400));
        assert!(estimator.is_report_due(at(5400)), "a report measures anew");
        assert_eq!((estimator.clock.rtt(), estimator.clock.rto()), (rtt, Duration::from_millis(600)), "doubled");
        let wish = estimator.report(at(5400)).unwrap();
        assert_eq!((wish.round, wish.desired_bytes_per_s), (5, rate), "the rate of before");
        (41..50).for_each(|number| estimator.on_data(&packet(4, number), at(5410)));
        estimator.on_data(&packet(5, 50), at(5500));
        assert_eq!((estimator.clock.rtt(), estimator.clock.rto()), (rtt, Duration::from_millis(300)));
        let seen = 10.0 * f64::from(PACKET) / 0.1;
        assert!(f64::from(estimator.report(at(5500)).unwrap().desired_bytes_per_s) >= seen);
    }

    /// A round trip takes 3 s, longer than the first time-out: a flight of packets arrives every 3 s.
    #[test]
    fn a_path_that_is_longer_than_the_time_out_is_measured() {
        let mut estimator = estimator();
        let mut answers = 0;
        for flight in 0..5 {
            let now = at(3000 * u64::from(flight));
            (0..4).for_each(|ms| estimator.on_timeout(at((3000 * u64::from(flight)).saturating_sub(3000 - 1000 * ms))));
            estimator.on_data(&packet(answers, flight), now);
            // The next flight answers this report.
            answers = if estimator.is_report_due(now) { estimator.report(now).unwrap().round } else { answers };
        }
        assert_eq!(estimator.clock.rtt(), Some(Duration::from_secs(3)));
    }

    #[test]
    fn holes_are_seen_across_the_wrap_of_sequence_numbers() {
        let mut estimator = estimator();
        let places: Vec<Place> = [0, 1, 4, 5, 2, 3, 6]
            .map(|number| packet(0, number))
            .iter()
            .map(|data| estimator.place(data.seq, data.seq + data.bytes))
            .collect();
        use Place::{BehindHole, FillsHole, InOrder, Old};
        assert_eq!(places, [InOrder, InOrder, BehindHole, InOrder, FillsHole, Old, InOrder]);
        assert_eq!(estimator.tally.missing_bytes, 2000);
    }

    #[test]
    fn guessed_rounds_provoke_no_flood() {
        let mut estimator = estimator();
        let (mut reports, mut round) = (0, 0);
        for i in 0..100_000 {
            let now = Instant::from_nanos(u64::from(i) * 1000);
            estimator.on_timeout(now);
            estimator.on_data(&packet(round, i), now);
            if estimator.is_report_due(now) {
                round = estimator.report(now).unwrap().round;
                reports += 1;
            }
        }
        assert!((10..=100).contains(&reports), "{reports} reports in 100 ms");
    }
}
