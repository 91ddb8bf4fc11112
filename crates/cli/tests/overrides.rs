//! Effects of `--set` and `--variant` on runs and sweeps, and their record in every file.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

const SCENARIO: &str = "name = \"small\"\nduration = \"20 s\"\n\
    [workload]\nkind = \"generated\"\nsize = \"50 kB\"\n\
    [[relays]]\ncellular = { rate = \"4 Mbit/s\", delay = \"20 ms\" }\n\
    [[variants]]\nname = \"LIA\"\nset = { \"connection.congestion\" = \"lia\" }\n\
    [[variants]]\nname = \"CUBIC, it's\"\nset = { \"connection.congestion\" = \"cubic\" }\n\
    [sweep]\nseeds = \"1..2\"\n[sweep.grid]\n\"workload.size\" = [\"60 kB\", \"80 kB\"]\n";

fn anabranch(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.args(arguments);
    command
}

/// Returns a directory with a scenario file whose name needs quotes in a shell, and the file's path.
fn scenario(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my scenario.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path.display().to_string())
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn records(out: &Path) -> Vec<serde_json::Value> {
    text(&out.join("runs.jsonl")).lines().skip(1).map(json).collect()
}

#[test]
fn rows_of_a_sweep_are_what_they_are_called() {
    let (directory, path) = scenario(SCENARIO);
    let out = directory.path().join("out");
    let out_text = out.display().to_string();
    let sweep = |set: &str| anabranch(&["sweep", &path, "--set", set, "--out", &out_text]);
    // The axis has only this value.
    sweep("workload.size=70 kB").assert().success().stdout(contains("size=70 kB").and(contains("size=60 kB").not()));
    let records = records(&out);
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record["point"], json("[[\"workload.size\", \"70 kB\"]]"));
        assert_eq!(record["values"]["delivered_bytes"], 70_000.0);
    }
    let wanted = contains("--set connection.congestion=bbr: the variants \"LIA\", \"CUBIC, it's\" set this themselves")
        .and(contains("help: "));
    sweep("connection.congestion=bbr").assert().code(2).stderr(wanted);
    sweep("connection={}").assert().code(2).stderr(contains("\"LIA\"").and(contains("--set 'variants=[]'")));
    sweep("seed=3").assert().code(2).stderr(contains("--seeds 1..30"));
    anabranch(&["sweep", &path, "--seeds", "1..2", "--set", "sweep.seeds=1..3"]).assert().code(2);
}

