//! The eNBs of a cell that has several: a map of them and of the relays' ways, and who served each relay when.

use std::fmt::Write;

use serde_json::Value;
use units::Duration;

use super::html::escape;
use super::scale::{Scale, draw_time_ticks, tick_label, ticks_within};
use super::{View, figure};
use crate::measure::results::RelayResults;
use crate::scenario::Walk;

const WIDTH: f64 = 920.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = 896.0;
/// Height of a relay's row, on the map and over time.
const ROW: f64 = 22.0;
/// Height of its bar over time.
const BAR: f64 = 14.0;
/// Space above the northernmost eNB and below the last relay of the map.
const MARGIN: f64 = 46.0;
/// Distance between the lines of relays on a map that is not flat: enough to tell them apart.
const APART: f64 = 4.0;
/// Extent of a map from north to south up to which it is flat.
const FLAT: f64 = 60.0;
/// Maximum extent of the map from north to south.
const EXTENT_MAX: f64 = 420.0;
/// Height and width per character of a label.
const LABEL: (f64, f64) = (13.0, 6.6);
/// Maximum number of characters of a relay's name beside its drawing.
const NAME_MAX: usize = 16;
/// Number of characters of a longer name that stay at its end.
const NAME_END: usize = 6;
/// Maximum number of relays that are drawn; those that carried most come first.
const RELAYS_MAX: usize = 24;
/// Colours of eNBs; they begin where those of a few relays end.
const COLOURS: usize = 8;
const FIRST_COLOUR: usize = 4;

/// A time with one eNB.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stay {
    site: usize,
    from_s: f64,
    to_s: f64,
}

/// A relay with what is drawn of it. Places are metres east and north.
struct Track<'a> {
    relay: &'a RelayResults,
    stays: Vec<Stay>,
    from_m: [f64; 2],
    walk: Option<Walk>,
}

/// The figure; empty unless there are several eNBs.
pub(super) fn section(view: &View<'_>) -> String {
    let content = &view.results.manifest.content;
    let end_s = view.results.totals.duration_s;
    let sites_m = content.pointer("/cell/sites_m").cloned().and_then(|sites| serde_json::from_value(sites).ok());
    let sites_m: Vec<[f64; 2]> = sites_m.unwrap_or_default();
    let indexed = view.results.relays.iter().enumerate().filter(|(_, relay)| relay.site.is_some());
    let mut relays: Vec<(usize, &RelayResults)> = indexed.collect();
    if relays.is_empty() || sites_m.len() < 2 || end_s <= 0.0 {
        return String::new();
    }
    let all = relays.len();
    if all > RELAYS_MAX {
        relays.sort_by_key(|(_, relay)| core::cmp::Reverse(relay.carried_bytes));
        relays.truncate(RELAYS_MAX);
    }
    let tracks: Vec<Track<'_>> = relays
        .into_iter()
        .map(|(index, relay)| Track::new(relay, &content["relays"][index], sites_m[0], end_s))
        .collect();
    let shown =
        if all > RELAYS_MAX { format!(" The {RELAYS_MAX} of {all} relays that carried most.") } else { String::new() };
    let caption = format!(
        "Above, a map: east is to the right, and the eNBs and the ways of relays are to scale. Each relay has a line of \
         its own, south of where it is; its colour is that of the eNB that served it there. Dashed lines lead from eNBs \
         to relays that stay where they are. Below, the same over time. Rings are handovers.{shown}"
    );
    let drawing = format!("{}{}", Map::new(&sites_m, &tracks).svg(view), over_time(&tracks, end_s));
    figure("eNBs", &caption, &legend(sites_m.len()), &drawing)
}

/// The CSS class for an eNB's colour.
fn class(site: usize) -> String {
    format!("p{}", (FIRST_COLOUR + site) % COLOURS)
}

fn legend(sites: usize) -> String {
    let item = |site| format!("<li><i class=\"{}\"></i>eNB {site}</li>", class(site));
    format!("<ul class=\"legend\">{}</ul>", (0..sites).map(item).collect::<String>())
}

/// The eNBs of a relay in order, until the end of the run or the relay's departure.
fn stays(relay: &RelayResults, end_s: f64) -> Vec<Stay> {
    let mut stays = Vec::new();
    let first = relay.handovers.first().map(|handover| handover.from).or(relay.site);
    let mut stay = Stay { site: first.unwrap_or(0), from_s: 0.0, to_s: end_s };
    for handover in &relay.handovers {
        stays.push(Stay { to_s: handover.at_s, ..stay });
        stay = Stay { site: handover.to, from_s: handover.at_s, to_s: end_s };
    }
    stays.push(stay);
    stays
}

