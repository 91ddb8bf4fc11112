//! `anabranch select` as the shell sees it.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

/// Ten relays, of which 4, 8 and 9 add up to 3 Mbit/s.
const TEN: &str = "0.5M,0.6M,0.7M,0.8M,0.85M,0.9M,0.95M,1M,1.05M,1.1M";

fn select(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.arg("select").args(arguments);
    command
}

fn answer(arguments: &[&str]) -> Value {
    let output = select(&[arguments, &["--json"]].concat()).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn of_ten(arguments: &[&str]) -> Value {
    answer(&[&["--relays", TEN, "--target", "3M", "--theta", "0.1"], arguments].concat())
}

#[test]
fn ten_relays_as_json() {
    let active = json!({ "relays": [4, 8, 9], "sum_bps": 3_000_000 });
    let backup = json!({ "relays": [3, 8, 9], "sum_bps": 2_950_000 });
    let first = json!({ "active": active, "backup": backup, "feasible": true });
    assert_eq!(of_ten(&[]), first);
    assert_eq!(of_ten(&["--method", "exact"]), first);
    assert_eq!(of_ten(&["--epsilon", "0.05"]), first);
    assert_eq!(of_ten(&["--epsilon", "5 %"]), first);
    let later = json!({ "active": active, "backup": backup, "feasible": true, "in_use": active });
    assert_eq!(of_ten(&["--active", "4,8,9"]), later);
}

#[test]
fn greedy_is_the_thesis_baseline() {
    let active = json!({ "relays": [1, 2, 3, 4], "sum_bps": 2_950_000 });
    assert_eq!(of_ten(&["--method", "greedy"]), json!({ "active": active, "backup": null, "feasible": true }));
    assert_eq!(of_ten(&["--method", "greedy", "--active", "1,2,3"])["backup"], active);
}

#[test]
fn a_random_choice_is_a_function_of_its_seed() {
    let chosen = |seed: &str| of_ten(&["--method", "random(50)", "--seed", seed])["active"]["relays"].clone();
    assert_eq!(chosen("7"), chosen("7"));
    let seeds = ["1", "2", "3", "4", "5"].map(chosen);
    assert!(seeds[1..].iter().any(|relays| *relays != seeds[0]), "{seeds:?}");
    assert_eq!(of_ten(&["--method", "random"])["feasible"], json!(true));
}

#[test]
fn rates_are_read_as_people_write_them() {
    let relays = "0.5 Mbit/s, 800 kbit/s,1000000,1.2G, 300k";
    let answer = answer(&["--relays", relays, "--target", "1.5 Mbit/s", "--theta", "0 %"]);
    assert_eq!(answer["active"], json!({ "relays": [0, 2], "sum_bps": 1_500_000 }));
}

#[test]
fn nothing_in_range_is_an_answer_and_a_failure() {
    let told = "error: found no set in the accepted range, 2.7 Mbit/s to 3.3 Mbit/s\n";
    let asked = ["--relays", "1M,1M", "--target", "3M"];
    let output = select(&[&asked[..], &["--json"]].concat()).assert().code(1).stderr(told);
    let answer: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let active = json!({ "relays": [0, 1], "sum_bps": 2_000_000 });
    assert_eq!(answer, json!({ "active": active, "backup": null, "feasible": false }));
    select(&asked).assert().code(1).stderr(told).stdout(contains("2 relays offer 2 Mbit/s together"));
    select(&["--relays", "1M", "--target", "3M"]).assert().code(1).stdout(contains("; 1 relay offers 1 Mbit/s\n"));
}

#[test]
fn relays_that_offer_nothing_are_in_no_set() {
    for (relays, active) in [("0M,0M", json!([])), ("0M,1M,0M,1M", json!([1, 3]))] {
        let output = select(&["--relays", relays, "--target", "3M", "--json"]).assert().code(1);
        let answer: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert_eq!(answer["active"]["relays"], active, "{relays}");
    }
    let said = contains("all relays that offer anything if they are too few");
    select(&["--relays", "0M,0M", "--target", "1M"]).assert().code(1).stdout(said.and(contains("none")));
}

#[test]
fn the_table_says_why() {
    let wanted = contains("4,8,9").and(contains("2.95 Mbit/s")).and(contains("-50 kbit/s")).and(contains("least cost"));
    select(&["--relays", TEN, "--target", "3M"]).assert().success().stdout(wanted);
    let running = select(&["--relays", TEN, "--target", "3M", "--active", "0,1"]).assert().success();
    running.stdout(contains("in use").and(contains("1.1 Mbit/s")));
}

#[test]
fn bad_input_is_one_line_that_names_the_remedy() {
    let cases: [(&[&str], &str); 17] = [
        (&["--relays", "0.5", "--target", "3M"], "--relays: \"0.5\" is not a rate"),
        (&["--relays", "", "--target", "3M"], "like 0.5M"),
        (&["--relays", "1M,-1M", "--target", "3M"], "\"-1M\" is not a rate"),
        (&["--relays", "1M", "--target", "99999999999G"], "too large"),
        (&["--relays", "1M", "--target", "0"], "--target: the rate is zero: write a rate above zero"),
        (&["--relays", "1M", "--target", "3M", "--theta", "1.5"], "--theta"),
        (
            &["--relays", "18446744073709551615,1", "--target", "3M"],
            "--relays: together they offer more than 18446744073709551615 bit/s: write lower rates",
        ),
        (&["--relays", "1M", "--target", "3M", "--epsilon", "0"], "--epsilon: epsilon = 0 is not between 0.001 and 1"),
        (&["--relays", "1M,1M", "--target", "3M", "--active", "2"], "from 0 to 1"),
        (&["--relays", "1M,1M", "--target", "3M", "--active", "1, 0,1"], "relay 1 is listed twice: write it once"),
        (
            &["--relays", "1M", "--target", "3M", "--method", "best"],
            "--method: unknown relay selector \"best\" (there are: ssrs, greedy-thesis",
        ),
        (&["--relays", "1M", "--target", "3M", "--mode", "thesis"], "build, paper, paper-ssrs"),
        (
            &["--relays", "1M", "--target", "3M", "--method", "ssrs(1)"],
            "--method: relay selector ssrs takes no parameters",
        ),
        (
            &["--relays", "1M", "--target", "3M", "--method", "random(1.5)"],
            "--method: relay selector random: draws = 1.5 must be a whole number from 1 to 10000",
        ),
        (&["--relays", "1M", "--target", "3M", "--method", "random(1,-1)"], "least = -1 must be from 0 to 1"),
        (&["--relays", "1M", "--target", "3M", "--method", "random(1,0,1)"], "not 3: random(draws,least)"),
        (
            &["--relays", "1M", "--target", "3M", "--method", "random(draws=1)"],
            "--method: parameter 1 of \"random(draws=1)\", \"draws=1\", is not a finite number; parameters are written",
        ),
    ];
    for (arguments, wanted) in cases {
        let one_line = predicate::function(|text: &str| text.starts_with("error: ") && text.lines().count() == 1);
        select(arguments).assert().code(2).stdout("").stderr(contains(wanted).and(one_line));
    }
    let many = vec!["1M"; 25].join(",");
    select(&["--relays", &many, "--target", "3M", "--method", "exact"]).assert().code(2).stderr(contains("ssrs"));
}
