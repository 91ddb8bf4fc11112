//! Two results beside each other, as the shell sees them.

use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::OutputAssertExt;
use linux::ability::{Needs, rehearse};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

/// The second relay's loss makes seeds differ.
const SCENARIO: &str = "name = \"pair\"\nduration = \"5 s\"\nworkload = { kind = \"bulk\" }\n\
    [[relays]]\ncellular = { rate = \"8 Mbit/s\", delay = \"20 ms\", loss = \"1 %\" }\n\
    [[relays]]\ncellular = { rate = \"6 Mbit/s\", delay = \"40 ms\" }\n";

fn anabranch(words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.args(words);
    command
}

/// Makes the results of `run` or `sweep` in the folder `name`.
fn make(directory: &Path, what: &str, name: &str, more: &[&str]) -> String {
    let scenario = directory.join("pair.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let out = directory.join(name);
    let mut command = anabranch(&[what]);
    command.arg(scenario).arg("--out").arg(&out).args(more).assert().success();
    out.display().to_string()
}

fn json(a: &str, b: &str) -> Value {
    let output = anabranch(&["compare", a, b, "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn sweeps_are_compared_seed_by_seed() {
    let directory = tempfile::tempdir().unwrap();
    let a = make(directory.path(), "sweep", "a", &["--seeds", "1..4"]);
    let slower = ["--seeds", "2..5", "--set", "relays[*].cellular.rate=4 Mbit/s"];
    let b = make(directory.path(), "sweep", "b", &slower);
    let differs = contains("relays[0].cellular.rate: 8 Mbit/s in A, 4 Mbit/s in B");
    let pairs = contains("3 pairs, seeds 2..4").and(contains("seed 1 only in A")).and(contains("seed 5 only in B"));
    let row = predicate::str::is_match("Goodput in order .* -.* Mbit/s ± .* 0\\.\\d+ ± .* B is smaller").unwrap();
    anabranch(&["compare", &a, &b]).assert().success().stdout(differs.and(pairs).and(row));
    let contrast = json(&a, &b);
    let value = &contrast["cases"][0]["values"]["goodput_in_order_bps"];
    let (of_a, of_b) = (value["a"]["mean"].as_f64().unwrap(), value["b"]["mean"].as_f64().unwrap());
    let difference = value["paired"]["difference"]["mean"].as_f64().unwrap();
    assert!((of_b - of_a - difference).abs() < 1e-6 * of_a, "{value}");
    assert_eq!((&value["paired"]["smaller"], &value["paired"]["verdict"]), (&Value::from(3), &Value::from("smaller")));
    assert_eq!(contrast["cases"][0]["only_a_seeds"], serde_json::json!([1]));
    // The other way round.
    assert_eq!(json(&b, &a)["cases"][0]["values"]["goodput_in_order_bps"]["paired"]["verdict"], "larger");
}

#[test]
fn what_is_the_same_is_said_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let a = make(directory.path(), "sweep", "a", &["--seeds", "1..3"]);
    let b = make(directory.path(), "sweep", "b", &["--seeds", "1..3", "--jobs", "1"]);
    for other in [&a, &b] {
        let said = contains("A and B measured the same, to the last bit").and(contains("all 3 runs"));
        anabranch(&["compare", &a, other]).assert().success().stdout(said.and(contains("the same settings")));
        assert_eq!(json(&a, other)["identical"], true);
    }
    let run = make(directory.path(), "run", "run", &["--seed", "2"]);
    let said = contains("A and B measured the same").and(contains("of the run,"));
    anabranch(&["compare", &run, &run]).assert().success().stdout(said);
    // A run is one pair with a sweep's run of its seed, which measured the same.
    let said =
        contains("one pair, seed 2").and(contains("all pairs measured the same")).and(contains("seeds 1, 3 only in A"));
    anabranch(&["compare", &a, &run]).assert().success().stdout(said);
}

#[test]
fn what_cannot_be_paired_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let one = make(directory.path(), "run", "one", &["--seed", "1"]);
    let two = make(directory.path(), "run", "two", &["--seed", "2", "--set", "connection.congestion=cubic"]);
    let said = contains("no seed is in both").and(contains("not paired")).and(contains("cubic in B"));
    anabranch(&["compare", &one, &two]).assert().success().stdout(said);
    let sizes = |sizes: &str| format!("sweep.grid={{ \"connection.mtu\" = [{sizes}] }}");
    let a = make(directory.path(), "sweep", "a", &["--seeds", "1..2", "--set", &sizes("\"1400 B\", \"1500 B\"")]);
    let b = make(directory.path(), "sweep", "b", &["--seeds", "1..2", "--set", &sizes("\"1500 B\", \"1300 B\"")]);
    let said = contains("as written, connection.mtu = 1500 B\n2 pairs")
        .and(contains("only in A:\n  as written, connection.mtu = 1400 B: seeds 1..2"))
        .and(contains("only in B:\n  as written, connection.mtu = 1300 B: seeds 1..2"));
    anabranch(&["compare", &a, &b]).assert().success().stdout(said);
    let c = make(directory.path(), "sweep", "c", &["--seeds", "1", "--set", &sizes("\"1200 B\", \"1100 B\"")]);
    let said = contains("no variant and point of the grid is in both").and(contains("help:"));
    anabranch(&["compare", &a, &c]).assert().code(1).stderr(said);
}

/// On Linux, a backend is several: the stacks are the kernel's or the engine's.
#[test]
fn the_stacks_of_a_run_on_linux_are_named() {
    if let Err(lacking) = rehearse(Needs::default()) {
        return left_out::leave_out("a comparison with a run on Linux", lacking);
    }
    let directory = tempfile::tempdir().unwrap();
    // In real time beside other tests: it ends when the octets are there.
    let small = [
        &["--seed", "1", "--set", "workload={ kind = \"generated\", size = \"20 kB\" }"][..],
        &["--set", "duration=60 s", "--set", "relays[0].cellular.loss=0 %"],
    ]
    .concat();
    let a = make(directory.path(), "run", "a", &small);
    let b = make(directory.path(), "run", "b", &[&small[..], &["--backend", "linux", "--source", "engine"]].concat());
    let said = contains("backend: simulator in A, --backend linux --source engine in B");
    anabranch(&["compare", &a, &b]).assert().success().stdout(said);
    let report = std::fs::read_to_string(PathBuf::from(&b).join("report.html")).unwrap();
    assert!(report.contains("<dt>backend</dt><dd>--backend linux --source engine</dd>"));
}

/// Runs that could not begin have faults and no values.
#[test]
fn runs_in_which_nothing_was_measured_are_not_compared() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = make(directory.path(), "sweep", "sweep", &["--seeds", "1..2"]);
    let journal = PathBuf::from(&sweep).join("runs.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let unbegun = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        (record["values"], record["faults"]) = (serde_json::json!({}), serde_json::json!(["it did not begin"]));
        format!("{record}\n")
    };
    let (head, runs) = text.split_once('\n').unwrap();
    let runs: String = runs.lines().map(unbegun).collect();
    std::fs::write(&journal, format!("{head}\n{runs}")).unwrap();
    let said = contains("4 of the runs had faults").and(contains("measured the same").not());
    let refused = contains("nothing was measured in both").and(contains("help:"));
    anabranch(&["compare", &sweep, &sweep]).assert().code(1).stdout(said).stderr(refused);
}

#[test]
fn what_is_no_result_is_refused_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let run = make(directory.path(), "run", "run", &["--seed", "1"]);
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let report = PathBuf::from(&run).join("report.html").display().to_string();
    let empty = write("empty.json", "");
    let begun = write("begun.jsonl", "{\"scenario\":\"x\",\"content\":\"\",\"version\":\"0\"}\n");
    let broken = write("broken.jsonl", "{\"scenario\":\"x\",\"content\":\"\",\"version\":\"0\"}\n{\"seed\":one}\n");
    for (path, words) in [
        ("nowhere", "cannot read nowhere"),
        (directory.path().to_str().unwrap(), "has neither results.json of a run nor runs.jsonl of a sweep"),
        (&report, "holds no results"),
        (&empty, "holds no results"),
        (&begun, "holds no finished run yet"),
        (&broken, "broken.jsonl:2: this is not a line of a sweep"),
    ] {
        anabranch(&["compare", &run, path]).assert().code(2).stderr(contains(words).and(contains("help:")));
    }
    std::fs::copy(&begun, PathBuf::from(&run).join("runs.jsonl")).unwrap();
    anabranch(&["compare", &run, &run]).assert().code(2).stderr(contains("has results of a run and of a sweep"));
}
