//! BBR, version 1, on every subflow independently: sends at the bandwidth of the path, and keeps little more in flight
//! than the path holds.
//!
//! ```text
//! bw      = the largest of the last 10 rounds' rates, octets delivered / length
//! rtprop  = the smallest round-trip time of the last 10 s of sending; after 10 s of idle time, the next one
//! bdp     = bw * rtprop
//!
//! pacing rate = 0.99 pacing_gain * bw
//! quantum     = 1 MSS at less than 1.2 Mbit/s, 2 MSS at less than 24 Mbit/s, otherwise what is sent in 1 ms, at most
//!               64 KiB
//! cwnd        = cwnd_gain * bdp + 3 quantum, at least 4 MSS; 4 MSS in PROBE_RTT
//!
//! state      pacing_gain                        cwnd_gain   until
//! STARTUP    2 / ln 2                           2 / ln 2    bw has not grown by 1/4 in three rounds
//! DRAIN      ln 2 / 2                           2 / ln 2    in flight <= bdp + 3 quantum
//! PROBE_BW   5/4, 3/4, 1, 1, 1, 1, 1, 1 by turns     2      each for rtprop; rtprop older than 10 s: PROBE_RTT
//! PROBE_RTT  1                                    4 MSS     200 ms with 4 MSS in flight or less
//!
//! loss       nothing; after a time-out the window grows from one segment to cwnd
//! ```
//!
//! Without the quanta, a flow whose round trips are twice rtprop, because of the queues of others, would keep its window
//! whatever it is: flows that begin late would stay slow.
//!
//! Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control" (ACM Queue 2016) and
//! draft-cardwell-iccrg-bbr-congestion-control-00. This implementation acts only at the end of a round, and a round
//! yields one sample: the delivery rate of the segment that ends it. ACKs of a round shorter than half of rtprop came
//! in a clump and say nothing about the rate, so such a round becomes part of the next. Rounds limited by the
//! application count like others, without the time in which the subflow was idle. Rounds of PROBE_RTT count only if they
//! exceed bw: there may be more than 10 of them, in which the window is the limit. The first phase of PROBE_BW is not random but follows from the subflow's number.

use units::{Duration, Instant};

use super::arithmetic::{creditable_bytes, grow_q16, mul_div};
use super::{
    AckSample, CongestionController, DeliverySample, Liberty, LossSample, PathView, Paths, PerSubflow, WindowSet,
    WindowStep,
};
use crate::SubflowId;

const NANOS_PER_S: u64 = 1_000_000_000;

/// A gain as a fraction.
type Gain = (u64, u64);

/// 2 / ln 2.
const HIGH_GAIN: Gain = (2885, 1000);

/// ln 2 / 2.
const DRAIN_GAIN: Gain = (1000, 2885);

/// cwnd_gain of PROBE_BW.
const CWND_GAIN: Gain = (2, 1);

/// The gains that PROBE_BW cycles through.
const PACING_GAINS: [Gain; 8] = [(5, 4), (3, 4), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)];

/// Pacing a little below the estimate keeps queues from standing.
const PACING_MARGIN: Gain = (99, 100);

/// Rounds over which bw is the maximum.
const BANDWIDTH_ROUNDS: usize = 10;

/// Time for which a sample of rtprop is valid.
const RTPROP_AGE_MAX: Duration = Duration::from_secs(10);

/// Duration of PROBE_RTT.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// Quanta in flight beyond the bandwidth-delay product: at the sender, on the way, and as ACKs that are held back.
const QUANTA_IN_FLIGHT: u64 = 3;

/// Rates up to which a quantum has one segment, and two, octets/s.
const QUANTUM_RATES: [u64; 2] = [1_200_000 / 8, 24_000_000 / 8];

/// Largest quantum, octets.
const QUANTUM_BYTES_MAX: u64 = 64 << 10;

/// Smallest window, segments.
const CWND_MIN: u64 = 4;

/// Rounds without growth after which the pipe counts as full.
const FULL_ROUNDS: u32 = 3;

/// BBR on every subflow independently.
#[derive(Debug, Default)]
pub struct Bbr {
    subflows: PerSubflow<Flow>,
}

/// BBR's state of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    state: State,
    rates: Rates,
    rtprop: Rtprop,
    /// STARTUP: the bandwidth to exceed, and the number of rounds since it was last exceeded.
    full_bandwidth: u64,
    full_rounds: u32,
    /// Slowest pace, octets/s: the smallest window in every round trip, however little a bad period has delivered.
    slowest: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Startup,
    Drain,
    ProbeBw {
        turn: usize,
        since: Instant,
    },
    ProbeRtt {
        /// `None` until the flight is small.
        until: Option<Instant>,
    },
}

