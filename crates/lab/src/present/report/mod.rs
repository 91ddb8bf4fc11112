//! Results of a run or of a sweep as one HTML file: plots, tables and the manifest; it loads nothing from elsewhere.

mod chart;
mod comparison;
mod delivery;
mod hold_queues;
mod html;
mod monitor;
mod paper_table;
mod relay_cards;
mod river;
mod scale;
mod sites;
mod strip;
mod thin;
mod topology;
mod users;

use std::fmt::Write;

use chart::{Chart, Curve};
pub use comparison::render as render_sweep;
pub(super) use html::escape;
use river::Branch;
use scale::{AMOUNTS, RATES, TIMES};

use crate::measure::results::{PaperMetrics, RelayResults, Results, SubflowResults, SubflowSeries};
use crate::present::{quantity, run};
use crate::scenario::{Analysis, Scenario};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("crosshair.js");

/// Number of colours; paths beyond them share colours.
const COLOURS: usize = 8;
/// Shades of each colour, for more paths.
const SHADES: usize = 4;
/// Description of the plot of `out_of_order_bytes`.
const OTHERS_AWAITED: &str = "Data at the destination that arrived in order on their subflow and wait for data of other subflows. Data \
    behind a gap in their own subflow do not count.";
const WIDE: (f64, f64) = (920.0, 330.0);
const HALF: (f64, f64) = (460.0, 230.0);
/// Time over which the goodput curve averages: in-order delivery is bursty.
const GOODPUT_MEAN_S: f64 = 1.0;

/// The report on `results`: a whole HTML document. It depends on everything except the wall-clock time.
pub fn render(results: &Results) -> String {
    let view = View::new(results);
    let sections = [
        heading(results),
        figures(results),
        users::section(results),
        view.shares(),
        sites::section(&view),
        view.monitor_points(),
        view.throughput(),
        view.relays(),
        hold_queues::section(&view),
        view.bottleneck(),
        view.details(),
        view.paper_metrics(),
        view.table(),
        manifest(results),
    ];
    document(&results.manifest.scenario, "", &sections.join("\n"))
}

