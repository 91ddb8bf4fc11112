//! Charts over time as SVG: lines, and stacked areas.

use std::fmt::Write;

use super::html::escape;
use super::scale::{Scale, Unit, tick_label, ticks_above, ticks_within, time_label};
use super::thin;

const MARGIN_LEFT: f64 = 46.0;
const MARGIN_RIGHT: f64 = 14.0;
const MARGIN_TOP: f64 = 24.0;
const MARGIN_BOTTOM: f64 = 26.0;

/// One curve.
pub(super) struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// CSS class for its colour.
    pub class: String,
    /// One value per time; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
}

/// A range that changes over time.
pub(super) struct Ribbon {
    /// CSS class for its colour.
    pub class: String,
    /// Its lower edge, one value per time; `None` leaves a gap.
    pub low: Vec<Option<f64>>,
    /// Its upper edge.
    pub high: Vec<Option<f64>>,
}

/// A chart over time.
pub(super) struct Chart<'a> {
    /// Its description, for readers who cannot see it.
    pub label: &'a str,
    /// Width and height in CSS pixels at full size.
    pub size: (f64, f64),
    /// Units for the vertical axis.
    pub units: &'a [Unit],
    /// Times of the values in seconds.
    pub time_s: &'a [f64],
    /// Lowest and highest value of a range to shade.
    pub band: Option<(f64, f64)>,
    /// Marked intervals of the time axis, in seconds.
    pub marked_s: Vec<(f64, f64)>,
    /// The part of the time axis that counts, in seconds; the rest is shaded.
    pub counted_s: Option<(f64, f64)>,
    /// Curves stacked as areas, from the bottom.
    pub stacked: Vec<Curve>,
    /// Ranges shaded below the lines.
    pub ribbons: Vec<Ribbon>,
    /// Curves drawn as lines above them.
    pub lines: Vec<Curve>,
}

/// Times and curves in drawing coordinates.
struct Plot {
    time_s: Vec<f64>,
    band: Option<(f64, f64)>,
    marked_s: Vec<(f64, f64)>,
    counted_s: Option<(f64, f64)>,
    stacked: Vec<Curve>,
    ribbons: Vec<Ribbon>,
    lines: Vec<Curve>,
    x: Scale,
    y: Scale,
    unit: Unit,
    y_ticks: Vec<f64>,
    x_ticks: Vec<f64>,
}

