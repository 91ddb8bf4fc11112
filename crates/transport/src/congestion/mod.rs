//! Congestion control: one object per connection that sees all its subflows.
//!
//! Slow start, fast recovery and the window itself belong to the subflow. A controller must answer two questions:
//! how much the window of a subflow grows for an ACK in congestion avoidance, and where it falls to on a loss. It may
//! also say whether a round's measurements call for a correction, and more. It reads its siblings through [`Paths`] and
//! never writes to them.
//!
//! A new controller is one file, declared here, and one line in [`CONTROLLERS`].

mod aimd;
mod arithmetic;
mod balia;
mod bbr;
#[cfg(test)]
mod closed_forms;
mod competition;
mod contract;
mod coupled;
mod coupling;
mod cubic;
mod ewtcp;
#[cfg(test)]
mod floating_point;
mod gmcc_coop;
mod lia;
mod mcc_coop;
mod mean;
mod mpaimd;
mod mptcpw;
mod mpveno;
mod mveno;
mod newreno;
mod olia;
#[cfg(test)]
mod operation_fuzz;
mod per_subflow;
mod registry;
mod sharing;
#[cfg(test)]
mod testing;
mod veno;
mod westwood;
mod wvegas;

use units::{Duration, Instant};

pub use aimd::Aimd;
pub use balia::Balia;
pub use bbr::Bbr;
pub(crate) use bbr::send_quantum;
pub use competition::Competition;
pub use contract::{Liberty, Rule};
pub use coupled::Coupled;
pub use cubic::Cubic;
pub use ewtcp::Ewtcp;
pub use lia::Lia;
pub use mptcpw::MptcpW;
pub use mpveno::MpVeno;
pub use mveno::MVeno;
pub use newreno::NewReno;
pub use olia::Olia;
pub use per_subflow::PerSubflow;
/// A controller by name, with its parameters: `"lia"`, `"aimd(0.7,0.625)"`.
pub use policy::Spec as ControllerSpec;
pub use policy::{BuildError, Parameter, SpecError, Values};
pub use registry::{Build, Built, CONTROLLERS, Registration, build};
pub use veno::Veno;
pub use westwood::Westwood;
pub use wvegas::WVegas;

use crate::SubflowId;

/// Smallest threshold after a congestion event, in segments (RFC 5681 equation 4).
pub(crate) const SSTHRESH_MIN_SEGMENTS: u64 = 2;

/// A controller's view of one subflow. Windows count octets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The subflow.
    pub id: SubflowId,
    /// Maximum segment size, octets.
    pub mss: u32,
    /// Congestion window, octets.
    pub cwnd: u64,
    /// Slow start threshold, octets.
    pub ssthresh: u64,
    /// Octets sent and neither acknowledged nor deemed lost.
    pub in_flight: u64,
    /// Smoothed round-trip time (RFC 6298), once there is a sample.
    pub srtt: Option<Duration>,
    /// Latest round-trip time sample.
    pub latest_rtt: Option<Duration>,
    /// Smallest round-trip time sample of about the last 300 s: a sample that is not larger, or comes 300 s after the
    /// smallest one, replaces it. A controller that needs the smallest of the subflow's life, or another window, keeps
    /// its own from [`CongestionController::on_delivery`].
    pub min_rtt: Option<Duration>,
    /// Whether the window follows a reduction: a loss is being repaired, or a mark answered (ECN).
    pub in_recovery: bool,
    /// Competition at its relay, if the relay has reported it recently.
    pub competition: Option<Competition>,
}

impl PathView {
    /// Returns whether the window is below the slow start threshold (RFC 5681 section 3.1).
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// All established subflows of a connection, in order of creation.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a>(pub &'a [PathView]);

impl<'a> Paths<'a> {
    /// Every subflow.
    pub fn iter(&self) -> impl Iterator<Item = &'a PathView> + Clone {
        self.0.iter()
    }

    /// Returns the subflow named `id`.
    ///
    /// # Panics
    /// If there is none: the engine hands controllers only identifiers of subflows in the view.
    pub fn get(&self, id: SubflowId) -> &'a PathView {
        self.0.iter().find(|path| path.id == id).expect("the engine names a subflow in the view")
    }
}

/// An ACK that advanced the window of a subflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckSample {
    /// The subflow.
    pub subflow: SubflowId,
    /// Time of its arrival.
    pub now: Instant,
    /// Octets newly acknowledged, cumulatively.
    pub acked_bytes: u64,
    /// Round-trip time sample of this ACK, if it gave one.
    pub rtt: Option<Duration>,
    /// Whether the sender used its whole window. A controller that ignores this grows windows that nothing fills (RFC
    /// 7661).
    pub cwnd_limited: bool,
}

/// What an ACK showed about its path, whatever the state of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliverySample {
    /// The subflow.
    pub subflow: SubflowId,
    /// Time of the ACK's arrival.
    pub now: Instant,
    /// Octets that the ACK showed to have arrived, in order or not.
    pub delivered_bytes: u64,
    /// Its round-trip time sample, if it gave one.
    pub rtt: Option<Duration>,
}

