//! The picture of a cooperative cell: source, eNB, relays at their distances, and the destination that they reach by
//! Wi-Fi.

use std::fmt::Write;

use super::View;
use super::html::escape;
use super::scale::{tick_label, ticks_within};
use crate::measure::results::{RelayResults, Results};
use crate::present::quantity;

const WIDTH: f64 = 920.0;
const HOST_WIDTH: f64 = 112.0;
const HOST_HEIGHT: f64 = 46.0;
/// Position of the eNB; without one, of the point where the links diverge.
const ENB_X: f64 = 204.0;
/// Drawn distance of the farthest relay.
const REACH: f64 = 410.0;
/// Minimum distance: nearer relays would cover the eNB.
const REACH_MIN: f64 = 40.0;
const DESTINATION_X: f64 = WIDTH - HOST_WIDTH;
/// Angle between neighbours on the ring, unless the ring would then be wider than `SPREAD_MAX`, both in degrees.
const STEP: f64 = 9.0;
const SPREAD_MAX: f64 = 76.0;
/// Width of a link that carries all of the traffic.
const STREAM: f64 = 44.0;
/// Maximum number of labels without overlaps.
const LABELS_MAX: usize = 16;
/// Space above and below the relays.
const MARGIN: f64 = 44.0;

/// Position of a relay.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    x: f64,
    y: f64,
}

/// The whole picture.
struct Picture<'a> {
    view: &'a View<'a>,
    relays: &'a [RelayResults],
    places: Vec<Place>,
    middle: f64,
    farthest_m: Option<f64>,
}

/// Draws the relays of `view`'s results.
pub(super) fn svg(view: &View<'_>) -> String {
    let relays = &view.results.relays;
    let farthest_m = relays.iter().filter_map(|relay| relay.distance_m).reduce(f64::max);
    let height = 2.0 * (REACH * libm::sin(spread(relays.len()) / 2.0) + MARGIN).max(110.0);
    let middle = height / 2.0;
    let places: Vec<Place> = (0..relays.len()).map(|index| place(relays, index, farthest_m, middle)).collect();
    let picture = Picture { view, relays, places, middle, farthest_m };
    let mut svg = format!(
        "<svg class=\"topology wide\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"Source, relays and destination; links as wide as what they carried\">"
    );
    picture.draw(&mut svg);
    svg.push_str("</svg>");
    svg
}

/// The angle that `relays` relays occupy, in radians.
fn spread(relays: usize) -> f64 {
    (STEP * relays.saturating_sub(1) as f64).min(SPREAD_MAX).to_radians()
}

/// The position of a relay: the first at the top of the ring, the last at the bottom, distances to scale.
fn place(relays: &[RelayResults], index: usize, farthest_m: Option<f64>, middle: f64) -> Place {
    let spread = spread(relays.len());
    let step = spread / (relays.len() as f64 - 1.0).max(1.0);
    let angle = index as f64 * step - spread / 2.0;
    let reach = match (relays[index].distance_m, farthest_m) {
        (Some(distance_m), Some(farthest_m)) if farthest_m > 0.0 => REACH * distance_m / farthest_m,
        _ => REACH,
    };
    let reach = reach.max(REACH_MIN);
    Place { x: ENB_X + reach * libm::cos(angle), y: middle + reach * libm::sin(angle) }
}

