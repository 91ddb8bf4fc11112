//! MCC-Coop: LIA that yields to TCP flows of the relays (thesis section 7.2.3).
//!
//! ```text
//! ACK on r   w_r += min(a / w_total, 1 / w_r)                           if rho_r <= 1
//!            w_r += min(a / w_total, 1 / (rho_r^e w_r))                 if rho_r > 1; printed: e = 1, no a / w_total
//! loss on r  w_r = w_r / 2
//!
//! a   LIA's alpha, thesis (7.1); the rest as in sharing.rs with alpha'_r = 1, beta_r = 1/2
//! ```
//!
//! `mcc-coop(1,0)` is the rule as the thesis prints it.

use super::lia::LinkedAlpha;
use super::sharing::{EXPONENT, GUARD, Rivals, Sharing, Yielding};
use super::{Built, Parameter};

/// The parameters of MCC-Coop, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[EXPONENT, GUARD];

/// Creates MCC-Coop with the values of [`PARAMETERS`].
pub(super) fn mcc_coop(values: &[f64]) -> Built {
    let yielding = Some(Yielding::new(values[0], values[1])?);
    Ok(Box::new(Sharing { name: "mcc-coop", rivals: Rivals::Tcp, yielding, alpha: LinkedAlpha::default() }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, loss, path};
    use super::super::{Competition, PathView, Paths, build};

    /// Octets gained by one segment of 1000 octets on the first of two equal paths of ten segments.
    fn gain(controller: &str, ratio: f64) -> f64 {
        // MCC-Coop ignores the AIMD parameters of the flows.
        let competition = Some(Competition { ratio, increase: 0.7, decrease: 0.625 });
        let paths = [PathView { competition, ..path(0, 10) }, path(1, 10)];
        let mut controller = build(&controller.parse().unwrap()).unwrap();
        assert_eq!(controller.on_loss(&loss(0), Paths(&paths)), 5_000);
        controller.on_ack(&ack(0, 1000), Paths(&paths)).as_q16() as f64 / 65536.0
    }

    /// LIA gives 1/40. The others are 1/(5 * 10) and 1/(25 * 10), as on the first path of the thesis's section 7.3.1.
    #[test]
    fn growth_yields_by_the_power_of_rho() {
        assert_eq!(gain("mcc-coop(1)", 5.0), 20.0);
        assert_eq!(gain("mcc-coop(2)", 5.0), 4.0);
        assert_eq!(gain("mcc-coop", 5.0), 4.0);
        assert_eq!(gain("mcc-coop(1)", 1.0), 25.0);
    }

    /// 1/(2 * 10) is above LIA's 1/40, which remains the bound until rho^e = 4: rho = 4 with e = 1, rho = 2 with e = 2.
    #[test]
    fn guarded_it_leaves_lia_without_a_jump() {
        assert_eq!(gain("mcc-coop(1)", 1.01), 25.0);
        assert_eq!(gain("mcc-coop(1)", 2.0), 25.0);
        assert_eq!(gain("mcc-coop(1)", 4.0), 25.0);
        assert_eq!(gain("mcc-coop(2)", 2.0), 25.0);
        assert_eq!(gain("mcc-coop(2)", 4.0), 6.25);
    }

    /// The fault of the printed rule: at the onset of competition the growth jumps from 1/40 to 1/10.
    #[test]
    fn as_printed_it_jumps_where_competition_begins() {
        assert_eq!(gain("mcc-coop(1,0)", 1.0), 25.0);
        assert_eq!(gain("mcc-coop(1,0)", 1.25), 80.0);
        assert!(gain("mcc-coop(1,0)", 1.000_001) > 99.99);
        assert_eq!(gain("mcc-coop(1,0)", 8.0), 12.5);
    }
}