/// Why a window must shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// SACK, RACK or duplicate ACKs found a loss.
    Loss,
    /// The peer echoed congestion experienced (RFC 3168).
    EcnEcho,
}

/// A congestion event on a subflow; at most one per window of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossSample {
    /// The subflow.
    pub subflow: SubflowId,
    /// Time of its detection.
    pub now: Instant,
    /// The signal that showed it.
    pub signal: CongestionSignal,
    /// Octets deemed lost so far.
    pub lost_bytes: u64,
}

/// A change of a window in units of 2^-16 octet, so that small growth per ACK does not round to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct WindowStep(i64);

impl WindowStep {
    /// No change.
    pub const ZERO: Self = Self(0);

    /// Creates a change of `q16` units of 2^-16 octet.
    pub const fn from_q16(q16: i64) -> Self {
        Self(q16)
    }

    /// Creates a change of whole octets.
    pub const fn from_bytes(bytes: i64) -> Self {
        Self(bytes << 16)
    }

    /// Creates a change of `octets`, rounded to 2^-16.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that does not fit gives the nearest integer that does"
    )]
    pub fn from_f64(octets: f64) -> Self {
        Self((octets * 65536.0) as i64)
    }

    /// Returns the change in units of 2^-16 octet.
    pub const fn as_q16(self) -> i64 {
        self.0
    }
}

/// A correction at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSet {
    /// New congestion window, octets.
    pub cwnd: u64,
    /// New slow start threshold, octets.
    pub ssthresh: u64,
}

/// A congestion controller. The engine calls it only with subflows that are in `paths`.
///
/// Its side of the contract, which the fuzzer of all controllers (`operation_fuzz.rs`) checks for each registered name:
///
/// 1. Nothing panics or overflows, whatever the order of the calls and the numbers in the views: a segment of 0 octets,
///    a window of 0 or `u64::MAX`, a round-trip time of zero. The helpers in `arithmetic.rs` take care of that.
/// 2. [`Self::on_ack`] never shrinks the window ([`Rule::AckTakesNothing`]), and makes it grow by at most a segment per
///    window, as NewReno does ([`Rule::AckGainsASegment`], RFC 6356 goal 2, for a path on its own).
/// 3. [`Self::on_ack`] changes nothing unless [`AckSample::cwnd_limited`] ([`Rule::UnusedWindowStays`]).
/// 4. [`Self::on_loss`] and [`Self::on_rto`] return at most the present window ([`Rule::LossRaisesNothing`],
///    [`Rule::TimeoutRaisesNothing`]).
/// 5. [`Self::on_round`] raises the window by at most two segments ([`Rule::RoundGainsTwoSegments`]).
///
/// A controller whose source asks for something else says so by [`Self::liberties`]. The engine does not rely on the
/// contract: it keeps every window between a segment and 2^40 octets, whatever the answer.
pub trait CongestionController: Send {
    /// Returns the name under which it is registered.
    fn name(&self) -> &'static str;

    /// A subflow was established; `paths` already holds it.
    fn subflow_added(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        let _ = (subflow, paths);
    }

    /// A subflow is gone; `paths` no longer holds it.
    fn subflow_removed(&mut self, subflow: SubflowId, paths: Paths<'_>) {
        let _ = (subflow, paths);
    }

    /// An ACK showed that data had arrived, or measured the round-trip time. Called before anything else that the ACK
    /// causes, in slow start and recovery as well.
    fn on_delivery(&mut self, sample: &DeliverySample) {
        let _ = sample;
    }

    /// An ACK arrived that is the first for data before which nothing was outstanding for a time of `idle`. Called
    /// before anything else that the ACK causes.
    fn on_idle(&mut self, subflow: SubflowId, idle: Duration) {
        let _ = (subflow, idle);
    }

    /// An ACK arrived while the application, not the window, was the limit: nothing grows.
    fn on_unused_window(&mut self, subflow: SubflowId, now: Instant) {
        let _ = (subflow, now);
    }

    /// Returns the growth of the acknowledged subflow's window; called in congestion avoidance only.
    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep;

    /// Returns the slow start threshold, in octets, to which the window falls. The engine keeps it at
    /// [`Self::ssthresh_min_segments`] or above.
    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64;

