//! Notes on settings without effect in a valid scenario.

use lab::scenario::Scenario;

/// Maximum number of notes shown; a scenario may have any number of relays.
const SHOWN_MAX: usize = 8;

/// Returns the settings that have no effect in any of these scenarios, one line each; empty if there are none. `place`
/// names the place in the file.
pub(super) fn notes_on<'a>(place: &str, scenarios: impl IntoIterator<Item = &'a Scenario>) -> String {
    let mut scenarios = scenarios.into_iter();
    let mut notes = scenarios.next().map_or(Vec::new(), Scenario::notes);
    for scenario in scenarios {
        let others = scenario.notes();
        notes.retain(|note| others.contains(note));
    }
    let mut text: String = notes.iter().take(SHOWN_MAX).map(|note| format!("note: {place}{note}\n")).collect();
    if notes.len() > SHOWN_MAX {
        text += &format!("note: {place}{} more like these\n", notes.len() - SHOWN_MAX);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(duration: &str, relays: usize) -> Scenario {
        let relay = "[[relays]]\nleaves = \"40 s\"\ncellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n";
        let text = format!("name = \"x\"\nduration = \"{duration}\"\nworkload = {{ kind = \"bulk\" }}\n");
        lab::scenario::load("x.toml", &(text + &relay.repeat(relays)), &[]).unwrap()
    }

    #[test]
    fn what_counts_in_one_case_is_not_noted_and_many_are_counted() {
        let (short, long) = (scenario("30 s", 1), scenario("60 s", 1));
        assert_eq!(
            notes_on("x.toml: ", [&short]),
            "note: x.toml: relays[0].leaves: 40 s is never reached: the run ends at 30 s\n"
        );
        assert_eq!(notes_on("", [&short, &long]), "");
        let many = notes_on("", [&scenario("30 s", 20)]);
        assert!(many.lines().count() == 9 && many.ends_with("note: 12 more like these\n"), "{many}");
    }
}
