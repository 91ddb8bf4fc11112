//! The command as the shell sees it.

use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

const SMALL: &str = "name = \"small\"\nduration = \"20 s\"\n[workload]\nkind = \"generated\"\nsize = \"300 kB\"\n\
    [[relays]]\ncellular = { rate = \"4 Mbit/s\", delay = \"20 ms\" }\n\
    [[relays]]\ncellular = { rate = { mean = \"2 Mbit/s\" }, delay = \"40 ms\", loss = \"1 %\" }\n";

fn anabranch(arguments: &[&str]) -> assert_cmd::assert::Assert {
    command(arguments).assert()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.args(arguments);
    command
}

/// Returns a directory with a scenario file, and the file's path.
fn scenario(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path.display().to_string())
}

fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A pipe can be read only once.
#[test]
fn a_scenario_may_come_from_a_pipe() {
    for arguments in [&["run", "/dev/stdin"][..], &["run", "/dev/stdin", "--set", "seed=3"], &["check", "/dev/stdin"]] {
        command(arguments).write_stdin(SMALL).assert().success();
    }
}

#[test]
fn without_arguments_it_explains_itself() {
    anabranch(&[]).code(2).stderr(contains("run").and(contains("demo")));
    anabranch(&["--help"]).success().stdout(contains("Run a scenario in the simulator"));
    anabranch(&["run", "--help"]).success().stdout(contains("Examples:"));
}

#[test]
fn a_run_prints_a_table_and_what_to_try_next() {
    let (_directory, path) = scenario(SMALL);
    let wanted = contains("relay-1").and(contains("relay-2")).and(contains("SHA-256")).and(contains("next:"));
    anabranch(&["run", &path]).success().stdout(wanted);
}

/// The first thing a reader sees. It contains only the first digits of the digest.
#[test]
fn the_readme_shows_what_the_demo_prints() {
    let shown = include_str!("../../../README.md").split("```").find(|block| block.contains("SHA-256"));
    let lines: Vec<&str> =
        shown.unwrap().lines().filter(|line| !line.is_empty() && !line.contains("SHA-256")).collect();
    let printed = anabranch(&["run", "demo"]).success();
    let printed = String::from_utf8_lossy(&printed.get_output().stdout).into_owned();
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    assert_eq!(lines.len(), 7);
    for line in lines {
        assert!(printed.contains(&line), "the README has {line:?}; it is {printed:#?}");
    }
}

/// After Ctrl-C, everything measured so far is shown.
#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let (directory, path) =
        scenario(&SMALL.replace("20 s", "2000 s").replace("generated\"\nsize = \"300 kB\"", "bulk\""));
    let out = directory.path().join("out");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .args(["run", &path, "--live", "--out"])
        .arg(&out)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // A tenth of the run is over, and the rest takes nine times as long.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut shown = std::io::BufRead::lines(&mut stderr).map_while(Result::ok);
    assert!(shown.any(|line| line.starts_with("10 %, ")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("interrupted after"), "{said}");
    assert_eq!(names(&out), ["report.html", "results.json"]);
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert_eq!((&results["totals"]["completed"], &results["totals"]["interrupted"]), (&false.into(), &true.into()));
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Interrupted; intact so far"));
}

#[test]
fn a_run_without_a_connection_fails() {
    let (_directory, path) = scenario(&SMALL.replace("generated\"\nsize = \"300 kB\"", "bulk\""));
    let down = "relays[*].cellular.outages=[{ from = \"0 s\", until = \"1 h\" }]";
    anabranch(&["run", &path, "--set", down]).code(1).stderr(contains("nothing arrived within 20 s"));
}

/// Endless data may stop long before the run does.
#[test]
fn a_run_in_which_nothing_arrives_any_more_says_since_when() {
    let (_directory, path) = scenario(&SMALL.replace("generated\"\nsize = \"300 kB\"", "bulk\""));
    let run = anabranch(&["run", &path, "--set", "relays[*].leaves=5 s"]).success();
    run.stderr(contains("note: nothing arrived after ").and(contains("no path was left")));
}

