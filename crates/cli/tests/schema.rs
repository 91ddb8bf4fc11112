//! The schema of scenario files, compared with the files that ship.

use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;

fn schema() -> Value {
    let output = Command::cargo_bin("anabranch").unwrap().args(["scenarios", "--schema"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn instance(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

fn shipped() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = files(folder.clone()).chain(files(folder.join("base")));
    all.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

#[test]
fn every_file_that_ships_obeys_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let files = shipped();
    assert!(files.len() > 55, "{}", files.len());
    for path in files {
        let instance = instance(&std::fs::read_to_string(&path).unwrap());
        let mistakes: Vec<String> = validator.iter_errors(&instance).map(|error| error.to_string()).collect();
        assert_eq!(mistakes, [""; 0], "{}", path.display());
    }
}

/// Tables are merged, so they may be stated in part; lists are replaced as a whole.
#[test]
fn files_that_extend_others_state_what_they_change() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for part in [
        "[bottleneck]\nqueue = \"50 packets\"",
        "[bottleneck.loss]\nburst_packets = 4.0",
        "[bottleneck.uplink]\nrate = \"1 Mbit/s\"",
        "[metrics.analysis]\nto = \"9 s\"",
        "[target]\ntolerance = \"5 %\"",
        "[workload]\nsize = \"1 MB\"",
        "[cooperation.selection.buffered_tolerance]\nfull = \"2 s\"",
    ] {
        let text = format!("extends = \"demo\"\nname = \"x\"\n{part}\n");
        let mistakes: Vec<String> = validator.iter_errors(&instance(&text)).map(|error| error.to_string()).collect();
        assert_eq!(mistakes, [""; 0], "{part}");
    }
    for list in ["[[relays]]\ncellular = { queue = \"50 packets\" }", "[[relays]]\ncellular = { rate = \"1 Mbit/s\" }"]
    {
        assert!(!validator.is_valid(&instance(list)), "{list}");
    }
}

#[test]
fn what_the_loader_refuses_the_schema_refuses_too() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for text in [
        "naem = \"x\"",
        "seed = \"one\"",
        "[cell]\nscheduller = \"round-robin\"",
        "[[relays]]\n[[relays.local]]\nkind = \"carrier pigeon\"",
        "[[relays]]\ncellular = { rate = 3, delay = \"1 ms\" }",
        "duration = 10",
    ] {
        assert!(!validator.is_valid(&instance(text)), "{text}");
    }
}
