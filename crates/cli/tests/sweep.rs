//! Sweeps as the shell sees them: the files they write, and the continuation of a killed sweep.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::assert::OutputAssertExt;
use predicates::prelude::*;
use predicates::str::contains;

const SEEDS: usize = 60;
/// Long enough for the slowest machine to finish a few runs.
const PATIENCE: Duration = Duration::from_secs(120);

const SCENARIO: &str = "name = \"sweep\"\nduration = \"20 s\"\nworkload = { kind = \"bulk\" }\n\
    [[relays]]\ncellular = { rate = \"8 Mbit/s\", delay = \"20 ms\", loss = \"1 %\" }\n\
    [[relays]]\ncellular = { rate = { mean = \"6 Mbit/s\" }, delay = \"40 ms\" }\n\
    [[variants]]\nname = \"coupled\"\nset = { \"connection.congestion\" = \"lia\" }\n\
    [[variants]]\nname = \"apart\"\nset = { \"connection.congestion\" = \"cubic\" }\n";

fn scenario(directory: &Path) -> PathBuf {
    let path = directory.join("sweep.toml");
    std::fs::write(&path, SCENARIO).unwrap();
    path
}

fn sweep(scenario: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.arg("sweep").arg(scenario).arg("--out").arg(out).args(more);
    command
}

fn lines(journal: &Path) -> usize {
    std::fs::read_to_string(journal).map_or(0, |text| text.lines().count())
}

/// Waits until `journal` has so many lines, the first of which is its manifest; fails if the sweep ends before.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, on the real clock")]
fn wait_for_runs(sweep: &mut Child, journal: &Path, wanted: usize) {
    let begun = Instant::now();
    while lines(journal) < wanted {
        assert!(sweep.try_wait().unwrap().is_none(), "the sweep ended before it could be killed");
        assert!(begun.elapsed() < PATIENCE, "no run was finished");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_sweep_loses_nothing_and_ends_with_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario(directory.path());
    let (killed, whole) = (directory.path().join("killed"), directory.path().join("whole"));
    let seeds = ["--seeds", &format!("1..{SEEDS}")];
    let journal = killed.join("runs.jsonl");
    let mut child = sweep(&scenario, &killed, &seeds).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_runs(&mut child, &journal, 3);
    // SIGKILL: nothing of the process runs afterwards.
    child.kill().unwrap();
    child.wait().unwrap();
    let before = std::fs::read_to_string(&journal).unwrap();
    let finished = &before[..=before.rfind('\n').unwrap()];
    assert!(finished.lines().count() < 1 + 2 * SEEDS, "it was killed too late to tell");
    sweep(&scenario, &killed, &seeds).args(["--jobs", "1"]).assert().success();
    // Finished runs are unchanged.
    let after = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = after.lines().collect();
    assert!(finished.lines().all(|line| lines.contains(&line)));
    assert_eq!(after.lines().count(), 1 + 2 * SEEDS);
    sweep(&scenario, &whole, &seeds).args(["--jobs", "3"]).assert().success();
    for name in ["summary.json", "runs.csv", "report.html", "runs.jsonl"] {
        let [one, other] = [&killed, &whole].map(|out| std::fs::read(out.join(name)).unwrap());
        assert!(one == other, "{name} differs");
    }
}

/// A grid of one size, and the lines of the journal without the first, which names the grid.
fn with_sizes(directory: &Path, sizes: &str) -> PathBuf {
    let path = directory.join("sweep.toml");
    let grid = format!("[sweep.grid]\n\"connection.mtu\" = [{sizes}]\n");
    std::fs::write(&path, format!("{SCENARIO}{grid}").replace("20 s", "5 s")).unwrap();
    path
}

#[test]
fn a_sweep_grows_by_seeds_and_points_to_the_same_whole_as_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (grown, whole) = (directory.path().join("grown"), directory.path().join("whole"));
    let small = with_sizes(directory.path(), "\"1400 B\"");
    sweep(&small, &grown, &["--seeds", "1..2"]).assert().success();
    let before = std::fs::read_to_string(grown.join("runs.jsonl")).unwrap();
    let large = with_sizes(directory.path(), "\"1400 B\", \"1500 B\"");
    // The earlier seeds are shown, but are not run for the new point.
    let said = contains("grown has seed 1 finished already: shown, too");
    let table = contains("means over 2 seeds").and(contains("(n=1)"));
    sweep(&large, &grown, &["--seeds", "2"]).assert().success().stderr(said).stdout(table);
    sweep(&large, &grown, &["--seeds", "1..3"]).assert().success().stdout(contains("means over 3 seeds"));
    let after = std::fs::read_to_string(grown.join("runs.jsonl")).unwrap();
    let lines: Vec<&str> = after.lines().collect();
    assert!(before.lines().skip(1).all(|line| lines.contains(&line)), "finished runs were repeated");
    sweep(&large, &whole, &["--seeds", "1..3"]).assert().success();
    for name in ["summary.json", "runs.csv", "report.html", "runs.jsonl"] {
        let [one, other] = [&grown, &whole].map(|out| std::fs::read(out.join(name)).unwrap());
        assert!(one == other, "{name} differs");
    }
    let small = with_sizes(directory.path(), "\"1400 B\"");
    let said = contains("grown has 6 runs of variants or points that this sweep does not have: kept, but not shown");
    sweep(&small, &grown, &["--seeds", "1..3"]).assert().success().stderr(said);
    assert_eq!(std::fs::read_to_string(grown.join("runs.jsonl")).unwrap().lines().count(), 1 + 12);
}

