//! CUBIC (RFC 9438), on every subflow independently.
//!
//! ```text
//! W_cubic(t) = C * (t - K)^3 + W_max                                      section 4.2
//! K          = cbrt( (W_max - cwnd_epoch) / C )                           section 4.2
//! target     = W_cubic(t + RTT), between cwnd and 1.5 cwnd                section 4.2
//! W_est     += alpha_cubic * segments_acked / cwnd                        section 4.3, Reno-friendly region
//! ACK        cwnd = W_est                            if W_cubic(t) < W_est    section 4.3
//!            cwnd += (target - cwnd) / cwnd          per segment otherwise    sections 4.4, 4.5
//! loss       ssthresh = beta_cubic * cwnd                                 section 4.6
//!            W_max = cwnd, or cwnd * (1 + beta_cubic) / 2                 section 4.7, fast convergence
//!                    if cwnd is below the W_max before
//! RTO        the same ssthresh; then K = 0 and W_max = cwnd when congestion avoidance begins      section 4.8
//!
//! t              seconds since congestion avoidance began (t_epoch), without idle time (section 5.8) and without time
//!                limited by the application
//! cwnd_epoch     cwnd at t_epoch; W_est starts there
//! cwnd_prior     cwnd when ssthresh was last set
//! C              0.4 segments / s^3
//! beta_cubic     0.7
//! alpha_cubic    3 (1 - beta_cubic) / (1 + beta_cubic) = 9/17, and 1 once W_est reaches cwnd_prior
//! ```
//!
//! The last value is a parameter: RFC 8312, and judging by its behaviour Linux 6.18, keep 9/17 (0.5294) there, which is
//! less than NewReno gets at random losses.
//!
//! Windows are segments in units of 2^-24, time is in ticks of 2^-10 s. When segments change their size, windows keep
//! their octets, and if by more than 1/32, a new epoch begins. Section 4.6's FlightSize is `cwnd` here, which section
//! 4.6 allows if windows grow only while they are the limit. Section 4.9 (undoing a spurious reduction) needs a hook
//! that controllers do not have.

use units::narrow::u64_from;
use units::{Duration, Instant};

use super::arithmetic::{ONE_Q16, creditable_bytes, cube_root, grow_q16, mul_div, q16_from_f64, share_q16};
use super::{
    AckSample, CongestionController, Liberty, LossSample, Parameter, PathView, Paths, PerSubflow, Values, WindowStep,
};
use crate::SubflowId;

/// Segments in units of 2^-24: small fractions of a segment add up in `W_est`.
type SegmentsQ24 = u64;

/// Fractional bits of [`SegmentsQ24`].
const SEGMENT_BITS: u32 = 24;

/// Fractional bits of a tick; time cubed has three times as many.
const TICK_BITS: u32 = 10;

/// C in segments / s^3, in units of 2^-24.
const C_Q24: u64 = (4 << SEGMENT_BITS) / 10;

/// beta_cubic = 7/10.
const BETA_CUBIC: (u64, u64) = (7, 10);

/// (1 + beta_cubic) / 2 = 17/20.
const FAST_CONVERGENCE: (u64, u64) = (17, 20);

/// alpha_cubic = 9/17.
const ALPHA_CUBIC: (u64, u64) = (9, 17);

/// Beyond a quarter of an hour from K the cubic exceeds any window; the cube still fits 64 bits.
const CUBIC_TICKS_MAX: u64 = 1 << 20;

/// Options take less than this part of a segment.
const OPTION_SHARE: u64 = 32;

/// The parameter of CUBIC.
pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    name: "alpha",
    default: 1.0,
    values: Values::Above(0.0, 1.0),
    meaning: "alpha_cubic beyond the last loss; 0.5294 as RFC 8312",
}];

