//! Claims as a table, and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Finding, Outcome, Verdict};

/// The object `{"claims": [...]}`.
pub fn to_json(outcomes: &[Outcome]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        claims: &'a [Outcome],
    }
    serde_json::to_string_pretty(&Document { claims: outcomes }).expect("outcomes have finite numbers")
}

/// A table in Markdown, which also reads well in a terminal. What does not hold is bold.
pub fn to_text(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| claim | the paper | source | measured | 95 % interval | what | seeds | verdict |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let measured = outcome.measured.map_or("-".into(), figure);
        let interval = outcome.interval.map_or("-".into(), shown);
        let seeds = if outcome.seeds == 0 { "-".into() } else { outcome.seeds.to_string() };
        let seeds =
            if outcome.faulty_runs == 0 { seeds } else { format!("{seeds} ({} runs faulty)", outcome.faulty_runs) };
        let what: Vec<_> = outcome.findings.iter().enumerate().map(|(index, finding)| what(index, finding)).collect();
        let Outcome { id, paper, source, verdict, .. } = outcome;
        let (what, verdict) = (what.join("; "), word(*verdict));
        let _ =
            writeln!(text, "| {id} | {paper} | {source} | {measured} | {interval} | {what} | {seeds} | {verdict} |");
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::NotReproduced => "**not reproduced**",
        Verdict::Informative => "informative",
        Verdict::NotMeasured => "**not measured**",
    }
}

/// What had to hold; the number of the first stands in a column of its own.
fn what(index: usize, finding: &Finding) -> String {
    let number = match (index, finding.measured) {
        (0, _) => String::new(),
        (_, None) => " (-)".into(),
        (_, Some(measured)) => {
            let interval = finding.interval.map_or(String::new(), |interval| format!(", {}", shown(interval)));
            format!(" ({}{interval})", figure(measured))
        }
    };
    match finding.holds {
        Some(false) => format!("**{}**{number}", finding.what),
        Some(true) | None => format!("{}{number}", finding.what),
    }
}

pub(super) fn shown([low, high]: [f64; 2]) -> String {
    format!("{} to {}", figure(low), figure(high))
}

/// Three digits that count.
pub(super) fn figure(value: f64) -> String {
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

    fn finding(what: &str, measured: f64, interval: Option<[f64; 2]>, holds: bool) -> Finding {
        Finding { what: what.into(), measured: Some(measured), interval, p_value: None, holds: Some(holds) }
    }

    #[test]
    fn a_table_says_what_was_measured_and_json_has_the_fields_of_programs() {
        let interval = Some([-1.25, 12_345.0]);
        let outcome = Outcome {
            id: "C05".into(),
            paper: "1 against 3 outages".into(),
            source: "thesis 4.5a".into(),
            measured: Some(-0.5),
            interval,
            verdict: Verdict::NotReproduced,
            mode: Mode::Build,
            findings: vec![
                finding("SSRS - Greedy-T: outages below 0", -0.5, interval, false),
                finding("SSRS: outages in [0, 2]", 1.5, Some([1.0, 2.0]), true),
            ],
            seeds: 20,
            faulty_runs: 0,
        };
        let text = to_text(core::slice::from_ref(&outcome));
        let row = "| -0.50 | -1.25 to 12.3 k | **SSRS - Greedy-T: outages below 0**; \
            SSRS: outages in [0, 2] (1.50, 1.00 to 2.00) | 20 | **not reproduced** |\n";
        assert!(text.ends_with(row), "{text}");
        let json: serde_json::Value = serde_json::from_str(&to_json(&[outcome])).unwrap();
        assert_eq!(json["claims"][0]["verdict"], "not-reproduced");
        assert_eq!(json["claims"][0]["mode"], "build");
    }
}