#[test]
fn json_is_one_object_with_units_in_its_names() {
    let (_directory, path) = scenario(SMALL);
    let output = command(&["run", &path, "--json", "--seed", "5"]).output().unwrap();
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 7);
    for key in ["manifest", "totals", "series", "subflows", "relays", "metrics", "selection"] {
        assert!(object.get(key).is_some(), "{key}");
    }
    let totals = &object["totals"];
    assert_eq!(totals["delivered_bytes"], 300_000);
    assert_eq!(totals["intact"], true);
    for key in ["duration_s", "wall_s", "data_packets", "aggregate_throughput_bps", "goodput_in_order_bps"] {
        assert!(totals[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {}", totals[key]);
    }
    assert_eq!(object["manifest"]["seed"], 5);
    assert_eq!(object["manifest"]["content"]["workload"]["size"], "300 kB");
}

#[test]
fn the_same_scenario_and_seed_give_the_same_files() {
    let (directory, path) = scenario(SMALL);
    let written: Vec<Vec<Vec<u8>>> = ["a", "b"]
        .iter()
        .map(|name| {
            let out = directory.path().join(name);
            let out_text = out.display().to_string();
            anabranch(&["run", &path, "--out", &out_text, "--pcap", &out_text]).success();
            assert_eq!(names(&out), ["destination.pcapng", "report.html", "results.json", "source.pcapng"]);
            names(&out).iter().map(|file| std::fs::read(out.join(file)).unwrap()).collect()
        })
        .collect();
    assert!(written[0] == written[1], "two runs differ");
    let other = directory.path().join("c").display().to_string();
    anabranch(&["run", &path, "--seed", "2", "--out", &other]).success();
    assert_ne!(std::fs::read(directory.path().join("c/results.json")).unwrap(), written[0][2]);
}

#[test]
fn mistakes_are_bad_input() {
    let (_directory, path) = scenario(&SMALL.replace("delay = \"20 ms\"", "dealy = \"20 ms\""));
    anabranch(&["run", &path]).code(2).stdout("").stderr(contains("small.toml:7:").and(contains("\"delay\"")));
    anabranch(&["run", "/nowhere.toml"]).code(2).stderr(contains("/nowhere.toml").and(contains("help:")));
    anabranch(&["run"]).code(2);
    anabranch(&["run", &path, "--set", "seed"]).code(2).stderr(contains("has no \"=\""));
    anabranch(&["demo", "--file", "/nowhere"]).code(2).stderr(contains("--file /nowhere"));
    let (_directory, path) = scenario(SMALL);
    let missing = ["--set", "workload.kind=file", "--set", "workload.path=/nowhere"];
    anabranch(&[&["run", &path], &missing[..]].concat()).code(2);
    anabranch(&["run", &path, "--set", "relays[0].cellular.delay=x"]).code(2).stderr(contains("--set relays[0]"));
}

#[test]
fn an_unknown_name_points_to_what_ships() {
    for command in ["run", "check", "sweep"] {
        let wanted = contains("no shipped scenario of that name").and(contains("did you mean \"thesis-4.3\"?"));
        anabranch(&[command, "thesi-4.3"]).code(2).stderr(wanted.and(contains("`anabranch scenarios` lists")));
    }
    anabranch(&["run", "qqqq"]).code(2).stderr(contains("`anabranch scenarios`").and(contains("did you mean").not()));
    anabranch(&["check", "my-own.toml"]).code(2).stderr(contains("cannot read my-own.toml").and(contains("help:")));
}

#[test]
fn a_folder_hides_no_shipped_scenario() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("demo")).unwrap();
    command(&["check", "demo"]).current_dir(directory.path()).assert().success().stdout(contains("demo: ok"));
    command(&["check", "./demo"]).current_dir(directory.path()).assert().code(2).stderr(contains("Is a directory"));
}