#[test]
fn a_folder_of_other_settings_or_files_is_refused_by_what_differs() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("sweep.toml"), directory.path().join("out"));
    let text = "name = \"sweep\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = { trace = \"t\" }, delay = \"20 ms\" }\n";
    std::fs::write(&path, text).unwrap();
    std::fs::write(directory.path().join("t"), "1\n2\n3\n").unwrap();
    sweep(&path, &out, &["--seeds", "1"]).assert().success();
    let remedy = || contains("help: choose another --out, or discard the file with sweep --restart");
    let wanted =
        contains("cellular.delay = 20 ms (without --set), not of the same with relays[0].cellular.delay = 30 ms (with");
    let slower = ["--seeds", "1", "--set", "relays[0].cellular.delay=30 ms"];
    sweep(&path, &out, &slower).assert().code(2).stderr(wanted.and(remedy()));
    std::fs::write(directory.path().join("t"), "1\n2\n4\n").unwrap();
    let wanted = contains("with the file t = SHA-256 ").and(contains("not of the same with the file t = SHA-256 "));
    sweep(&path, &out, &["--seeds", "1..2"]).assert().code(2).stderr(wanted.and(remedy()));
    sweep(&path, &out, &["--seeds", "1..2", "--restart"]).assert().success();
}

/// The same command then finishes it.
#[test]
fn an_interrupted_sweep_says_what_it_keeps() {
    let directory = tempfile::tempdir().unwrap();
    let (scenario, out) = (scenario(directory.path()), directory.path().join("out"));
    let seeds = ["--seeds", &format!("1..{SEEDS}")];
    // A test run in the background of a script ignores SIGINT, and so does what it starts.
    let ignored = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = ignored.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let heeds_int = u64::from_str_radix(ignored, 16).unwrap() & 1 << 1 == 0;
    for signal in ["-INT", "-TERM"].into_iter().skip(usize::from(!heeds_int)) {
        let journal = out.join("runs.jsonl");
        let before = lines(&journal);
        let mut child = sweep(&scenario, &out, &seeds).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for_runs(&mut child, &journal, before + 3);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let (text, kept) = (String::from_utf8(output.stderr).unwrap(), lines(&journal) - 1);
        let told =
            format!("error: interrupted\n  help: {kept} of {} runs are kept; the same command goes on\n", 2 * SEEDS);
        assert!(output.status.code() == Some(1) && text.ends_with(&told), "{text}");
    }
}

