//! Shipped scenario files with a line removed, doubled or garbled yield a mistake with its place, or a valid run.

use std::path::{Path, PathBuf};

use lab::run::run;
use lab::scenario::{Layer, LoadError, Scenario, load_layers};
use proptest::prelude::*;
use units::Duration;

/// Duration of the run of a scenario that is still valid.
const MOMENT: Duration = Duration::from_millis(100);
/// Maximum number of relays of a scenario to run: with more, their set-up takes most of the time.
const RELAYS_MAX: usize = 100;

/// Replacements for a value.
const VALUES: [&str; 30] = [
    "0",
    "-1",
    "1",
    "18446744073709551616",
    "9223372036854775807",
    "nan",
    "inf",
    "-0.0",
    "1e308",
    "true",
    "\"\"",
    "\"x\"",
    "\"0 bit/s\"",
    "\"1000000000000000000 bit/s\"",
    "\"-1 Mbit/s\"",
    "\"NaN bit/s\"",
    "\"0 s\"",
    "\"1 ns\"",
    "\"100000 h\"",
    "\"0 B\"",
    "\"1 EB\"",
    "\"100 %\"",
    "\"101 %\"",
    "[]",
    "[1, 2, 3]",
    "{}",
    "{ uniform = [\"2 s\", \"1 s\"] }",
    "[{ at = \"1 s\" }]",
    "1979-05-27",
    "\"\\u0000\"",
];

#[derive(Clone, Debug)]
enum Mutation {
    Drop(usize),
    Double(usize),
    Value(usize, usize),
    Character(usize, char),
    Remove(usize),
    Cut(usize),
    Swap(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<usize>;
    prop_oneof![
        place().prop_map(Mutation::Drop),
        place().prop_map(Mutation::Double),
        (place(), 0..VALUES.len()).prop_map(|(line, value)| Mutation::Value(line, value)),
        (place(), any::<char>()).prop_map(|(at, character)| Mutation::Character(at, character)),
        place().prop_map(Mutation::Remove),
        place().prop_map(Mutation::Cut),
        (place(), place()).prop_map(|(one, other)| Mutation::Swap(one, other)),
    ]
}

impl Mutation {
    fn apply(&self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut characters: Vec<char> = text.chars().collect();
        if lines.is_empty() {
            return String::new();
        }
        let (line_count, character_count) = (lines.len(), characters.len());
        match *self {
            Self::Drop(line) => drop(lines.remove(line % line_count)),
            Self::Double(line) => lines.insert(line % line_count, lines[line % line_count].clone()),
            Self::Value(line, value) => {
                let fields: Vec<usize> = (0..line_count).filter(|line| lines[*line].contains(" = ")).collect();
                if let Some(line) = fields.get(line % fields.len().max(1)) {
                    let key = lines[*line].split(" = ").next().unwrap_or_default().to_string();
                    lines[*line] = format!("{key} = {}", VALUES[value]);
                }
            }
            Self::Swap(one, other) => lines.swap(one % line_count, other % line_count),
            Self::Character(at, character) => {
                characters[at % character_count] = character;
                return characters.into_iter().collect();
            }
            Self::Remove(at) => {
                characters.remove(at % character_count);
                return characters.into_iter().collect();
            }
            Self::Cut(at) => return characters[..at % character_count].iter().collect(),
        }
        lines.join("\n")
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Names of all files, including those that others extend.
fn files() -> Vec<String> {
    let in_directory = |path: &str| {
        let entries = std::fs::read_dir(directory().join(path)).unwrap();
        let names = entries.map(|entry| format!("{path}{}", entry.unwrap().file_name().into_string().unwrap()));
        names.filter(|name| name.ends_with(".toml")).collect::<Vec<_>>()
    };
    let mut names = [in_directory(""), in_directory("base/")].concat();
    names.sort();
    names
}

fn load_text(name: &str, text: String) -> Result<Scenario, LoadError> {
    let find_base = |from: &Layer, base: &str| {
        let path = Path::new(&from.name).with_file_name(base);
        let text = std::fs::read_to_string(directory().join(&path)).map_err(|error| error.to_string())?;
        Ok(Layer { name: path.display().to_string(), text, ships: false })
    };
    load_layers(Layer { name: name.into(), text, ships: false }, &find_base, &[])
}

/// Checks that every mistake names a file with line and column, and describes a problem.
fn check_mistakes(error: &LoadError) -> Result<(), TestCaseError> {
    let LoadError::Mistakes(mistakes) = error else { return Err(TestCaseError::fail(format!("no mistakes: {error}"))) };
    prop_assert!(!mistakes.is_empty());
    for mistake in mistakes {
        let text = mistake.to_string();
        let first = text.lines().next().unwrap_or_default();
        let place = first.split_once(".toml:").and_then(|(_, rest)| rest.split_once(": ")).map(|(place, _)| place);
        let numbers = place.map(|place| place.split(':').filter(|number| number.parse::<usize>().is_ok()).count());
        prop_assert_eq!(numbers, Some(2), "no place in {}", text);
        prop_assert!(!mistake.problem.is_empty(), "no problem in {}", text);
    }
    Ok(())
}

/// Checks that the beginning of the run yields numbers for everything, or that there is a reason why it cannot begin.
fn check_run(mut scenario: Scenario) -> Result<(), TestCaseError> {
    scenario.duration = scenario.duration.min(MOMENT);
    scenario.metrics.window = scenario.metrics.window.min(scenario.duration);
    scenario.metrics.analysis = None;
    if scenario.relays.len() > RELAYS_MAX {
        return Ok(());
    }
    match run(&scenario, None, &mut |_| {}) {
        Err(refused) => prop_assert!(!refused.to_string().is_empty()),
        Ok(run) => {
            let totals = &run.results.totals;
            prop_assert!(totals.duration_s <= MOMENT.as_secs_f64() && totals.goodput_in_order_bps.is_finite());
            prop_assert!(totals.delivered_bytes <= totals.source_bytes);
            prop_assert_eq!(run.results.relays.len(), scenario.relays.len());
            let windows = run.results.series.time_s.len();
            prop_assert!(run.results.series.relays.iter().all(|relay| relay.carried_bps.len() == windows));
            let json: serde_json::Value = serde_json::from_str(&run.results.to_json()).unwrap();
            prop_assert!(json.is_object());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_scenarios_are_refused_with_a_place_or_run(
        file in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let files = files();
        let name = file.get(&files);
        let original = std::fs::read_to_string(directory().join(name)).unwrap();
        let text = mutations.iter().fold(original, |text, mutation| mutation.apply(&text));
        match load_text(name, text) {
            Err(error) => check_mistakes(&error)?,
            Ok(scenario) => check_run(scenario)?,
        }
    }
}

const PROFILES: [&str; 3] = ["base/linux.toml", "base/modern.toml", "base/ns3-2013.toml"];

#[test]
fn what_ships_runs_its_first_moment() {
    for name in files() {
        let text = std::fs::read_to_string(directory().join(&name)).unwrap();
        // Profiles are laid over scenarios and are not scenarios themselves: `eras.rs` runs them.
        if PROFILES.iter().any(|profile| name.ends_with(profile)) {
            continue;
        }
        let scenario = load_text(&name, text).unwrap_or_else(|error| panic!("{error}"));
        check_run(scenario).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