#[test]
fn a_run_that_does_not_deliver_fails() {
    let (_directory, path) = scenario(SMALL);
    let failed = anabranch(&["run", &path, "--set", "duration=200 ms"]).code(1);
    let wanted = contains("not complete").and(contains("SHA-256     incomplete: ")).and(contains("MISMATCH").not());
    failed.stderr(contains("bytes arrived within 200 ms")).stdout(wanted);
}

#[test]
fn a_place_that_cannot_be_written_fails() {
    let (_directory, path) = scenario(SMALL);
    anabranch(&["run", &path, "--out", "/dev/null/x"]).code(2).stderr(contains("/dev/null/x"));
}

#[test]
fn numbers_out_of_range_are_bad_input_by_name() {
    for seed in ["-1", "9223372036854775808", "18446744073709551616", "x"] {
        let wanted = contains("--seed").and(contains("write a whole number from 0 to 9223372036854775807"));
        anabranch(&["run", "demo", "--seed", seed]).code(2).stderr(wanted);
    }
    let too_large = contains("seed").and(contains("write at most 9223372036854775807"));
    anabranch(&["run", "demo", "--set", "seed=9223372036854775808"]).code(2).stderr(too_large);
    let too_large = contains("is out of range: the largest seed is 9223372036854775807");
    anabranch(&["sweep", "demo", "--seeds", "9223372036854775808"]).code(2).stderr(too_large);
    for command in [&["sweep", "demo"][..], &["claims"]] {
        for jobs in ["0", "-1"] {
            let wanted = contains("--jobs").and(contains("write a whole number above 0"));
            anabranch(&[command, &["--jobs", jobs]].concat()).code(2).stderr(wanted);
        }
    }
    anabranch(&["sweep", "demo", "--seeds", "-3..2"])
        .code(2)
        .stderr(contains("\"-3..2\" is not a range of seeds: write them like"));
    anabranch(&["serve", ".", "--port", "0"]).code(2).stderr(contains("--port").and(contains("1..")));
    anabranch(&["get", "10.1.0.1/file", "--via", "here"]).code(2).stderr(contains("write it like 10.1.0.3"));
    anabranch(&["get", "10.1.0.1/file", "--dry-run"]).code(2).stderr(contains("--interface <NAME>"));
    anabranch(&["get", "10.1.0.1/file", "--via", "10.1.0.3", "--interface", "usb0"]).code(2).stderr(contains("--via"));
    let nowhere = contains("--interface no-such-usb does not exist: there ").and(contains("\n").count(1));
    anabranch(&["get", "10.1.0.1/file", "--interface", "no-such-usb", "--dry-run"]).code(1).stderr(nowhere);
}

#[test]
fn a_rehearsal_says_where_a_recording_cannot_be() {
    for option in ["--pcap", "--qlog"] {
        for command in [&["join"][..], &["get", "10.1.0.1/file", "--interface", "no-such-usb"]] {
            let tried = [command, &["--dry-run", option, "/no/such/folder/x"]].concat();
            anabranch(&tried).failure().stderr(contains("/no/such/folder/x: "));
        }
    }
}

/// The doctor cannot find out more than the message says.
#[test]
fn nobody_is_sent_to_the_doctor_with_a_wrong_argument() {
    for (interfaces, code, why) in [
        (&["a/b"][..], 2, "\"a/b\" is not a valid interface name"),
        (&["usb0,usb1"], 2, "repeat the option for each, like --interface usb0 --interface usb1"),
        (&["lo"], 2, "lo is the loopback"),
        (&["no-such-usb"], 1, "no-such-usb does not exist"),
    ] {
        let named: Vec<&str> = interfaces.iter().flat_map(|name| ["--interface", name]).collect();
        for command in [&["join", "--dry-run"][..], &["join"], &["join", "--kernel", "--dry-run"]] {
            anabranch(&[command, &named].concat()).code(code).stderr(contains(why).and(contains("doctor").not()));
        }
        anabranch(&[&["get", "10.1.0.1/file", "--dry-run"], &named[..]].concat()).code(code).stderr(contains(why));
    }
}

