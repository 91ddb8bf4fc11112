//! What a run depends on, except its seed: a folder holds runs of a case only as long as this stays the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Case, Plan};
use crate::measure::integrity::hexadecimal;
use crate::run::inputs;
use crate::scenario::Scenario;

/// A variant, and path and value of every field of the grid.
pub(crate) type Key = (String, Vec<(String, String)>);

/// SHA-256 of what the runs of each case depend on, in hexadecimal: the settings, and the contents of the files that
/// they name. Adding variants, points or seeds to a sweep does not change it.
pub(crate) fn contents(plan: &Plan) -> BTreeMap<Key, String> {
    let mut files = BTreeMap::new();
    plan.cases.iter().map(|case| ((case.variant.clone(), case.point.clone()), content(case, &mut files))).collect()
}

/// The same of the runs of one case that is `scenario`, as this build states it; `None` if it names files, whose contents
/// are unknown here.
pub(crate) fn content_without_files(scenario: &Scenario) -> Option<String> {
    inputs::files(scenario).is_empty().then(|| digest_of_settings(scenario)).map(hexadecimal)
}

fn digest_of_settings(scenario: &Scenario) -> Sha256 {
    let settings = serde_json::to_vec(&without_sweep(scenario)).expect("scenarios have text keys");
    let mut digest = Sha256::new();
    digest.update(settings);
    digest
}

/// `files` holds the digests of files read so far: cases usually share them.
fn content(case: &Case, files: &mut BTreeMap<PathBuf, String>) -> String {
    let mut digest = digest_of_settings(&case.scenario);
    for path in inputs::files(&case.scenario) {
        let of_file =
            files.entry(path).or_insert_with_key(|path| inputs::digest(path).map_or_else(String::new, hexadecimal));
        digest.update(of_file.as_bytes());
    }
    hexadecimal(digest)
}

/// The scenario without what only names it, and without what makes a sweep of it.
pub(super) fn without_sweep(scenario: &Scenario) -> Scenario {
    Scenario {
        name: String::new(),
        description: String::new(),
        seed: 0,
        variants: Vec::new(),
        sweep: None,
        ..scenario.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    fn of(head: &str, rate: &str, sizes: &str) -> BTreeMap<Key, String> {
        let text = format!(
            "name = \"x\"\n{head}duration = \"1 s\"\nworkload = {{ kind = \"bulk\" }}\n[[relays]]\n\
             cellular = {{ rate = \"{rate}\", delay = \"5 ms\" }}\n[sweep.grid]\n\"connection.mtu\" = [{sizes}]\n"
        );
        contents(&Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap())
    }

    #[test]
    fn more_points_variants_and_seeds_leave_the_others_as_they_are() {
        let before = of("", "3 Mbit/s", "\"1400 B\", \"1500 B\"");
        assert_eq!(before.len(), 2);
        let head = "description = \"more\"\nvariants = [{ name = \"as written\" }, { name = \"b\" }]\n";
        let after = of(head, "3 Mbit/s", "\"1300 B\", \"1400 B\", \"1500 B\"");
        assert_eq!(after.len(), 6);
        assert!(before.iter().all(|(key, content)| after[key] == *content));
        let slower = of("", "2 Mbit/s", "\"1400 B\", \"1500 B\"");
        assert!(before.iter().all(|(key, content)| slower[key] != *content));
    }
}
