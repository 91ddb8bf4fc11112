//! The results of a run as text for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};

use super::relays;
use super::wording::{milliseconds, percent, quantity};
use crate::measure::results::{
    BottleneckResults, ControlResults, LatencyResults, PaperMetrics, Results, SubflowResults, Totals, VideoResults,
};

const COLUMNS: [&str; 9] =
    ["subflow", "path", "bytes", "share", "throughput", "mean RTT", "min RTT", "loss", "retransmissions"];

/// The table of subflows and the totals, ready to print.
pub fn summary(results: &Results) -> String {
    let relays = relays::table(results);
    let target = results.metrics.as_ref().map_or(String::new(), against_target);
    let heading = heading(results);
    let begun = begun(results);
    let totals = if results.has_connection() { totals(&results.totals) } else { no_connection(&results.totals) };
    let bottleneck = results.bottleneck.as_ref().map_or(String::new(), shared);
    let energy = energy(results);
    format!("{heading}\n{}{relays}{totals}{energy}{bottleneck}{begun}{target}", subflows(&results.subflows))
}

/// The link that all paths share.
fn shared(link: &BottleneckResults) -> String {
    format!("{:<11} {}\n", "bottleneck", described(link))
}

/// How much of the shared link was used, and what that cost.
pub(super) fn described(link: &BottleneckResults) -> String {
    let capacity = quantity(link.capacity_bps, "bit/s");
    let used = match link.utilisation_ratio {
        Some(ratio) => format!("{} of {capacity} used", percent(ratio)),
        None => "nothing can pass".into(),
    };
    format!(
        "{used}; queue {} on average, {} at most; {} of {} packets lost, {} of them in the queue",
        quantity(link.queue_mean_bytes, "B"),
        quantity(link.queue_max_bytes as f64, "B"),
        link.lost_packets,
        link.entered_packets,
        link.queue_drop_packets,
    )
}

/// The table of subflows; empty if there are none, for example if relays have only their own traffic.
fn subflows(subflows: &[SubflowResults]) -> String {
    if subflows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(COLUMNS);
    for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(component, '─');
    }
    for subflow in subflows {
        table.add_row(row(subflow));
    }
    for index in 2..COLUMNS.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}

/// The relays over which a connection began before they were selected; empty if there are none.
fn begun(results: &Results) -> String {
    results.begun_unchosen().map_or(String::new(), |said| format!("{:<11} {said}\n", "selection"))
}

/// What the relays spent; empty without prices.
fn energy(results: &Results) -> String {
    let spent = results.energy_j().map(|energy_j| quantity(energy_j, "J"));
    spent.map_or(String::new(), |spent| {
        format!("{:<11} {spent} by the relays, for the data that they carried\n", "energy")
    })
}

/// How well the target bit rate was kept; empty without a target.
fn against_target(metrics: &PaperMetrics) -> String {
    let (Some(low), Some(high)) = (metrics.target_low_bps, metrics.target_high_bps) else { return String::new() };
    let (outages, points) = (metrics.summary.outages, metrics.summary.points);
    let range = format!("{} to {}", quantity(low, "bit/s"), quantity(high, "bit/s"));
    let of = match metrics.connections.len() {
        0 | 1 => String::new(),
        count => format!(" by the first of {count} connections"),
    };
    format!("{:<11} {range}: missed at {outages} of {points} monitor points{of}\n", "target")
}

fn heading(results: &Results) -> String {
    let manifest = &results.manifest;
    let variant = manifest.variant.as_ref().map_or(String::new(), |name| format!(", variant \"{name}\""));
    let overrides: String = manifest.overrides.iter().map(|change| format!(", with {change}")).collect();
    format!("{}{variant}{overrides} (seed {}, {})", manifest.scenario, manifest.seed, manifest.backend)
}

fn row(subflow: &SubflowResults) -> [String; COLUMNS.len()] {
    [
        subflow.id.to_string(),
        subflow.path.clone(),
        quantity(subflow.received_bytes as f64, "B"),
        percent(subflow.share_ratio),
        quantity(subflow.throughput_bps, "bit/s"),
        subflow.mean_rtt_s.map_or("-".into(), milliseconds),
        subflow.min_rtt_s.map_or("-".into(), milliseconds),
        percent(subflow.loss_ratio),
        subflow.retransmitted_packets.to_string(),
    ]
}

