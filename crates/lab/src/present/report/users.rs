//! What users notice, as tables: pictures that stand still, and waiting.

use super::html::escape;
use crate::measure::results::{LatencyResults, Results, VideoResults};
use crate::present::wording::milliseconds;

const VIDEO: [&str; 6] = ["Viewer", "Began at", "Stood still", "For", "Frames", "Buffered at the end"];
const WAITING: [&str; 6] = ["Who", "Complete", "Mean", "Half within", "95 % within", "All within"];

/// The section; empty where nobody watched anything and nobody waited.
pub(super) fn section(results: &Results) -> String {
    let (totals, relays) = (&results.totals, &results.relays);
    let videos = totals.video.iter().map(|video| watched("destination", video));
    let videos =
        videos.chain(relays.iter().filter_map(|relay| Some(watched(&relay.name, relay.local_video.as_ref()?))));
    let answers = totals.answers.iter().map(|answers| waited("destination", "answers", answers));
    let flows = |name: &str, flows: &LatencyResults| waited(name, "short flows", flows);
    let answers =
        answers.chain(relays.iter().filter_map(|relay| Some(flows(&relay.name, relay.local_flows.as_ref()?))));
    let tables =
        table("Video", VIDEO, &videos.collect::<String>()) + &table("Waiting", WAITING, &answers.collect::<String>());
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

/// A row of a video; several viewers share it.
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
    let time = |seconds: Option<f64>| seconds.map_or("-".into(), milliseconds);
    row(
        &format!("{who}, {what_for}"),
        [waits.completed.to_string(), time(waits.mean_s), time(waits.median_s), time(waits.p95_s), time(waits.max_s)],
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
        };
        let (head, tail) =
            ("<tr><th scope=\"row\">", "<td>1 time</td><td>0.50 s</td><td>1499</td><td>1.00 s</td></tr>");
        assert_eq!(watched("a<b", &video), format!("{head}a&lt;b, 2 viewers</th><td>2.35 s</td>{tail}"));
        let unseen = VideoResults { viewers: 1, started_s: None, ..video };
        assert_eq!(watched("birch", &unseen), format!("{head}birch</th><td>never</td>{tail}"));
        let waits =
            LatencyResults { completed: 3, mean_s: Some(0.1234), median_s: Some(0.1), p95_s: None, max_s: Some(2.0) };
        let cells = "<td>3</td><td>123.4 ms</td><td>100.0 ms</td><td>-</td><td>2000.0 ms</td>";
        assert_eq!(waited("cedar", "short flows", &waits), format!("{head}cedar, short flows</th>{cells}</tr>"));
    }
}
