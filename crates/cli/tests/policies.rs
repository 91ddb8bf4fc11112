//! `anabranch policies` as the shell sees it.

use assert_cmd::Command;
use cooperation::relay_selection::SELECTORS;
use network::cell::RESOURCE_SCHEDULERS;
use serde_json::{Value, json};
use transport::congestion::CONTROLLERS;
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

fn policies(arguments: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.arg("policies").args(arguments).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

/// Returns every registered name with its summary, by kind.
fn registered() -> [(&'static str, Vec<(&'static str, &'static str)>); 5] {
    [
        ("controllers", CONTROLLERS.iter().map(|known| (known.name, known.summary)).collect()),
        ("schedulers", SCHEDULERS.iter().map(|known| (known.name, known.summary)).collect()),
        ("path_managers", PATH_MANAGERS.iter().map(|known| (known.name, known.summary)).collect()),
        ("relay_selectors", SELECTORS.iter().map(|known| (known.name, known.summary)).collect()),
        ("resource_schedulers", RESOURCE_SCHEDULERS.iter().map(|known| (known.name, known.summary)).collect()),
    ]
}

#[test]
fn every_policy_is_listed_with_what_it_does() {
    let text = policies(&[]);
    for (name, summary) in registered().into_iter().flat_map(|(_, policies)| policies) {
        let is_it = |line: &str| line.split_whitespace().next() == Some(name) && line.contains(summary);
        assert!(text.lines().any(is_it), "{name} is missing:\n{text}");
    }
    for parameter in [
        "beta = 0.5  factor by which a loss multiplies the window (above 0 and below 1)",
        "beta = 0.25  how much more patient it is while it waits, as a share of the slow subflow's time (from 0 to 10)",
        "one in range; 1 takes the first that reaches the target (a whole number from 1 to 10000)",
    ] {
        assert!(text.contains(parameter), "{parameter} is missing:\n{text}");
    }
    assert!(text.contains("; in short greedy\n") && text.matches("; the default\n").count() == 4, "{text}");
}

#[test]
fn programs_read_them_as_json() {
    let object: Value = serde_json::from_str(&policies(&["--json"])).unwrap();
    for (kind, policies) in registered() {
        let listed = object[kind].as_array().unwrap().iter().map(|policy| (&policy["name"], &policy["summary"]));
        let listed: Vec<_> =
            listed.map(|(name, summary)| (name.as_str().unwrap(), summary.as_str().unwrap())).collect();
        assert_eq!(listed, policies, "{kind}");
    }
    let aimd = object["controllers"].as_array().unwrap().iter().find(|policy| policy["name"] == "aimd").unwrap();
    assert_eq!(aimd["parameters"][1]["name"], json!("beta"));
    assert_eq!(aimd["parameters"][1]["default"], json!(0.5));
    let within =
        json!({ "lower": 0.0, "lower_included": false, "upper": 1.0, "upper_included": false, "whole": false });
    assert_eq!(aimd["parameters"][1]["values"], within);
    let random =
        object["relay_selectors"].as_array().unwrap().iter().find(|policy| policy["name"] == "random").unwrap();
    let whole =
        json!({ "lower": 1.0, "lower_included": true, "upper": 10_000.0, "upper_included": true, "whole": true });
    assert_eq!(random["parameters"][0]["values"], whole);
}
