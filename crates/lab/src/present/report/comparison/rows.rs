//! Rows of a table with a small picture each: a horizontal interval, with a faint dot for every seed.

use std::fmt::Write;

use super::axis::Axis;
use super::mark;
use crate::measure::statistics::Interval;

/// Size of a row's picture.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 30.0;
const MARGIN: f64 = 18.0;
const MIDDLE: f64 = HEIGHT / 2.0;
/// Vertical offsets of seeds' dots, which make equal values visible as several dots.
const JITTER: [f64; 5] = [0.0, -5.0, 5.0, -2.5, 2.5];

/// The picture of one row.
pub(super) fn picture(axis: &Axis, variant: usize, interval: &Interval, seeds: &[f64]) -> String {
    let x = axis.scale(MARGIN, WIDTH - MARGIN);
    let class = mark::class(variant);
    let mut svg =
        format!("<svg class=\"row\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">{}", grid(axis, HEIGHT));
    for (index, value) in seeds.iter().enumerate() {
        let (at, y) = (x.at(*value), MIDDLE + JITTER[index % JITTER.len()]);
        let _ = write!(svg, "<circle class=\"seed {class}\" cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>");
    }
    if let (Some(low), Some(high)) = (interval.low(), interval.high()) {
        let (low, high, top, foot) = (x.at(low), x.at(high), MIDDLE - 4.0, MIDDLE + 4.0);
        let _ = write!(
            svg,
            "<path class=\"whisker {class}\" d=\"M{low:.1} {MIDDLE}H{high:.1}M{low:.1} {top}V{foot}M{high:.1} {top}V{foot}\"/>"
        );
    }
    svg += &mark::draw(variant, x.at(interval.mean), MIDDLE, "");
    svg.push_str("</svg>");
    svg
}

/// The axis below the rows.
pub(super) fn scale(axis: &Axis) -> String {
    let x = axis.scale(MARGIN, WIDTH - MARGIN);
    let mut svg = format!("<svg class=\"row\" viewBox=\"0 0 {WIDTH} 22\" aria-hidden=\"true\">{}", grid(axis, 5.0));
    for (index, &tick) in axis.ticks.iter().enumerate() {
        let unit = if index + 1 == axis.ticks.len() { format!(" {}", axis.unit.name) } else { String::new() };
        let at = x.at(tick * axis.unit.size);
        let _ = write!(svg, "<text class=\"tick mid\" x=\"{at:.1}\" y=\"18\">{}{unit}</text>", axis.label(tick));
    }
    svg.push_str("</svg>");
    svg
}

/// Lines at the ticks; the line at zero, if any, is stronger.
fn grid(axis: &Axis, height: f64) -> String {
    let x = axis.scale(MARGIN, WIDTH - MARGIN);
    let mut lines = String::new();
    for &tick in &axis.ticks {
        let class = if tick == 0.0 && axis.ticks[0] < 0.0 { "axis" } else { "grid" };
        let _ = write!(lines, "<path class=\"{class}\" d=\"M{:.1} 0V{height}\"/>", x.at(tick * axis.unit.size));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::metric::named;

    /// From 0 to 4 Mbit/s over 364 pixels: 91 pixels per Mbit/s.
    #[test]
    fn marks_dots_and_whiskers_stand_where_their_values_are() {
        let axis = Axis::new(named("goodput_in_order_bps"), &[0.0, 4e6], 4);
        let interval = Interval { count: 2, mean: 2e6, standard_deviation: None, half_width: Some(1e6) };
        let svg = picture(&axis, 0, &interval, &[1e6, 3e6]);
        for needed in
            ["cx=\"109.0\" cy=\"15.0\" r=\"2.4\"", "cx=\"291.0\" cy=\"10.0\"", "d=\"M109.0 15H291.0M", "cx=\"200.0\""]
        {
            assert!(svg.contains(needed), "{needed} is missing in {svg}");
        }
    }
}