impl Picture<'_> {
    fn draw(&self, svg: &mut String) {
        self.draw_rings(svg);
        // Relays that were not chosen are drawn first, below the others.
        for idle in [true, false] {
            for (relay, place) in self.relays.iter().zip(&self.places) {
                if relay.chosen != idle && (relay.chosen || self.relays.len() <= 2 * LABELS_MAX) {
                    self.draw_links(svg, relay, *place);
                }
            }
        }
        if self.farthest_m.is_some() {
            let (from, y) = (HOST_WIDTH, self.middle);
            let _ = write!(svg, "<path class=\"link core\" d=\"M{from} {y:.1}H{ENB_X}\"/>");
            draw_enb(svg, self.middle, self.relays.iter().any(|relay| relay.site.is_some()));
        }
        for (relay, place) in self.relays.iter().zip(&self.places) {
            self.draw_relay(svg, relay, *place);
        }
        self.draw_labels(svg);
        draw_host(svg, "source", 0.0, self.middle);
        draw_host(svg, "destination", DESTINATION_X, self.middle);
        let note = self.view.results.wlan_note();
        let (x, y) = (DESTINATION_X + HOST_WIDTH / 2.0, self.middle + HOST_HEIGHT / 2.0 + 17.0);
        let _ = write!(svg, "<text class=\"mid\" x=\"{x}\" y=\"{y:.1}\">{}</text>", escape(&note));
    }

    /// Arcs of equal distance.
    fn draw_rings(&self, svg: &mut String) {
        let Some(farthest_m) = self.farthest_m.filter(|farthest_m| *farthest_m > 0.0) else { return };
        let half = spread(self.relays.len()) / 2.0 + 0.06;
        let ticks = ticks_within(farthest_m, 6);
        let step = ticks.get(1).copied().unwrap_or(1.0);
        for tick in ticks.into_iter().skip(1) {
            let reach = REACH * tick / farthest_m;
            let (x, dy) = (ENB_X + reach * libm::cos(half), reach * libm::sin(half));
            let (top, bottom) = (self.middle - dy, self.middle + dy);
            let _ = write!(
                svg,
                "<path class=\"ring\" d=\"M{x:.1} {top:.1}A{reach:.1} {reach:.1} 0 0 1 {x:.1} {bottom:.1}\"/>\
                 <text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{} m</text>",
                bottom + 14.0,
                tick_label(tick, step)
            );
        }
    }

    /// The cellular and the Wi-Fi hop of one relay.
    fn draw_links(&self, svg: &mut String, relay: &RelayResults, place: Place) {
        let start_x = if relay.distance_m.is_some() { ENB_X } else { HOST_WIDTH };
        let (x, y, middle) = (place.x, place.y, self.middle);
        let near = (x + DESTINATION_X) / 2.0;
        let width = (relay.share_ratio * STREAM).max(1.2);
        let class = self.class(relay);
        let _ = write!(
            svg,
            "<path class=\"link {class}\" stroke-width=\"{width:.1}\" d=\"M{start_x} {middle:.1}L{x:.1} {y:.1}\"/>"
        );
        if relay.chosen {
            let _ = write!(
                svg,
                "<path class=\"link {class}\" stroke-width=\"{width:.1}\" d=\"M{x:.1} {y:.1}C{near:.1} {y:.1} {near:.1} \
                 {middle:.1} {DESTINATION_X} {middle:.1}\"/>"
            );
        }
    }

    fn draw_relay(&self, svg: &mut String, relay: &RelayResults, place: Place) {
        let size = if relay.chosen { 7.5 } else { 4.5 };
        let size = if self.relays.len() > 2 * LABELS_MAX { size * 0.6 } else { size };
        let _ = write!(
            svg,
            "<circle class=\"phone {}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{size:.1}\"><title>{}</title></circle>",
            self.class(relay),
            place.x,
            place.y,
            escape(&described(relay, self.view.results))
        );
    }

    /// Names of all relays, or only of the selected ones if there is not enough space.
    fn draw_labels(&self, svg: &mut String) {
        let chosen = self.relays.iter().filter(|relay| relay.chosen).count();
        let all = self.relays.len() <= LABELS_MAX;
        if !all && chosen > LABELS_MAX {
            return;
        }
        for (relay, place) in self.relays.iter().zip(&self.places) {
            if all || relay.chosen {
                let class = if relay.chosen { "label" } else { "label idle" };
                let (x, y, name) = (place.x, place.y - 12.0, escape(&relay.name));
                let share = format!("<tspan class=\"share\">{:.0} %</tspan>", relay.share_ratio * 100.0);
                let share = if relay.chosen { share } else { String::new() };
                let _ = write!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name} {share}</text>");
            }
        }
    }

    fn class(&self, relay: &RelayResults) -> String {
        if relay.chosen { self.view.class(&relay.name) } else { "idle".into() }
    }
}

