//! Axes: round ticks, and units that suit the numbers.

use std::fmt::Write as _;

/// Maps values to positions along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// Value at the start.
    pub from: f64,
    /// Value at the end; above `from`.
    pub to: f64,
    /// Position of `from`.
    pub start: f64,
    /// Position of `to`.
    pub end: f64,
}

impl Scale {
    /// The position of `value`.
    pub fn at(&self, value: f64) -> f64 {
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }
}

/// Round values from zero to `max` or slightly above, about `count` steps; the last one is the axis's end.
pub(super) fn ticks_above(max: f64, count: usize) -> Vec<f64> {
    let step = round_step(max, count);
    let steps = (max / step - 1e-9).ceil().max(1.0) as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// Round values from zero to at most `max`, about `count` steps.
pub(super) fn ticks_within(max: f64, count: usize) -> Vec<f64> {
    let step = round_step(max, count);
    let steps = (max / step + 1e-9).floor() as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// Round values from slightly below `low` to slightly above `high`, or exactly from and to them, about `count` steps;
/// the first and the last are the axis's ends.
pub(super) fn ticks_between(low: f64, high: f64, count: usize) -> Vec<f64> {
    // A single value gets an axis around it.
    let (low, high) = if high > low { (low, high) } else { (low - 0.05 * low.abs(), high + 0.05 * high.abs()) };
    let step = round_step(high - low, count);
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    let steps = (last - first).max(1.0) as usize;
    (0..=steps).map(|index| rounded(first + index as f64, step)).collect()
}

/// `count * step` without the trailing digits of binary fractions.
fn rounded(count: f64, step: f64) -> f64 {
    let inverse = (1.0 / step).round();
    if step < 1.0 && inverse.is_finite() { count / inverse } else { count * step }
}

/// 1, 2 or 5 times a power of ten.
fn round_step(max: f64, count: usize) -> f64 {
    if max <= 0.0 {
        return 1.0;
    }
    let rough = max / count.max(1) as f64;
    let power = libm::exp10(libm::log10(rough).floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999).unwrap_or(10.0);
    factor * power
}

/// A unit with its size in the base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// Its name beside the axis.
    pub name: &'static str,
    /// Its size in base units.
    pub size: f64,
}

/// Rates; the base unit is bit/s.
pub(super) const RATES: &[Unit] = &[
    Unit { name: "Gbit/s", size: 1e9 },
    Unit { name: "Mbit/s", size: 1e6 },
    Unit { name: "kbit/s", size: 1e3 },
    Unit { name: "bit/s", size: 1.0 },
];
/// Times; the base unit is a second.
pub(super) const TIMES: &[Unit] = &[Unit { name: "s", size: 1.0 }, Unit { name: "ms", size: 1e-3 }];
/// Amounts; the base unit is an octet.
pub(super) const AMOUNTS: &[Unit] = &[
    Unit { name: "GB", size: 1e9 },
    Unit { name: "MB", size: 1e6 },
    Unit { name: "kB", size: 1e3 },
    Unit { name: "B", size: 1.0 },
];

impl Unit {
    /// The largest of `units` that `max` reaches.
    pub fn for_max(units: &[Self], max: f64) -> Self {
        *units.iter().find(|unit| max >= unit.size).unwrap_or(&units[units.len() - 1])
    }
}

/// The number of a tick, with the decimals that its step needs.
pub(super) fn tick_label(value: f64, step: f64) -> String {
    let decimals = (-libm::log10(step * 1.0001).floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// The label of the tick at `index` of a time axis; the last one includes the unit.
pub(super) fn time_label(ticks: &[f64], index: usize) -> String {
    let step = ticks.get(1).copied().unwrap_or(1.0);
    let unit = if index + 1 == ticks.len() { " s" } else { "" };
    format!("{}{unit}", tick_label(ticks[index], step))
}

/// Draws the ticks and labels of a time axis at the height `base`, about `count` of them.
pub(super) fn draw_time_ticks(svg: &mut String, x: Scale, base: f64, count: usize) {
    let ticks = ticks_within(x.to, count);
    for (index, &tick) in ticks.iter().enumerate() {
        let (at, text) = (x.at(tick), time_label(&ticks, index));
        let _ = write!(svg, "<path class=\"axis\" d=\"M{at:.1} {base:.1}v4\"/>");
        let _ = write!(svg, "<text class=\"tick mid\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>", base + 18.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks_above(8.7, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks_within(8.7, 5), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks_above(0.0, 5), [0.0, 1.0]);
        assert_eq!(ticks_above(100.0, 4), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn ticks_between_two_values_hold_both() {
        assert_eq!(ticks_between(2.93, 3.08, 4), [2.9, 2.95, 3.0, 3.05, 3.1]);
        assert_eq!(ticks_between(-3.0, 8.0, 4), [-5.0, 0.0, 5.0, 10.0]);
        assert_eq!(ticks_between(0.0, 0.0, 4), [0.0, 1.0]);
        let around = ticks_between(5.0, 5.0, 4);
        assert!(around[0] < 5.0 && around[around.len() - 1] > 5.0, "{around:?}");
    }

    #[test]
    fn labels_have_the_decimals_of_their_step() {
        assert_eq!([tick_label(0.5, 0.5), tick_label(2.0, 2.0), tick_label(0.25, 0.05)], ["0.5", "2", "0.25"]);
    }

    #[test]
    fn units_suit_the_maximum() {
        let name = |max: f64| Unit::for_max(RATES, max).name;
        assert_eq!([name(7.3e6), name(999.0), name(0.0), name(2e9)], ["Mbit/s", "bit/s", "bit/s", "Gbit/s"]);
    }

    #[test]
    fn a_scale_maps_its_ends() {
        let scale = Scale { from: 0.0, to: 10.0, start: 200.0, end: 0.0 };
        assert_eq!([scale.at(0.0), scale.at(5.0), scale.at(10.0)], [200.0, 100.0, 0.0]);
    }
}
