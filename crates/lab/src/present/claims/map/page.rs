//! The map as one HTML file: a heat map whose squares open to show the measurements.

use std::fmt::Write;

use super::super::table::{WITHOUT_CHANCE, figure, shown};
use super::super::{Finding, users};
use super::text::{same_runs, verdict};
use super::{Map, Place, Reading, Row, Square, State};
use crate::present::report::{document, escape};

const STYLE: &str = include_str!("map.css");

/// One page that loads nothing from elsewhere.
pub fn to_html(map: &Map) -> String {
    let mut page = format!(
        "<header><p class=\"brand\">Anabranch</p><h1>Which claims hold where</h1><p class=\"lead\">{}</p></header>\n\
         <p class=\"states\">{}</p>\n",
        lead(map),
        legend()
    );
    if !map.users.is_empty() {
        page.push_str("<h2>What a person would notice</h2>\n");
        let rows: String = map.users.iter().map(effects_of).collect();
        page.push_str(&table(map, "module", "<th>better / worse</th>", &rows));
    }
    if !map.claims.is_empty() {
        page.push_str("<h2>Claims</h2>\n");
        let rows: String = map.claims.iter().map(row_of).collect();
        page.push_str(&table(map, "claim", "<th>verdict</th>", &rows));
    }
    page.push_str("<h2>Conditions</h2>\n<dl class=\"conditions\">\n");
    for condition in &map.conditions {
        let (why, settings) = (escape(condition.why), escape(&condition.settings.join("; ")));
        let _ = writeln!(page, "<dt>{}</dt><dd>{why}<br><code>{settings}</code></dd>", condition.name);
    }
    page.push_str("</dl>\n");
    document("The claims' map", STYLE, &page)
}

/// A table with a column for every condition.
fn table(map: &Map, first: &str, last: &str, rows: &str) -> String {
    let mut text = format!("<table class=\"map\"><thead><tr><th>{first}</th>");
    for condition in &map.conditions {
        let why = format!("{}. {}", condition.why, condition.settings.join("; "));
        let _ = write!(text, "<th class=\"condition\" title=\"{}\"><span>{}</span></th>", escape(&why), condition.name);
    }
    text + last + "</tr></thead><tbody>\n" + rows + "</tbody></table>\n"
}

fn effects_of(row: &users::Seen) -> String {
    let mut text =
        format!("<tr><th class=\"claim\"><b>{}</b><small>{}</small></th>", escape(row.module), escape(row.measure));
    for square in &row.squares {
        let (class, word) = match square.state {
            users::State::Helps => ("holds", "better"),
            users::State::Hurts => ("not-measured", "worse"),
            users::State::NoDifference => ("holds-not", "no difference"),
            users::State::NotMeasured => ("informative", "not measured"),
        };
        let readings = [("looked at", square.looked_at), ("confirmed", square.confirmed)];
        let readings: String = readings.iter().map(|(name, difference)| difference_of(name, *difference)).collect();
        let (sign, same) = repetition(square.repeats);
        let _ = write!(
            text,
            "<td class=\"{class}\"><details><summary title=\"{word}\">{sign}</summary><div><b>{word}</b>{same}<ul>{readings}</ul></div></details></td>"
        );
    }
    let users::Seen { better, worse, distinct, .. } = row;
    text + &format!("<td class=\"verdict\">{better} / {worse} of {distinct} distinct conditions</td></tr>\n")
}

/// The sign in a square that repeats another condition, and the line that names that one.
fn repetition(of: Option<&str>) -> (&'static str, String) {
    of.map_or(("", String::new()), |condition| ("=", format!("<p>{}</p>", same_runs(condition))))
}

fn difference_of(name: &str, difference: Option<users::Difference>) -> String {
    let Some(difference) = difference else { return String::new() };
    let interval = difference.interval.map_or(String::new(), |interval| format!(", difference {}", shown(interval)));
    let p_value = difference.p_value.map_or(String::new(), |p_value| format!(", p = {p_value:.2e}"));
    let (without, with) = (figure(difference.without), figure(difference.with));
    let faulty = faulty(difference.faulty_runs);
    format!(
        "<li>{name}, {}{faulty}: without {without}, with <b>{with}</b>{interval}{p_value}</li>",
        seeds(difference.seeds)
    )
}

fn lead(map: &Map) -> String {
    let count = |is: fn(&Place) -> bool| map.claims.iter().filter(|row| is(&row.place)).count();
    let shipped = count(|place| matches!(place, Place::AsShipped));
    let under = count(|place| matches!(place, Place::Under(_)));
    let nowhere = count(|place| matches!(place, Place::Nowhere));
    format!(
        "Of {} claims {shipped} hold as shipped, {under} under other conditions, {nowhere} under none of these. {} \
         Open a square to see its intervals.",
        map.claims.len(),
        map.seeds_in_words()
    )
}

const STATES: [State; 6] =
    [State::Holds, State::Unconfirmed, State::Luck, State::HoldsNot, State::Informative, State::NotMeasured];

