//! The map as text.

use std::fmt::Write;

use super::super::table::figure;
use super::super::users;
use super::{Map, Place, Row, State};

/// Every square of the map in Markdown tables, beginning with what people notice, followed by a legend and by the
/// changes of each condition.
pub fn to_text(map: &Map) -> String {
    let mut text = users_of(map);
    if !map.claims.is_empty() {
        text += &claims_of(map);
    }
    let _ = writeln!(text, "{}\n", map.seeds_in_words());
    for condition in &map.conditions {
        let settings =
            if condition.settings.is_empty() { String::new() } else { format!(": {}", condition.settings.join("; ")) };
        let _ = writeln!(text, "- {}: {}{settings}", condition.name, condition.why);
    }
    text
}

fn claims_of(map: &Map) -> String {
    let names: Vec<_> = map.conditions.iter().map(|condition| condition.name).collect();
    let mut text = format!("| claim | the paper | {} | verdict |\n", names.join(" | "));
    let _ = writeln!(text, "|---|---|{}---|", "---|".repeat(names.len()));
    for row in &map.claims {
        let squares: Vec<_> = row.squares.iter().map(|square| mark(square.state, square.repeats)).collect();
        let _ = writeln!(text, "| {} | {} | {} | {} |", row.id, row.paper, squares.join(" | "), verdict(row));
    }
    let _ = writeln!(text, "\n{LEGEND}\n");
    text
}

fn users_of(map: &Map) -> String {
    if map.users.is_empty() {
        return String::new();
    }
    let names: Vec<_> = map.conditions.iter().map(|condition| condition.name).collect();
    let mut text = format!("| module | what a person notices | better / worse, of | {} |\n", names.join(" | "));
    let _ = writeln!(text, "|---|---|---|{}", "---|".repeat(names.len()));
    for row in &map.users {
        let squares: Vec<_> = row.squares.iter().map(effect).collect();
        let (users::Seen { module, measure, better, worse, distinct, .. }, squares) = (row, squares.join(" | "));
        let _ = writeln!(text, "| {module} | {measure} | {better} / {worse} of {distinct} | {squares} |");
    }
    text + "\n" + LEGEND_OF_USERS + "\n\n"
}

/// Means without and with the module, and the result of the comparison.
fn effect(square: &users::Comparison) -> String {
    let Some(difference) = square.looked_at else { return "x".into() };
    let means = format!("{} -> {}", figure(difference.without), figure(difference.with));
    let shown = match square.state {
        users::State::Helps => format!("**better** {means}"),
        users::State::Hurts => format!("**worse** {means}"),
        users::State::NoDifference => means,
        users::State::NotMeasured => "x".into(),
    };
    let faulty = match square.faulty_runs() {
        0 => String::new(),
        faulty => format!(" ({faulty} runs faulty)"),
    };
    format!("{shown}{faulty}{}", repetition(square.repeats))
}

/// The mark of a square that repeats another condition, with a space before it; empty if it does not.
fn repetition(of: Option<&str>) -> String {
    match of {
        None => String::new(),
        Some(AS_SHIPPED) => " =".into(),
        Some(condition) => format!(" = {condition}"),
    }
}

/// Says which condition has the same runs.
pub(super) fn same_runs(of: &str) -> String {
    if of == AS_SHIPPED { "the same runs as shipped".into() } else { format!("the same runs as under {of}") }
}

/// Name of the condition that changes nothing.
const AS_SHIPPED: &str = "shipped";

const LEGEND_OF_USERS: &str = "Bold: better or worse with the module than without it. Numbers are the means without \
    and with it. =: the same runs as shipped; = NAME: as under that condition; they count only there.";

const LEGEND: &str = "+ holds; (+) held, but was not confirmed; ? held, but may be luck among so many; \
    - does not hold; = the same runs as shipped; = NAME as under that condition; i informative; x not measured.";

fn mark(state: State, repeats: Option<&str>) -> String {
    let mark = match state {
        State::Holds => "+",
        State::Unconfirmed => "(+)",
        State::Luck => "?",
        State::HoldsNot => "-",
        State::Informative => "i",
        State::NotMeasured => "x",
    };
    mark.to_owned() + &repetition(repeats)
}

/// Describes where a claim holds.
pub(super) fn verdict(row: &Row) -> String {
    match &row.place {
        Place::AsShipped => "holds as shipped".into(),
        Place::Under(conditions) => format!("holds under {}", conditions.join(", ")),
        Place::Nowhere => match row.because {
            Some(cause) => format!("never here, because {cause}"),
            None => "never here; the cause is not measured yet".into(),
        },
        Place::Informative => "informative".into(),
        Place::NotMeasured => "not measured".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{looked, map, users};
    use super::*;

    #[test]
    fn effects_are_counted_over_distinct_conditions() {
        let text = to_text(&Map { users: users(), ..map(&[looked(0.9, 0.9), looked(0.9, 0.9), looked(0.9, 0.9)]) });
        let row = "| relay selection, against greedy | video of 3 Mbit/s: stall time, s | 2 / 0 of 2 \
            | **better** 3.00 -> 1.05 | **better** 3.00 -> 1.05 = | **better** 3.00 -> 1.10 (1 runs faulty) |\n";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn every_cell_is_there_with_what_it_means() {
        let own = [looked(0.9, 0.9), looked(0.001, 0.001), looked(0.001, 0.9)];
        let text = to_text(&map(&[&own[..], &own[..2]].concat()));
        let row = "| C05 | 1 outage against 3 while bandwidth falls | - | + | (+) | - = | + = short-units \
            | holds under short-units, no-sack-no-limited-transmit |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("seeds 1 to 20") && text.contains("seeds 21 to 60") && text.contains("- short-units: "),
            "{text}"
        );
        let mut nowhere = map(&[looked(0.9, 0.9)]);
        for (because, verdict) in
            [(Some("of this"), "never here, because of this"), (None, "never here; the cause is not measured yet")]
        {
            nowhere.claims[0].because = because;
            let text = to_text(&nowhere);
            assert!(text.contains(verdict), "{text}");
        }
    }
}
