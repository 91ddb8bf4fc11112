//! Documents keep their order.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree::{files, files_ending, folder, read, require_none, root};

/// Returns the targets of links `[text](target)` outside code blocks.
fn links(document: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in document.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code {
            let after = line.split("](").skip(1);
            found.extend(after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let mut breaches = Vec::new();
    for file in files_ending(".md") {
        for link in links(&read(&file)) {
            let target = link.split('#').next().unwrap_or("");
            if !link.contains("://") && !root().join(folder(&file)).join(target).exists() {
                breaches.push(format!("{file}: {link}"));
            }
        }
    }
    require_none("a link leads to a file of the tree", breaches);
}

#[test]
fn decisions_are_numbered_and_listed() {
    let decisions: Vec<_> = files()
        .into_iter()
        .filter_map(|file| file.strip_prefix("docs/decisions/").map(str::to_owned))
        .filter(|name| name != "README.md")
        .collect();
    assert!(!decisions.is_empty(), "docs/decisions/ is empty");
    let list = read("docs/decisions/README.md");
    let mut breaches = Vec::new();
    for (position, name) in decisions.iter().enumerate() {
        let number = format!("{:04}-", position + 1);
        if !name.starts_with(&number) {
            breaches.push(format!("{name}: the next number is {number}"));
        }
        if !list.contains(&format!("({name})")) {
            breaches.push(format!("{name}: not listed in docs/decisions/README.md"));
        }
    }
    require_none("decisions are numbered from 0001 on and listed", breaches);
}

/// Returns the first cells of the table rows, without the header.
fn terms(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.filter_map(|row| Some(row.split('|').nth(1)?.trim().to_owned())).collect()
}

#[test]
fn glossary_is_sorted_and_unique() {
    let terms = terms(&read("docs/glossary.md"));
    assert!(terms.len() > 20, "the glossary lost its table: {terms:?}");
    let keys: Vec<_> = terms.iter().map(|term| term.to_lowercase()).collect();
    let unsorted = keys.windows(2).filter(|pair| pair[0] >= pair[1]).map(|pair| pair.join(" before ")).collect();
    require_none("terms stand in alphabetical order, each once", unsorted);
}

/// Returns the paths of the tree that a document names in backticks, like `crates/wire` or `docs/testing.md`.
fn named_paths(document: &str) -> BTreeSet<String> {
    let spans = document.split('`').skip(1).step_by(2);
    let within = ["crates/", "docs/", "tests/", "scripts/", "scenarios/", "fuzz/", "benches/"];
    spans.filter(|span| within.iter().any(|folder| span.starts_with(folder))).map(str::to_owned).collect()
}

#[test]
fn named_paths_exist() {
    let mut breaches = Vec::new();
    for file in files_ending(".md") {
        for path in named_paths(&read(&file)) {
            let plain = !path.contains(['*', '<', ' ', 'N']);
            if plain && !root().join(Path::new(&path)).exists() {
                breaches.push(format!("{file}: {path}"));
            }
        }
    }
    require_none("a path in a document exists", breaches);
}

/// Returns the tests that a document names in backticks as `file.rs::test`: file and test.
fn named_tests(document: &str) -> Vec<(String, String)> {
    let spans = document.split('`').skip(1).step_by(2).filter_map(|span| span.split_once(".rs::"));
    spans.map(|(file, test)| (format!("{file}.rs"), test.to_owned())).collect()
}

#[test]
fn rules_of_rfc_8684_are_held_by_tests_that_exist() {
    let named = named_tests(&read("docs/rfc8684-musts.md"));
    assert!(named.len() > 20, "the list of rules lost its tests: {named:?}");
    let mut breaches = Vec::new();
    for (file, test) in named {
        let path = if file.contains('/') { file } else { format!("crates/transport/tests/{file}") };
        let exists = root().join(&path).exists() && read(&path).contains(&format!("fn {test}("));
        if !exists {
            breaches.push(format!("{path}: {test}"));
        }
    }
    require_none("a test named in docs/rfc8684-musts.md exists", breaches);
}