/// A whole document with `body`; `style` follows the style that all reports share.
pub(super) fn document(title: &str, style: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - Anabranch</title>\n\
         <style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn heading(results: &Results) -> String {
    let (manifest, totals) = (&results.manifest, &results.totals);
    let description = manifest.content.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let (class, verdict) = match (totals.intact, totals.completed) {
        (false, _) if totals.delivered_bytes == 0 => ("bad", "Nothing arrived"),
        (true, true) => ("good", "Delivered intact"),
        (true, false) if totals.interrupted => ("fair", "Interrupted; intact so far"),
        (true, false) => ("fair", "Intact so far; ended before completion"),
        (false, _) if totals.is_cut_short() => ("fair", "Incomplete: not all octets arrived"),
        (false, _) => ("bad", "Differs from the data sent"),
    };
    let verdict = match results.has_connection() {
        true => format!("<span class=\"chip {class}\">{verdict}</span>"),
        false => String::new(),
    };
    format!(
        "<header><p class=\"brand\">Anabranch</p><h1>{}</h1><p class=\"lead\">{}</p>\
         <p class=\"chips\">{verdict}<span class=\"chip\">seed {}</span>\
         {}<span class=\"chip\">{}</span><span class=\"chip\">version {}</span></p></header>",
        escape(&manifest.scenario),
        escape(description),
        manifest.seed,
        manifest
            .variant
            .as_ref()
            .map_or(String::new(), |name| format!("<span class=\"chip\">variant {}</span>", escape(name))),
        escape(&manifest.backend),
        escape(&manifest.version),
    )
}

fn figures(results: &Results) -> String {
    let totals = &results.totals;
    let retransmitted = totals.retransmitted_packets as f64 / (totals.data_packets as f64).max(1.0);
    let figures = [
        (quantity(totals.delivered_bytes as f64, "B"), "delivered in order"),
        (format!("{:.2} s", totals.duration_s), "simulated time"),
        (quantity(totals.goodput_in_order_bps, "bit/s"), "goodput, in order"),
        (quantity(totals.aggregate_throughput_bps, "bit/s"), "aggregate throughput"),
        (totals.data_packets.to_string(), "data packets"),
        (format!("{:.2} %", retransmitted * 100.0), "retransmitted"),
    ];
    let energy = results.energy_j().map(|energy_j| (quantity(energy_j, "J"), "energy of the relays"));
    let label = |name: &'static str| if results.manifest.backend == "simulator" { name } else { "elapsed time" };
    let cells: String = figures
        .iter()
        .chain(&energy)
        .filter(|(_, name)| results.has_connection() || *name == "simulated time")
        .map(|(value, name)| {
            let name = if *name == "simulated time" { label(name) } else { name };
            format!("<div><dd>{value}</dd><dt>{name}</dt></div>")
        })
        .collect();
    format!("<dl class=\"figures\">{cells}</dl>")
}

fn manifest(results: &Results) -> String {
    let (manifest, totals) = (&results.manifest, &results.totals);
    let content = serde_json::to_string_pretty(&manifest.content).unwrap_or_default();
    format!(
        "<section class=\"manifest\"><h2>Manifest</h2><dl><dt>scenario</dt><dd>{}</dd><dt>seed</dt><dd>{}</dd>{}{}\
         <dt>backend</dt><dd>{}</dd><dt>version</dt><dd>{}</dd>{}{}{}</dl>\
         <details><summary>The whole scenario, overrides and defaults filled in</summary><pre>{}</pre></details></section>",
        escape(&manifest.scenario),
        manifest.seed,
        manifest.variant.as_ref().map_or(String::new(), |name| format!("<dt>variant</dt><dd>{}</dd>", escape(name))),
        changed(&manifest.overrides),
        escape(&manifest.backend_options()),
        escape(&manifest.version),
        manifest.files.iter().map(|file| digest(&escape(&file.path), file.sha256.as_deref())).collect::<String>(),
        digest("sent SHA-256", totals.sha256_source.as_deref()),
        digest("received SHA-256", totals.sha256_received.as_deref()),
        escape(&content),
    )
}

fn digest(term: &str, digest: Option<&str>) -> String {
    digest.map_or(String::new(), |digest| format!("<dt>{term}</dt><dd><code>{}</code></dd>", escape(digest)))
}

/// The changes by the command line, as terms of a list; empty if there are none.
fn changed(overrides: &[String]) -> String {
    let one = |change: &String| format!("<dt>changed by --set</dt><dd><code>{}</code></dd>", escape(change));
    overrides.iter().map(one).collect()
}

/// The results with a colour for every path.
struct View<'a> {
    results: &'a Results,
    paths: Vec<&'a str>,
    /// As the manifest has it; `None` if it is not one of this version.
    scenario: Option<Scenario>,
}

impl<'a> View<'a> {
    fn new(results: &'a Results) -> Self {
        let scenario = serde_json::from_value(results.manifest.content.clone()).ok();
        Self { results, paths: results.paths(), scenario }
    }

    /// The CSS class for a path's colour.
    fn class(&self, path: &str) -> String {
        let position = self.paths.iter().position(|known| *known == path).unwrap_or(0);
        match position / COLOURS % SHADES {
            0 => format!("p{}", position % COLOURS),
            shade => format!("p{} r{shade}", position % COLOURS),
        }
    }

    /// The path's name, with the subflow's number if the path carried several.
    fn name(&self, path: &str, id: u16) -> String {
        let several = self.results.subflows.iter().filter(|subflow| subflow.path == path).count() > 1;
        if several { format!("{path} #{id}") } else { path.into() }
    }

