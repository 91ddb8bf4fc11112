//! Losses as strips: one row per path, one cell per window, darker with more losses.

use std::fmt::Write;

use super::html::escape;
use super::scale::{Scale, draw_time_ticks};
use super::thin;

const WIDTH: f64 = 460.0;
const ROW: f64 = 34.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 446.0;
/// Loss at which a cell has its full colour.
const FULL_RATIO: f64 = 0.25;

/// One row.
pub(super) struct Row<'a> {
    /// The path's name.
    pub name: &'a str,
    /// CSS class for its colour.
    pub class: String,
    /// Loss per window.
    pub loss_ratio: &'a [Option<f64>],
}

/// Draws `rows` over the windows that end at `time_s`.
pub(super) fn svg(time_s: &[f64], rows: &[Row<'_>]) -> String {
    let base = 8.0 + rows.len() as f64 * ROW;
    let end_s = time_s.last().copied().unwrap_or(1.0);
    let x = Scale { from: 0.0, to: end_s, start: LEFT, end: RIGHT };
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"Loss per path over time\">",
        base + 26.0
    );
    let times = thin::times(time_s, thin::group_of(time_s.len()));
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, 8.0 + index as f64 * ROW, &times, x);
    }
    draw_time_ticks(&mut svg, x, base, 6);
    svg.push_str("</svg>");
    svg
}

fn draw_row(svg: &mut String, row: &Row<'_>, top: f64, time_s: &[f64], x: Scale) {
    let middle = top + ROW / 2.0 + 0.5;
    let _ =
        write!(svg, "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", LEFT - 8.0, middle, escape(row.name));
    let _ = write!(
        svg,
        "<rect class=\"bed\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"/>",
        RIGHT - LEFT,
        ROW - 8.0
    );
    let mut from_s = 0.0;
    let group = thin::group_of(row.loss_ratio.len());
    // Windows with few packets count as much as those with many.
    let averaged = if group > 1 { format!(", the mean of {group} windows") } else { String::new() };
    for (&to_s, loss) in time_s.iter().zip(thin::averaged(row.loss_ratio, group)) {
        if let Some(loss) = loss.filter(|loss| *loss > 0.0) {
            // The minimum keeps a single lost packet visible.
            let opacity = (0.25 + 0.75 * loss / FULL_RATIO).min(1.0);
            let (start, width) = (x.at(from_s), (x.at(to_s) - x.at(from_s)).max(1.5));
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{start:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" \
                 fill-opacity=\"{opacity:.2}\"><title>{} at {to_s:.1} s: {:.1} % lost{averaged}</title></rect>",
                row.class,
                ROW - 8.0,
                escape(row.name),
                loss * 100.0
            );
        }
        from_s = to_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two windows that share a cell, only one lost packets.
    #[test]
    fn a_cell_of_several_windows_says_so() {
        let drawn = |windows: usize| {
            let loss_ratio: Vec<Option<f64>> = (0..windows).map(|window| Some((window % 2) as f64)).collect();
            let time_s: Vec<f64> = (1..=windows).map(|end| end as f64).collect();
            svg(&time_s, &[Row { name: "a", class: "p0".into(), loss_ratio: &loss_ratio }])
        };
        let grouped = drawn(1200);
        assert!(grouped.contains("<title>a at 2.0 s: 50.0 % lost, the mean of 2 windows</title>"), "{grouped}");
        assert!(drawn(4).contains("<title>a at 2.0 s: 100.0 % lost</title>"));
    }
}
