//! GMCC-Coop: MCC-Coop for relays whose flows are AIMD(alpha', beta') (thesis section 7.2.3).
//!
//! ```text
//! ACK on r   w_r += min(a_r / w_total, alpha'_r / w_r)                  if rho_r <= 1
//!            w_r += min(a_r / w_total, alpha'_r / (rho_r^e w_r))        if rho_r > 1; printed: e = 1, no a_r / w_total
//! loss on r  w_r = beta'_r w_r                                          or, with `half`, w_r / 2
//!
//! a_r = alpha'_r a, equation (7.15) with the square of the sum; the rest as in sharing.rs
//! ```
//!
//! The thesis assumes beta_r = beta'_r in the derivation of the rule, and halves in its listing. `gmcc-coop(1,0,1)` is
//! the listing.

use super::lia::LinkedAlpha;
use super::sharing::{EXPONENT, GUARD, HALF, Rivals, Sharing, Yielding, switch};
use super::{Built, Parameter};

/// The parameters of GMCC-Coop, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[EXPONENT, GUARD, HALF];

/// Creates GMCC-Coop with the values of [`PARAMETERS`].
pub(super) fn gmcc_coop(values: &[f64]) -> Built {
    let yielding = Some(Yielding::new(values[0], values[1])?);
    let rivals = Rivals::Aimd { half: switch(HALF.name, values[2])? };
    Ok(Box::new(Sharing { name: "gmcc-coop", rivals, yielding, alpha: LinkedAlpha::default() }))
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::super::testing::{ack, loss, path};
    use super::super::{Competition, PathView, Paths, build};
    use crate::SubflowId;

    /// Two equal paths of ten segments; the first one's relay has AIMD(0.75, 0.625) flows.
    fn paths(ratio: f64) -> [PathView; 2] {
        let competition = Some(Competition { ratio, increase: 0.75, decrease: 0.625 });
        [PathView { competition, ..path(0, 10) }, path(1, 10)]
    }

    fn gain(controller: &str, ratio: f64) -> f64 {
        let mut controller = build(&controller.parse().unwrap()).unwrap();
        controller.on_ack(&ack(0, 1000), Paths(&paths(ratio))).as_q16() as f64 / 65536.0
    }

    /// 0.75 * 1/40; then 0.75/(3 * 10) and 0.75/(5 * 10) with e = 1, 0.75/(25 * 10) with e = 2.
    #[test]
    fn growth_is_in_proportion_to_that_of_the_rivals() {
        assert_eq!(gain("gmcc-coop", 1.0), 18.75);
        assert_eq!(gain("gmcc-coop(1)", 5.0), 15.0);
        assert_eq!(gain("gmcc-coop(2)", 5.0), 3.0);
        assert_eq!(gain("gmcc-coop(1,1)", 3.0), 18.75);
        assert_eq!(gain("gmcc-coop(1,0)", 3.0), 25.0);
    }

    #[test]
    fn a_loss_leaves_what_it_leaves_the_rivals_or_half() {
        let decreased = |name: &str| {
            let mut controller = build(&name.parse().unwrap()).unwrap();
            let views = paths(2.0);
            let by_loss = controller.on_loss(&loss(0), Paths(&views));
            assert_eq!(controller.on_rto(SubflowId(0), Instant::ZERO, Paths(&views)), by_loss);
            assert_eq!(controller.on_loss(&loss(1), Paths(&views)), 5_000, "nothing was told of the second path");
            by_loss
        };
        assert_eq!(decreased("gmcc-coop"), 6_250);
        assert_eq!(decreased("gmcc-coop(1,0,1)"), 5_000);
    }
}
