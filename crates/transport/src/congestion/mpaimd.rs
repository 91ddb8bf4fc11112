//! MPAIMD: GMCC-Coop without regard to competition, the thesis's reference for it (section 7.3.2).
//!
//! ```text
//! ACK on r   w_r += min(a_r / w_total, alpha'_r / w_r)
//! loss on r  w_r = beta'_r w_r                                          or, with `half`, w_r / 2
//!
//! symbols as in gmcc_coop.rs
//! ```

use super::lia::LinkedAlpha;
use super::sharing::{HALF, Rivals, Sharing, switch};
use super::{Built, Parameter};

/// The parameters of MPAIMD, in the order of the specification.
pub(super) const PARAMETERS: &[Parameter] = &[HALF];

/// Creates MPAIMD with the values of [`PARAMETERS`].
pub(super) fn mpaimd(values: &[f64]) -> Built {
    let rivals = Rivals::Aimd { half: switch(HALF.name, values[0])? };
    Ok(Box::new(Sharing { name: "mpaimd", rivals, yielding: None, alpha: LinkedAlpha::default() }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, loss, path};
    use super::super::{Competition, PathView, Paths, WindowStep, build};

    /// 0.75 * 1/40 for two equal paths of ten segments, whatever the competition at the relay.
    #[test]
    fn competition_does_not_slow_it() {
        for ratio in [0.5, 1.0, 5.0, 50.0] {
            let competition = Some(Competition { ratio, increase: 0.75, decrease: 0.625 });
            let paths = [PathView { competition, ..path(0, 10) }, path(1, 10)];
            let mut mpaimd = build(&"mpaimd".parse().unwrap()).unwrap();
            assert_eq!(mpaimd.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_f64(18.75));
            assert_eq!(mpaimd.on_loss(&loss(0), Paths(&paths)), 6_250);
        }
    }

    /// 20 segments alone: 3/20 segment with alpha' = 3; LIA would give 1/20.
    #[test]
    fn a_lone_path_grows_as_its_rivals_do() {
        let competition = Some(Competition { ratio: 1.0, increase: 3.0, decrease: 0.25 });
        let paths = [PathView { competition, ..path(0, 20) }];
        let mut mpaimd = build(&"mpaimd".parse().unwrap()).unwrap();
        assert_eq!(mpaimd.on_ack(&ack(0, 1000), Paths(&paths)), WindowStep::from_bytes(150));
        assert_eq!(mpaimd.on_loss(&loss(0), Paths(&paths)), 5_000);
    }
}
