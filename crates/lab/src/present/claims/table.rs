//! Claims as a table, and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Finding, Outcome, Verdict};

/// Maximum number of additional digits: beyond that, a number and a bound are equal.
const DIGITS_MORE_MAX: usize = 12;

/// The object `{"claims": [...]}`.
pub fn to_json(outcomes: &[Outcome]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        claims: &'a [Outcome],
    }
    serde_json::to_string_pretty(&Document { claims: outcomes }).expect("outcomes have finite numbers")
}

/// A table in Markdown, which is also readable in a terminal. Claims that do not hold are bold.
pub fn to_text(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| claim | the paper | source | measured | 95 % interval | what | seeds | verdict |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let more = outcome.findings.first().map_or(0, digits_apart);
        let measured = outcome.measured.map_or("-".into(), |measured| precise(measured, more));
        let interval = outcome.interval.map_or("-".into(), |interval| shown_precise(interval, more));
        let seeds = if outcome.seeds == 0 { "-".into() } else { outcome.seeds.to_string() };
        let seeds =
            if outcome.faulty_runs == 0 { seeds } else { format!("{seeds} ({} runs faulty)", outcome.faulty_runs) };
        let what: Vec<_> = outcome.findings.iter().enumerate().map(|(index, finding)| what(index, finding)).collect();
        let Outcome { id, paper, source, verdict, .. } = outcome;
        let (what, verdict) = (what.join("; "), word(*verdict).to_owned() + &why_not_shown(outcome));
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

/// What is said of runs that all seeds repeat.
pub(super) const WITHOUT_CHANCE: &str = "nothing is random here: all seeds gave the same run";

/// Explains a verdict that only means that there was one seed, or one run; empty for other verdicts.
fn why_not_shown(outcome: &Outcome) -> String {
    let failed: Vec<_> = outcome.findings.iter().filter(|finding| finding.holds == Some(false)).collect();
    if outcome.verdict != Verdict::NotReproduced || failed.iter().any(|finding| !finding.undecided) {
        return String::new();
    }
    match failed.iter().any(|finding| finding.without_chance) {
        true => format!(": {WITHOUT_CHANCE}, so there is no interval and nothing can be shown"),
        false => ": one seed gives no interval, so nothing can be shown".into(),
    }
}

/// The requirement; the number of the first finding has a column of its own.
fn what(index: usize, finding: &Finding) -> String {
    let number = match (index, finding.measured) {
        (0, _) => String::new(),
        (_, None) => " (-)".into(),
        (_, Some(measured)) => {
            let more = digits_apart(finding);
            let interval = finding.interval.map(|interval| format!(", {}", shown_precise(interval, more)));
            format!(" ({}{})", precise(measured, more), interval.unwrap_or_default())
        }
    };
    match finding.holds {
        Some(false) => format!("**{}**{number}", finding.what),
        Some(true) | None => format!("{}{number}", finding.what),
    }
}

pub(super) fn shown(interval: [f64; 2]) -> String {
    shown_precise(interval, 0)
}

fn shown_precise([low, high]: [f64; 2], more: usize) -> String {
    format!("{} to {}", precise(low, more), precise(high, more))
}

/// Formats a number with three significant digits.
pub(super) fn figure(value: f64) -> String {
    precise(value, 0)
}

/// Formats a number with three significant digits and `more` further ones.
fn precise(value: f64, more: usize) -> String {
    let (number, _, unit) = rounded(value, more);
    number + unit
}

/// A number with three significant digits and `more` further ones, in a suitable unit; returns the size of the unit and
/// its name.
fn rounded(value: f64, more: usize) -> (String, f64, &'static str) {
    let size = value.abs();
    let (decimals, unit, name) = match size {
        _ if size >= 1e6 => (2, 1e6, " M"),
        _ if size >= 1e4 => (1, 1e3, " k"),
        _ if size >= 100.0 => (0, 1.0, ""),
        _ if size >= 10.0 => (1, 1.0, ""),
        _ => (2, 1.0, ""),
    };
    (format!("{:.*}", decimals + more, value / unit), unit, name)
}

/// Number of additional digits with which a number visibly lies within the accepted range, or outside.
fn digits_apart(finding: &Finding) -> usize {
    let (Some(measured), Some([low, high])) = (finding.measured, finding.accepted) else { return 0 };
    let is_accepted = |value: f64| (low..=high).contains(&value);
    let looks_right = |more: &usize| {
        let (number, unit, _) = rounded(measured, *more);
        number.parse().is_ok_and(|number: f64| is_accepted(number * unit) == is_accepted(measured))
    };
    (0..DIGITS_MORE_MAX).find(looks_right).unwrap_or(DIGITS_MORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    fn finding(what: &str, measured: f64, interval: Option<[f64; 2]>, holds: bool) -> Finding {
        let measured = Some(measured);
        Finding { what: what.into(), measured, interval, holds: Some(holds), ..Finding::default() }
    }

    fn outcome(findings: Vec<Finding>, seeds: usize) -> Outcome {
        Outcome {
            id: "C01".into(),
            paper: "the same".into(),
            source: "thesis".into(),
            measured: findings[0].measured,
            interval: findings[0].interval,
            verdict: Verdict::NotReproduced,
            mode: Mode::Build,
            findings,
            seeds,
            faulty_runs: 0,
        }
    }

    #[test]
    fn a_number_does_not_look_like_the_bound_that_it_misses() {
        let row = |measured: f64, holds| {
            let finding = finding("ratio in [1, 1.05]", measured, Some([measured; 2]), holds);
            to_text(&[outcome(vec![Finding { accepted: Some([1.0, 1.05]), ..finding }], 20)])
        };
        let missed = row(1.05076, false);
        assert!(missed.contains("| 1.051 | 1.051 to 1.051 | **ratio in [1, 1.05]** |"), "{missed}");
        assert!(row(0.99999, false).contains("| 0.99999 |"));
        assert!(row(1.05, true).contains("| 1.05 | 1.05 to 1.05 |"));
        assert!(row(1.2, false).contains("| 1.20 |"));
        let thousands = Finding { accepted: Some([0.0, 12_300.0]), ..finding("octets", 12_304.0, None, false) };
        assert!(to_text(&[outcome(vec![thousands], 20)]).contains("| 12.304 k |"));
    }

    #[test]
    fn one_seed_that_cannot_decide_is_not_held_against_a_claim() {
        let less = || Finding { undecided: true, ..finding("outages below 0", -3.0, None, false) };
        let said = "| 1 | **not reproduced**: one seed gives no interval, so nothing can be shown |";
        assert!(to_text(&[outcome(vec![less()], 1)]).contains(said));
        let repeated = Finding { without_chance: true, ..less() };
        let said =
            "| 1 | **not reproduced**: nothing is random here: all seeds gave the same run, so there is no interval";
        assert!(to_text(&[outcome(vec![repeated], 1)]).contains(said));
        let both = vec![less(), finding("ratio in [1, 1.05]", 1.2, None, false)];
        assert!(to_text(&[outcome(both, 1)]).contains("| 1 | **not reproduced** |"));
        let several = finding("outages below 0", -3.0, Some([-4.0, 1.0]), false);
        assert!(to_text(&[outcome(vec![several], 20)]).contains("| 20 | **not reproduced** |"));
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