/// Exit code 2: what the user wrote cannot work as it is written. 1: it failed, or the answer is no.
#[test]
fn exit_codes_follow_one_rule() {
    let (directory, path) = scenario(SMALL);
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("regular"), "").unwrap();
    let (regular, nowhere) = (at("regular"), "/proc/no-such-folder/x");
    for option in ["--out", "--pcap", "--qlog"] {
        for (place, why) in
            [(&*regular, "is not a folder"), (nowhere, "No such file or directory"), ("/dev/null", "is not a folder")]
        {
            let said = contains("cannot write ").and(contains(why)).and(contains("help: name a folder"));
            anabranch(&["run", &path, option, place]).code(2).stderr(said);
        }
    }
    for place in [&*regular, nowhere] {
        anabranch(&["sweep", &path, "--seeds", "1..1", "--out", place]).code(2).stderr(contains("cannot use "));
        anabranch(&["claims", "--ids", "C05", "--out", place]).code(2);
        anabranch(&["manual", place]).code(2).stderr(contains("cannot write the manual to "));
        let pair = ["join", "--pair", "127.0.0.1", "--name", "x", "--code", "042117", "--state", place];
        anabranch(&pair).code(2).stderr(contains("folder").and(contains("name a file").not()));
    }
    anabranch(&["fading", "-o", nowhere]).code(2).stderr(contains("cannot write /proc/no-such-folder/x"));
    for command in [&["join", "--interface", "no-such-usb"][..], &["get", "10.1.0.1/file", "-o", "x"], &["serve", "."]]
    {
        for option in ["--pcap", "--qlog"] {
            let said = contains("cannot write /proc/no-such-folder/x: No such file or directory");
            anabranch(&[command, &[option, nowhere]].concat()).code(2).stderr(said);
        }
    }
    let long = at(&"x".repeat(300));
    for command in [&["fading", "-o"][..], &["manual"], &["run", &path, "--out"], &["run", &path, "--pcap"]] {
        anabranch(&[command, &[&long]].concat()).code(2).stderr(contains("File name too long"));
    }
    // Missing input, which must exist, and an unknown value.
    for command in [
        &["run", "no-such-scenario"][..],
        &["check", "no-such-scenario"],
        &["compare", "no-such-results", "no-such-results"],
        &["select", "--relays", "x", "--target", "1M"],
        &["get", "http://"],
        &["serve", "no-such-folder"],
        &["emulate", "no-such-topology"],
        &["doctor", "a b"],
        &["no-such-command"],
    ] {
        anabranch(command).code(2);
    }
    // What is written could work, but does not.
    for command in [&["select", "--relays", "1M", "--target", "9M"][..], &["join", "--interface", "no-such-usb"]] {
        anabranch(command).code(1);
    }
}

#[test]
fn a_device_is_forgotten_in_either_order_of_words() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("none");
    let state = state.to_str().unwrap();
    for words in [["peers", "--state", state, "remove", "anna"], ["peers", "remove", "anna", "--state", state]] {
        anabranch(&words).failure().stderr(contains("anna").and(contains("cannot be used").not()));
    }
    anabranch(&["peers", "--state", state, "remove", ""]).failure().stderr(contains("is called \"\""));
    assert!(!Path::new(state).exists(), "nobody is paired");
    anabranch(&["peers", "--json", "remove", "anna"]).code(2).stderr(contains("leave it out with `remove`"));
}

