//! An axis of values: its ends, its unit and its ticks.

use super::super::scale::{AMOUNTS, RATES, Scale, TIMES, Unit, tick_label, ticks_between};
use crate::present::metric::{Kind, Metric};

const RATIOS: &[Unit] = &[Unit { name: "%", size: 0.01 }];
const PERCENT: &[Unit] = &[Unit { name: "%", size: 1.0 }];
const ENERGIES: &[Unit] = &[Unit { name: "J", size: 1.0 }];
const NUMBERS: &[Unit] = &[Unit { name: "", size: 1.0 }];
/// If the values extend over at most this share of the distance to zero, the axis does not begin at zero.
const SPREAD_FROM_ZERO: f64 = 0.4;

/// An axis.
pub(super) struct Axis {
    /// Its unit.
    pub unit: Unit,
    /// Ticks in that unit; the first and the last are its ends.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis for values of `metric`; begins at zero unless all values lie close together, far above zero.
    pub fn new(metric: &Metric, values: &[f64], count: usize) -> Self {
        let (low, high) = bounds(values);
        let from = if low >= 0.0 && high - low > SPREAD_FROM_ZERO * high { 0.0 } else { low };
        Self::between(metric, from, high.max(from), count)
    }

    /// An axis for differences that includes zero.
    pub fn with_zero(metric: &Metric, values: &[f64], count: usize) -> Self {
        let (low, high) = bounds(values);
        Self::between(metric, low.min(0.0), high.max(0.0), count)
    }

    fn between(metric: &Metric, low: f64, high: f64, count: usize) -> Self {
        let unit = unit(metric, low.abs().max(high.abs()));
        Self { unit, ticks: ticks_between(low / unit.size, high / unit.size, count) }
    }

    /// Maps values in base units to positions from `start` to `end`.
    pub fn scale(&self, start: f64, end: f64) -> Scale {
        let tick = |tick: Option<&f64>| tick.copied().unwrap_or(0.0) * self.unit.size;
        Scale { from: tick(self.ticks.first()), to: tick(self.ticks.last()), start, end }
    }

    /// The label of a tick.
    pub fn label(&self, tick: f64) -> String {
        tick_label(tick, self.ticks.get(1).map_or(1.0, |second| second - self.ticks[0]))
    }
}

/// A unit that suits values of `metric` up to `max`.
pub(super) fn unit(metric: &Metric, max: f64) -> Unit {
    let units = match metric.kind {
        Kind::Rate => RATES,
        Kind::Time => TIMES,
        Kind::Amount => AMOUNTS,
        Kind::Number => NUMBERS,
        Kind::Ratio => RATIOS,
        Kind::Percent => PERCENT,
        Kind::Energy => ENERGIES,
    };
    Unit::for_max(units, max)
}

/// Formats `value` in `unit`, with enough decimals to distinguish similar values.
pub(super) fn number(value: f64, unit: Unit) -> String {
    let value = value / unit.size;
    let decimals = match value.abs() {
        magnitude if magnitude >= 1000.0 => 0,
        magnitude if magnitude >= 100.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    // A small negative value must not become "-0.00".
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').into() } else { text }
}

fn bounds(values: &[f64]) -> (f64, f64) {
    let bounds = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    if values.is_empty() { (0.0, 0.0) } else { bounds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::metric::named;

    #[test]
    fn an_axis_begins_at_zero_unless_values_lie_close_together() {
        let goodput = named("goodput_in_order_bps");
        assert_eq!(Axis::new(goodput, &[1e6, 3e6], 4).ticks, [0.0, 1.0, 2.0, 3.0]);
        let close = Axis::new(goodput, &[2.9e6, 3.1e6], 4);
        assert_eq!((close.ticks.first(), close.ticks.last()), (Some(&2.9), Some(&3.1)));
        assert_eq!(Axis::with_zero(goodput, &[2e6, 4e6], 4).ticks, [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Axis::new(goodput, &[], 4).ticks, [0.0, 1.0]);
    }

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let unit = unit(named("goodput_in_order_bps"), 3e6);
        assert_eq!([3.214e6, 123.45e6, -1.0, 0.0].map(|value| number(value, unit)), ["3.21", "123.5", "0.00", "0.00"]);
    }
}
