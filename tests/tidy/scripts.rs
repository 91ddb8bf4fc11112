//! The scripts work on the tree that they belong to, whatever the environment is, and report failures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::tree::root;

/// A folder of its own for a test; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("scripts-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    /// Adds a program in `folder`, which does what `script` says.
    fn program(&self, folder: &str, name: &str, script: &str) -> PathBuf {
        let folder = self.0.join(folder);
        fs::create_dir_all(&folder).expect("a folder for a program");
        // Another process writes it: a program that any process has open for writing cannot be started, and a process
        // that another test starts meanwhile would inherit it open.
        let mut writer = Command::new("sh");
        writer.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\"; chmod 755 \"$1\"", "sh"]);
        assert!(writer.arg(folder.join(name)).arg(script).status().expect("a shell").success());
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a path on which `folder` comes first.
fn path_from(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn run(command: &mut Command) -> Output {
    command.current_dir(root()).output().expect("a shell")
}

#[test]
fn an_exported_cdpath_leads_no_script_to_another_tree() {
    let folder = Folder::new("cdpath");
    fs::create_dir_all(folder.0.join("scripts")).expect("a folder of the other tree");
    let here = fs::canonicalize(root()).expect("the tree is there");
    let nice = folder.program("programs", "nice", "pwd");
    for command in [["bash", "-c", ". scripts/lib.sh; pwd"].as_slice(), &["scripts/product.sh"]] {
        let mut shell = Command::new(command[0]);
        let output = run(shell.args(&command[1..]).env("CDPATH", &folder.0).env("PATH", path_from(&nice)));
        assert_eq!(text(&output.stdout).trim_end(), here.to_string_lossy(), "{command:?}: {}", text(&output.stderr));
    }
}

/// Debian's ordinary users do not have them on their paths.
#[test]
fn programs_of_administrators_are_found() {
    let mut shell = Command::new("/bin/bash");
    let output = run(shell.args(["-c", ". scripts/lib.sh; echo \"$PATH\""]).env("PATH", "/usr/bin:/bin"));
    assert_eq!(text(&output.stdout).trim_end(), "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
}

#[test]
fn a_run_of_ns3_that_fails_is_reported() {
    let folder = Folder::new("ns3");
    let headers = folder.0.join("prefix/include/ns3");
    fs::create_dir_all(&headers).expect("a folder for headers");
    fs::write(headers.join("lte-module.h"), "").expect("a header");
    for name in ["make", "g++"] {
        folder.program("programs", name, "exit 0");
    }
    let path = path_from(&folder.0.join("programs"));
    let results = folder.0.join("out/wlan.jsonl");
    let measure = |jobs: &str| {
        let mut script = Command::new("scripts/ns3.sh");
        let script = script.arg("wlan").env("PATH", &path).env("JOBS", jobs).env("OUT", folder.0.join("out"));
        run(script.env("CARGO_TARGET_DIR", &folder.0).env("NS3_PREFIX", folder.0.join("prefix")))
    };
    // With as many jobs as runs, none is waited for before all have begun.
    for jobs in ["100", "4"] {
        folder.program("ns3", "wlan", "[ \"$3\" != --seed=3 ] && echo \"$*\"");
        let output = measure(jobs);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("10 of 50 runs of wlan failed"), "{said}");
        assert!(said.contains("failed: --rate=54 --stations=1 --seed=3\n") && !results.exists(), "{said}");
        folder.program("ns3", "wlan", "echo \"$*\"");
        let output = measure(jobs);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = fs::read_to_string(&results).expect("results");
        assert!(lines.starts_with("--rate=54 --stations=1 --seed=1\n") && lines.lines().count() == 50, "{lines}");
        fs::remove_file(&results).expect("results can be removed");
    }
}

#[test]
fn libraries_that_were_built_twice_are_found_by_any_name() {
    let folder = Folder::new("twice");
    let built = folder.0.join("debug/deps");
    fs::create_dir_all(&built).expect("a folder for libraries");
    fs::create_dir_all(folder.0.join("steps")).expect("a folder for logs");
    let functions = "eval \"$(sed -n '/^no_library_twice()/,/^}/p; /^own_libraries()/,/^}/p' scripts/test.sh)\"";
    let script = format!(
        ". scripts/lib.sh; {functions}; logs=$TARGET/steps; touch -d yesterday \"$logs/started\"; no_library_twice"
    );
    let check = || run(Command::new("bash").args(["-c", &script]).env("CARGO_TARGET_DIR", &folder.0));
    for name in ["serde-0a", "serde-0b", "anabranch_c-0a", "soak_kernel-0a"] {
        fs::write(built.join(format!("lib{name}.rlib")), "").expect("a library");
    }
    assert!(check().status.success(), "{}", text(&check().stderr));
    for name in ["anabranch_c", "soak_kernel"] {
        let second = built.join(format!("lib{name}-0b.rlib"));
        fs::write(&second, "").expect("a library");
        let said = text(&check().stdout);
        assert!(!check().status.success() && said.ends_with(&format!("features: {name}\n")), "{said}");
        fs::remove_file(second).expect("a library can be removed");
    }
}

/// A tree with the tables that `script` changes, and `output` of a command for it; returns what the script says and
/// whether it succeeds. `None` without Python.
fn table(script: &str, pages: &[(&str, &str)], output: &str) -> Option<(bool, String)> {
    if Command::new("python3").arg("--version").output().is_err() {
        left_out::leave_out("scripts that change tables", "python3 is missing");
        return None;
    }
    let folder = Folder::new(script);
    for name in ["scripts", "docs"] {
        fs::create_dir_all(folder.0.join(name)).expect("a folder of the tree");
    }
    let path = folder.0.join("scripts").join(script);
    fs::copy(root().join("scripts").join(script), &path).expect("the script");
    for (name, text) in pages {
        fs::write(folder.0.join("docs").join(name), text).expect("a page");
    }
    let measured = folder.0.join("output");
    fs::write(&measured, output).expect("the output");
    let output = run(Command::new("python3").arg(&path).arg(&measured).arg("--write"));
    let pages = pages.iter().map(|(name, _)| fs::read_to_string(folder.0.join("docs").join(name)).expect("a page"));
    let said = text(&output.stdout) + &text(&output.stderr) + &pages.collect::<String>();
    Some((output.status.success(), said))
}

#[test]
fn columns_that_repeat_each_other_are_replaced_together() {
    let page = "| claim | shipped | queue-1MB | 5g | verdict |\n|---|---|---|---|---|\n\
                | C50 | + | - | - = queue-1MB | holds as shipped |\n\
                | C51 | - | + | - = | holds under queue-1MB |\n";
    let update = |claim: &str, conditions: &[&str], squares: &[&str]| {
        let output = format!(
            "| claim | the paper | shipped | {} | verdict |\n| {claim} | more | {} | any |\n",
            conditions.join(" | "),
            squares.join(" | ")
        );
        table("claims_map.py", &[("claims-map.md", page)], &output)
    };
    for (measured, lacking) in [("5g", "queue-1MB"), ("queue-1MB", "5g")] {
        let Some((succeeds, said)) = update("C50", &[measured], &["+", "-"]) else { return };
        assert!(!succeeds && said.contains(&format!("or did: {lacking}\n")) && said.ends_with(page), "{said}");
    }
    let both = ["queue-1MB", "5g"];
    let (succeeds, said) = update("C50", &both, &["+", "(+)", "-"]).expect("python3");
    assert!(succeeds && said.contains("| C50 | + | (+) | - | holds as shipped |"), "{said}");
    // Those that repeat `shipped`, if it changes.
    let (succeeds, said) = update("C51", &both[..1], &["+", "+"]).expect("python3");
    assert!(!succeeds && said.contains("or did: 5g\n") && said.ends_with(page), "{said}");
    for (conditions, squares, row) in [
        (&both[..1], ["-", "-"].as_slice(), "| C51 | - | - | - = | never here |"),
        (&both, &["+", "+", "+ ="], "| C51 | + | + | + = | holds as shipped |"),
    ] {
        let (succeeds, said) = update("C51", conditions, squares).expect("python3");
        assert!(succeeds && said.contains(row), "{said}");
    }
}

#[test]
fn what_people_notice_may_have_faults_or_gaps() {
    let map = "| module | what a person notices | shipped | better | worse |\n|---|---|---|---|---|\n| old |\n\n\
               | claim | shipped | train | 5g | verdict |\n";
    let claims = "| module | video of 3 Mbit/s: stall time, s | page: mean, s | page: slowest twentieth, s \
                  | file of 8 MB, s | owners of relays: least share |\n|---|---|\n| old |\n\n";
    let update = |conditions: &str, squares: &str| {
        let output = format!(
            "| module | what a person notices | better / worse, of | {conditions} |\n|---|---|---|---|---|---|\n\
             | DPF | page | 1 / 0 of 2 | {squares} |\n\nBold: better.\n\n\
             | claim | the paper | shipped | train | 5g | verdict |\n|---|---|---|---|---|---|\n\
             | C01 | it | + | + | + | holds as shipped |\n"
        );
        table("users_table.py", &[("claims-map.md", map), ("claims.md", claims)], &output)
    };
    let all = "shipped | train | 5g";
    let squares = "0.12 -> 0.13 | **better** 0.12 -> 0.10 (1 runs faulty) | x";
    let Some((succeeds, said)) = update(all, squares) else { return };
    let row = "| DPF | page | 0.12 -> 0.13 | `train`, not measured: `5g`; train 0.12 -> 0.10 |  |";
    assert!(succeeds && said.contains(row), "{said}");
    assert!(said.contains("DPF, page: not measured: 5g\nDPF, page: runs with faults: train\n"), "{said}");
    assert!(said.contains("| DPF | **1** / 0: 0.12 -> 0.13 |"), "{said}");
    let better = "**better** 3 -> 1 | **better** 2 -> 1";
    for (last, cell) in [
        ("x (2 runs faulty)", "`shipped`, `train`, not measured: `5g`; shipped 3 -> 1"),
        ("2 -> 2", "`shipped`, `train`; shipped 3 -> 1"),
        ("**better** 3 -> 1 =", "all; shipped 3 -> 1"),
    ] {
        let (succeeds, said) = update(all, &format!("{better} | {last}")).expect("python3");
        assert!(succeeds && said.contains(&format!("| 3 -> 1 | {cell} |  |")), "{said}");
        assert_eq!(said.contains("DPF, page: runs with faults: 5g\n"), last.contains("faulty"), "{said}");
    }
    for (conditions, squares, why) in [
        (all, "x | 1 -> 2 | 1 -> 2", "DPF, page: not measured as shipped"),
        (all, "1 -> 2 | many | 1 -> 2", "DPF, page: not a square of this table: many"),
        ("shipped | 5g", "1 -> 2 | 1 -> 2", "not under train: the tables are of all conditions"),
    ] {
        let (succeeds, said) = update(conditions, squares).expect("python3");
        assert!(!succeeds && said.contains(why) && said.contains("| old |") && !said.contains("Traceback"), "{said}");
    }
}