/// The description of a relay that the pointer shows.
fn described(relay: &RelayResults, results: &Results) -> String {
    let distance = relay.distance_m.map_or(String::new(), |distance_m| format!(", {distance_m:.0} m"));
    let rate = quantity(crate::measure::bps(relay.carried_bytes, results.totals.duration_s), "bit/s");
    let carried = if relay.chosen { format!("carried {rate}") } else { "not chosen".into() };
    format!("{}{distance}, {carried}", relay.name)
}

/// A mast with waves, which stands for all if there are several.
fn draw_enb(svg: &mut String, middle: f64, are_several: bool) {
    let name = if are_several { "eNBs" } else { "eNB" };
    let (top, foot) = (middle - 26.0, middle + 18.0);
    let _ = write!(
        svg,
        "<circle class=\"mast-bed\" cx=\"{ENB_X}\" cy=\"{middle:.1}\" r=\"33\"/>\
         <path class=\"mast\" d=\"M{:.1} {foot:.1}L{ENB_X} {:.1}L{:.1} {foot:.1}M{:.1} {:.1}h12M{:.1} {:.1}a10 10 0 0 1 \
         0 -14M{:.1} {:.1}a10 10 0 0 0 0 -14\"/><circle class=\"mast-tip\" cx=\"{ENB_X}\" cy=\"{:.1}\" r=\"3\"/>\
         <text class=\"name\" x=\"{ENB_X}\" y=\"{:.1}\">{name}</text>",
        ENB_X - 10.0,
        top + 13.0,
        ENB_X + 10.0,
        ENB_X - 6.0,
        middle + 6.0,
        ENB_X - 9.0,
        top + 19.0,
        ENB_X + 9.0,
        top + 19.0,
        top + 12.0,
        middle + 52.0,
    );
}

fn draw_host(svg: &mut String, name: &str, x: f64, middle: f64) {
    let _ = write!(
        svg,
        "<rect class=\"host\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{HOST_WIDTH}\" height=\"{HOST_HEIGHT}\" rx=\"9\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
        middle - HOST_HEIGHT / 2.0,
        x + HOST_WIDTH / 2.0,
        middle + 5.0,
    );
}

impl Results {
    /// Describes how the relays reach the destination.
    fn wlan_note(&self) -> String {
        let wlan = self.manifest.content.get("wlan").filter(|wlan| !wlan.is_null());
        match wlan.map(|wlan| wlan.get("rate").and_then(|rate| rate.as_str()).unwrap_or_default()) {
            Some(rate) => format!("one Wi-Fi {rate}"),
            None => "Wi-Fi".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(distance_m: Option<f64>) -> RelayResults {
        RelayResults { distance_m, ..RelayResults::default() }
    }

    #[test]
    fn one_relay_stands_straight_ahead_and_distances_are_to_scale() {
        assert_eq!(place(&[at(Some(700.0))], 0, Some(700.0), 100.0), Place { x: ENB_X + REACH, y: 100.0 });
        assert_eq!(place(&[at(Some(350.0))], 0, Some(700.0), 100.0), Place { x: ENB_X + REACH / 2.0, y: 100.0 });
        assert_eq!(place(&[at(None)], 0, None, 100.0), Place { x: ENB_X + REACH, y: 100.0 });
        assert_eq!(place(&[at(Some(0.0))], 0, Some(0.0), 0.0), Place { x: ENB_X + REACH, y: 0.0 });
    }

    #[test]
    fn a_ring_of_any_size_stays_within_its_angle() {
        for relays in [2, 10, 100, 1000] {
            let ring = vec![at(Some(900.0)); relays];
            let ends = [0, relays - 1].map(|index| place(&ring, index, Some(900.0), 0.0));
            let height = REACH * libm::sin(38.0_f64.to_radians());
            assert!(ends[0].y < 0.0 && (ends[0].y + ends[1].y).abs() < 1e-9, "{ends:?}");
            assert!(ends[1].y <= height + 1e-9, "{ends:?}");
        }
    }
}
