//! Sharing a relay's link with flows that end there: the common part of MCC-Coop, GMCC-Coop and MPAIMD (thesis chapter
//! 7).
//!
//! ```text
//! ACK on r, by equation (7.15) with the square of the sum
//!     linked = alpha'_r * alpha * acked * MSS_r / cwnd_total                 a_r / w_total
//!     alone  = alpha'_r * acked * MSS_r / cwnd_r                             alpha'_r / w_r
//!     yield  = alpha'_r * acked * MSS_r / (rho_r^e * cwnd_r)                 (7.9)
//!
//!     cwnd_r += min(linked, alone)             if rho_r <= 1, or if the controller does not yield
//!     cwnd_r += min(linked, alone, yield)      if rho_r > 1, guarded
//!     cwnd_r += yield                          if rho_r > 1, as the thesis prints it
//!
//! loss, RTO on r
//!     ssthresh_r = beta_r * cwnd_r
//!
//! rho_r      competition at the relay of r, Competition::ratio; 1 where nothing is known
//! alpha'_r   what a competing flow gains per round trip, segments; 1 for TCP
//! beta_r     what a loss leaves of the window, beta'_r of the competing flows; 1/2 for TCP
//! e          1 in the thesis: right if all flows lose at the same time. 2 if each loses by chance, as throughput then
//!            goes with the square root of the gain
//! alpha, cwnd_total, acked, MSS_r as in lia.rs
//! ```
//!
//! The thesis prints the sum of the squares in (7.15). With that, two equal paths would gain twice as much as under
//! LIA, and MCC-Coop would not revert to LIA without competition, as the thesis says it does.
//!
//! As printed, the branch for competition lacks `linked`, so K equal paths with 1 < rho < K^2 would grow faster than
//! without competition. The guard keeps `linked`.

use units::Instant;

use super::arithmetic::{ONE_Q16, creditable_bytes, grow_q16, mul_div, share_q16};
use super::lia::LinkedAlpha;
use super::{
    AckSample, Competition, CongestionController, Liberty, LossSample, Parameter, PathView, Paths, Values, WindowSet,
    WindowStep,
};
use crate::SubflowId;

/// The parameter e, common to all controllers that yield.
pub(super) const EXPONENT: Parameter = Parameter {
    name: "exponent",
    default: 2.0,
    values: Values::Whole(1, 2),
    meaning: "power of rho by which growth yields: 1 as printed, or 2",
};
/// Whether competition may only slow the growth.
pub(super) const GUARD: Parameter = Parameter {
    name: "guard",
    default: 1.0,
    values: Values::Whole(0, 1),
    meaning: "1: never grow faster than without competition; 0: as printed",
};
/// Which of the thesis's two decreases GMCC-Coop uses.
pub(super) const HALF: Parameter = Parameter {
    name: "half",
    default: 0.0,
    values: Values::Whole(0, 1),
    meaning: "1: a loss always halves; 0: it leaves beta' of the window",
};

/// How growth yields to competing flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yielding {
    exponent: Exponent,
    guarded: bool,
}

#[derive(Clone, Copy, Debug)]
enum Exponent {
    One,
    Two,
}

impl Yielding {
    /// Creates it from the values of [`EXPONENT`] and [`GUARD`].
    pub(super) fn new(exponent: f64, guard: f64) -> Result<Self, String> {
        let exponent = match exponent {
            1.0 => Exponent::One,
            2.0 => Exponent::Two,
            _ => return Err(format!("exponent = {exponent} must be 1 or 2")),
        };
        Ok(Self { exponent, guarded: switch("guard", guard)? })
    }

    /// Returns rho to the power of e, if there is competition.
    fn divisor(self, competition: &Competition) -> Option<f64> {
        let rho = Some(competition.excess()).filter(|rho| *rho > 1.0)?;
        Some(match self.exponent {
            Exponent::One => rho,
            Exponent::Two => rho * rho,
        })
    }
}

