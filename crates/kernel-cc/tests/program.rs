//! `bpf/golden.c` as a program, built once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Returns the answers to `questions`, one per line, in the format of `bpf/golden.c`.
pub fn ask(questions: &str) -> Vec<String> {
    let mut child = Command::new(program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("what was just built can be started");
    let mut stdin = child.stdin.take().expect("it is piped");
    let questions = questions.to_owned();
    // Written in parallel with reading, since a pipe holds less than the answers.
    let writing = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("writing does not panic").expect("it reads all");
    assert!(output.status.success(), "bpf/golden.c: {}", output.status);
    String::from_utf8(output.stdout).expect("numbers are ASCII").lines().map(str::to_owned).collect()
}

/// Built with checks for undefined behaviour: a BPF compiler may treat what C leaves undefined differently.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let folder = TempDir::new().expect("a temporary folder");
        let path = folder.path().join("golden");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/golden.c");
        let flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"];
        let status = Command::new("cc")
            .args(flags)
            .arg("-fno-sanitize-recover=undefined")
            .arg("-o")
            .arg(&path)
            .arg(source)
            .status()
            .expect("cc is what Rust links with");
        assert!(status.success(), "cc could not build bpf/golden.c: {status}");
        (folder, path)
    });
    path
}