/// The command that a sweep proposes is read by a shell and runs.
#[test]
fn a_sweep_whose_seeds_were_set_proposes_more_of_them() {
    let text = "name = \"lossy\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"1 Mbit/s\", delay = \"5 ms\", loss = \"5 %\" }\n";
    let (directory, path) = scenario(text);
    let out = directory.path().join("out").display().to_string();
    let set = ["--set", "sweep.seeds=1..3", "--set", "connection.mtu=1400 B"];
    let output = anabranch(&[&["sweep", &path, "--out", &out], &set[..]].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let proposed = text.lines().find_map(|line| line.trim().strip_prefix("anabranch sweep ")).unwrap();
    assert!(proposed.contains(" --set 'connection.mtu=1400 B' --seeds 1..30 "), "{proposed}");
    let program = assert_cmd::cargo::cargo_bin!("anabranch").display().to_string();
    let again = Command::new("sh").args(["-c", &format!("'{program}' sweep {proposed}")]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn every_file_of_a_sweep_tells_what_was_changed() {
    let (directory, path) = scenario(SCENARIO);
    let out = directory.path().join("out");
    let out_text = out.display().to_string();
    let set = ["--set", "connection.mtu=1400 B", "--set", "relays[*].cellular.delay=5 ms"];
    let sweep = |scenario: &str, set: &[&str]| anabranch(&[&["sweep", scenario, "--out", &out_text], set].concat());
    sweep(&path, &set).assert().success().stdout(contains("small, with connection.mtu=1400 B, with relays[*]"));
    for name in ["runs.jsonl", "summary.json", "runs.csv", "report.html"] {
        let text = text(&out.join(name));
        assert!(text.contains("connection.mtu=1400 B") && text.contains("relays[*].cellular.delay=5 ms"), "{name}");
    }
    // Continuing is possible with the same settings, and with no others.
    sweep(&path, &set).assert().success();
    let wanted = contains("holds runs of the scenario \"small\" with connection.mtu = 1.4 kB")
        .and(contains("(with --set 'connection.mtu=1400 B' --set"))
        .and(contains("not of the same with connection.mtu = 1.5 kB").and(contains("(without --set)")));
    sweep(&path, &[]).assert().code(2).stderr(wanted.and(contains("help: choose another --out")));
    let (_other, other) = scenario(&SCENARIO.replace("\"small\"", "\"large\""));
    sweep(&other, &[])
        .assert()
        .code(2)
        .stderr(contains("runs of the scenario \"small\", not of the scenario \"large\""));
}

#[test]
fn every_file_of_a_run_tells_what_was_taken_and_changed() {
    let (directory, path) = scenario(SCENARIO);
    let out = directory.path().join("out");
    let out_text = out.display().to_string();
    let run =
        ["run", &path, "--variant", "LIA", "--set", "workload.size=80 kB", "--out", &out_text, "--pcap", &out_text];
    let wanted = contains("small, variant \"LIA\", with workload.size=80 kB (seed 1").and(contains("as written").not());
    anabranch(&run).assert().success().stdout(wanted);
    let manifest = &json(&text(&out.join("results.json")))["manifest"];
    assert_eq!((&manifest["variant"], &manifest["overrides"]), (&json("\"LIA\""), &json("[\"workload.size=80 kB\"]")));
    assert_eq!(manifest["content"]["connection"]["congestion"], "lia");
    for name in ["report.html", "source.pcapng", "destination.pcapng"] {
        let text = text(&out.join(name));
        assert!(text.contains("variant") && text.contains("LIA") && text.contains("workload.size=80 kB"), "{name}");
    }
}

#[test]
fn a_run_says_that_there_are_variants_and_takes_no_name_in_vain() {
    let (_directory, path) = scenario(SCENARIO);
    let note = "this is the scenario as written; --variant NAME runs one of its variants: \"LIA\", \"CUBIC, it's\"\n";
    anabranch(&["run", &path]).assert().success().stdout(contains(note));
    anabranch(&["run", &path, "--json"]).assert().success().stderr(contains(note));
    let undone = ["run", &path, "--variant", "LIA", "--set", "connection.congestion=bbr"];
    anabranch(&undone)
        .assert()
        .code(2)
        .stderr(contains("the variant \"LIA\" sets this itself").and(contains("leave out --variant")));
    anabranch(&["run", &path, "--seed", "1", "--set", "seed=2"])
        .assert()
        .code(2)
        .stderr(contains("leave one of them out"));
    anabranch(&["run", &path, "--set", "variants=[]", "--variant", "LIA"])
        .assert()
        .code(2)
        .stderr(contains("no variants"));
}

/// Runs the command in `text` that starts with `begin` in a shell, with `more` appended, and returns its output as
/// JSON.
fn by_a_shell(text: &str, begin: &str, more: &str) -> serde_json::Value {
    let command = text.lines().find_map(|line| line.trim().strip_prefix(begin)).unwrap();
    let program = assert_cmd::cargo::cargo_bin!("anabranch").display().to_string();
    let output =
        std::process::Command::new("sh").args(["-c", &format!("'{program}' {command} {more}")]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command}: {error}: {output:?}"))
}

#[test]
fn a_failed_run_is_repeated_by_the_command_that_is_printed() {
    let (directory, path) = scenario(&SCENARIO.replace("\"LIA\"", "\"it's $HOME\""));
    let out = directory.path().join("out");
    let sets = ["--set", "duration=150 ms", "--set", "relays[*].cellular.loss=5 %", "--set", "metrics.period=100 ms"];
    let sweep = [&["sweep", &path, "--out", out.to_str().unwrap()], &sets[..]].concat();
    let output = anabranch(&sweep).assert().code(1).get_output().stderr.clone();
    let results = by_a_shell(&String::from_utf8(output).unwrap(), "help: anabranch", "--json");
    let manifest = &results["manifest"];
    assert_eq!(manifest["variant"], "it's $HOME");
    assert_eq!(manifest["content"]["workload"]["size"], "60 kB");
    let records = records(&out);
    let same = |record: &&serde_json::Value| {
        record["variant"] == manifest["variant"]
            && record["seed"] == manifest["seed"]
            && record["point"][0][1] == "60 kB"
    };
    let values = &records.iter().find(same).unwrap()["values"];
    for name in ["delivered_bytes", "data_packets", "goodput_in_order_bps"] {
        assert_eq!(results["totals"][name].as_f64(), values[name].as_f64(), "{name}");
    }
    let report = text(&out.join("report.html"));
    assert!(report.contains("--set &#39;duration=150 ms&#39;") || report.contains("--set 'duration=150 ms'"));
}

#[test]
fn what_is_to_be_tried_next_can_be_tried() {
    let (_directory, path) = scenario(SCENARIO);
    let run = ["run", &path, "--variant", "CUBIC, it's", "--set", "workload.size=60 kB", "--seed", "4"];
    let output = String::from_utf8(anabranch(&run).assert().success().get_output().stdout.clone()).unwrap();
    let next = output.split("next:\n").nth(1).unwrap();
    let other_seed = by_a_shell(next.split_once('\n').unwrap().1, "anabranch", "--json");
    assert_eq!(
        (&other_seed["manifest"]["seed"], &other_seed["totals"]["delivered_bytes"]),
        (&json("5"), &json("60000"))
    );
    assert_eq!(other_seed["manifest"]["variant"], "CUBIC, it's");
}

#[test]
fn names_lead_to_no_other_place() {
    let directory = tempfile::tempdir().unwrap();
    let inner: PathBuf = directory.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    for name in ["../../x", "/tmp/anabranch-must-not-write", "..", ""] {
        std::fs::write(inner.join("s.toml"), SCENARIO.replace("\"small\"", &format!("{name:?}"))).unwrap();
        for command in ["run", "sweep", "check"] {
            anabranch(&[command, "s.toml"]).current_dir(&inner).assert().code(2).stderr(contains("s.toml:1:1: name: "));
        }
        let set = format!("name={name:?}");
        anabranch(&["sweep", "demo", "--set", &set])
            .current_dir(&inner)
            .assert()
            .code(2)
            .stderr(contains("--set name="));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1);
}

#[test]
fn check_tells_of_all_mistakes_of_variants_and_files() {
    let text = SCENARIO.replace("\"lia\"", "\"lai\"").replace("\"cubic\"", "\"cubik\"").replace("\"80 kB\"", "\"80\"");
    let (_directory, path) = scenario(&text);
    let wanted = contains("scenario.toml:10:9: connection.congestion")
        .and(contains("scenario.toml:13:9: connection.congestion"));
    anabranch(&["check", &path]).assert().code(2).stderr(wanted.and(contains("scenario.toml:17:29: workload.size")));
    let relay =
        |name: &str| format!("[[relays]]\ncellular = {{ rate = {{ trace = \"{name}.up\" }}, delay = \"1 ms\" }}\n");
    let (_directory, path) = scenario(&format!("{SCENARIO}{}{}", relay("one"), relay("two")));
    let wanted = contains("relays[1].cellular.rate.trace: cannot read").and(contains("relays[2].cellular.rate.trace"));
    anabranch(&["check", &path]).assert().code(2).stderr(wanted);
}

/// What is proposed to be run next is no command that would be refused, or change nothing.
#[test]
fn another_scheduler_is_proposed_where_it_is_another_and_allowed() {
    let text = SCENARIO.replace("\"connection.congestion\" = \"cubic\"", "\"connection.scheduler\" = \"blest\"");
    let (_directory, path) = scenario(&text);
    for (words, is_proposed) in [
        (&[] as &[&str], true),
        (&["--variant", "LIA"], true),
        (&["--variant", "CUBIC, it's"], false),
        (&["--set", "connection.scheduler=round-robin"], false),
        (&["--set", "connection.scheduler=blest"], false),
        (&["--set", "connection={ scheduler = \"round-robin\" }"], false),
        (&["--set", "workload={ kind = \"none\" }"], false),
    ] {
        let output = anabranch(&[&["run", &path], words].concat()).assert().success();
        let told = contains("--set connection.scheduler=round-robin\n")
            .eval(&String::from_utf8_lossy(&output.get_output().stdout));
        assert_eq!(told, is_proposed, "{words:?}");
    }
}
