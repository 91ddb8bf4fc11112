//! The picture of the run: from the source through the relays to the destination, with branches as wide as their
//! shares.

use std::fmt::Write;

use super::html::escape;
use crate::present::quantity;

const WIDTH: f64 = 920.0;
const ROW: f64 = 62.0;
const SOURCE_X: f64 = HOST_WIDTH;
/// Horizontal position of the relays.
const RELAY_X: f64 = WIDTH / 2.0;
const DESTINATION_X: f64 = WIDTH - HOST_WIDTH;
/// Width of the whole stream.
const STREAM: f64 = 72.0;
const RELAY_WIDTH: f64 = 200.0;
const RELAY_HEIGHT: f64 = 44.0;
const HOST_WIDTH: f64 = 112.0;

/// One branch.
pub(super) struct Branch {
    /// The relay's name.
    pub name: String,
    /// CSS class for its colour.
    pub class: String,
    /// Octets on this branch.
    pub bytes: u64,
    /// Its share of all octets.
    pub share: f64,
    /// A remark of one line.
    pub note: String,
}

/// Draws `branches`.
pub(super) fn svg(branches: &[Branch]) -> String {
    let height = (branches.len() as f64 * ROW).max(STREAM + 40.0) + 8.0;
    let middle = height / 2.0;
    let mut svg = format!(
        "<svg class=\"river\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Shares of the relays between source and destination\">"
    );
    let first_row = middle - branches.len() as f64 * ROW / 2.0 + ROW / 2.0;
    let mut bank = middle - STREAM / 2.0;
    for (index, branch) in branches.iter().enumerate() {
        let width = (branch.share * STREAM).max(1.0);
        let (join, row) = (bank + branch.share * STREAM / 2.0, first_row + index as f64 * ROW);
        bank += branch.share * STREAM;
        draw_branch(&mut svg, branch, width, join, row);
    }
    for (index, branch) in branches.iter().enumerate() {
        draw_relay(&mut svg, branch, first_row + index as f64 * ROW);
    }
    draw_host(&mut svg, "source", 0.0, middle);
    draw_host(&mut svg, "destination", DESTINATION_X, middle);
    svg.push_str("</svg>");
    svg
}

/// One stroke from the source's edge through the relay's row to the destination's edge.
fn draw_branch(svg: &mut String, branch: &Branch, width: f64, join: f64, row: f64) {
    let (left, right) = (RELAY_X - RELAY_WIDTH / 2.0, RELAY_X + RELAY_WIDTH / 2.0);
    let (near, far) = ((SOURCE_X + left) / 2.0, (right + DESTINATION_X) / 2.0);
    let _ = write!(
        svg,
        "<path class=\"branch {}\" stroke-width=\"{width:.1}\" d=\"M{SOURCE_X} {join:.1}C{near} {join:.1} {near} {row:.1} \
         {left} {row:.1}H{right}C{far} {row:.1} {far} {join:.1} {DESTINATION_X} {join:.1}\"/>",
        branch.class
    );
}

fn draw_relay(svg: &mut String, branch: &Branch, row: f64) {
    let _ = write!(
        svg,
        "<rect class=\"relay {}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{RELAY_WIDTH}\" height=\"{RELAY_HEIGHT}\" rx=\"9\"/>\
         <text class=\"name\" x=\"{RELAY_X}\" y=\"{:.1}\">{} <tspan class=\"share\">{:.0} %</tspan></text>\
         <text class=\"note\" x=\"{RELAY_X}\" y=\"{:.1}\">{}, {}</text>",
        branch.class,
        RELAY_X - RELAY_WIDTH / 2.0,
        row - RELAY_HEIGHT / 2.0,
        row - 3.0,
        escape(&branch.name),
        branch.share * 100.0,
        row + 13.0,
        quantity(branch.bytes as f64, "B"),
        escape(&branch.note),
    );
}

fn draw_host(svg: &mut String, name: &str, x: f64, middle: f64) {
    let top = middle - STREAM / 2.0 - 6.0;
    let _ = write!(
        svg,
        "<rect class=\"host\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{HOST_WIDTH}\" height=\"{:.1}\" rx=\"9\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
        STREAM + 12.0,
        x + HOST_WIDTH / 2.0,
        middle + 5.0,
    );
}