#[test]
fn what_is_refused_is_said_in_words_that_help() {
    let tiny = contains("less than a packet").and(contains("write 1kB or more"));
    anabranch(&["relay", "--share", "lo", "--volume", "0.5B/day", "--dry-run"]).code(2).stderr(tiny);
    for part in ["daemon::pairings", "rely", "daem", ""] {
        let log = format!("info,{part}=debug");
        let unknown = contains(format!("no part \"{part}\" that logs")).and(contains("daemon::pairing, "));
        anabranch(&["relay", "--share", "lo", "--log", &log, "--dry-run"]).code(2).stderr(unknown);
    }
    for log in ["info,daemon::pairing=debug,engine=trace,anabranch=off", "daemon::proxy=trace", "daemon=off"] {
        let other = contains("that logs").not();
        anabranch(&["relay", "--share", "no-such-link", "--log", log, "--dry-run"]).failure().stderr(other);
    }
    let missing = contains("no-such-link");
    anabranch(&["relay", "--share", "no-such-link", "--volume", "1TB/month", "--dry-run"]).failure().stderr(missing);
    for rate in ["1bit/s", "1k", "0.000001M", "15.9k"] {
        let slow = contains("--rate").and(contains("hardly a packet per second: write 16k or more"));
        anabranch(&["relay", "--share", "lo", "--rate", rate, "--dry-run"]).code(2).stderr(slow);
    }
    for rate in ["16k", "all"] {
        let text = contains("hardly a packet").not();
        anabranch(&["relay", "--share", "no-such-link", "--rate", rate, "--dry-run"]).failure().stderr(text);
    }
    for charge in ["50%", "20.5", "101", "-1"] {
        let text = contains("--battery").and(contains("write a whole number of percent from 0 to 100, like 20"));
        anabranch(&["relay", "--share", "lo", "--battery", charge, "--dry-run"]).code(2).stderr(text);
    }
    // The name of a relay is not the name of an uplink.
    for command in [&["join", "--help"][..], &["join", "set", "--help"]] {
        anabranch(command).success().stdout(contains("via-anna"));
    }
    // Steps are for people, not for programs.
    for command in [&["get", "10.1.0.1/file", "--interface", "lo"][..], &["join", "--kernel"], &["join"]] {
        let text = contains("'--dry-run' cannot be used with '--json'");
        anabranch(&[command, &["--dry-run", "--json"]].concat()).code(2).stderr(text);
    }
    // Options for pairing have no effect without it.
    for (option, value) in [("--name", "x"), ("--code", "042117")] {
        for other in [&["--dry-run"][..], &["--kernel"], &["--interface", "no-such-usb"], &["--relay", "anna"]] {
            let text = contains(option).and(contains(format!("cannot be used with '{}", other[0])));
            anabranch(&[&["join", option, value][..], other].concat()).code(2).stderr(text);
        }
    }
    let via = contains("'--via <ADDR>' cannot be used with '--dry-run'");
    anabranch(&["get", "10.1.0.1/file", "--via", "10.1.0.3", "--dry-run"]).code(2).stderr(via);
    let squares = contains("'--qr' cannot be used with '--dry-run'");
    anabranch(&["relay", "--share", "lo", "--qr", "--dry-run"]).code(2).stderr(squares);
    // clap's usage for excluding options shows only one of them, as if no other were valid.
    let excluded = contains("'--kernel' cannot be used with '--congestion <NAME>'").and(contains("Usage").not());
    anabranch(&["join", "--kernel", "--congestion", "cubic"]).code(2).stderr(excluded);
    let capture =
        contains("cannot write /no/such/folder/x: No such file or directory").and(contains(".anabranch").not());
    anabranch(&["get", "10.1.0.1/file", "--pcap", "/no/such/folder/x"]).code(2).stderr(capture);
    // The code in two words, as it is displayed.
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let pair = ["join", "--pair", "127.0.0.1", "--name", "laptop", "--state", state, "--code"];
    anabranch(&[&pair, &["042", "117"][..]].concat()).code(1).stderr(contains("cannot reach 127.0.0.1"));
    anabranch(&[&pair, &["042", "11x"][..]].concat()).code(2).stderr(contains("code"));
    // With an invalid code no search starts.
    for code in ["12345", "abc"] {
        let text = contains("six digits").and(contains("looking").not());
        anabranch(&["join", "--pair", "--name", "laptop", "--state", state, "--code", code]).code(2).stderr(text);
    }
}