/// Reads a parameter that is 0 or 1.
pub(super) fn switch(name: &str, value: f64) -> Result<bool, String> {
    match value {
        0.0 => Ok(false),
        1.0 => Ok(true),
        _ => Err(format!("{name} = {value} must be 0 or 1")),
    }
}

/// The kind of competing flows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rivals {
    /// NewReno, always.
    Tcp,
    /// AIMD with the parameters that the relay reports.
    Aimd {
        /// A loss halves the window nevertheless.
        half: bool,
    },
}

impl Rivals {
    fn increase_q16(self, told: &Competition) -> u64 {
        match self {
            Self::Tcp => ONE_Q16,
            Self::Aimd { .. } => told.increase_q16(),
        }
    }

    fn decrease_q16(self, told: &Competition) -> u64 {
        match self {
            Self::Tcp | Self::Aimd { half: true } => ONE_Q16 / 2,
            Self::Aimd { half: false } => told.decrease_q16(),
        }
    }
}

/// A controller that shares relays' links.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) name: &'static str,
    pub(super) rivals: Rivals,
    /// `None` ignores competition.
    pub(super) yielding: Option<Yielding>,
    pub(super) alpha: LinkedAlpha,
}

/// `number / divisor`, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that does not fit gives the nearest integer that does"
)]
fn divided(number: u64, divisor: f64) -> u64 {
    (number as f64 / divisor) as u64
}

impl Sharing {
    fn growth_q16(&mut self, acked: u64, path: &PathView, paths: Paths<'_>) -> u64 {
        let told = path.competition.unwrap_or(Competition::NONE);
        let increase_q16 = self.rivals.increase_q16(&told);
        let per_window_q16 = increase_q16 * u64::from(path.mss);
        let yielding = self.yielding.and_then(|yielding| Some((yielding.guarded, yielding.divisor(&told)?)));
        let most_q16 = match yielding {
            Some((_, divisor)) => divided(per_window_q16, divisor),
            None => per_window_q16,
        };
        let alone = share_q16(acked, most_q16, path.cwnd);
        match yielding {
            Some((false, _)) => alone,
            _ => alone.min(mul_div(self.alpha.linked_q16(acked, path, paths), increase_q16, ONE_Q16)),
        }
    }

    fn reduced(&mut self, path: &PathView) -> u64 {
        self.alpha.forget();
        mul_div(path.cwnd, self.rivals.decrease_q16(&path.competition.unwrap_or(Competition::NONE)), ONE_Q16)
    }
}