/// Delivery rates of the last rounds, octets/s.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    last: [u64; BANDWIDTH_ROUNDS],
    rounds: usize,
    delivered_bytes: u64,
    since: Option<Instant>,
}

impl Rates {
    /// bw.
    fn bandwidth(&self) -> u64 {
        self.last.into_iter().max().unwrap_or(0)
    }

    /// Ends a round that lasted at least `length_min`; returns false if the round continues. If the window was so small
    /// that it limited the rate, the round counts only if it is the fastest.
    fn end_round(&mut self, now: Instant, length_min: Duration, is_limited: bool) -> bool {
        if self.since.is_some_and(|since| now.saturating_since(since) < length_min) {
            return false;
        }
        let delivered_bytes = core::mem::take(&mut self.delivered_bytes);
        let length = self.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_since(since));
        if !length.is_zero() {
            let rate = mul_div(delivered_bytes, NANOS_PER_S, length.as_nanos());
            if !is_limited || rate >= self.bandwidth() {
                self.last[self.rounds % BANDWIDTH_ROUNDS] = rate;
                self.rounds += 1;
            }
        }
        true
    }

    /// Leaves a time in which nothing was sent out of the round under way.
    fn leave_out(&mut self, idle: Duration) {
        self.since = self.since.map(|since| since + idle);
    }
}

/// The smallest round-trip time, and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Rtprop {
    smallest: Option<(Duration, Instant)>,
    /// Idle time since then.
    idle: Duration,
}

impl Rtprop {
    fn sample(&mut self, rtt: Duration, now: Instant) {
        if self.smallest.is_none_or(|(smallest, _)| rtt <= smallest) {
            *self = Self { smallest: Some((rtt, now)), idle: Duration::ZERO };
        }
    }

    /// Leaves idle time out of the age: a flow that pauses would otherwise begin each burst by sending little. After as
    /// much of it as a sample is valid for, the next sample counts, whatever it is, since the path may have changed.
    fn leave_out(&mut self, idle: Duration) {
        let idle = self.idle + idle;
        *self = if idle > RTPROP_AGE_MAX {
            Self::default()
        } else {
            Self { smallest: self.smallest.map(|(smallest, at)| (smallest, at + (idle - self.idle))), idle }
        };
    }

    fn is_old(&self, now: Instant) -> bool {
        self.smallest.is_some_and(|(_, at)| now.saturating_since(at) > RTPROP_AGE_MAX)
    }
}

impl CongestionController for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn liberties(&self) -> &'static [Liberty] {
        &[Liberty::OutgrowsNewReno, Liberty::Leaps]
    }

    fn subflow_removed(&mut self, subflow: SubflowId, _paths: Paths<'_>) {
        self.subflows.remove(subflow);
    }

    fn on_idle(&mut self, subflow: SubflowId, idle: Duration) {
        let flow = self.subflows.get_mut(subflow);
        flow.rates.leave_out(idle);
        flow.rtprop.leave_out(idle);
    }

    fn on_delivery(&mut self, sample: &DeliverySample) {
        let flow = self.subflows.get_mut(sample.subflow);
        flow.rates.delivered_bytes = flow.rates.delivered_bytes.saturating_add(sample.delivered_bytes);
        if let Some(rtt) = sample.rtt {
            flow.rtprop.sample(rtt, sample.now);
        }
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let target = self.subflows.get_mut(ack.subflow).cwnd(path).unwrap_or(u64::MAX);
        grow_q16(creditable_bytes(ack, path).min(target.saturating_sub(path.cwnd)).saturating_mul(1 << 16))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        paths.get(loss.subflow).cwnd
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        paths.get(subflow).cwnd
    }

    fn on_round(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        let path = paths.get(subflow);
        let flow = self.subflows.get_mut(subflow);
        let rtprop = flow.rtprop.smallest.map_or(Duration::ZERO, |(rtprop, _)| rtprop);
        let is_limited = matches!(flow.state, State::ProbeRtt { .. });
        if !flow.rates.end_round(now, rtprop / 2, is_limited) {
            return None;
        }
        flow.slowest = path.srtt.map_or(0, |rtt| mul_div(least_cwnd(path), NANOS_PER_S, rtt.as_nanos()));
        flow.advance(path, now);
        let cwnd = flow.cwnd(path).filter(|_| !path.in_recovery)?;
        Some(WindowSet { cwnd, ssthresh: path.ssthresh })
    }

    fn pacing_rate_bytes_per_s(&self, subflow: SubflowId) -> Option<u64> {
        let (_, flow) = self.subflows.iter().find(|(id, _)| *id == subflow)?;
        (flow.rates.bandwidth() > 0).then(|| flow.pacing_rate().max(flow.slowest))
    }

    fn rules_slow_start(&self) -> bool {
        true
    }
}

