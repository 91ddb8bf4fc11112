//! Programs in C drive endpoints through the header and the static library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the static library that cargo built along with this test: `deps/` holds the one of this very build.
pub fn static_library() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let library = test.with_file_name("libanabranch_c.a");
    assert!(library.exists(), "cargo did not build {}", library.display());
    library
}

/// Runs `command`; `None` if the program is not installed.
pub fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

pub fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn leave_out(missing: &str) {
    left_out::leave_out("a program in C", format!("{missing} is missing"));
}

/// Compiles a C program; `None` without a C compiler.
fn compile(name: &str, dir: &Path) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = dir.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1", "-I"]).arg(root.join("include"));
    cc.arg(root.join(format!("tests/{name}.c"))).arg(static_library());
    cc.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    let output = run(&mut cc)?;
    assert!(output.status.success(), "cc: {}", said(&output));
    Some(program)
}

#[test]
fn back_to_back() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile("back_to_back", dir.path()) else { return leave_out("cc") };
    let output = run(&mut Command::new(program)).expect("it was just compiled");
    assert!(output.status.success(), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("client: received 300000 octets intact over 2 subflows"), "{said}");
    assert!(said.contains("server: received 300000 octets intact over 2 subflows"), "{said}");
}

#[test]
fn late_accept() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile("late_accept", dir.path()) else { return leave_out("cc") };
    let output = run(&mut Command::new(program)).expect("it was just compiled");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
#[ignore = "slow: run by make test-long"]
fn back_to_back_under_valgrind() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = compile("back_to_back", dir.path()) else { return leave_out("cc") };
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--error-exitcode=9", "--leak-check=full", "--quiet"]).arg(program);
    let Some(output) = run(&mut valgrind) else { return leave_out("valgrind") };
    assert!(output.status.success(), "{}", said(&output));
}