#[test]
fn names_of_uplinks_that_are_empty_are_said_to_be() {
    for arguments in [
        &["join", "--interface", ""][..],
        &["join", "--interface", "=backup"],
        &["join", "--relay", "@192.168.43.1"],
        &["join", "--price", "=3"],
        &["join", "set", "price.=3"],
        &["join", "set", " =backup"],
        &["doctor", "--interface", ""],
        &["relay", "--share", ""],
        &["get", "10.1.0.1/file", "--interface", ""],
    ] {
        anabranch(arguments).code(2).stderr(contains("the name is missing: write the name of an uplink, like usb0"));
    }
}

#[test]
fn settings_in_upper_case_are_told_from_uplinks() {
    for (text, said) in [
        ("TARGET=4M", "write it in lower case: target=4M"),
        ("Price.USB1=3", "price.USB1=3"),
        ("USB1=4M", "is not a tier"),
    ] {
        anabranch(&["join", "set", text]).code(2).stderr(contains(said));
    }
}

#[test]
fn a_variant_that_is_not_there_is_bad_input() {
    anabranch(&["run", "demo", "--variant", "x"]).code(2).stderr(contains("no variants: leave --variant out"));
    anabranch(&["run", "video", "--variant", "x"]).code(2).stderr(contains("known: three relays, one relay"));
}