impl Chart<'_> {
    /// The SVG element, with the data for the crosshair.
    pub fn svg(self) -> String {
        let (width, height) = self.size;
        let label = escape(self.label);
        // A phone scrolls such a chart instead of shrinking its text.
        let wide = if width > 600.0 { " wide" } else { "" };
        let plot = self.plot();
        let mut svg = format!(
            "<svg class=\"chart{wide}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" \
             data-chart='{}'>",
            plot.hover_data()
        );
        plot.draw_band(&mut svg);
        plot.draw_grid(&mut svg);
        plot.draw_stack(&mut svg);
        for ribbon in &plot.ribbons {
            let path = ribbon_path(&plot.time_s, ribbon, plot.x, plot.y);
            let _ = write!(svg, "<path class=\"ribbon {}\" d=\"{path}\"/>", ribbon.class);
        }
        for line in &plot.lines {
            let path = line_path(&plot.time_s, &line.values, plot.x, plot.y);
            let _ = write!(svg, "<path class=\"line {}\" d=\"{path}\"/>", line.class);
        }
        plot.draw_axes(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    fn plot(self) -> Plot {
        let (width, height) = self.size;
        let group = thin::group_of(self.time_s.len());
        let shorten = |curves: Vec<Curve>| -> Vec<Curve> {
            curves.into_iter().map(|curve| Curve { values: thin::averaged(&curve.values, group), ..curve }).collect()
        };
        let time_s = thin::times(self.time_s, group);
        let (stacked, lines) = (shorten(self.stacked), shorten(self.lines));
        let ribbons: Vec<Ribbon> = self.ribbons.into_iter().map(|ribbon| ribbon.shortened(group)).collect();
        let band_top = self.band.map_or(0.0, |(_, high)| high);
        let ribbon_top = ribbons.iter().flat_map(|ribbon| ribbon.high.iter().flatten().copied()).fold(0.0, f64::max);
        let max = highest(&stacked, &lines, time_s.len()).max(band_top).max(ribbon_top);
        let unit = Unit::for_max(self.units, max);
        let y_ticks = ticks_above(max / unit.size, 5);
        let end_s = time_s.last().copied().filter(|end_s| *end_s > 0.0).unwrap_or(1.0);
        let x = Scale { from: 0.0, to: end_s, start: MARGIN_LEFT, end: width - MARGIN_RIGHT };
        let top = y_ticks.last().copied().unwrap_or(1.0) * unit.size;
        let y = Scale { from: 0.0, to: top, start: height - MARGIN_BOTTOM, end: MARGIN_TOP };
        let x_ticks = ticks_within(end_s, (width / 90.0) as usize);
        let Self { band, marked_s, counted_s, .. } = self;
        Plot { time_s, band, marked_s, counted_s, stacked, ribbons, lines, x, y, unit, y_ticks, x_ticks }
    }
}

impl Plot {
    /// Draws the shaded range and the marks below all curves.
    fn draw_band(&self, svg: &mut String) {
        let mut bed = |class: &str, x: (f64, f64), y: (f64, f64)| {
            let (width, height) = (x.1 - x.0, y.1 - y.0);
            let (left, top) = (x.0, y.0);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        };
        if let Some((low, high)) = self.band {
            bed("target", (self.x.start, self.x.end), (self.y.at(high), self.y.at(low)));
        }
        if let Some((from_s, to_s)) = self.counted_s {
            let [from, to] = [from_s, to_s].map(|at_s| self.x.at(at_s.clamp(0.0, self.x.to)));
            for part in [(self.x.start, from), (to, self.x.end)] {
                if part.0 < part.1 {
                    bed("uncounted", part, (self.y.end, self.y.start));
                }
            }
        }
        for &(from_s, to_s) in &self.marked_s {
            let x = (self.x.at(from_s.max(0.0)), self.x.at(to_s.min(self.x.to)));
            bed("outage-bed", x, (self.y.end, self.y.start));
            bed("outage", x, (self.y.start - 5.0, self.y.start));
        }
    }

    fn draw_grid(&self, svg: &mut String) {
        for tick in &self.y_ticks {
            let y = self.y.at(tick * self.unit.size);
            let (start, end) = (self.x.start, self.x.end);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{start:.1} {y:.1}H{end:.1}\"/>");
        }
    }

    fn draw_stack(&self, svg: &mut String) {
        let mut below = vec![0.0; self.time_s.len()];
        for curve in &self.stacked {
            let above: Vec<f64> =
                below.iter().zip(&curve.values).map(|(base, value)| base + value.unwrap_or(0.0)).collect();
            let path = match self.time_s[..] {
                // Up to a single time the area holds its value: it would have no width otherwise.
                [to_s] => area_path(&[0.0, to_s], &below.repeat(2), &above.repeat(2), self.x, self.y),
                _ => area_path(&self.time_s, &below, &above, self.x, self.y),
            };
            let _ = write!(svg, "<path class=\"area {}\" d=\"{path}\"/>", curve.class);
            below = above;
        }
    }

    fn draw_axes(&self, svg: &mut String) {
        let step = |ticks: &[f64]| ticks.get(1).copied().unwrap_or(1.0);
        for &tick in &self.y_ticks {
            let (x, y) = (self.x.start - 7.0, self.y.at(tick * self.unit.size) + 4.0);
            let text = tick_label(tick, step(&self.y_ticks));
            let _ = write!(svg, "<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
        }
        let base = self.y.start;
        let _ = write!(svg, "<path class=\"axis\" d=\"M{:.1} {base:.1}H{:.1}\"/>", self.x.start, self.x.end);
        for (index, &tick) in self.x_ticks.iter().enumerate() {
            let x = self.x.at(tick);
            let text = time_label(&self.x_ticks, index);
            let _ = write!(svg, "<path class=\"axis\" d=\"M{x:.1} {base:.1}v4\"/>");
            let _ = write!(svg, "<text class=\"tick mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>", base + 18.0);
        }
        let _ = write!(svg, "<text class=\"unit\" x=\"0\" y=\"11\">{}</text>", self.unit.name);
    }

    /// Data for the crosshair: geometry, times, and each curve's numbers in the axis's unit.
    fn hover_data(&self) -> String {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        // Keeps neighbouring times apart on an axis of milliseconds, too.
        let per_s = libm::exp10((4.0 - libm::log10(self.x.to).floor()).max(3.0));
        let round_s = |time_s: f64| (time_s * per_s).round() / per_s;
        let curves = |curves: &[Curve]| -> Vec<serde_json::Value> {
            let values = |curve: &Curve| -> Vec<Option<f64>> {
                curve.values.iter().map(|value| value.map(|value| round(value / self.unit.size))).collect()
            };
            let to_json = |curve: &Curve| serde_json::json!([curve.name, curve.class, values(curve)]);
            curves.iter().map(to_json).collect()
        };
        let mut all = curves(&self.lines);
        // Lists the top of the stack first, as on the screen.
        all.extend(curves(&self.stacked).into_iter().rev());
        let times: Vec<f64> = self.time_s.iter().copied().map(round_s).collect();
        let geometry = [self.x.start, self.x.end, self.y.end, self.y.start];
        let (to, unit) = (round_s(self.x.to), self.unit.name);
        escape(&serde_json::json!({ "x": geometry, "to": to, "t": times, "unit": unit, "c": all }).to_string())
    }
}

/// The highest point of the stack and of all lines.
fn highest(stacked: &[Curve], lines: &[Curve], points: usize) -> f64 {
    let value = |curve: &Curve, index: usize| curve.values.get(index).copied().flatten().unwrap_or(0.0);
    let tops = (0..points).map(|index| stacked.iter().map(|curve| value(curve, index)).sum::<f64>());
    let line_tops = lines.iter().flat_map(|curve| curve.values.iter().flatten().copied());
    tops.chain(line_tops).fold(0.0, f64::max)
}

fn line_path(time_s: &[f64], values: &[Option<f64>], x: Scale, y: Scale) -> String {
    let mut path = String::new();
    let mut pen_down = false;
    let mut points = time_s.iter().zip(values).peekable();
    while let Some((time, value)) = points.next() {
        if let Some(value) = value {
            let command = if pen_down { 'L' } else { 'M' };
            let _ = write!(path, "{command}{:.1} {:.1}", x.at(*time), y.at(*value));
            // A browser draws nothing without a segment; a round cap makes one without length a dot.
            if !pen_down && points.peek().is_none_or(|(_, next)| next.is_none()) {
                path.push_str("h0");
            }
        }
        pen_down = value.is_some();
    }
    path
}

impl Ribbon {
    fn shortened(self, group: usize) -> Self {
        Self { low: thin::averaged(&self.low, group), high: thin::averaged(&self.high, group), ..self }
    }
}

/// Traces the area between both edges over the times that have both.
fn ribbon_path(time_s: &[f64], ribbon: &Ribbon, x: Scale, y: Scale) -> String {
    let edges = time_s.iter().zip(ribbon.low.iter().zip(&ribbon.high));
    let known: Vec<(f64, (f64, f64))> =
        edges.filter_map(|(time, (low, high))| Some((*time, ((*low)?, (*high)?)))).collect();
    let (times, (low, high)): (Vec<f64>, (Vec<f64>, Vec<f64>)) = known.into_iter().unzip();
    if times.is_empty() { String::new() } else { area_path(&times, &low, &high, x, y) }
}

fn area_path(time_s: &[f64], below: &[f64], above: &[f64], x: Scale, y: Scale) -> String {
    let mut path = String::new();
    for (index, (time, value)) in time_s.iter().zip(above).enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", x.at(*time), y.at(*value));
    }
    for (time, value) in time_s.iter().zip(below).rev() {
        let _ = write!(path, "L{:.1} {:.1}", x.at(*time), y.at(*value));
    }
    path.push('Z');
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lifts_the_pen_and_a_value_between_gaps_is_a_dot() {
        let unit = Scale { from: 0.0, to: 1.0, start: 0.0, end: 1.0 };
        let path = |values: &[Option<f64>]| line_path(&[0.0, 1.0, 2.0, 3.0], values, unit, unit);
        assert_eq!(path(&[Some(1.0), Some(2.0), None, Some(3.0)]), "M0.0 1.0L1.0 2.0M3.0 3.0h0");
        assert_eq!(path(&[Some(1.0), None, Some(2.0), Some(3.0)]), "M0.0 1.0h0M2.0 2.0L3.0 3.0");
        assert_eq!(path(&[None, Some(1.0), None, None]), "M1.0 1.0h0");
        assert_eq!(path(&[Some(1.0)]), "M0.0 1.0h0");
    }

    fn chart<'a>(time_s: &'a [f64], stacked: Vec<Curve>, lines: Vec<Curve>) -> Chart<'a> {
        let (units, marked_s, ribbons) = (super::super::scale::TIMES, Vec::new(), Vec::new());
        let (label, size, band, counted_s) = ("made up", (460.0, 230.0), None, None);
        Chart { label, size, units, time_s, band, marked_s, counted_s, stacked, ribbons, lines }
    }

    fn curve(values: &[f64]) -> Curve {
        Curve { name: "a".into(), class: "ink".into(), values: values.iter().copied().map(Some).collect() }
    }

    #[test]
    fn a_stack_over_a_single_time_has_a_width() {
        let svg = chart(&[2.0], vec![curve(&[1.0])], Vec::new()).svg();
        // From the left margin to the right one, at the top of the axis.
        assert!(svg.contains("d=\"M46.0 24.0L446.0 24.0L446.0 204.0L46.0 204.0Z\""), "{svg}");
    }

    /// Delays of a few milliseconds, and none at all.
    #[test]
    fn the_crosshair_tells_small_times_apart() {
        let svg = |time_s: &[f64]| chart(time_s, Vec::new(), vec![curve(&vec![1.0; time_s.len()])]).svg();
        let small = svg(&[0.0, 0.000_1, 0.000_12, 0.000_400_01]);
        assert!(small.contains("&quot;t&quot;:[0.0,0.0001,0.00012,0.00040001],"), "{small}");
        assert!(small.contains("&quot;to&quot;:0.00040001,"), "{small}");
        let usual = svg(&[0.1, 0.2, 0.300_000_000_000_000_04]);
        assert!(usual.contains("&quot;t&quot;:[0.1,0.2,0.3],&quot;to&quot;:0.3,"), "{usual}");
        assert!(svg(&[0.1, 1_234.567_8]).contains("&quot;t&quot;:[0.1,1234.568],"));
        let none = svg(&[0.0, 0.0]);
        assert!(none.contains("&quot;to&quot;:1.0,") && !none.contains("NaN"), "{none}");
    }

    #[test]
    fn a_ribbon_spans_the_times_that_have_both_edges() {
        let unit = Scale { from: 0.0, to: 1.0, start: 0.0, end: 1.0 };
        let ribbon = Ribbon {
            class: String::new(),
            low: vec![Some(1.0), None, Some(2.0)],
            high: vec![Some(4.0), Some(5.0), Some(6.0)],
        };
        assert_eq!(ribbon_path(&[0.0, 1.0, 2.0], &ribbon, unit, unit), "M0.0 4.0L2.0 6.0L2.0 2.0L0.0 1.0Z");
    }
}
