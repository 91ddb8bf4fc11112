//! Text that no file of the tree may contain.

use std::fs;

use crate::tree::{files, files_ending, read, require_none, root};

/// Octets above which a file counts as data, not as text.
const FILE_OCTETS_MAX: u64 = 200_000;

/// Hosts to which documents and code may refer: standards, licences, projects.
const KNOWN_HOSTS: [&str; 11] = [
    "github.com",
    "www.apache.org",
    "rustup.rs",
    "www.rfc-editor.org",
    "doi.org",
    "docs.rs",
    "docs.kernel.org",
    "www.wireshark.org",
    "www.w3.org",
    "semver.org",
    "localhost",
];

/// RFC 2606: reserved names.
const RESERVED_NAMES: [&str; 6] = ["example", "test", "invalid", "example.com", "example.net", "example.org"];

/// Returns the beginnings of paths that exist on one machine only.
fn machine_paths() -> [String; 4] {
    ["work", "root", "home", "Users"].map(|folder| format!("/{folder}/"))
}

/// Returns the host of every address `scheme://host...` in `line`.
fn hosts(line: &str) -> Vec<&str> {
    let after = line.split("https://").skip(1).chain(line.split("http://").skip(1));
    after
        .map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '-')).next().unwrap_or(""))
        .collect()
}

/// Returns whether a host is known or not real: a number (an address of a test network), a placeholder or a name
/// reserved for examples.
fn is_known(host: &str) -> bool {
    host.is_empty()
        || host.starts_with(|c: char| c.is_ascii_digit())
        || !host.contains('.')
        || RESERVED_NAMES.iter().any(|name| host == *name || host.ends_with(&format!(".{name}")))
        || KNOWN_HOSTS.contains(&host)
}

#[test]
fn files_are_text_of_moderate_size() {
    let mut breaches = Vec::new();
    for file in files() {
        let octets = fs::read(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        if octets.contains(&0) || std::str::from_utf8(&octets).is_err() {
            breaches.push(format!("{file}: not text"));
        }
        if octets.len() as u64 > FILE_OCTETS_MAX {
            breaches.push(format!("{file}: {} octets", octets.len()));
        }
    }
    require_none("git holds what people wrote, no binaries, captures or reports", breaches);
}

#[test]
fn nothing_points_at_one_machine() {
    let paths = machine_paths();
    let mut breaches = Vec::new();
    for file in files() {
        for (number, line) in read(&file).lines().enumerate() {
            let at = format!("{file}:{}", number + 1);
            breaches.extend(paths.iter().filter(|path| line.contains(*path)).map(|path| format!("{at}: {path}")));
            breaches.extend(hosts(line).iter().filter(|host| !is_known(host)).map(|host| format!("{at}: {host}")));
        }
    }
    require_none("no paths of one machine, no hosts that are not in KNOWN_HOSTS", breaches);
}

#[test]
fn lines_end_without_blanks_and_files_with_a_newline() {
    let mut breaches = Vec::new();
    for file in files() {
        let text = read(&file);
        let blank = |(_, line): &(usize, &str)| line.ends_with([' ', '\t', '\r']);
        breaches.extend(text.lines().enumerate().filter(blank).map(|(number, _)| format!("{file}:{}", number + 1)));
        if !text.is_empty() && !text.ends_with('\n') {
            breaches.push(format!("{file}: no newline at the end"));
        }
    }
    require_none("no blanks at the end of lines", breaches);
}

#[test]
fn one_place_decides_what_is_left_out() {
    let asked = format!("({:?})", "CI");
    let mut files = files_ending(".rs");
    files.retain(|file| !file.starts_with("tests/left-out/") && read(file).contains(&asked));
    require_none("a test that this machine cannot run says so by left_out::leave_out, which knows CI", files);
}

#[test]
fn hosts_are_found() {
    assert_eq!(hosts("see https://a.example/c and (http://b.example)"), ["a.example", "b.example"]);
    assert!(is_known("10.0.0.1") && is_known("server.example") && !is_known("mirror.internal"));
}