    fn curves(&self, values: impl Fn(&SubflowSeries) -> Vec<Option<f64>>) -> Vec<Curve> {
        let subflows = self.results.series.subflows.iter();
        let curve = |subflow: &SubflowSeries| Curve {
            name: self.name(&subflow.path, subflow.id),
            class: self.class(&subflow.path),
            values: values(subflow),
        };
        subflows.map(curve).collect()
    }

    /// Returns whether relays differ in more than their links: in place, selection, or traffic of their own.
    fn tells_of_relays(&self) -> bool {
        let tells = |relay: &RelayResults| relay.distance_m.is_some() || relay.has_local_traffic() || !relay.chosen;
        self.results.relays.iter().any(tells)
    }

    /// The papers' metrics, if the run has their relays or their target.
    fn metrics(&self) -> Option<&PaperMetrics> {
        let metrics = self.results.metrics.as_ref();
        metrics.filter(|metrics| metrics.target_bps.is_some() || self.tells_of_relays())
    }

    /// The window of analysis, if it is not the whole run.
    fn analysis(&self) -> Option<Analysis> {
        self.scenario.as_ref()?.metrics.analysis
    }

    fn shares(&self) -> String {
        if self.tells_of_relays() { self.topology() } else { self.river() }
    }

    fn topology(&self) -> String {
        let relays = &self.results.relays;
        let chosen = relays.iter().filter(|relay| relay.chosen).count();
        let placed = relays.iter().any(|relay| relay.distance_m.is_some());
        let caption = format!(
            "{chosen} of {} relays may carry data; each link is as wide as its share of the payload that arrived. {}{}",
            relays.len(),
            self.results.begun_unchosen().map_or(String::new(), |said| format!("{}. ", capitalised(&said))),
            match (placed, relays.iter().any(|relay| relay.site.is_some())) {
                (true, false) => "Distances from the eNB at the start are to scale; angles are not.",
                (true, true) => {
                    "Distances are those from the first eNB at the start, and angles are not to scale. The map below shows \
                     all eNBs, and which of them served each relay when."
                }
                (false, _) => "Every relay has its own links.",
            }
        );
        figure("Topology", &caption, "", &topology::svg(self))
    }

    fn monitor_points(&self) -> String {
        self.metrics().map_or(String::new(), |metrics| monitor::section(metrics, self.analysis()))
    }

    fn relays(&self) -> String {
        if self.tells_of_relays() { relay_cards::section(self) } else { String::new() }
    }

    fn paper_metrics(&self) -> String {
        let section = |metrics| paper_table::section(metrics, self.analysis(), self.scenario.as_ref());
        self.metrics().map_or(String::new(), section)
    }

    fn river(&self) -> String {
        let branch = |path: &&str| {
            let on_path = || self.results.subflows.iter().filter(|subflow| subflow.path == **path);
            let rtt = on_path().find_map(|subflow| subflow.mean_rtt_s);
            Branch {
                name: (*path).into(),
                class: self.class(path),
                bytes: on_path().map(|subflow| subflow.received_bytes).sum(),
                share: on_path().map(|subflow| subflow.share_ratio).sum(),
                note: rtt.map_or("no RTT sample".into(), |rtt_s| format!("RTT {:.0} ms", rtt_s * 1000.0)),
            }
        };
        let branches: Vec<Branch> = self.paths.iter().map(branch).collect();
        let caption = "Each branch is as wide as its share of the payload that arrived.";
        figure("Share per path", caption, "", &river::svg(&branches))
    }