/// CUBIC on all subflows of a connection.
#[derive(Debug)]
pub struct Cubic {
    subflows: PerSubflow<CubicState>,
    /// alpha_cubic once `W_est` has reached `cwnd_prior`, in 2^-16.
    alpha_beyond_q16: u64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self { subflows: PerSubflow::default(), alpha_beyond_q16: ONE_Q16 }
    }
}

impl Cubic {
    /// Creates the controller. `alpha` in (0, 1]: segments that `W_est` gains per round trip once it has reached the
    /// window before the last loss.
    pub fn new(alpha: f64) -> Result<Self, String> {
        if !(alpha > 0.0 && alpha <= 1.0) {
            return Err(format!("alpha = {alpha} must be above 0 and at most 1"));
        }
        Ok(Self { alpha_beyond_q16: q16_from_f64(alpha).max(1), ..Self::default() })
    }
}

/// CUBIC's state of one subflow.
#[derive(Debug, Default)]
struct CubicState {
    /// Window before the last reduction, after fast convergence; `None` before the first loss and after a time-out.
    w_max: Option<SegmentsQ24>,
    /// `None` before the first congestion event.
    cwnd_prior: Option<SegmentsQ24>,
    /// The current stage of congestion avoidance; `None` until its first ACK.
    epoch: Option<Epoch>,
    /// Size of a segment, octets; zero before the first.
    mss: u32,
}

/// One stage of congestion avoidance.
#[derive(Debug)]
struct Epoch {
    t_epoch: Instant,
    k_ticks: u64,
    w_max: SegmentsQ24,
    w_est: SegmentsQ24,
    cwnd_prior: SegmentsQ24,
    /// Since this time the application, not the window, has been the limit.
    limited_by_application_since: Option<Instant>,
}

impl CongestionController for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn liberties(&self) -> &'static [Liberty] {
        &[Liberty::OutgrowsNewReno]
    }

    fn subflow_removed(&mut self, subflow: SubflowId, _paths: Paths<'_>) {
        self.subflows.remove(subflow);
    }

    fn on_idle(&mut self, subflow: SubflowId, idle: Duration) {
        self.subflows.get_mut(subflow).leave_out(idle);
    }

    fn on_unused_window(&mut self, subflow: SubflowId, now: Instant) {
        self.subflows.get_mut(subflow).pause(now);
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let state = self.subflows.get_mut(ack.subflow);
        if !ack.cwnd_limited {
            return WindowStep::ZERO;
        }
        let cwnd = segments(path.cwnd, path);
        state.adopt_mss(path.mss, cwnd);
        state.running_epoch(ack.now, cwnd).on_ack(ack, path, cwnd, self.alpha_beyond_q16)
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        let path = paths.get(loss.subflow);
        let cwnd = segments(path.cwnd, path);
        let state = self.subflows.get_mut(loss.subflow);
        state.adopt_mss(path.mss, cwnd);
        let w_max_before = state.epoch.take().map(|epoch| epoch.w_max).or(state.w_max);
        state.w_max = Some(match w_max_before {
            Some(before) if cwnd < before => mul_div(cwnd, FAST_CONVERGENCE.0, FAST_CONVERGENCE.1),
            _ => cwnd,
        });
        state.cwnd_prior = Some(cwnd);
        reduced(path)
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        let path = paths.get(subflow);
        let cwnd_prior = Some(segments(path.cwnd, path));
        *self.subflows.get_mut(subflow) = CubicState { w_max: None, cwnd_prior, epoch: None, mss: path.mss };
        reduced(path)
    }
}