/// Returns send_quantum (draft section 4.2.2), octets: what leaves at once at a pacing rate in octets/s.
pub(crate) fn send_quantum(rate_bytes_per_s: u64, mss: u32) -> u64 {
    let mss = u64::from(mss);
    match QUANTUM_RATES {
        [one, _] if rate_bytes_per_s < one => mss,
        [_, two] if rate_bytes_per_s < two => 2 * mss,
        _ => (rate_bytes_per_s / 1000).min(QUANTUM_BYTES_MAX),
    }
}

impl Flow {
    /// Returns bdp in octets, once there is a rate and a round-trip time.
    fn bdp(&self) -> Option<u64> {
        let (rtprop, _) = self.rtprop.smallest?;
        Some(mul_div(self.rates.bandwidth(), rtprop.as_nanos(), NANOS_PER_S)).filter(|bdp| *bdp > 0)
    }

    /// Returns the window for the current state, octets.
    fn cwnd(&self, path: &PathView) -> Option<u64> {
        let gain = match self.state {
            State::ProbeRtt { .. } => return Some(least_cwnd(path)),
            State::ProbeBw { .. } => CWND_GAIN,
            State::Startup | State::Drain => HIGH_GAIN,
        };
        Some(self.inflight(gain, path)?.max(least_cwnd(path)))
    }

    /// Returns `gain` times the bandwidth-delay product with the quanta beyond it (draft section 4.2.3.2), octets.
    fn inflight(&self, gain: Gain, path: &PathView) -> Option<u64> {
        Some(scaled(self.bdp()?, gain).saturating_add(QUANTA_IN_FLIGHT * send_quantum(self.pacing_rate(), path.mss)))
    }

    /// Returns the pacing rate, octets/s; zero before there is a sample.
    fn pacing_rate(&self) -> u64 {
        scaled(scaled(self.rates.bandwidth(), self.pacing_gain()), PACING_MARGIN)
    }

    fn pacing_gain(&self) -> Gain {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => DRAIN_GAIN,
            State::ProbeBw { turn, .. } => PACING_GAINS[turn],
            State::ProbeRtt { .. } => (1, 1),
        }
    }

    /// Updates the state at the end of a round.
    fn advance(&mut self, path: &PathView, now: Instant) {
        let Some(drained) = self.inflight((1, 1), path) else { return };
        if self.rtprop.is_old(now) && !matches!(self.state, State::ProbeRtt { .. }) {
            // Samples count from here on, whatever rtprop was before.
            self.rtprop = Rtprop::default();
            self.state = State::ProbeRtt { until: None };
        }
        match self.state {
            State::Startup => {
                if self.is_pipe_full() {
                    self.state = State::Drain;
                }
            }
            State::Drain if path.in_flight <= drained => {
                // Any phase but the second, which drains.
                let turn = (2 + usize::from(path.id.0) * 3) % PACING_GAINS.len();
                self.state = State::ProbeBw { turn: if turn == 1 { 2 } else { turn }, since: now };
            }
            State::Drain => {}
            State::ProbeBw { turn, since } => self.take_turns(turn, since, path.in_flight <= drained, now),
            State::ProbeRtt { until: None } => {
                if path.in_flight <= least_cwnd(path) {
                    self.state = State::ProbeRtt { until: Some(now + PROBE_RTT_DURATION) };
                }
            }
            State::ProbeRtt { until: Some(until) } if until <= now => {
                let is_full = self.full_rounds >= FULL_ROUNDS;
                self.state = if is_full { State::ProbeBw { turn: 2, since: now } } else { State::Startup };
            }
            State::ProbeRtt { .. } => {}
        }
    }

    fn is_pipe_full(&mut self) -> bool {
        let bandwidth = self.rates.bandwidth();
        if bandwidth >= scaled(self.full_bandwidth, (5, 4)) {
            (self.full_bandwidth, self.full_rounds) = (bandwidth, 0);
        } else {
            self.full_rounds += 1;
        }
        self.full_rounds >= FULL_ROUNDS
    }

    fn take_turns(&mut self, turn: usize, since: Instant, is_drained: bool, now: Instant) {
        let rtprop = self.rtprop.smallest.map_or(Duration::ZERO, |(rtprop, _)| rtprop);
        let is_over = now.saturating_since(since) >= rtprop || (turn == 1 && is_drained);
        if is_over {
            self.state = State::ProbeBw { turn: (turn + 1) % PACING_GAINS.len(), since: now };
        }
    }
}