    fn throughput(&self) -> String {
        if !self.results.has_connection() {
            return String::new();
        }
        let series = &self.results.series;
        let width = (GOODPUT_MEAN_S / series.window_s.max(1e-3)).round().max(1.0) as usize;
        let goodput = Curve {
            name: "goodput".into(),
            class: "ink".into(),
            values: thin::running_mean(&series.time_s, &series.goodput_in_order_bps, width)
                .into_iter()
                .map(Some)
                .collect(),
        };
        let chart = Chart {
            label: "Throughput per subflow over time, stacked, and goodput",
            size: WIDE,
            units: RATES,
            time_s: &series.time_s,
            band: None,
            marked_s: Vec::new(),
            counted_s: None,
            stacked: self.curves(|subflow| subflow.throughput_bps.iter().copied().map(Some).collect()),
            ribbons: Vec::new(),
            lines: vec![goodput],
        };
        let drawn = match thin::group_of(series.time_s.len()) {
            1 => String::new(),
            group => format!(
                " There are too many windows to draw: each point, here and in the charts below, is the mean of \
                 {group} windows ({} s).",
                (series.window_s * group as f64 * 10.0).round() / 10.0
            ),
        };
        let caption = format!(
            "Payload arriving at the destination per window of {} ms, stacked by subflow: the upper edge is the aggregate \
             throughput. The line is what reaches the application in order, averaged over {GOODPUT_MEAN_S} s.{drawn}",
            (series.window_s * 1000.0).round()
        );
        let legend = self.legend(Some("goodput, in order"));
        figure("Throughput", &caption, &legend, &chart.svg())
    }

    fn bottleneck(&self) -> String {
        let (series, results) = (&self.results.series, &self.results.bottleneck);
        let Some((link, over_time)) = results.as_ref().zip(series.bottleneck.as_ref()) else { return String::new() };
        let some = |values: &[f64]| values.iter().copied().map(Some).collect();
        let curve = |name: &str, class: &str, values| Curve { name: name.into(), class: class.into(), values };
        let chart = |label, units, stacked, lines| {
            let (time_s, marked_s, ribbons) = (&series.time_s[..], Vec::new(), Vec::new());
            let (size, band, counted_s) = (HALF, None, None);
            Chart { label, size, units, time_s, band, marked_s, counted_s, stacked, ribbons, lines }.svg()
        };
        let rates = vec![
            curve("rate of the link", "granted", some(&over_time.capacity_bps)),
            curve("sent", "ink", some(&over_time.carried_bps)),
        ];
        let waiting = over_time.queue_bytes.iter().map(|bytes| Some(*bytes as f64)).collect();
        let queue = chart("Queue of the bottleneck", AMOUNTS, vec![curve("waiting", "ink", waiting)], Vec::new());
        let legend = "<ul class=\"legend\"><li><i class=\"ink thin\"></i>sent</li>\
             <li><i class=\"granted thin\"></i>rate of the link</li></ul>";
        let rates = chart("Rate of the bottleneck", RATES, Vec::new(), rates);
        let caption = format!("Towards the destination, packets of every sender: {}.", run::described(link));
        let figures = [
            figure("Bottleneck", &caption, legend, &rates),
            figure("Queue of the bottleneck", "At the end of each window.", "", &queue),
        ];
        format!("<div class=\"pairs\">{}</div>", figures.join(""))
    }

    fn details(&self) -> String {
        if !self.results.has_connection() {
            return String::new();
        }
        let series = &self.results.series;
        let chart = |label, units, stacked, lines| {
            let (time_s, marked_s, ribbons) = (&series.time_s[..], Vec::new(), Vec::new());
            let (size, band, counted_s) = (HALF, None, None);
            Chart { label, size, units, time_s, band, marked_s, counted_s, stacked, ribbons, lines }.svg()
        };
        let waiting = Curve {
            name: "waiting".into(),
            class: "ink".into(),
            values: series.out_of_order_bytes.iter().map(|bytes| Some(*bytes as f64)).collect(),
        };
        let rtt = chart("Round-trip time", TIMES, Vec::new(), self.curves(|subflow| subflow.srtt_s.clone()));
        let cwnd = |subflow: &SubflowSeries| subflow.cwnd_bytes.iter().map(|bytes| Some(*bytes as f64)).collect();
        let cwnd = chart("Congestion window", AMOUNTS, Vec::new(), self.curves(cwnd));
        let waiting = chart("Out-of-order data", AMOUNTS, vec![waiting], Vec::new());
        let legend = self.legend(None);
        let figures = [
            figure("Round-trip time", "Smoothed, as the source measures it.", &legend, &rtt),
            figure("Congestion window", "Of the source, per subflow.", &legend, &cwnd),
            figure(
                "Loss",
                "Packets that the path dropped, per window; a stronger colour means more.",
                "",
                &self.losses(),
            ),
            figure("Waiting for other subflows", OTHERS_AWAITED, "", &waiting),
            delivery::section(self.results),
        ];
        format!("<div class=\"pairs\">{}</div>", figures.join(""))
    }

