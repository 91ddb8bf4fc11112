//! A policy without a name cannot be used: every implementation of a policy trait is registered, except wrappers of
//! another policy.

use crate::tree::{files_ending, is_test_only, parse, read, require_none};

const TRAITS: [(&str, &str, &str); 5] = [
    ("CongestionController", "CONTROLLERS", "crates/transport/src/congestion/"),
    ("Scheduler", "SCHEDULERS", "crates/transport/src/scheduler/"),
    ("PathManager", "PATH_MANAGERS", "crates/transport/src/path_manager/"),
    ("RelaySelector", "SELECTORS", "crates/cooperation/src/relay_selection/"),
    ("ResourceScheduler", "RESOURCE_SCHEDULERS", "crates/network/src/cell/scheduler/"),
];

/// Tables, maintained by hand, that have a row or a word for every name of a registry.
const TABLES: [(&str, &str, &str); 7] = [
    ("CONTROLLERS", "crates/transport/src/congestion/", "docs/algorithms/congestion.md"),
    ("SCHEDULERS", "crates/transport/src/scheduler/", "docs/algorithms/schedulers.md"),
    ("PATH_MANAGERS", "crates/transport/src/path_manager/", "scenarios/README.md"),
    ("SELECTORS", "crates/cooperation/src/relay_selection/", "docs/algorithms/relay-selection.md"),
    ("SELECTORS", "crates/cooperation/src/relay_selection/", "scenarios/README.md"),
    ("RESOURCE_SCHEDULERS", "crates/network/src/cell/scheduler/", "docs/algorithms/cell.md"),
    ("RESOURCE_SCHEDULERS", "crates/network/src/cell/scheduler/", "scenarios/README.md"),
];

/// Returns the types for which a file implements `policy`, outside tests.
fn implementors(file: &syn::File, policy: &str) -> Vec<String> {
    let impls = file.items.iter().filter_map(|item| match item {
        syn::Item::Impl(item) if !is_test_only(&item.attrs) => Some(item),
        _ => None,
    });
    let of_policy = impls.filter(|item| {
        let path = item.trait_.as_ref().map(|(path, _)| path);
        path.and_then(|path| path.segments.last()).is_some_and(|last| last.ident == policy)
    });
    let names = of_policy.filter_map(|item| match &*item.self_ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    });
    names.collect()
}

/// Returns the text of the list itself: from its name to the end of the item.
fn list_of(registry: &str, name: &str) -> String {
    let start = registry.find(&format!("const {name}:")).unwrap_or_else(|| panic!("{name} is not in its registry"));
    let end = registry[start..].find("\n];").map_or(registry.len(), |len| start + len);
    registry[start..end].to_owned()
}

/// Returns the names that a list registers.
fn names(list: &str) -> Vec<String> {
    let named = list.split("name: \"").skip(1);
    named.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.into()).collect()
}

/// Returns whether a table of a document contains `name`, alone, as a value of a scenario, or with parameters.
fn has_in_table(document: &str, name: &str) -> bool {
    let written = [format!("`{name}`"), format!("`{name}("), format!("\"{name}\"")];
    document.lines().filter(|line| line.starts_with('|')).any(|row| written.iter().any(|text| row.contains(text)))
}

/// Returns the texts of the files whose functions the list names as builders: `build: With(mpaimd::PARAMETERS,
/// mpaimd::mpaimd)`.
fn builders(list: &str, folder: &str) -> Vec<String> {
    let named = list.split("build: ").skip(1).filter_map(|rest| rest.split_once("::"));
    let modules = named.map(|(before, _)| before.trim_start_matches("With(").trim());
    let files = modules.map(|module| format!("{folder}{module}.rs"));
    let known = files_ending(".rs");
    files.filter(|file| known.contains(file)).map(|file| read(&file)).collect()
}

