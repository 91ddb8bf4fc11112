//! Claims as a table, and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Outcome, Verdict};

/// The object `{"claims": [...]}`.
pub fn to_json(outcomes: &[Outcome]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        claims: &'a [Outcome],
    }
    serde_json::to_string_pretty(&Document { claims: outcomes }).expect("outcomes have finite numbers")
}

/// A table in Markdown, which also reads well in a terminal.
pub fn to_text(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| claim | the paper | source | measured | 95 % interval | what | verdict |\n|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let measured = outcome.measured.map_or("-".into(), figure);
        let interval =
            outcome.interval.map_or("-".into(), |[low, high]| format!("{} to {}", figure(low), figure(high)));
        let verdict = match outcome.verdict {
            Verdict::Reproduced => "reproduced",
            Verdict::NotReproduced => "**not reproduced**",
            Verdict::Informative => "informative",
            Verdict::NotMeasured => "**not measured**",
        };
        let Outcome { id, paper, source, what, .. } = outcome;
        let _ = writeln!(text, "| {id} | {paper} | {source} | {measured} | {interval} | {what} | {verdict} |");
    }
    text
}

/// Three digits that count.
fn figure(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1e6 => format!("{:.2} M", value / 1e6),
        _ if size >= 1e4 => format!("{:.1} k", value / 1e3),
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    #[test]
    fn a_table_says_what_was_measured_and_json_has_the_fields_of_programs() {
        let outcome = Outcome {
            id: "C05".into(),
            paper: "1 against 3 outages".into(),
            source: "thesis 4.5a".into(),
            what: "SSRS - Greedy-T: outages below 0".into(),
            measured: Some(-0.5),
            interval: Some([-1.25, 12_345.0]),
            verdict: Verdict::NotReproduced,
            mode: Mode::Build,
            faulty_runs: 0,
        };
        let text = to_text(core::slice::from_ref(&outcome));
        assert!(
            text.ends_with("| -0.50 | -1.25 to 12.3 k | SSRS - Greedy-T: outages below 0 | **not reproduced** |\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&to_json(&[outcome])).unwrap();
        assert_eq!(json["claims"][0]["verdict"], "not-reproduced");
        assert_eq!(json["claims"][0]["mode"], "build");
    }
}
