//! Short names for the entries of the lists.

use super::super::{Check, Claim, Evidence, Metric, Needs, Quantity};

/// No upper bound.
pub(super) const MORE: f64 = f64::INFINITY;

pub(super) const THROUGHPUT: Metric = Metric::Value("analysis.aggregate_throughput_bps");
pub(super) const THROUGHPUT_DEVIATION: Metric = Metric::Value("analysis.aggregate_throughput_standard_deviation_bps");
/// G1.
pub(super) const GOODPUT: Metric = Metric::Value("analysis.unit_goodput_bps");
/// G1 over the whole run, regardless of the window of analysis.
pub(super) const WHOLE_GOODPUT: Metric = Metric::Value("whole.unit_goodput_bps");
/// G3.
pub(super) const IN_ORDER: Metric = Metric::Value("analysis.in_order_goodput_bps");
/// G3 over the whole run.
pub(super) const WHOLE_IN_ORDER: Metric = Metric::Value("goodput_in_order_bps");
pub(super) const OUTAGES: Metric = Metric::Value("analysis.outages");

/// Windows of analysis, in the notation of grids.
pub(super) const FALLING: &str = "from = \"5 s\"";
pub(super) const RISING: &str = "from = \"28 s\"";

pub(super) const fn claim(
    id: &'static str,
    source: &'static str,
    paper: &'static str,
    evidence: &'static [Evidence],
) -> Claim {
    Claim { id, source, paper, evidence }
}

pub(super) const fn runs(scenario: &'static str, checks: &'static [Check]) -> Evidence {
    Evidence::Runs { needs: Needs { scenario, set: &[] }, checks }
}

/// Runs with another window of analysis, or with another change.
pub(super) const fn runs_with(
    scenario: &'static str,
    set: &'static [&'static str],
    checks: &'static [Check],
) -> Evidence {
    Evidence::Runs { needs: Needs { scenario, set }, checks }
}

pub(super) const fn exact(what: &'static str, measured: fn() -> Option<f64>, expected: f64) -> Evidence {
    Evidence::Exact { what, measured, expected, tolerance: 0.01 }
}

/// A guarantee that no case may violate.
pub(super) const fn always(what: &'static str, measured: fn() -> Option<f64>, expected: f64) -> Evidence {
    Evidence::Exact { what, measured, expected, tolerance: 1e-9 }
}

pub(super) const fn of(variant: &'static str, metric: Metric) -> Quantity {
    of_at(variant, metric, "")
}

pub(super) const fn of_at(variant: &'static str, metric: Metric, at: &'static str) -> Quantity {
    Quantity::Of { variant, metric, at }
}

pub(super) const fn less(less: &'static str, than: &'static str, metric: Metric) -> Check {
    less_at(less, than, metric, "")
}

pub(super) const fn less_at(less: &'static str, than: &'static str, metric: Metric, at: &'static str) -> Check {
    Check::Less { less: of_at(less, metric, at), than: of_at(than, metric, at) }
}

pub(super) const fn ratio(new: &'static str, old: &'static str, metric: Metric, low: f64, high: f64) -> Check {
    ratio_at(new, old, metric, "", low, high)
}

pub(super) const fn ratio_at(
    new: &'static str,
    old: &'static str,
    metric: Metric,
    at: &'static str,
    low: f64,
    high: f64,
) -> Check {
    Check::Ratio { new: of_at(new, metric, at), old: of_at(old, metric, at), low, high }
}

pub(super) const fn within(variant: &'static str, metric: Metric, low: f64, high: f64) -> Check {
    Check::Within { of: of(variant, metric), low, high }
}

pub(super) const fn show(variant: &'static str, metric: Metric) -> Check {
    Check::Show { of: of(variant, metric) }
}

pub(super) const fn show_ratio(new: &'static str, old: &'static str, metric: Metric, at: &'static str) -> Check {
    Check::ShowRatio { new: of_at(new, metric, at), old: of_at(old, metric, at) }
}