    fn losses(&self) -> String {
        let mut rows: Vec<strip::Row<'_>> = Vec::new();
        for subflow in &self.results.series.subflows {
            if !rows.iter().any(|row| row.name == subflow.path) {
                let class = self.class(&subflow.path);
                rows.push(strip::Row { name: &subflow.path, class, loss_ratio: &subflow.loss_ratio });
            }
        }
        strip::svg(&self.results.series.time_s, &rows)
    }

    fn legend(&self, line: Option<&str>) -> String {
        let mut items = String::new();
        for path in &self.paths {
            let _ = write!(items, "<li><i class=\"{}\"></i>{}</li>", self.class(path), escape(path));
        }
        if let Some(line) = line {
            let _ = write!(items, "<li><i class=\"ink thin\"></i>{}</li>", escape(line));
        }
        format!("<ul class=\"legend\">{items}</ul>")
    }

    fn table(&self) -> String {
        if self.results.subflows.is_empty() {
            return String::new();
        }
        let head = [
            "Path",
            "Subflow",
            "Bytes",
            "Share",
            "Throughput",
            "Mean RTT",
            "Min RTT",
            "Loss",
            "Lost in queue",
            "Retransmissions",
            "Time-outs",
            "Path MTU",
        ];
        let head: String = head.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
        let rows: String = self.results.subflows.iter().map(|subflow| self.row(subflow)).collect();
        format!(
            "<section><h2>Subflows</h2><div class=\"scroll\"><table><thead><tr>{head}</tr></thead>\
             <tbody>{rows}</tbody></table></div></section>"
        )
    }

    fn row(&self, subflow: &SubflowResults) -> String {
        let ms = |rtt_s: Option<f64>| rtt_s.map_or("-".into(), |rtt_s| format!("{:.1} ms", rtt_s * 1000.0));
        let cells = [
            subflow.id.to_string(),
            quantity(subflow.received_bytes as f64, "B"),
            format!("{:.1} %", subflow.share_ratio * 100.0),
            quantity(subflow.throughput_bps, "bit/s"),
            ms(subflow.mean_rtt_s),
            ms(subflow.min_rtt_s),
            format!("{:.2} %", subflow.loss_ratio * 100.0),
            format!("{} of {}", subflow.queue_drop_packets, subflow.lost_packets),
            subflow.retransmitted_packets.to_string(),
            subflow.timeouts.map_or("-".into(), |timeouts| timeouts.to_string()),
            subflow.path_mtu_bytes.map_or("-".into(), |bytes| format!("{bytes} B")),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let ends = format!("{} to {}", escape(&subflow.source), escape(&subflow.destination));
        let (class, path) = (self.class(&subflow.path), escape(&subflow.path));
        format!("<tr><th scope=\"row\" title=\"{ends}\"><i class=\"{class}\"></i>{path}</th>{cells}</tr>")
    }
}

/// Capitalises the first letter.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

fn figure(title: &str, caption: &str, legend: &str, drawing: &str) -> String {
    format!("<figure><figcaption><h2>{title}</h2><p>{}</p></figcaption>{legend}{drawing}</figure>", escape(caption))
}