impl<'a> Track<'a> {
    /// `content` is the relay in the manifest's scenario; `site_m` is the place of the first eNB.
    fn new(relay: &'a RelayResults, content: &Value, site_m: [f64; 2], end_s: f64) -> Self {
        let leaves = content["leaves"].as_str().and_then(|text| text.parse::<Duration>().ok());
        let end_s = leaves.map_or(end_s, |leaves| leaves.as_secs_f64().min(end_s));
        let walk = content.pointer("/place/walk").cloned().and_then(|walk| serde_json::from_value(walk).ok());
        let from_m = [site_m[0] + relay.distance_m.unwrap_or(0.0), site_m[1]];
        Self { relay, stays: stays(relay, end_s), from_m, walk }
    }

    /// Its place at a time.
    fn at_m(&self, time_s: f64) -> [f64; 2] {
        let Some(walk) = self.walk else { return self.from_m };
        let start_s = walk.start.map_or(0.0, |start| start.0.as_secs_f64());
        let way_m = [0, 1].map(|axis| walk.to_m[axis] - self.from_m[axis]);
        let lasts_s = libm::hypot(way_m[0], way_m[1]) / (walk.speed_kmh / 3.6);
        let part = if lasts_s > 0.0 { ((time_s - start_s) / lasts_s).clamp(0.0, 1.0) } else { 0.0 };
        [0, 1].map(|axis| self.from_m[axis] + part * way_m[axis])
    }

    fn end_s(&self) -> f64 {
        self.stays.last().map_or(0.0, |stay| stay.to_s)
    }
}

/// A map of eNBs and relays.
struct Map<'a> {
    sites_m: &'a [[f64; 2]],
    tracks: &'a [Track<'a>],
    west_m: f64,
    north_m: f64,
    east_m: f64,
    pixels_per_m: f64,
    /// Position of the westernmost place.
    left: f64,
    /// Distance between the lines of two relays.
    row: f64,
    height: f64,
}

