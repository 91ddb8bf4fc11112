//! `anabranch claims` as a program.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

fn claims(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.current_dir(directory.path()).arg("claims").args(arguments).assert()
}

#[test]
fn a_table_says_what_the_paper_says_and_what_is_measured() {
    claims(&["--ids", "C38,C39"])
        .success()
        .stdout(contains("| C38 |").and(contains("reproduced")).and(contains("next:")));
}

#[test]
fn json_has_one_entry_for_each_claim() {
    let output = claims(&["--ids", "C02,c39", "--seeds", "2", "--json"]).success();
    let object: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let entries = object["claims"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for key in ["id", "paper", "measured", "interval", "verdict", "mode"] {
        assert!(entries[0].get(key).is_some(), "{key}");
    }
    assert!(entries[0]["measured"].as_f64().unwrap() > 0.0);
    assert_eq!((&entries[1]["id"], &entries[1]["verdict"]), (&"C39".into(), &"reproduced".into()));
}

/// The text at the end fits the request, and all output ends in a newline.
#[test]
fn the_end_says_how_to_go_on_with_these_runs() {
    let one = ["--ids", "C02,c39", "--seeds", "1", "--out", "kept runs"];
    let output = claims(&one).success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(
        text.contains("\n1 seed, as corrected. Finished runs are in kept runs.\n") && text.ends_with("\n"),
        "{text}"
    );
    assert!(text.contains("  anabranch claims --ids C02 --seeds 50 --out 'kept runs'    # "), "{text}");
    assert!(text.contains("  anabranch sweep thesis-4.3 --set 'metrics.analysis={ from"), "{text}");
    assert!(text.contains(" }' --seeds 1..2    # the runs behind C02, with a report\n"), "{text}");
    claims(&["--ids", "C39", "--json"]).success().stdout(predicates::str::ends_with("}\n"));
    let map = ["--map", "--ids", "C39", "--conditions", "train", "--seeds", "2", "--confirm", "0"];
    claims(&[&map[..], &["--json"]].concat()).success().stdout(predicates::str::ends_with("}\n"));
    claims(&[&map[..], &["--out", "x"]].concat())
        .success()
        .stdout(contains("claims --map --ids C39 --conditions short-units --seeds 2 --confirm 0 --out x    # "));
    claims(&map[..5]).success().stdout(contains("claims --map --ids C39 --conditions short-units    # "));
}

#[test]
fn what_it_cannot_judge_is_an_error_with_what_it_can() {
    for id in ["C1", "C99", "all"] {
        let wanted = contains(format!("--ids {id}: there is no such claim")).and(contains("from C01 to C66, like C05"));
        claims(&["--ids", id]).code(2).stderr(wanted);
    }
    claims(&["--seeds", "0"]).code(2).stderr(contains("--seeds"));
}

/// This includes claims that need no run.
#[test]
fn where_runs_would_be_kept_is_a_folder() {
    for id in ["C38", "C65"] {
        let one = ["--ids", id, "--seeds", "1", "--out", "/dev/null"];
        let wanted = contains("/dev/null: is not a folder").and(contains("choose another --out"));
        claims(&one).code(2).stdout("").stderr(wanted);
    }
}

#[test]
fn a_map_has_every_condition_asked_for_and_is_kept() {
    const CONDITIONS: &str = "short-units,no-sack,train";
    let directory = tempfile::tempdir().unwrap();
    let map = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        let small =
            ["claims", "--map", "--ids", "C02,C39", "--conditions", CONDITIONS, "--seeds", "2", "--confirm", "1"];
        command.current_dir(directory.path()).args(small).args(more).assert().success()
    };
    map(&[]).stdout(
        contains("| shipped | short-units | no-sack | train | verdict |")
            .and(contains("| C02 |"))
            .and(contains("next:")),
    );
    let page = std::fs::read_to_string(directory.path().join("out/claims/map.html")).unwrap();
    assert_eq!(page.matches("<details>").count(), 8);
    // The runs exist, so the same request reads them.
    let output = map(&["--json", "--jobs", "1"]);
    let object: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let squares = object["claims"][0]["squares"].as_array().unwrap();
    let measured = |cell: &serde_json::Value| cell["looked_at"]["findings"][0]["measured"].as_f64().unwrap();
    assert!(measured(&squares[0]) != measured(&squares[2]) && measured(&squares[0]) != measured(&squares[3]));
    // No run of C02 depends on the unit of G1, and nothing of C39 on any run.
    let repeats = |claim: usize| -> Vec<Option<&str>> {
        let squares = object["claims"][claim]["squares"].as_array().unwrap().iter();
        squares.map(|square| square["repeats"].as_str()).collect()
    };
    let shipped = Some("shipped");
    assert_eq!((repeats(0), repeats(1)), (vec![None, shipped, None, None], vec![None, shipped, shipped, shipped]));
}