impl CongestionController for Sharing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn liberties(&self) -> &'static [Liberty] {
        match self.rivals {
            Rivals::Aimd { .. } => &[Liberty::OutgrowsNewReno],
            Rivals::Tcp => &[],
        }
    }

    fn subflow_added(&mut self, _subflow: SubflowId, _paths: Paths<'_>) {
        self.alpha.forget();
    }

    fn subflow_removed(&mut self, _subflow: SubflowId, _paths: Paths<'_>) {
        self.alpha.forget();
    }

    fn on_ack(&mut self, ack: &AckSample, paths: Paths<'_>) -> WindowStep {
        let path = paths.get(ack.subflow);
        match creditable_bytes(ack, path) {
            0 => WindowStep::ZERO,
            acked => grow_q16(self.growth_q16(acked, path, paths)),
        }
    }

    fn on_loss(&mut self, loss: &LossSample, paths: Paths<'_>) -> u64 {
        self.reduced(paths.get(loss.subflow))
    }

    fn on_rto(&mut self, subflow: SubflowId, _now: Instant, paths: Paths<'_>) -> u64 {
        self.reduced(paths.get(subflow))
    }

    fn on_round(&mut self, _subflow: SubflowId, _now: Instant, _paths: Paths<'_>) -> Option<WindowSet> {
        self.alpha.forget();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, idle_ack, loss, path, path_with_rtt};
    use super::super::{Lia, build};
    use super::*;

    /// Octets gained on subflow 0 by acknowledging one segment of 1000 octets.
    fn gain(controller: &str, paths: &[PathView]) -> f64 {
        let mut controller = build(&controller.parse().unwrap()).unwrap();
        controller.on_ack(&ack(0, 1000), Paths(paths)).as_q16() as f64 / 65536.0
    }

    /// Without competition all are exactly LIA, also when a report of TCP flows is present.
    #[test]
    fn without_competition_all_of_them_are_lia() {
        let sets: [&[PathView]; 4] = [
            &[path(0, 10), path(1, 10)],
            &[path_with_rtt(0, 20, 100), path_with_rtt(1, 10, 200)],
            &[path_with_rtt(0, 98, 100), path_with_rtt(1, 2, 10)],
            &[path(0, 7), path_with_rtt(1, 11, 30), path_with_rtt(2, 13, 170)],
        ];
        let told = [None, Some(Competition::NONE), Some(Competition { ratio: 0.5, ..Competition::NONE })];
        for (set, competition) in sets.into_iter().flat_map(|set| told.map(|told| (set, told))) {
            let views: Vec<_> = set.iter().map(|view| PathView { competition, ..*view }).collect();
            let expected = Lia::default().on_ack(&ack(0, 1000), Paths(&views));
            for name in ["mcc-coop", "gmcc-coop", "mpaimd", "mcc-coop(1,0)", "gmcc-coop(1,0,1)", "mpaimd(1)"] {
                let mut controller = build(&name.parse().unwrap()).unwrap();
                assert_eq!(controller.on_ack(&ack(0, 1000), Paths(&views)), expected, "{name} {views:?}");
                assert_eq!(controller.on_loss(&loss(0), Paths(&views)), views[0].cwnd / 2);
                assert_eq!(controller.on_rto(SubflowId(0), Instant::ZERO, Paths(&views)), views[0].cwnd / 2);
            }
        }
    }

    /// alpha = 1/3 for three equal paths: 1/90 segment under LIA; yielding alone would give more, 1/(4 * 10).
    #[test]
    fn the_guard_keeps_competition_from_making_it_faster() {
        let competition = Some(Competition { ratio: 4.0, ..Competition::NONE });
        let paths = [0, 1, 2].map(|id| PathView { competition, ..path(id, 10) });
        assert!((gain("mcc-coop(1,1)", &paths) - 11.111).abs() < 1e-2);
        assert_eq!(gain("mcc-coop(1,0)", &paths), 25.0);
        assert_eq!(gain("mcc-coop(2,1)", &paths), 6.25);
        assert_eq!(gain("mcc-coop(2,0)", &paths), 6.25);
    }

    #[test]
    fn what_one_path_competes_with_is_nothing_to_the_others() {
        let competition = Some(Competition { ratio: 4.0, ..Competition::NONE });
        assert_eq!(gain("mcc-coop", &[path(0, 10), PathView { competition, ..path(1, 10) }]), 25.0);
    }

    #[test]
    fn a_window_that_nothing_fills_stays() {
        let mut controller = build(&"mcc-coop".parse().unwrap()).unwrap();
        assert_eq!(controller.on_ack(&idle_ack(0, 1000), Paths(&[path(0, 10)])), WindowStep::ZERO);
    }

    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        let error = |text: &str| build(&text.parse().unwrap()).err().expect("no controller").to_string();
        assert_eq!(error("mcc-coop(3)"), "congestion controller mcc-coop: exponent = 3 must be 1 or 2");
        assert_eq!(error("gmcc-coop(1,2)"), "congestion controller gmcc-coop: guard = 2 must be 0 or 1");
        assert_eq!(error("gmcc-coop(1,1,0.5)"), "congestion controller gmcc-coop: half = 0.5 must be 0 or 1");
        assert_eq!(error("mpaimd(-1)"), "congestion controller mpaimd: half = -1 must be 0 or 1");
    }
}