impl<'a> Map<'a> {
    fn new(sites_m: &'a [[f64; 2]], tracks: &'a [Track<'a>]) -> Self {
        let ends = tracks.iter().flat_map(|track| [track.from_m, track.at_m(track.end_s())]);
        let places: Vec<[f64; 2]> = sites_m.iter().copied().chain(ends).collect();
        let bounds = |axis: usize| {
            let values = places.iter().map(|place| place[axis]);
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
        };
        let ((west_m, east_m), (south_m, north_m)) = (bounds(0), bounds(1));
        let to_width = (RIGHT - LEFT) / (east_m - west_m).max(1.0);
        let pixels_per_m = to_width.min(EXTENT_MAX / (north_m - south_m).max(1.0));
        let extent = (north_m - south_m) * pixels_per_m;
        let row = if extent <= FLAT { ROW } else { APART };
        let height = extent + 2.0 * MARGIN + row * tracks.len() as f64;
        let left = (LEFT + RIGHT - (east_m - west_m) * pixels_per_m) / 2.0;
        Self { sites_m, tracks, west_m, north_m, east_m, pixels_per_m, left, row, height }
    }

    /// The position of a place; relay number `row` is drawn below its place.
    fn at(&self, [east_m, north_m]: [f64; 2], row: Option<usize>) -> (f64, f64) {
        let below = row.map_or(0.0, |row| 1.2 * self.row + self.row * row as f64);
        let (x, y) = ((east_m - self.west_m) * self.pixels_per_m, (self.north_m - north_m) * self.pixels_per_m);
        (self.left + x, MARGIN + y + below)
    }

    fn svg(&self, view: &View<'_>) -> String {
        let mut svg = format!(
            "<svg class=\"topology sites wide\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
             aria-label=\"Map of eNBs and relays\">",
            self.height
        );
        self.draw_scale(&mut svg);
        for (row, track) in self.tracks.iter().enumerate() {
            self.draw_way(&mut svg, row, track);
        }
        for (site, place_m) in self.sites_m.iter().enumerate() {
            draw_mast(&mut svg, site, self.at(*place_m, None));
        }
        self.draw_relays(&mut svg, view);
        svg.push_str("</svg>");
        svg
    }

    /// Relays where they start, with their names where there is room for them.
    fn draw_relays(&self, svg: &mut String, view: &View<'_>) {
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        for (row, track) in self.tracks.iter().enumerate() {
            let (x, y) = self.at(track.from_m, Some(row));
            let class = if track.relay.chosen { view.class(&track.relay.name) } else { "idle".into() };
            let name = &track.relay.name;
            let _ = write!(
                svg,
                "<circle class=\"phone {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"><title>{}</title></circle>",
                escape(name)
            );
            let label = (x - 10.0 - LABEL.1 * name.chars().count().min(NAME_MAX) as f64, x + 6.0, y);
            if taken.iter().all(|other| !overlap(label, *other)) {
                taken.push(label);
                let (end, base, name) = (x - 10.0, y + 4.0, escape(&short(name)));
                let _ = write!(svg, "<text class=\"tick end\" x=\"{end:.1}\" y=\"{base:.1}\">{name}</text>");
            }
        }
    }

    /// A line of round length, with its metres.
    fn draw_scale(&self, svg: &mut String) {
        let ticks = ticks_within((self.east_m - self.west_m).max(1.0), 4);
        let step_m = ticks.get(1).copied().unwrap_or(1.0);
        let (from, y) = (RIGHT - step_m * self.pixels_per_m, self.height - 10.0);
        let _ = write!(
            svg,
            "<path class=\"scale\" d=\"M{from:.1} {:.1}v4H{RIGHT}v-4\"/><text class=\"tick end\" x=\"{:.1}\" \
             y=\"{y:.1}\">{} m</text>",
            y - 4.0,
            from - 8.0,
            tick_label(step_m, step_m)
        );
    }

    /// The way of a relay in the colours of its eNBs; for one that stays, lines to them.
    fn draw_way(&self, svg: &mut String, row: usize, track: &Track<'_>) {
        for (number, stay) in track.stays.iter().enumerate() {
            let (start, end) = (track.at_m(stay.from_s), track.at_m(stay.to_s));
            let (x, y) = self.at(start, Some(row));
            let (to_x, to_y) = self.at(end, Some(row));
            let class = class(stay.site);
            if track.walk.is_none() {
                let site_m = self.sites_m.get(stay.site).copied().unwrap_or(track.from_m);
                let (mast_x, mast_y) = self.at(site_m, None);
                let _ =
                    write!(svg, "<path class=\"served still {class}\" d=\"M{mast_x:.1} {mast_y:.1}L{x:.1} {y:.1}\"/>");
                continue;
            }
            let _ = write!(svg, "<path class=\"served {class}\" d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\"/>");
            if number > 0 {
                let said = handover(track.relay, stay, track.stays[number - 1].site);
                let _ = write!(
                    svg,
                    "<circle class=\"change\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{said}</title></circle>"
                );
            }
        }
    }
}

/// Returns whether two labels overlap: their ends from left to right, and their middles.
fn overlap((from, to, y): (f64, f64, f64), (other_from, other_to, other_y): (f64, f64, f64)) -> bool {
    from < other_to && other_from < to && (y - other_y).abs() < LABEL.0
}

/// A name that fits beside a drawing. Names of a section end in numbers, so the end stays.
fn short(name: &str) -> String {
    match name.chars().count() {
        0..=NAME_MAX => name.into(),
        all => {
            let end = name.chars().skip(all - NAME_END);
            name.chars().take(NAME_MAX - NAME_END - 1).chain(['…']).chain(end).collect()
        }
    }
}

fn handover(relay: &RelayResults, stay: &Stay, before: usize) -> String {
    format!("{}: from eNB {before} to eNB {} at {:.1} s", escape(&relay.name), stay.site, stay.from_s)
}

fn draw_mast(svg: &mut String, site: usize, (x, y): (f64, f64)) {
    let _ = write!(
        svg,
        "<path class=\"mast\" d=\"M{:.1} {:.1}L{x:.1} {:.1}L{:.1} {:.1}\"/><circle class=\"site {}\" cx=\"{x:.1}\" \
         cy=\"{:.1}\" r=\"5.5\"/><text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">eNB {site}</text>",
        x - 7.0,
        y + 10.0,
        y - 12.0,
        x + 7.0,
        y + 10.0,
        class(site),
        y - 13.0,
        y - 25.0,
    );
}

/// A row for each relay, with a bar for each time with one eNB.
fn over_time(tracks: &[Track<'_>], end_s: f64) -> String {
    let base = 8.0 + ROW * tracks.len() as f64;
    let x = Scale { from: 0.0, to: end_s, start: LEFT, end: RIGHT };
    let mut svg = format!(
        "<svg class=\"strip wide\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"The eNB that served each relay \
         over time\">",
        base + 26.0
    );
    for (row, track) in tracks.iter().enumerate() {
        draw_stays(&mut svg, track, 8.0 + ROW * row as f64, x);
    }
    draw_time_ticks(&mut svg, x, base, 8);
    svg.push_str("</svg>");
    svg
}

/// The name of a relay, and a bar for each time with one eNB.
fn draw_stays(svg: &mut String, track: &Track<'_>, top: f64, x: Scale) {
    let name = escape(&track.relay.name);
    let (end, base, label) = (LEFT - 10.0, top + BAR - 2.0, escape(&short(&track.relay.name)));
    let _ = write!(svg, "<text class=\"tick end\" x=\"{end:.1}\" y=\"{base:.1}\">{label}</text>");
    for (number, stay) in track.stays.iter().enumerate() {
        let (from, width) = (x.at(stay.from_s), (x.at(stay.to_s) - x.at(stay.from_s)).max(0.5));
        let _ = write!(
            svg,
            "<rect class=\"{}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\">\
             <title>{name}: eNB {} from {:.1} to {:.1} s</title></rect>",
            class(stay.site),
            stay.site,
            stay.from_s,
            stay.to_s
        );
        if number > 0 {
            let said = handover(track.relay, stay, track.stays[number - 1].site);
            let middle = top + BAR / 2.0;
            let _ = write!(
                svg,
                "<circle class=\"change\" cx=\"{from:.1}\" cy=\"{middle:.1}\" r=\"4\"><title>{said}</title></circle>"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::results::Handover;

    fn train() -> RelayResults {
        let handovers = vec![
            Handover { at_s: 30.0, from: 0, to: 1 },
            Handover { at_s: 31.0, from: 1, to: 0 },
            Handover { at_s: 32.5, from: 0, to: 1 },
        ];
        RelayResults { name: "train".into(), distance_m: Some(300.0), site: Some(1), handovers, ..Default::default() }
    }

    #[test]
    fn stays_follow_one_another_without_gaps() {
        let stay = |site, from_s, to_s| Stay { site, from_s, to_s };
        let all = [stay(0, 0.0, 30.0), stay(1, 30.0, 31.0), stay(0, 31.0, 32.5), stay(1, 32.5, 60.0)];
        assert_eq!(stays(&train(), 60.0), all);
        let house = RelayResults { site: Some(2), ..RelayResults::default() };
        assert_eq!(stays(&house, 9.0), [stay(2, 0.0, 9.0)]);
    }

    #[test]
    fn a_relay_is_where_its_walk_has_led_it() {
        let walk = json!({ "to_m": [1300.0, 0.0], "speed_kmh": 36.0, "start": "10 s" });
        let content = json!({ "place": { "distance_m": 300.0, "walk": walk }, "leaves": "50 s" });
        let relay = train();
        let track = Track::new(&relay, &content, [100.0, 7.0], 60.0);
        // It starts 300 m east of the eNB, at 400 m, and goes 900 m east and 7 m south at 10 m/s.
        assert_eq!(track.at_m(5.0), [400.0, 7.0]);
        let [x, y] = track.at_m(55.0);
        assert!((x - 850.0).abs() < 0.1 && (y - 3.5).abs() < 0.01, "{x} {y}");
        assert_eq!(track.at_m(500.0), [1300.0, 0.0]);
        assert_eq!(track.end_s(), 50.0);
        assert_eq!(Track::new(&relay, &json!({}), [100.0, 7.0], 60.0).at_m(40.0), [400.0, 7.0]);
    }

    #[test]
    fn names_are_shortened_and_do_not_overlap() {
        assert_eq!((short("train"), short("a rather long name")), ("train".into(), "a rather …g name".into()));
        assert!(overlap((0.0, 50.0, 10.0), (40.0, 90.0, 22.0)));
        assert!(!overlap((0.0, 50.0, 10.0), (40.0, 90.0, 23.0)) && !overlap((0.0, 50.0, 10.0), (50.0, 90.0, 10.0)));
    }

    #[test]
    fn a_map_is_to_scale_in_both_directions() {
        let sites_m = [[0.0, 0.0], [3880.0, 0.0], [0.0, 1940.0]];
        let relay = train();
        let tracks = [Track::new(&relay, &json!({}), sites_m[0], 60.0)];
        let map = Map::new(&sites_m, &tracks);
        let [first, east, north] = sites_m.map(|site_m| map.at(site_m, None));
        assert!((first.0 - LEFT).abs() < 1e-9 && (east.0 - RIGHT).abs() < 1e-9 && first.1 == east.1);
        assert!(((first.1 - north.1) * 2.0 - (east.0 - first.0)).abs() < 1e-9, "{first:?} {east:?} {north:?}");
        // A tall map is limited by its height.
        let tall_m = [[0.0, 0.0], [10.0, 4200.0]];
        let map = Map::new(&tall_m, &[]);
        assert!((map.at(tall_m[0], None).1 - map.at(tall_m[1], None).1 - EXTENT_MAX).abs() < 1e-9);
    }
}