/// Whether the data that arrived, if any, are those sent; with SHA-256 digests if requested.
fn integrity(totals: &Totals) -> (&'static str, String) {
    if totals.delivered_bytes == 0 && !totals.intact {
        return ("integrity", "nothing arrived".into());
    }
    let (Some(sent), Some(received)) = (&totals.sha256_source, &totals.sha256_received) else {
        let found = match totals.intact {
            true => "the data received are the data sent, octet for octet",
            false if totals.is_cut_short() => "incomplete",
            false => "the data received DIFFER from the data sent",
        };
        return ("integrity", found.into());
    };
    let found = match totals.intact {
        true => format!("{received} (the same at both ends)"),
        false if totals.is_cut_short() => format!("incomplete: {received} is that of the data received"),
        false => format!("MISMATCH: sent {sent}, received {received}"),
    };
    ("SHA-256", found)
}

fn totals(totals: &Totals) -> String {
    let delivered = format!(
        "{} of {} bytes in {:.3} s{}",
        totals.delivered_bytes,
        totals.source_bytes,
        totals.duration_s,
        if totals.completed { "" } else { " (not complete)" }
    );
    let reinjected = |bytes: u64| format!("; {} given to another subflow", quantity(bytes as f64, "B"));
    let packets = format!(
        "{} with data, {} of them retransmissions{}",
        totals.data_packets,
        totals.retransmitted_packets,
        totals.reinjected_bytes.map_or(String::new(), reinjected),
    );
    let mut lines = vec![
        ("delivered", delivered),
        integrity(totals),
        ("throughput", quantity(totals.aggregate_throughput_bps, "bit/s")),
        ("goodput", format!("{} in order", quantity(totals.goodput_in_order_bps, "bit/s"))),
        ("packets", packets),
    ];
    lines.extend(totals.video.map(|video| ("video", watched(&video))));
    lines.extend(totals.answers.map(|answers| ("answers", waited(&answers))));
    lines.extend(totals.control.map(|control| ("control", told(&control))));
    lines.extend(wall_clock(totals));
    listed(lines)
}

/// The text for runs in which relays have traffic of their own and nothing else is sent.
fn no_connection(totals: &Totals) -> String {
    let what = format!(
        "none in {:.3} s: the workload is \"none\", and relays carry only their own traffic",
        totals.duration_s
    );
    listed([("connection", what)].into_iter().chain(wall_clock(totals)))
}

