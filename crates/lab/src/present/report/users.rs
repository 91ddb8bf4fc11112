//! What users notice, as tables: stalls, and waiting.

use super::html::escape;
use crate::measure::results::{LatencyResults, Results, VideoResults};
use crate::present::wording::milliseconds;

const VIDEO: [&str; 6] = ["Viewer", "Started after", "Stalled", "Time stalled", "Frames", "Buffered at the end"];
const WAITING: [&str; 6] = ["Who", "Complete", "Mean", "Median", "95th percentile", "Longest"];
/// The note in the table of waiting times about things that did not arrive.
const UNFINISHED: &str = "<p class=\"note\">\"At least\": what was broken off or missing at the end counts with the \
    time spent waiting for it.</p>";

/// The section; empty if nobody watched or waited.
pub(super) fn section(results: &Results) -> String {
    let (totals, relays) = (&results.totals, &results.relays);
    let videos = totals.video.iter().map(|video| watched("destination", video));
    let videos =
        videos.chain(relays.iter().filter_map(|relay| Some(watched(&relay.name, relay.local_video.as_ref()?))));
    let answers = totals.answers.iter().map(|answers| waited("destination", "answers", answers));
    let flows = |name: &str, flows: &LatencyResults| waited(name, "short flows", flows);
    let answers =
        answers.chain(relays.iter().filter_map(|relay| Some(flows(&relay.name, relay.local_flows.as_ref()?))));
    let waits = totals.answers.iter().chain(relays.iter().filter_map(|relay| relay.local_flows.as_ref()));
    let note = if waits.into_iter().any(|waits| waits.unfinished > 0) { UNFINISHED } else { "" };
    let tables = table("Video", VIDEO, &videos.collect::<String>())
        + &table("Waiting", WAITING, &answers.collect::<String>())
        + note;
    if tables.is_empty() {
        return String::new();
    }
    format!(
        "<section class=\"users\"><h2>What users noticed</h2><p class=\"note\">The destination, and owners of relays with their own \
         traffic.</p>{tables}</section>"
    )
}

fn table(title: &str, columns: [&str; 6], rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!(
        "<div class=\"scroll\"><table aria-label=\"{title}\"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// A row of a video, which several viewers may share.
fn watched(who: &str, video: &VideoResults) -> String {
    let who = if video.viewers > 1 { format!("{who}, {} viewers", video.viewers) } else { who.into() };
    let times = if video.stalls == 1 { "time" } else { "times" };
    row(
        &who,
        [
            video.started_s.map_or("never".into(), |started_s| format!("{started_s:.2} s")),
            format!("{} {times}", video.stalls),
            format!("{:.2} s", video.stalled_s),
            video.frames.to_string(),
            format!("{:.2} s", video.buffered_s),
        ],
    )
}

fn waited(who: &str, what_for: &str, waits: &LatencyResults) -> String {
    let time = |seconds: Option<f64>, is_certain: bool| {
        let least = if is_certain { "" } else { "at least " };
        seconds.map_or("-".into(), |seconds| format!("{least}{}", milliseconds(seconds)))
    };
    let percentile = |took_s: Option<f64>| time(took_s, took_s.is_none_or(|took_s| waits.is_certain(took_s)));
    let all_came = waits.unfinished == 0;
    let completed =
        if all_came { waits.completed.to_string() } else { format!("{} of {}", waits.completed, waits.asked()) };
    row(
        &format!("{who}, {what_for}"),
        [
            completed,
            time(waits.mean_s, all_came),
            percentile(waits.median_s),
            percentile(waits.p95_s),
            time(waits.max_s, all_came),
        ],
    )
}

fn row(who: &str, cells: [String; 5]) -> String {
    let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(who))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_who_saw_what() {
        let video = VideoResults {
            viewers: 2,
            started_s: Some(2.345),
            stalls: 1,
            stalled_s: 0.5,
            frames: 1499,
            buffered_s: 1.0,
            ..VideoResults::default()
        };
        let (head, tail) =
            ("<tr><th scope=\"row\">", "<td>1 time</td><td>0.50 s</td><td>1499</td><td>1.00 s</td></tr>");
        assert_eq!(watched("a<b", &video), format!("{head}a&lt;b, 2 viewers</th><td>2.35 s</td>{tail}"));
        let unseen = VideoResults { viewers: 1, started_s: None, ..video };
        assert_eq!(watched("birch", &unseen), format!("{head}birch</th><td>never</td>{tail}"));
        let waits = waits();
        let cells = "<td>3</td><td>123.4 ms</td><td>100.0 ms</td><td>-</td><td>2000.0 ms</td>";
        assert_eq!(waited("cedar", "short flows", &waits), format!("{head}cedar, short flows</th>{cells}</tr>"));
    }

    fn waits() -> LatencyResults {
        let (mean_s, median_s, max_s) = (Some(0.1234), Some(0.1), Some(2.0));
        LatencyResults { completed: 3, mean_s, median_s, max_s, ..LatencyResults::default() }
    }

    #[test]
    fn what_did_not_come_took_at_least_as_long_as_it_was_awaited() {
        let waits = LatencyResults { unfinished: 1, awaited_min_s: Some(2.0), p95_s: Some(2.0), ..waits() };
        let least = "<td>at least 2000.0 ms</td>";
        let cells = format!("<td>3 of 4</td><td>at least 123.4 ms</td><td>100.0 ms</td>{least}{least}");
        let head = "<tr><th scope=\"row\">destination, answers</th>";
        assert_eq!(waited("destination", "answers", &waits), format!("{head}{cells}</tr>"));
    }
}
