//! The files of the tree, for all rules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the tree.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns every file that is or could be committed, relative to the root and sorted. Without git, every file outside
/// the folders of builds.
pub fn files() -> Vec<String> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success());
    let mut files = match listing {
        Some(output) => String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect(),
        None => walk(root()),
    };
    files.retain(|file| root().join(file).is_file());
    files.sort();
    assert!(files.iter().any(|file| file == "Cargo.toml"), "the tree has no files: {files:?}");
    files
}

/// Returns the files whose name ends in `suffix`.
pub fn files_ending(suffix: &str) -> Vec<String> {
    files().into_iter().filter(|file| file.ends_with(suffix)).collect()
}

fn walk(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder of the tree can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "out", ".git"].contains(&name.as_str()) {
                found.extend(walk(&path));
            }
        } else {
            found.push(relative(&path));
        }
    }
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("within the tree").to_string_lossy().into_owned()
}

/// Returns the text of a file.
pub fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the syntax tree of a Rust file.
pub fn parse(file: &str) -> syn::File {
    syn::parse_file(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns whether an item is compiled for tests only.
pub fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    })
}

/// Returns the folder of a file, relative to the root.
pub fn folder(file: &str) -> PathBuf {
    Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Fails with one line for each breach.
pub fn require_none(rule: &str, breaches: Vec<String>) {
    assert!(breaches.is_empty(), "{rule}:\n  {}", breaches.join("\n  "));
}