fn listed(lines: impl IntoIterator<Item = (&'static str, String)>) -> String {
    lines.into_iter().map(|(name, text)| format!("{name:<11} {text}\n")).collect()
}

/// The wall-clock time of the run, if it was measured.
fn wall_clock(totals: &Totals) -> Option<(&'static str, String)> {
    let wall_s = totals.wall_s.filter(|wall_s| *wall_s != totals.duration_s)?;
    let speed = if wall_s > 0.0 { totals.duration_s / wall_s } else { f64::INFINITY };
    Some(("wall clock", format!("{wall_s:.3} s ({} times as fast as real time)", significant(speed))))
}

/// Formats with at least two significant figures, even for small values.
fn significant(value: f64) -> String {
    let decimals =
        if value > 0.0 && value.is_finite() { (1.0 - libm::floor(libm::log10(value))).clamp(0.0, 9.0) } else { 0.0 };
    format!("{value:.*}", decimals as usize)
}

fn told(control: &ControlResults) -> String {
    let ControlResults { sent_bytes, channels_refused, .. } = control;
    let refused = if *channels_refused == 0 { String::new() } else { format!("; {channels_refused} channels refused") };
    format!("{} between destination, relays and source{refused}", quantity(*sent_bytes as f64, "B"))
}

fn watched(video: &VideoResults) -> String {
    let VideoResults { viewers, frames, stalls, stalled_s, .. } = video;
    match (video.started_s, viewers) {
        (Some(started_s), 0 | 1) => {
            format!("started at {started_s:.2} s, stalled {stalls} times for {stalled_s:.2} s; {frames} frames")
        }
        (None, 0 | 1) => format!("never started; {frames} frames"),
        (Some(started_s), _) => format!(
            "{viewers} viewers: the last video started at {started_s:.2} s; in total, stalled {stalls} times for {stalled_s:.2} s, \
             {frames} frames"
        ),
        (None, _) => format!("{viewers} viewers: a video never started; in total, {frames} frames"),
    }
}

/// Response times. States a duration only if incomplete responses cannot change it, and lists these separately.
fn waited(answers: &LatencyResults) -> String {
    let came = match (answers.completed, answers.unfinished) {
        (0, 0) => return "none".into(),
        (0, asked) => format!("none of {asked}"),
        (completed, 0) => completed.to_string(),
        (completed, _) => format!("{completed} of {}", answers.asked()),
    };
    let within = |share: &str, took_s: Option<f64>| {
        let took_s = took_s.filter(|took_s| answers.is_certain(*took_s))?;
        Some(format!("{share} within {}", milliseconds(took_s)))
    };
    let (all, missing) = match answers.unfinished {
        0 => (within("all", answers.max_s), None),
        unfinished => (None, Some(awaited(answers, unfinished))),
    };
    let shares = [within("half", answers.median_s), within("95 %", answers.p95_s), all, missing];
    let shares: Vec<String> = shares.into_iter().flatten().collect();
    format!("{came}; {}", shares.join(", "))
}

/// How long the incomplete responses had been awaited.
fn awaited(answers: &LatencyResults, unfinished: u64) -> String {
    let count = if unfinished == 1 { "one".into() } else { unfinished.to_string() };
    let [least, most] = [answers.awaited_min_s, answers.awaited_max_s].map(|time_s| time_s.map(milliseconds));
    let time = match (least, most) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or_default(),
    };
    format!("{count} missing after {time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_viewers_saw_is_said_to_be_of_all() {
        let one = VideoResults {
            viewers: 1,
            started_s: Some(1.5),
            stalls: 4,
            stalled_s: 3.0,
            frames: 70,
            ..VideoResults::default()
        };
        assert_eq!(watched(&one), "started at 1.50 s, stalled 4 times for 3.00 s; 70 frames");
        let ten = VideoResults { viewers: 10, ..one };
        assert_eq!(
            watched(&ten),
            "10 viewers: the last video started at 1.50 s; in total, stalled 4 times for 3.00 s, 70 frames"
        );
        let unseen = VideoResults { started_s: None, ..ten };
        assert_eq!(watched(&unseen), "10 viewers: a video never started; in total, 70 frames");
    }

    #[test]
    fn only_what_came_came_within_a_time() {
        let times = LatencyResults { median_s: Some(1.0), p95_s: Some(2.0), max_s: Some(3.0), ..Default::default() };
        let of = |completed, awaited_s: &[f64]| LatencyResults {
            completed,
            unfinished: awaited_s.len() as u64,
            awaited_min_s: awaited_s.first().copied(),
            awaited_max_s: awaited_s.last().copied(),
            ..times
        };
        for (answers, text) in [
            (of(40, &[]), "40; half within 1000.0 ms, 95 % within 2000.0 ms, all within 3000.0 ms"),
            (of(39, &[3.0]), "39 of 40; half within 1000.0 ms, 95 % within 2000.0 ms, one missing after 3000.0 ms"),
            (of(1, &[2.0, 3.0]), "1 of 3; half within 1000.0 ms, 2 missing after 2000.0 ms to 3000.0 ms"),
            (of(1, &[0.5, 3.0, 3.0]), "1 of 4; 3 missing after 500.0 ms to 3000.0 ms"),
            (of(0, &[1.0]), "none of 1; one missing after 1000.0 ms"),
            (of(0, &[1.0, 1.0]), "none of 2; 2 missing after 1000.0 ms"),
            (LatencyResults::default(), "none"),
        ] {
            assert_eq!(waited(&answers), text);
        }
    }
}