/// Returns whether a text has `name` as a word of its own: `Reno` is not in `NewReno`.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|letter| !is_of_word(letter)).any(|word| word == name)
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the names that occur more than once.
fn repeated(names: &[String]) -> Vec<&String> {
    let is_again = |(at, name): &(usize, &String)| names[..*at].contains(name);
    names.iter().enumerate().filter(is_again).map(|(_, name)| name).collect()
}

/// Returns whether a text creates a value of the type `name`.
fn builds(text: &str, name: &str) -> bool {
    text.split("Box::new(")
        .skip(1)
        .any(|rest| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_of_word)))
}

/// Returns whether a text has a type that contains a policy: an option of another policy, whichever that is.
fn wraps(text: &str, policy: &str) -> bool {
    text.contains(&format!(": Box<dyn {policy}>,\n"))
}

#[test]
fn every_policy_is_registered() {
    let mut breaches = Vec::new();
    for (policy, list, folder) in TRAITS {
        let list = list_of(&read(&format!("{folder}registry.rs")), list);
        let of_folder = |file: &&String| file.starts_with(folder) && !wraps(&read(file), policy);
        for file in files_ending(".rs").iter().filter(of_folder) {
            let builders = builders(&list, folder);
            let is_listed = |name: &String| has_word(&list, name) || builders.iter().any(|text| builds(text, name));
            let unlisted = implementors(&parse(file), policy).into_iter().filter(|name| !is_listed(name));
            breaches.extend(unlisted.map(|name| format!("{file}: {name}")));
        }
    }
    require_none("a policy is in the registry of its folder", breaches);
}

/// A search by name would never reach the second.
#[test]
fn every_name_is_registered_once() {
    let mut breaches = Vec::new();
    for (_, list, folder) in TRAITS {
        let names = names(&list_of(&read(&format!("{folder}registry.rs")), list));
        breaches.extend(repeated(&names).into_iter().map(|name| format!("{folder}registry.rs: {name} of {list}")));
    }
    require_none("a registry has one policy of a name", breaches);
}

#[test]
fn every_registered_name_is_in_its_tables() {
    let mut breaches = Vec::new();
    for (list, folder, document) in TABLES {
        let names = names(&list_of(&read(&format!("{folder}registry.rs")), list));
        assert!(!names.is_empty(), "{list} has no names");
        let text = read(document);
        let missing = names.iter().filter(|name| !has_in_table(&text, name));
        breaches.extend(missing.map(|name| format!("{document}: {name} of {list}")));
    }
    require_none("the documents' tables have every registered name", breaches);
}

#[test]
fn names_in_tables_are_whole() {
    let document = "`ecf` is in no table.\n| `linux-like` | a rule |\n| `aimd(alpha)`, `\"exact\"` | another |\n";
    assert_eq!(["aimd", "exact", "linux", "ecf"].map(|name| has_in_table(document, name)), [true, true, false, false]);
}

#[test]
fn registered_types_are_whole_words() {
    let list = "build: Plain(|| Box::new(NewReno::new(\"reno\"))), build: || Box::<Ecf>::default()";
    assert_eq!(["NewReno", "Ecf", "Reno", "New"].map(|name| has_word(list, name)), [true, true, false, false]);
    assert_eq!(["NewReno", "New", "Reno"].map(|name| builds(list, name)), [true, false, false]);
}

#[test]
fn names_that_are_there_twice_are_found() {
    let twice = names("name: \"a\", name: \"b\", name: \"a\"");
    assert_eq!(repeated(&twice), ["a"]);
    assert!(repeated(&twice[..2]).is_empty());
}

#[test]
fn wrappers_are_told_apart() {
    assert!(wraps("struct Outer {\n    inner: Box<dyn Scheduler>,\n}", "Scheduler"));
    assert!(!wraps("fn new(inner: Box<dyn Scheduler>, share: f64)", "Scheduler"));
}

#[test]
fn implementors_are_found() {
    let text = "impl a::Scheduler for Mine {} impl Other for Mine {} #[cfg(test)] impl Scheduler for Fake {}";
    assert_eq!(implementors(&syn::parse_file(text).unwrap(), "Scheduler"), ["Mine"]);
}