/// `sweep --restart` would discard other runs.
#[test]
fn runs_of_another_version_are_to_be_removed() {
    let directory = tempfile::tempdir().unwrap();
    let claims = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.current_dir(directory.path()).args(["claims", "--ids", "C02", "--seeds", "1"]).assert()
    };
    claims().success();
    let mut entries = std::fs::read_dir(directory.path().join("out/claims")).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&path).unwrap();
    let version = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    for (damaged, said) in [
        (text.replace(version, "\"version\":\"0\""), "by version 0 of this program, not of version"),
        (text.replace("\"seed\":1,\"values\"", "\"seed\":one,\"values\""), "jsonl:2: this is not a line of a sweep"),
    ] {
        std::fs::write(&path, damaged).unwrap();
        let remedy = contains("help: choose another --out, or remove the file\n");
        claims().code(2).stderr(contains(said).and(remedy).and(contains("--restart").not()));
    }
}

/// As when no run of a scenario can begin.
#[test]
fn a_claim_that_no_run_measured_is_a_failure_in_the_map_too() {
    let directory = tempfile::tempdir().unwrap();
    let map = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        let small = ["claims", "--map", "--ids", "C02", "--conditions", "no-sack", "--seeds", "1", "--confirm", "0"];
        command.current_dir(directory.path()).args(small).assert()
    };
    map().success();
    for entry in std::fs::read_dir(directory.path().join("out/claims")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let unbegun = |line: &str| {
            let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
            (record["values"], record["faults"]) = (serde_json::json!({}), serde_json::json!(["it did not begin"]));
            format!("{record}\n")
        };
        let (manifest, runs) = text.split_once('\n').unwrap();
        std::fs::write(&path, format!("{manifest}\n{}", runs.lines().map(unbegun).collect::<String>())).unwrap();
    }
    map().code(1).stdout(contains("| C02 |")).stderr(contains("not measured by any run: C02"));
}

#[test]
fn a_condition_that_there_is_not_is_an_error_with_those_that_there_are() {
    claims(&["--map", "--conditions", "moon"]).code(2).stderr(contains("moon").and(contains("known: shipped")));
    claims(&["--conditions", "train"]).code(2).stderr(contains("--map"));
}

/// What can be refused without a kernel is refused before the machine is examined.
#[test]
fn on_linux_what_is_computed_is_not_judged() {
    claims(&["--backend", "linux", "--ids", "C48,C59"])
        .code(2)
        .stderr(contains("error: C48 is not judged on Linux: it is computed").and(contains("error: C59 is not")));
    claims(&["--backend", "linux", "--map"]).code(2).stderr(contains("--map"));
}

#[test]
fn with_ns3_what_it_cannot_do_is_not_judged() {
    claims(&["--backend", "ns3", "--ids", "C48,C50"]).code(2).stderr(
        contains("error: C48 is not judged with ns-3: it is computed").and(contains("mveno-5: cell: there is")),
    );
}