/// Returns the smallest window, octets.
fn least_cwnd(path: &PathView) -> u64 {
    CWND_MIN * u64::from(path.mss).max(1)
}

fn scaled(value: u64, gain: Gain) -> u64 {
    mul_div(value, gain.0, gain.1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, ack, delivery, loss, path};
    use super::*;

    /// A path of 100 ms on which rounds deliver the given numbers of segments.
    struct World {
        bbr: Bbr,
        path: PathView,
        now_ms: u64,
    }

    impl World {
        fn new() -> Self {
            let mut world = Self { bbr: Bbr::default(), path: path(0, 10), now_ms: 0 };
            world.round(0);
            world
        }

        /// Runs a round of 100 ms that delivers `segments`; returns the window after it, in segments.
        fn round(&mut self, segments: u64) -> f64 {
            self.round_of(100, segments)
        }

        fn round_of(&mut self, length_ms: u64, segments: u64) -> f64 {
            self.now_ms += length_ms;
            let (now, rtt) = (Instant::from_millis(self.now_ms), self.path.srtt);
            self.bbr.on_delivery(&DeliverySample { now, rtt, ..delivery(0, segments * MSS) });
            if let Some(set) = self.bbr.on_round(SubflowId(0), now, Paths(&[self.path])) {
                self.path.cwnd = set.cwnd;
            }
            self.path.cwnd as f64 / MSS as f64
        }

        /// Returns the pacing rate in segments per round trip.
        fn paced(&self) -> f64 {
            self.bbr.pacing_rate_bytes_per_s(SubflowId(0)).unwrap_or(0) as f64 / 10.0 / MSS as f64
        }

        fn state(&mut self) -> State {
            self.bbr.subflows.get_mut(SubflowId(0)).state
        }

        /// Returns a world in PROBE_BW with 100 segments per round trip.
        fn probing() -> Self {
            let mut world = Self::new();
            for segments in [30, 90, 100, 100, 100, 100] {
                world.round(segments);
            }
            world.path.in_flight = 100 * MSS;
            world.round(100);
            assert!(matches!(world.state(), State::ProbeBw { .. }));
            world
        }
    }

    #[test]
    fn startup_grows_nearly_threefold_per_round_until_it_is_full() {
        let mut world = World::new();
        assert_eq!(world.paced(), 0.0, "nothing is known yet");
        assert_eq!(world.round(10), 34.85);
        assert!((world.paced() - 28.56).abs() < 0.01);
        assert_eq!(world.round(28), 86.78);
        world.round(100);
        // 100 is more than 1.25 * 28; then three rounds without growth.
        assert_eq!((world.round(100), world.state()), (294.5, State::Startup));
        world.round(101);
        assert_eq!(world.state(), State::Startup);
        world.path.in_flight = 250 * MSS;
        world.round(100);
        assert_eq!(world.state(), State::Drain);
        // 0.99 * 101 / 2.885.
        assert!((world.paced() - 34.66).abs() < 0.01, "{}", world.paced());
    }

    #[test]
    fn turns_probe_and_drain() {
        let mut world = World::probing();
        assert_eq!(world.round(100), 206.0);
        let mut rates: Vec<_> = (0..8)
            .map(|_| {
                world.round(100);
                world.paced().round()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        assert_eq!(rates, [74.0, 99.0, 99.0, 99.0, 99.0, 99.0, 99.0, 124.0]);
    }

    #[test]
    fn bandwidth_is_forgotten_after_ten_rounds() {
        let mut world = World::probing();
        for _ in 0..9 {
            assert_eq!(world.round(50), 206.0);
        }
        assert_eq!(world.round(50), 106.0);
    }

    /// All ACKs of a flight arrive within a microsecond, as in a cell: they do not measure its bandwidth.
    #[test]
    fn acks_in_a_clump_are_no_round() {
        let mut world = World::new();
        assert_eq!(world.round(10), 34.85);
        let now = Instant::from_millis(world.now_ms) + Duration::from_nanos(640);
        world.bbr.on_delivery(&DeliverySample { now, ..delivery(0, 5 * MSS) });
        assert!(world.bbr.on_round(SubflowId(0), now, Paths(&[world.path])).is_none());
        assert!((world.paced() - 28.56).abs() < 0.01, "{}", world.paced());
        assert_eq!(world.round(15), 63.7, "20 segments in 100 ms");
    }

    #[test]
    fn a_round_trip_time_of_ten_seconds_ago_is_measured_anew() {
        let mut world = World::probing();
        world.path.srtt = Some(Duration::from_millis(120));
        while world.now_ms < 10_800 {
            world.round(100);
        }
        assert!(matches!(world.state(), State::ProbeBw { .. }), "{:?}", world.state());
        world.round(100);
        assert_eq!((world.state(), world.path.cwnd), (State::ProbeRtt { until: None }, 4 * MSS));
        world.path.in_flight = 4 * MSS;
        world.round(4);
        world.round(4);
        assert_eq!((world.round(4), world.round(4)), (246.0, 246.0), "over 120 ms, at the bandwidth of before");
    }

    /// PROBE_RTT takes 200 ms: 20 rounds of a path of 10 ms.
    #[test]
    fn many_rounds_with_a_small_window_do_not_hide_the_bandwidth() {
        let mut world = World::probing();
        let before = world.bbr.subflows.get_mut(SubflowId(0)).rates.bandwidth();
        world.path.srtt = Some(Duration::from_millis(10));
        world.bbr.subflows.get_mut(SubflowId(0)).state = State::ProbeRtt { until: None };
        world.path.in_flight = 4 * MSS;
        for _ in 0..21 {
            world.round_of(10, 4);
        }
        assert!(matches!(world.state(), State::ProbeBw { .. }), "{:?}", world.state());
        assert_eq!(world.bbr.subflows.get_mut(SubflowId(0)).rates.bandwidth(), before);
    }

    #[test]
    fn idle_time_is_no_part_of_a_round() {
        let mut world = World::probing();
        for _ in 0..10 {
            world.bbr.on_idle(SubflowId(0), Duration::from_millis(900));
            world.round_of(1000, 100);
        }
        assert_eq!(world.paced().round(), 99.0);
    }

    /// Bursts that are further apart than rtprop is valid, with round-trip times that vary a little.
    #[test]
    fn idle_time_does_not_age_the_round_trip_time() {
        let mut world = World::probing();
        world.path.srtt = Some(Duration::from_millis(120));
        for _ in 0..5 {
            world.now_ms += 15_000;
            world.bbr.on_idle(SubflowId(0), Duration::from_secs(15));
            world.round(100);
            assert!(matches!(world.state(), State::ProbeBw { .. }), "{:?}", world.state());
        }
    }

    /// A phone changes to a slower cell while nothing is sent.
    #[test]
    fn a_longer_path_is_known_after_a_pause() {
        let mut world = World::probing();
        world.path.srtt = Some(Duration::from_millis(300));
        for _ in 0..2 {
            world.now_ms += 6000;
            world.bbr.on_idle(SubflowId(0), Duration::from_secs(6));
            world.round_of(300, 300);
        }
        let (rtprop, _) = world.bbr.subflows.get_mut(SubflowId(0)).rtprop.smallest.unwrap();
        assert_eq!(rtprop, Duration::from_millis(300));
        assert!(matches!(world.state(), State::ProbeBw { .. }), "{:?}", world.state());
    }

    /// The queues of others double the round-trip time: what the path holds is twice what bw and rtprop make of it.
    #[test]
    fn a_slow_flow_grows_beside_others() {
        let mut world = World::probing();
        world.path.srtt = Some(Duration::from_millis(200));
        let mut cwnd = 8.0;
        for _ in 0..30 {
            // The flow sends its window once in 200 ms, and sees rtprop now and then.
            world.now_ms += 100;
            world.bbr.subflows.get_mut(SubflowId(0)).rtprop.smallest =
                Some((Duration::from_millis(100), Instant::from_millis(world.now_ms)));
            cwnd = world.round(cwnd as u64);
        }
        assert!(cwnd > 50.0, "{cwnd}");
    }

    #[test]
    fn losses_do_not_matter() {
        let mut world = World::probing();
        assert_eq!(world.bbr.on_loss(&loss(0), Paths(&[world.path])), 206 * MSS);
        // After a time-out, the window grows by the octets acknowledged.
        let restarted = PathView { cwnd: MSS, ..world.path };
        assert_eq!(world.bbr.on_ack(&ack(0, MSS), Paths(&[restarted])), WindowStep::from_bytes(1000));
        assert_eq!(world.bbr.on_ack(&ack(0, MSS), Paths(&[world.path])), WindowStep::ZERO);
    }
}