#[test]
fn a_sweep_ends_with_where_its_report_lies_and_what_to_try_next() {
    let directory = tempfile::tempdir().unwrap();
    let (scenario, out) = (scenario(directory.path()), directory.path().join("out"));
    let report = out.join("report.html");
    let wanted = contains(report.display().to_string()).and(contains("next:")).and(contains("--seeds 1..30"));
    sweep(&scenario, &out, &["--seeds", "1..3"]).assert().success().stdout(wanted);
    let html = std::fs::read_to_string(report).unwrap();
    assert!(html.contains("What the seeds say") && html.contains("All 6 runs went well"));
}

#[test]
fn more_seeds_are_not_suggested_where_nothing_is_random() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("sweep.toml"), directory.path().join("out"));
    let text = "name = \"sweep\"\nduration = \"3 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"8 Mbit/s\", delay = \"20 ms\" }\n";
    std::fs::write(&path, text).unwrap();
    let wanted = contains("nothing in this scenario is random").and(contains("narrower intervals").not());
    sweep(&path, &out, &["--seeds", "1..3"]).assert().success().stdout(wanted.and(contains("one run in detail")));
}

#[test]
fn variants_that_cannot_be_run_leave_the_others_their_report() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("sweep.toml"), directory.path().join("out"));
    let missing =
        "[[variants]]\nname = \"traced\"\nset = { \"relays[0].cellular.rate\" = { trace = \"none.mahi\" } }\n";
    std::fs::write(&path, format!("{SCENARIO}{missing}")).unwrap();
    sweep(&path, &out, &["--seeds", "1..2"]).assert().failure().stderr(contains("--variant traced"));
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("Runs with faults") && html.contains("2 did not run") && html.contains("none.mahi"));
}

/// They are in virtual time, so they would fail again. The program for ns-3's radio is one that cannot do it.
#[test]
fn faulty_runs_with_ns3_are_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("cell.toml"), directory.path().join("out"));
    let text = "name = \"cell\"\nduration = \"1 s\"\nworkload = { kind = \"generated\", size = \"90 MB\" }\n\
        cell = { scheduler = \"round-robin\" }\n[[relays]]\nplace = { distance_m = [100.0, 200.0] }\n";
    std::fs::write(&path, text).unwrap();
    sweep(&path, &out, &["--seeds", "1..2"]).assert().code(1).stderr(contains("2 runs had faults"));
    let journal = out.join("runs.jsonl");
    let simulated = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, simulated.replacen("\"settings\":", "\"world\":\"--backend ns3\",\"settings\":", 1))
        .unwrap();
    let again = || {
        let mut command = sweep(&path, &out, &["--seeds", "1..2", "--backend", "ns3"]);
        command.env("ANABRANCH_NS3_RADIO", "/bin/false").assert().code(1)
    };
    again().stderr(contains("2 runs had faults"));
    assert!(std::fs::read_to_string(&journal).unwrap().ends_with(simulated.split_once('\n').unwrap().1));
}

#[test]
fn a_live_view_without_a_terminal_is_ten_lines() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario(directory.path());
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let output = command.arg("run").arg(&scenario).arg("--live").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 10, "{text}");
    assert!(lines[0].starts_with("10 %, 2.0 s simulated: throughput ") && lines[9].starts_with("100 %"), "{text}");
}

#[test]
fn what_comes_to_nothing_in_every_run_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario(directory.path());
    let late = ["--seeds", "1", "--set", "duration=2 s", "--set", "relays[0].leaves=3 s"];
    let note = "note: relays[0].leaves: 3 s is never reached: the run ends at 2 s";
    sweep(&scenario, &directory.path().join("out"), &late).assert().success().stderr(contains(note));
}
