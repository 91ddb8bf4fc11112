//! EWTCP, equally weighted TCP: NewReno on every subflow, weakened so that all subflows together act as one flow.
//!
//! ```text
//! ACK    cwnd += a * acked * SMSS / cwnd
//! loss   ssthresh = cwnd / 2
//!
//! a      1 / K^2 for K subflows, unless given: windows go with its square root, so each carries 1/K
//! cwnd, acked, SMSS as in newreno.rs
//! ```
//!
//! Source: Honda, Nishida, Eggert, Sarolahti, Tokuda, "Multipath Congestion Control for Shared Bottleneck"
//! (PFLDNeT 2009). It cannot shift load: every subflow carries what its own path allows.

use super::arithmetic::{ONE_Q16, creditable_bytes, grow_q16, mul_div, q16_from_f64, share_q16};
use super::{AckSample, CongestionController, LossSample, Parameter, Paths, Values, WindowStep};

/// The parameter of EWTCP.
pub(super) const PARAMETERS: &[Parameter] = &[Parameter {
    name: "a",
    default: 0.0,
    values: Values::Within(0.0, 1.0),
    meaning: "segments gained per round trip; 0: 1/K^2 for K subflows",
}];

/// Equally weighted TCP over all subflows of a connection.
#[derive(Debug)]
pub struct Ewtcp {
    a_q16: Option<u64>,
}

impl Ewtcp {
    /// Creates the controller. `a` in (0, 1] segments per round trip; 0 makes all subflows together one NewReno.
    pub fn new(a: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&a) {
            return Err(format!("a = {a} must be between 0 and 1; 0 stands for 1/K^2"));
        }
        Ok(Self { a_q16: (a > 0.0).then(|| q16_from_f64(a).max(1)) })
    }

    fn per_window_q16(&self, mss: u32, subflows: u64) -> u64 {
        match self.a_q16 {
            Some(a_q16) => a_q16 * u64::from(mss),
            None => mul_div(u64::from(mss), ONE_Q16, subflows * subflows),
        }
    }
}

impl CongestionController for Ewtcp {
    fn name(&self) -> &'static str {
        "ewtcp"
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        let per_window_q16 = self.per_window_q16(path.mss, paths.iter().count() as u64);
        grow_q16(share_q16(creditable_bytes(ack, path), per_window_q16, path.cwnd))
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        paths.get(loss.subflow).cwnd / 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, loss, path};
    use super::*;

    #[test]
    fn two_subflows_gain_a_quarter_of_newreno() {
        let paths = [path(0, 10), path(1, 40)];
        let mut ewtcp = Ewtcp::new(0.0).unwrap();
        assert_eq!(ewtcp.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(25));
        // 1000 / 4 / 40 = 6.25.
        assert_eq!(ewtcp.on_ack(&ack(1, 1000), Paths(&paths)), WindowStep::from_q16(409_600));
        assert_eq!(ewtcp.on_loss(&loss(1), Paths(&paths)), 20_000);
    }

    #[test]
    fn a_lone_subflow_is_newreno() {
        let step = Ewtcp::new(0.0).unwrap().on_ack(&ack(0, 1000), Paths(&[path(0, 10)]));
        assert_eq!(step, WindowStep::from_bytes(100));
    }

    #[test]
    fn the_weight_may_be_given() {
        let paths = [path(0, 10), path(1, 40)];
        assert_eq!(Ewtcp::new(0.5).unwrap().on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(50));
        assert!(Ewtcp::new(1.5).unwrap_err().starts_with("a = 1.5 must"));
        assert!(Ewtcp::new(f64::NAN).is_err());
    }

    /// A value that 2^-16 cannot tell from zero is not zero.
    #[test]
    fn the_smallest_gain_is_one() {
        let paths = [path(0, 10)];
        assert_ne!(Ewtcp::new(0.000_001).unwrap().on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::ZERO);
    }
}