impl CubicState {
    /// Takes over a changed segment size. The windows stay the same in octets. The curve grows in segments, so it begins
    /// anew, at the plateau if the present window `cwnd` is beyond it. A change by the length of an option does not
    /// matter to the curve.
    fn adopt_mss(&mut self, mss: u32, cwnd: SegmentsQ24) {
        let before = core::mem::replace(&mut self.mss, mss);
        if before == mss || before == 0 {
            return;
        }
        let rescale = |window: &mut SegmentsQ24| *window = mul_div(*window, before.into(), mss.into());
        self.w_max.iter_mut().chain(&mut self.cwnd_prior).for_each(rescale);
        if let Some(epoch) = &mut self.epoch {
            [&mut epoch.w_max, &mut epoch.w_est, &mut epoch.cwnd_prior].into_iter().for_each(rescale);
        }
        if u64::from(before.abs_diff(mss)) * OPTION_SHARE > u64::from(before) {
            let w_max = self.epoch.take().map(|epoch| epoch.w_max).or(self.w_max);
            self.w_max = w_max.map(|w_max| w_max.max(cwnd));
        }
    }

    /// Leaves idle time out of the epoch (section 5.8), unless its clock stands still anyway.
    fn leave_out(&mut self, idle: Duration) {
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| epoch.limited_by_application_since.is_none()) {
            epoch.t_epoch += idle;
        }
    }

    /// Stops the epoch's clock (section 4.2: `t` excludes time in which the window could not grow).
    fn pause(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.limited_by_application_since.get_or_insert(now);
        }
    }

    /// Returns the current epoch, which begins or resumes at `now` if necessary.
    fn running_epoch(&mut self, now: Instant, cwnd: SegmentsQ24) -> &mut Epoch {
        // Leaving slow start without a loss is like leaving it after a time-out (section 4.10): K = 0, W_max = cwnd.
        let (w_max, cwnd_prior) = (self.w_max.unwrap_or(cwnd), self.cwnd_prior.unwrap_or(cwnd));
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, w_max, cwnd_prior));
        if let Some(since) = epoch.limited_by_application_since.take() {
            epoch.t_epoch += now.saturating_since(since);
        }
        epoch
    }
}

impl Epoch {
    fn new(now: Instant, cwnd_epoch: SegmentsQ24, w_max: SegmentsQ24, cwnd_prior: SegmentsQ24) -> Self {
        Self {
            t_epoch: now,
            k_ticks: k_ticks(w_max, cwnd_epoch),
            w_max,
            w_est: cwnd_epoch,
            cwnd_prior,
            limited_by_application_since: None,
        }
    }

    fn on_ack(&mut self, ack: &AckSample, path: &PathView, cwnd: SegmentsQ24, alpha_beyond_q16: u64) -> WindowStep {
        let acked = creditable_bytes(ack, path);
        self.grow_w_est(segments(acked, path), cwnd, alpha_beyond_q16);
        let t = ack.now.saturating_since(self.t_epoch);
        let gained = if self.w_cubic(t) < self.w_est {
            // A layer above may have cut the window far below W_est: return to it no faster than slow start would.
            octets_q16(self.w_est.saturating_sub(cwnd), path).min(acked.saturating_mul(ONE_Q16))
        } else {
            let target = self.w_cubic(t + path.srtt.unwrap_or(Duration::ZERO)).clamp(cwnd, cwnd + cwnd / 2);
            share_q16(acked, octets_q16(target - cwnd, path), path.cwnd)
        };
        grow_q16(gained)
    }

    /// Section 4.3.
    fn grow_w_est(&mut self, segments_acked: SegmentsQ24, cwnd: SegmentsQ24, alpha_beyond_q16: u64) {
        let is_beyond = self.w_est >= self.cwnd_prior;
        let (numerator, denominator) = if is_beyond { (alpha_beyond_q16, ONE_Q16) } else { ALPHA_CUBIC };
        let gained = mul_div(segments_acked, numerator << SEGMENT_BITS, cwnd.saturating_mul(denominator));
        self.w_est = self.w_est.saturating_add(gained);
    }

    /// Section 4.2.
    fn w_cubic(&self, t: Duration) -> SegmentsQ24 {
        let t_ticks = mul_div(t.as_nanos(), 1 << TICK_BITS, 1_000_000_000);
        let distance = t_ticks.abs_diff(self.k_ticks).min(CUBIC_TICKS_MAX);
        let cube = u128::from(distance.pow(3));
        let offset = u64_from((cube * u128::from(C_Q24)) >> (3 * TICK_BITS));
        if t_ticks < self.k_ticks { self.w_max.saturating_sub(offset) } else { self.w_max.saturating_add(offset) }
    }
}