#[test]
fn what_cannot_be_written_is_named_with_the_remedy() {
    let place = "/dev/null/x";
    for command in [&["sweep", "demo"][..], &["claims", "--ids", "C05"]] {
        let wanted = contains("/dev/null").and(contains("choose another --out"));
        anabranch(&[command, &["--out", place]].concat()).code(2).stderr(wanted);
    }
    for command in [&["run", "demo", "--out"][..], &["run", "demo", "--pcap"], &["fading", "-o"], &["demo", "--out"]] {
        let wanted = contains("cannot write /dev/null/x").and(contains("name a "));
        anabranch(&[command, &[place]].concat()).code(2).stderr(wanted);
    }
    let program = assert_cmd::cargo::cargo_bin!("anabranch").display().to_string();
    let output = std::process::Command::new("sh").args(["-c", &format!("'{program}' scenarios > /dev/full")]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write to standard output: No space"));
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let (_directory, path) = scenario(SMALL);
    let program = assert_cmd::cargo::cargo_bin!("anabranch").display().to_string();
    let pipeline = format!("{{ '{program}' run '{path}' --json; echo $? >&2; }} | true");
    let output = std::process::Command::new("sh").args(["-c", &pipeline]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n");
}

#[test]
fn the_demo_sends_a_users_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letter.txt");
    std::fs::write(&file, "abc").unwrap();
    let out = directory.path().join("out").display().to_string();
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let wanted = contains("letter.txt").and(contains(digest)).and(contains("report.html")).and(contains("next:"));
    anabranch(&["demo", "--file", &file.display().to_string(), "--out", &out]).success().stdout(wanted);
}

/// A file that takes longer than the scenario's two minutes: it is sparse, and most of it is never sent.
#[test]
fn an_interrupted_demo_keeps_what_it_measured() {
    let directory = tempfile::tempdir().unwrap();
    let (file, out) = (directory.path().join("large"), directory.path().join("out"));
    std::fs::File::create(&file).unwrap().set_len(300_000_000).unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .args(["demo", "--file", file.to_str().unwrap(), "--out", out.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut first).unwrap();
    assert!(first.starts_with("Sending "), "{first}");
    assert!(std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    std::io::Read::read_to_string(&mut stdout, &mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("interrupted after"), "{:?}: {said}", output.status);
    assert!(names(&out).contains(&"results.json".into()), "{:?}", names(&out));
}

#[test]
fn a_topology_with_a_mistake_is_bad_input() {
    let (_directory, path) = scenario("[[host]]\nname = \"a\"\n[[link]]\nbetween = [\"a\", \"b\"]\n");
    anabranch(&["emulate", &path]).code(2).stderr(contains("small.toml").and(contains("\"b\"").or(contains(" b"))));
    anabranch(&["emulate", "/nowhere.toml"]).code(2).stderr(contains("/nowhere.toml"));
}

#[test]
fn get_says_what_a_url_looks_like() {
    anabranch(&["get", "ftp://10.1.0.1/file"]).code(2).stderr(contains("http://"));
    anabranch(&["get", "http://10.1.0.1/"]).code(2).stderr(contains("choose the output file with -o"));
    anabranch(&["get", "foo"]).code(2).stderr(contains("write it like http://"));
}

#[test]
fn get_says_in_json_why_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let get = |place: &str| {
        let output = command(&["get", "http://127.0.0.1/file", "--json", "-o", place]).current_dir(&folder).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        output
    };
    let assert_is_one = |json: &[u8]| {
        let object: serde_json::Value = serde_json::from_slice(json).unwrap();
        assert!(object["error"].as_str().unwrap().starts_with("127.0.0.1 is a loopback address"), "{object}");
    };
    let to_file = get("file");
    assert_is_one(&to_file.stdout);
    assert!(to_file.stderr.starts_with(b"error: 127.0.0.1 is a loopback address"), "{to_file:?}");
    for place in ["-", "/dev/stdout"] {
        let to_stdout = get(place);
        assert_is_one(&to_stdout.stderr);
        assert!(to_stdout.stdout.is_empty(), "{to_stdout:?}");
    }
}

#[test]
fn the_doctor_says_what_a_server_looks_like_and_what_an_interface_lacks() {
    anabranch(&["doctor", "http://10.1.0.1/"]).code(2).stderr(contains("write it like example.org"));
    anabranch(&["doctor", "--measure", "ftp://10.1.0.1/file"]).code(2).stderr(contains("http://"));
    let output = command(&["doctor", "--interface", "no-such-usb", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["join_works"], false);
    let findings = report["findings"].as_array().unwrap();
    let unusable = findings.iter().find(|finding| finding["code"] == "unusable").unwrap();
    assert!(unusable["place"] == "no-such-usb" && unusable["level"] == "problem", "{unusable}");
    let wanted = contains("What to change").and(contains("no-such-usb (unusable): "));
    anabranch(&["doctor", "--interface", "no-such-usb"]).code(1).stdout(wanted).stderr(contains("would not work now"));
}

#[test]
fn a_relay_is_told_what_it_lends() {
    anabranch(&["relay"]).code(2).stderr(contains("--share"));
    anabranch(&["relay", "--dry-run"]).code(2).stderr(contains("--share"));
    for limit in [["--rate", "5M"], ["--volume", "5GB/day"], ["--battery", "0"], ["--mode", "route"]] {
        let text = contains(format!("{} needs the interface to lend", limit[0])).and(contains("--share"));
        anabranch(&[&["relay", "--pair"], &limit[..]].concat()).code(2).stderr(text);
    }
    anabranch(&["relay", "--pair"]).code(1).stderr(contains("no relay runs here"));
}

#[test]
fn serve_needs_a_folder() {
    anabranch(&["serve", "no/such/folder"]).failure().stderr(contains("no/such/folder"));
}

const PHONES: &str = "name = \"phones\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n\
    [cell]\nscheduler = \"round-robin\"\n[wlan]\n[[relays]]\ncount = 2\nplace = { distance_m = 900.0 }\n";

/// Runs a scenario with the radio of ns-3, whose program is `radio`.
fn with_radio(radio: &str) -> assert_cmd::assert::Assert {
    let (_directory, path) = scenario(PHONES);
    command(&["run", &path, "--backend", "ns3"]).env("ANABRANCH_NS3_RADIO", radio).assert()
}

#[test]
fn a_radio_that_is_missing_or_ends_is_an_error_with_a_remedy() {
    with_radio("/nowhere/radio").code(1).stderr(contains("/nowhere/radio").and(contains("scripts/ns3.sh radio")));
    with_radio("/bin/false").code(1).stderr(contains("the radio of ns-3 ended"));
    with_radio("/bin/cat").code(1).stderr(contains("not understood"));
}

#[test]
fn the_radio_of_ns3_takes_no_stacks() {
    let (_directory, path) = scenario(PHONES);
    anabranch(&["run", &path, "--backend", "ns3", "--source", "kernel"]).code(2).stderr(contains("--backend linux"));
}