fn legend() -> String {
    let entries = STATES.iter().map(|state| format!("<span class=\"mark {}\">{}</span>", class(*state), word(*state)));
    entries
        .chain(["= the same runs as shipped, or as under the condition that it names".to_owned()])
        .collect::<Vec<_>>()
        .join(" ")
}

fn row_of(row: &Row) -> String {
    let (paper, source) = (escape(row.paper), escape(row.source));
    let mut text = format!("<tr><th class=\"claim\"><b>{}</b> {paper}<small>{source}</small></th>", row.id);
    row.squares.iter().for_each(|square| text.push_str(&square_of(square)));
    let _ = writeln!(text, "<td class=\"verdict\">{}</td></tr>", escape(&verdict(row)));
    text
}

fn square_of(square: &Square) -> String {
    let (class, word) = (class(square.state), word(square.state));
    let (sign, same) = repetition(square.repeats);
    let confirmed = square.confirmed.as_ref().map(|reading| reading_of("confirmed", reading)).unwrap_or_default();
    format!(
        "<td class=\"{class}\"><details><summary title=\"{word}\">{sign}</summary><div><b>{}: {word}</b>{same}{}{confirmed}</div></details></td>",
        square.condition,
        reading_of("explored", &square.looked_at),
    )
}

fn reading_of(name: &str, reading: &Reading) -> String {
    let findings: String = reading.findings.iter().map(finding_of).collect();
    let faulty = faulty(reading.faulty_runs);
    format!("<p>{name}, {}{faulty}</p><ul>{findings}</ul>", seeds(reading.seeds))
}

fn seeds(count: usize) -> String {
    if count == 1 { "1 seed".into() } else { format!("{count} seeds") }
}

fn faulty(runs: usize) -> String {
    if runs == 0 { String::new() } else { format!(", {runs} runs with faults") }
}

fn finding_of(finding: &Finding) -> String {
    let measured = finding.measured.map_or("nothing measured".into(), figure);
    let interval = finding.interval.map_or(String::new(), |interval| format!(" ({})", shown(interval)));
    let p_value = finding.p_value.map_or(String::new(), |p_value| format!(", p = {p_value:.2e}"));
    let holds = match finding.holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "shown",
    };
    let chance = if finding.without_chance { format!(" ({WITHOUT_CHANCE})") } else { String::new() };
    format!("<li>{}: <b>{measured}</b>{interval}{p_value}: {holds}{chance}</li>", escape(&finding.what))
}

fn class(state: State) -> &'static str {
    match state {
        State::Holds => "holds",
        State::Unconfirmed => "unconfirmed",
        State::Luck => "luck",
        State::HoldsNot => "holds-not",
        State::Informative => "informative",
        State::NotMeasured => "not-measured",
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Holds => "holds",
        State::Unconfirmed => "held, not confirmed",
        State::Luck => "held, may be luck",
        State::HoldsNot => "does not hold",
        State::Informative => "informative",
        State::NotMeasured => "not measured",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{looked, map, users};
    use super::*;

    #[test]
    fn repetitions_of_an_effect_are_marked_and_faults_are_told() {
        let html = to_html(&Map { users: users(), ..map(&[looked(0.9, 0.9), looked(0.9, 0.9), looked(0.9, 0.9)]) });
        assert_eq!(html.matches("<summary title=\"better\">=</summary>").count(), 1);
        assert_eq!(html.matches("<summary title=\"better\"></summary>").count(), 2);
        assert_eq!(html.matches("<b>better</b><p>the same runs as shipped</p>").count(), 1);
        assert!(
            html.contains("2 / 0 of 2 distinct conditions") && html.contains("10 seeds, 1 runs with faults: "),
            "{html}"
        );
    }

    #[test]
    fn a_repetition_names_the_condition_that_it_repeats() {
        let html = to_html(&map(&[looked(0.9, 0.9), looked(0.001, 0.001), looked(0.001, 0.001)]));
        assert_eq!(html.matches("<p>the same runs as under short-units</p>").count(), 1);
        assert_eq!(html.matches("<summary title=\"holds\">=</summary>").count(), 1);
    }

    #[test]
    fn what_all_seeds_repeat_is_said() {
        let mut repeated = looked(0.9, 0.9);
        repeated.at.seeds = 1;
        repeated.at.findings[0].without_chance = true;
        let html = to_html(&map(&[looked(0.9, 0.9), repeated]));
        assert!(html.contains("<p>explored, 20 seeds</p>") && html.contains("<p>explored, 1 seed</p>"), "{html}");
        assert_eq!(html.matches("does not hold (nothing is random here: all seeds gave the same run)").count(), 1);
    }

    #[test]
    fn every_cell_opens_into_its_intervals() {
        let html = to_html(&map(&[looked(0.9, 0.9), looked(0.001, 0.001)]));
        assert_eq!(html.matches("<details>").count(), 2);
        assert!(html.contains("0 hold as shipped, 1 under other conditions"), "{html}");
        assert!(
            html.contains("<td class=\"holds\">") && html.contains("-1.00</b> (-2.00 to 0.50), p = 1.00e-3: holds"),
            "{html}"
        );
        assert!(!html.contains("src="), "the page needs nothing from elsewhere");
    }
}