/// K of section 4.2, in ticks; 0 if the window is already there.
fn k_ticks(w_max: SegmentsQ24, cwnd_epoch: SegmentsQ24) -> u64 {
    cube_root(mul_div(w_max.saturating_sub(cwnd_epoch), 1 << (3 * TICK_BITS), C_Q24))
}

/// Section 4.6.
fn reduced(path: &PathView) -> u64 {
    mul_div(path.cwnd, BETA_CUBIC.0, BETA_CUBIC.1)
}

/// `octets` in segments of `path`.
fn segments(octets: u64, path: &PathView) -> SegmentsQ24 {
    // Half the range, so that 1.5 times a window still fits.
    mul_div(octets, 1 << SEGMENT_BITS, path.mss.into()).min(u64::MAX / 2)
}

/// Segments of `path` in 2^-16 octet.
fn octets_q16(segments: SegmentsQ24, path: &PathView) -> u64 {
    mul_div(segments, path.mss.into(), 1 << (SEGMENT_BITS - 16))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack_at, idle_ack, loss, path};
    use super::*;

    /// Segments gained by acknowledging one segment at `now_ms` with a window of `window` segments.
    fn gain(cubic: &mut Cubic, window: u64, now_ms: u64) -> f64 {
        cubic.on_ack(&ack_at(0, 1000, now_ms), Paths(&[path(0, window)])).as_q16() as f64 / 65_536_000.0
    }

    fn assert_close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "found {found}, expected {expected}");
    }

    /// CUBIC after a loss at 100 segments, in the epoch that begins at time zero with a window of 70.
    fn after_a_loss_at_100() -> Cubic {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.on_loss(&loss(0), Paths(&[path(0, 100)])), 70_000);
        gain(&mut cubic, 70, 0);
        cubic
    }

    #[test]
    fn the_plateau_is_where_the_loss_was() {
        // K = cbrt(30 / 0.4) = 4.2172 s.
        let mut cubic = after_a_loss_at_100();
        let epoch = cubic.subflows.get_mut(SubflowId(0)).epoch.as_ref().unwrap();
        assert_close(epoch.k_ticks as f64 / 1024.0, 4.2172, 1e-3);
        let w_cubic = |millis| epoch.w_cubic(Duration::from_millis(millis)) as f64 / (1 << 24) as f64;
        assert_close(w_cubic(0), 70.0, 0.03);
        assert_close(w_cubic(4217), 100.0, 1e-6);
        // 100 + 0.4 * 0.7828^3 = 100.1919.
        assert_close(w_cubic(5000), 100.1919, 2e-3);
    }

    #[test]
    fn the_concave_region_aims_one_round_trip_ahead() {
        // W_cubic(2.0 + 0.1) = 100 - 0.4 * 2.1172^3 = 96.2040; (96.2040 - 70) / 70 = 0.37434 segments.
        assert_close(gain(&mut after_a_loss_at_100(), 70, 2000), 0.37434, 2e-4);
    }

    #[test]
    fn the_convex_region_accelerates() {
        // W_cubic(6.1) = 100 + 0.4 * 1.8828^3 = 102.6698; (102.6698 - 101) / 101 = 0.016533.
        assert_close(gain(&mut after_a_loss_at_100(), 101, 6000), 0.016533, 2e-4);
    }

    #[test]
    fn the_target_is_at_most_half_a_window_away() {
        assert_close(gain(&mut after_a_loss_at_100(), 70, 60_000), 0.5, 1e-6);
    }

    #[test]
    fn above_the_curve_the_window_waits_for_it() {
        // W_cubic(1.1) = 100 - 0.4 * 3.1172^3 = 87.884 is below a window of 95, and so is W_est.
        assert_close(gain(&mut after_a_loss_at_100(), 95, 1000), 0.0, 1e-9);
    }

    #[test]
    fn a_second_loss_below_the_first_makes_room() {
        // Fast convergence: W_max = 80 * 0.85 = 68, cwnd_epoch = 56, K = cbrt(12 / 0.4) = 3.1072 s.
        let mut cubic = after_a_loss_at_100();
        assert_eq!(cubic.on_loss(&loss(0), Paths(&[path(0, 80)])), 56_000);
        gain(&mut cubic, 56, 0);
        let epoch = cubic.subflows.get_mut(SubflowId(0)).epoch.as_ref().unwrap();
        assert_close(epoch.w_max as f64 / (1 << 24) as f64, 68.0, 1e-5);
        assert_close(epoch.k_ticks as f64 / 1024.0, 3.1072, 1e-3);
    }

    #[test]
    fn small_windows_grow_like_reno() {
        // The epoch begins at 7 segments after a loss at 10: W_cubic stands still near 7 for milliseconds, so the
        // window follows W_est: 7 + (9/17) / 7 = 7.075630 after one segment, and as much again after another.
        let mut cubic = Cubic::default();
        cubic.on_loss(&loss(0), Paths(&[path(0, 10)]));
        assert_close(gain(&mut cubic, 7, 0), 0.075630, 1e-5);
        assert_close(gain(&mut cubic, 7, 1), 0.151261, 1e-5);
    }

    #[test]
    fn w_est_grows_by_a_whole_segment_per_round_trip_beyond_the_last_loss() {
        let mut cubic = Cubic::default();
        // No loss yet: cwnd_prior is the window at which slow start ended, and alpha_cubic is 1 from the start.
        assert_close(gain(&mut cubic, 10, 0), 0.1, 1e-5);
    }

    #[test]
    fn w_est_may_stay_as_slow_as_before() {
        // 0.5 / 10 of a segment, instead of 1 / 10.
        assert_close(gain(&mut Cubic::new(0.5).unwrap(), 10, 0), 0.05, 1e-5);
        assert!(Cubic::new(0.0).is_err() && Cubic::new(1.1).is_err() && Cubic::new(f64::NAN).is_err());
    }

    #[test]
    fn after_a_time_out_the_curve_starts_flat_from_where_slow_start_ends() {
        let mut cubic = after_a_loss_at_100();
        assert_eq!(cubic.on_rto(SubflowId(0), Instant::ZERO, Paths(&[path(0, 90)])), 63_000);
        gain(&mut cubic, 63, 10_000);
        // K = 0, W_max = 63: W_cubic(2.1) = 63 + 0.4 * 9.261 = 66.7044; 3.7044 / 63 = 0.058800.
        assert_close(gain(&mut cubic, 63, 12_000), 0.058800, 2e-4);
    }

    #[test]
    fn time_limited_by_the_application_does_not_count() {
        let mut cubic = after_a_loss_at_100();
        assert_eq!(cubic.on_ack(&idle_ack(0, 1000), Paths(&[path(0, 70)])), WindowStep::ZERO);
        cubic.on_unused_window(SubflowId(0), Instant::from_millis(1000));
        // Idle from 1 s to 31 s: at 32 s the curve stands where it would have stood at 2 s.
        gain(&mut cubic, 70, 31_000);
        assert_close(gain(&mut cubic, 70, 32_000), 0.37434, 2e-4);
    }

    /// The last segment of a burst fills the window, so no ACK says that the window is unused.
    #[test]
    fn idle_time_does_not_count() {
        let mut cubic = after_a_loss_at_100();
        gain(&mut cubic, 70, 1000);
        cubic.on_idle(SubflowId(0), Duration::from_secs(60));
        assert_close(gain(&mut cubic, 70, 62_000), 0.37434, 2e-4);
    }

    /// From 1 s to 31 s the application is the limit, of which it is idle for 20 s.
    #[test]
    fn idle_time_limited_by_the_application_is_left_out_once() {
        let mut cubic = after_a_loss_at_100();
        cubic.on_unused_window(SubflowId(0), Instant::from_millis(1000));
        cubic.on_idle(SubflowId(0), Duration::from_secs(20));
        gain(&mut cubic, 70, 31_000);
        assert_close(gain(&mut cubic, 70, 32_000), 0.37434, 2e-4);
    }

    /// A path that had little room in its packets: 480 octets. After a loss at 48,000 octets, packets have room for
    /// 1428. In these, W_max is 33.613 and the window 23.529, K = cbrt(10.084 / 0.4) = 2.9322 s, and 0.6 s later W_cubic
    /// is 33.613 - 0.4 * 2.3322^3 = 28.539: (28.539 - 23.529) / 23.529 = 0.2129.
    #[test]
    fn larger_segments_do_not_make_the_window_leap() {
        let mut cubic = Cubic::default();
        let view = |mss: u32, cwnd: u64| PathView { mss, cwnd, ..path(0, 0) };
        assert_eq!(cubic.on_loss(&loss(0), Paths(&[view(480, 48_000)])), 33_600);
        cubic.on_ack(&ack_at(0, 480, 0), Paths(&[view(480, 33_600)]));
        cubic.on_ack(&ack_at(0, 1428, 2000), Paths(&[view(1428, 33_600)]));
        let step = cubic.on_ack(&ack_at(0, 1428, 2500), Paths(&[view(1428, 33_600)]));
        assert_close(step.as_q16() as f64 / 65_536.0 / 1428.0, 0.2129, 1e-3);
    }

    /// On the plateau of 100,000 octets, segments shrink from 1000 to 850 octets: the window, now of 117.647 segments,
    /// is still on the plateau. 2.1 s later W_cubic has gained 0.4 * 2.1^3 = 3.704: 3.704 / 117.647 = 0.0315.
    #[test]
    fn smaller_segments_do_not_stop_the_window() {
        let mut cubic = after_a_loss_at_100();
        let small = [PathView { mss: 850, cwnd: 100_000, ..path(0, 0) }];
        cubic.on_ack(&ack_at(0, 850, 4217), Paths(&small));
        let step = cubic.on_ack(&ack_at(0, 850, 6217), Paths(&small));
        assert_close(step.as_q16() as f64 / 65_536.0 / 850.0, 0.0315, 1e-3);
    }

    /// Far beyond the plateau, an option takes four octets more from each segment: the window grows as before.
    #[test]
    fn an_option_more_does_not_end_the_growth() {
        let gain = |mss: u32| {
            let mut cubic = after_a_loss_at_100();
            // 12 s after K the window is on the curve: 100 + 0.4 * 12^3 = 791.2 segments.
            let view = PathView { mss, cwnd: 791_200, ..path(0, 0) };
            cubic.on_ack(&ack_at(0, mss.into(), 16_217), Paths(&[view]));
            cubic.on_ack(&ack_at(0, mss.into(), 17_217), Paths(&[view])).as_q16() as f64
        };
        let (before, now) = (gain(1000), gain(996));
        assert!(before > 0.0 && (now / before - 1.0).abs() < 0.03, "{before} {now}");
    }

    #[test]
    fn subflows_do_not_share_their_past() {
        let mut cubic = after_a_loss_at_100();
        let paths = [path(0, 70), path(1, 10)];
        let step = cubic.on_ack(&ack_at(1, 1000, 0), Paths(&paths));
        assert_close(step.as_q16() as f64 / 65_536_000.0, 0.1, 1e-5);
    }

    #[test]
    fn a_removed_subflow_is_forgotten() {
        let mut cubic = after_a_loss_at_100();
        cubic.subflow_removed(SubflowId(0), Paths(&[]));
        assert_eq!(cubic.subflows.iter().count(), 0);
    }
}