    /// Returns the slow start threshold, in octets, after a retransmission time-out (RFC 5681 equation 4). The engine
    /// itself sets the window to one segment, and does not ask again while the same window of data stays
    /// unacknowledged.
    ///
    /// The default halves `cwnd`, not `in_flight`: when the timer fires, most of the flight may be deemed lost already.
    fn on_rto(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> u64 {
        let _ = now;
        paths.get(subflow).cwnd / 2
    }

    /// Returns the smallest threshold that a congestion event leaves, in segments, at least one: two (RFC 5681 equation
    /// 4), unless the controller's source says otherwise.
    fn ssthresh_min_segments(&self, paths: Paths<'_>) -> u64 {
        let _ = paths;
        SSTHRESH_MIN_SEGMENTS
    }

    /// A round of `subflow` ended: all data that were in flight when it began are acknowledged. Returns a correction, if
    /// there is one. The engine keeps the window at one segment or above and the threshold at two.
    fn on_round(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> Option<WindowSet> {
        let _ = (subflow, now, paths);
        None
    }

    /// Returns the pacing rate of `subflow`, octets of payload per second; `None` leaves the timing to ACKs. The engine
    /// asks after every [`Self::on_round`]. However low the rate is, a segment leaves every minute, or every quarter of
    /// the user time-out if that is less: at least as often as retransmissions do.
    fn pacing_rate_bytes_per_s(&self, subflow: SubflowId) -> Option<u64> {
        let _ = subflow;
        None
    }

    /// Returns whether [`Self::on_ack`] also wants the ACKs of slow start, whose growth it then decides as well.
    fn rules_slow_start(&self) -> bool {
        false
    }

    /// Returns the rules of the contract that the controller breaks on purpose.
    fn liberties(&self) -> &'static [Liberty] {
        &[]
    }
}

/// Methods that the engine calls instead of the bare ones: the threshold after a congestion event, kept at or above the
/// minimum.
impl dyn CongestionController + '_ {
    /// Takes over from another controller: the new one learns of every subflow as if they had been established one
    /// after the other.
    pub(crate) fn take_over(&mut self, paths: Paths<'_>) {
        for (position, path) in paths.iter().enumerate() {
            self.subflow_added(path.id, Paths(&paths.0[..=position]));
        }
    }

    /// Returns the threshold of [`CongestionController::on_loss`], octets.
    pub(crate) fn ssthresh_after_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.on_loss(loss, paths).max(self.ssthresh_min_bytes(loss.subflow, paths))
    }

    /// Returns the threshold of [`CongestionController::on_rto`], octets.
    pub(crate) fn ssthresh_after_timeout(&mut self, subflow: SubflowId, now: Instant, paths: Paths<'_>) -> u64 {
        self.on_rto(subflow, now, paths).max(self.ssthresh_min_bytes(subflow, paths))
    }

    fn ssthresh_min_bytes(&self, subflow: SubflowId, paths: Paths<'_>) -> u64 {
        self.ssthresh_min_segments(paths).max(1).saturating_mul(u64::from(paths.get(subflow).mss))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{loss, path};
    use super::*;

    /// Returns the thresholds in octets after a loss and after a time-out on a path of `segments`, alone and beside
    /// another.
    fn thresholds(name: &str, segments: u64) -> [u64; 4] {
        let mut controller = build(&ControllerSpec::named(name)).unwrap();
        let both = [path(0, segments), path(1, 1)];
        let (alone, both) = (Paths(&both[..1]), Paths(&both));
        [
            controller.ssthresh_after_loss(&loss(0), alone),
            controller.ssthresh_after_loss(&loss(0), both),
            controller.ssthresh_after_timeout(SubflowId(0), Instant::ZERO, alone),
            controller.ssthresh_after_timeout(SubflowId(0), Instant::ZERO, both),
        ]
    }

    /// A controller that asks for unlimited windows.
    struct Boundless;

    impl CongestionController for Boundless {
        fn name(&self) -> &'static str {
            "boundless"
        }

        fn on_ack(&mut self, _: &AckSample, _: Paths<'_>) -> WindowStep {
            WindowStep::default()
        }

        fn on_loss(&mut self, _: &LossSample, _: Paths<'_>) -> u64 {
            0
        }

        fn ssthresh_min_segments(&self, _: Paths<'_>) -> u64 {
            u64::MAX
        }
    }

    #[test]
    fn a_least_threshold_beyond_all_numbers_is_the_largest() {
        let paths = [path(0, 10)];
        let controller: &mut dyn CongestionController = &mut Boundless;
        assert_eq!(controller.ssthresh_after_loss(&loss(0), Paths(&paths)), u64::MAX);
    }

    #[test]
    fn thresholds_stay_above_two_segments_or_above_one_where_drafts_say_so() {
        // Half of 3 segments, and of 1.
        for name in ["newreno", "uncoupled", "lia", "cubic", "ewtcp", "veno", "mpveno"] {
            assert_eq!(thresholds(name, 1), [2000; 4], "{name}");
        }
        for name in ["olia", "balia"] {
            assert_eq!(thresholds(name, 1), [2000, 1000, 2000, 1000], "{name}");
        }
        assert_eq!(thresholds("lia", 3), [2000; 4]);
        assert_eq!(thresholds("olia", 3), [2000, 1500, 2000, 1500]);
        assert_eq!(thresholds("olia", 20), [10_000; 4]);
    }
}
