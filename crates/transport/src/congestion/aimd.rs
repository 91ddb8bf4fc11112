//! AIMD(alpha, beta): additive increase, multiplicative decrease with any strength.
//!
//! ```text
//! ACK    cwnd += alpha * acked * SMSS / cwnd        alpha SMSS per round trip
//! loss   ssthresh = beta * cwnd                     also after a retransmission time-out
//!
//! alpha   segments gained per round trip, dimensionless; 1 is NewReno
//! beta    what a loss leaves of the window, in (0, 1); 1/2 is NewReno
//! cwnd, acked, SMSS as in newreno.rs
//! ```
//!
//! Source: Yang and Lam, "General AIMD Congestion Control" (ICNP 2000). It is as aggressive as NewReno if alpha = 3
//! (1 - beta) / (1 + beta). AIMD(0.7, 0.625) satisfies this, and its window varies less.

use units::Instant;

use super::arithmetic::{ONE_Q16, creditable_bytes, grow_q16, mul_div, q16_from_f64, share_q16};
use super::{AckSample, CongestionController, Liberty, LossSample, Parameter, Paths, Values, WindowStep};
use crate::SubflowId;

/// Largest alpha; beyond it a single ACK would multiply the window.
const ALPHA_MAX: f64 = 1000.0;

/// The parameters of AIMD, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        default: 1.0,
        values: Values::Above(0.0, ALPHA_MAX),
        meaning: "segments gained per round trip",
    },
    Parameter {
        name: "beta",
        default: 0.5,
        values: Values::Inside(0.0, 1.0),
        meaning: "factor by which a loss multiplies the window",
    },
];

/// AIMD(alpha, beta) on every subflow independently.
#[derive(Debug)]
pub struct Aimd {
    alpha_q16: u64,
    beta_q16: u64,
}

impl Aimd {
    /// Creates the controller, with `alpha` in (0, 1000] segments per round trip and `beta` in (0, 1).
    pub fn new(alpha: f64, beta: f64) -> Result<Self, String> {
        if !(alpha > 0.0 && alpha <= ALPHA_MAX) {
            return Err(format!("alpha = {alpha} must be above 0 and at most {ALPHA_MAX}"));
        }
        if !(beta > 0.0 && beta < 1.0) {
            return Err(format!("beta = {beta} must be above 0 and below 1; it multiplies the window on a loss"));
        }
        // What 2^-16 cannot tell from a forbidden end of the range is the value next to it.
        Ok(Self { alpha_q16: q16_from_f64(alpha).max(1), beta_q16: q16_from_f64(beta).clamp(1, ONE_Q16 - 1) })
    }

    fn reduced(&self, subflow: SubflowId, paths: Paths<'_>) -> u64 {
        mul_div(paths.get(subflow).cwnd, self.beta_q16, ONE_Q16)
    }
}

impl CongestionController for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn liberties(&self) -> &'static [Liberty] {
        &[Liberty::OutgrowsNewReno]
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let per_window_q16 = self.alpha_q16 * u64::from(path.mss);
        grow_q16(share_q16(creditable_bytes(ack, path), per_window_q16, path.cwnd))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.reduced(loss.subflow, paths)
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        self.reduced(subflow, paths)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, loss, path};
    use super::*;

    #[test]
    fn the_parameters_of_the_adaptive_flows() {
        let paths = [path(0, 10)];
        let mut aimd = Aimd::new(0.75, 0.625).unwrap();
        assert_eq!(aimd.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(75));
        assert_eq!(aimd.on_loss(&loss(0), Paths(&paths)), 6_250);
        assert_eq!(aimd.on_rto(SubflowId(0), Instant::ZERO, Paths(&paths)), 6_250);
    }

    #[test]
    fn a_window_of_segments_acknowledged_one_by_one_earns_alpha_segments() {
        let paths = [path(0, 20)];
        let mut aimd = Aimd::new(2.0, 0.5).unwrap();
        let gained: i64 = (0..20).map(|_| aimd.on_ack(&ack(0, 1000), Paths(&paths)).as_q16()).sum();
        assert_eq!(WindowStep::from_q16(gained), WindowStep::from_bytes(2000));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        assert!(Aimd::new(0.0, 0.5).unwrap_err().starts_with("alpha = 0 must"));
        assert!(Aimd::new(1.0, 1.0).unwrap_err().starts_with("beta = 1 must"));
        assert!(Aimd::new(f64::NAN, 0.5).is_err());
        assert!(Aimd::new(1.0, f64::INFINITY).is_err());
    }

    /// Values that 2^-16 cannot tell from the ends of their ranges are not these ends.
    #[test]
    fn the_ends_of_the_ranges_stay_outside() {
        let paths = [path(0, 10)];
        assert!(Aimd::new(1.0, 0.999_999).unwrap().on_loss(&loss(0), Paths(&paths)) < 10_000);
        assert_ne!(Aimd::new(0.000_001, 0.5).unwrap().on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::ZERO);
    }
}
