//! Means with their intervals over the points of a grid, with a faint dot for every seed.

use std::fmt::Write;

use super::super::html::escape;
use super::super::scale::Scale;
use super::axis::Axis;
use super::layout::Panel;
use super::{Comparison, mark};
use crate::measure::statistics::Interval;
use crate::present::metric::Metric;

const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
/// Maximum distance between two variants at the same point, pixels.
const DODGE_MAX: f64 = 24.0;
/// Maximum distance from a mark to its seeds' dots, which it would otherwise cover.
const ASIDE_MAX: f64 = 10.0;
/// Maximum number of labels on a wide axis without overlaps.
const LABELS_MAX: usize = 12;

/// One panel's picture.
pub(super) struct Picture<'a> {
    pub view: &'a Comparison<'a>,
    pub metric: &'a Metric,
    pub panel: &'a Panel<'a>,
    pub size: (f64, f64),
}

impl Picture<'_> {
    /// Creates the SVG element; the vertical axis includes `values`.
    pub fn svg(&self, values: &[f64]) -> String {
        let (width, height) = self.size;
        let axis = Axis::new(self.metric, values, 5);
        let y = axis.scale(height - BOTTOM, TOP);
        let label = escape(&format!("{}: means with 95 % intervals {}", self.metric.title, self.panel.name));
        let mut svg =
            format!("<svg class=\"dots wide\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">");
        self.draw_axes(&mut svg, &axis, y);
        for variant in 0..self.view.layout.variants.len() {
            self.draw_variant(&mut svg, variant, y);
        }
        svg.push_str("</svg>");
        svg
    }

    /// The middle of a point's slot.
    fn slot(&self, column: usize) -> f64 {
        let slots = self.panel.columns.len() as f64;
        LEFT + (self.size.0 - LEFT - RIGHT) * (column as f64 + 0.5) / slots
    }

    /// Distance between two variants at the same point.
    fn step(&self) -> f64 {
        let (slots, variants) = (self.panel.columns.len() as f64, self.view.layout.variants.len() as f64);
        ((self.size.0 - LEFT - RIGHT) / slots / (variants + 1.0)).min(DODGE_MAX)
    }

    /// The horizontal position of a variant's mark at a point.
    fn x(&self, column: usize, variant: usize) -> f64 {
        let middle = (self.view.layout.variants.len() as f64 - 1.0) / 2.0;
        self.slot(column) + (variant as f64 - middle) * self.step()
    }

    fn draw_axes(&self, svg: &mut String, axis: &Axis, y: Scale) {
        let (width, height) = self.size;
        for &tick in &axis.ticks {
            let at = y.at(tick * axis.unit.size);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/><text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                width - RIGHT,
                LEFT - 7.0,
                at + 4.0,
                axis.label(tick)
            );
        }
        let base = height - BOTTOM;
        let every = self.panel.columns.len().div_ceil(LABELS_MAX);
        for (index, column) in self.panel.columns.iter().enumerate().step_by(every.max(1)) {
            let (x, text) = (self.slot(index), escape(column.value));
            let _ = write!(svg, "<text class=\"tick mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>", base + 18.0);
        }
        let name = self.view.layout.axis.as_deref().map_or(String::new(), escape);
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {base:.1}H{:.1}\"/><text class=\"unit\" x=\"0\" y=\"11\">{}</text>\
             <text class=\"unit mid\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            width - RIGHT,
            axis.unit.name,
            (LEFT + width - RIGHT) / 2.0,
            base + 37.0
        );
    }

    /// Draws a line through the means, the seeds' dots, the intervals, and the marks on top.
    fn draw_variant(&self, svg: &mut String, variant: usize, y: Scale) {
        let (class, name) = (mark::class(variant), self.view.layout.variants[variant]);
        let (mut line, mut dots, mut marks) = (String::new(), String::new(), String::new());
        for (index, column) in self.panel.columns.iter().enumerate() {
            let (x, case) = (self.x(index, variant), column.cases[variant]);
            let Some(interval) = self.view.interval(case, self.metric) else { continue };
            let command = if line.is_empty() { 'M' } else { 'L' };
            let _ = write!(line, "{command}{x:.1} {:.1}", y.at(interval.mean));
            let aside = x + (self.step() / 2.0).min(ASIDE_MAX);
            for (_, value) in self.view.seeds(case, self.metric) {
                let _ = write!(
                    dots,
                    "<circle class=\"seed {class}\" cx=\"{aside:.1}\" cy=\"{:.1}\" r=\"2.2\"/>",
                    y.at(*value)
                );
            }
            marks += &whisker(&class, &interval, x, y);
            marks += &mark::draw(variant, x, y.at(interval.mean), &self.title(name, column.value, &interval));
        }
        let _ = write!(svg, "<path class=\"line through {class}\" d=\"{line}\"/>{dots}{marks}");
    }

    fn title(&self, variant: &str, value: &str, interval: &Interval) -> String {
        let half = interval.half_width.map_or(String::new(), |half| format!(" ± {}", self.metric.show(half)));
        format!("{variant}, {value}: {}{half}, {} seeds", self.metric.show(interval.mean), interval.count)
    }
}

/// A vertical interval with feet.
fn whisker(class: &str, interval: &Interval, x: f64, y: Scale) -> String {
    let (Some(low), Some(high)) = (interval.low(), interval.high()) else { return String::new() };
    let (low, high, left, right) = (y.at(low), y.at(high), x - 4.0, x + 4.0);
    format!(
        "<path class=\"whisker {class}\" d=\"M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}\"/>"
    )
}
