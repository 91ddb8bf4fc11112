//! Every Rust file is part of a target: the compiler never reads a file that no `mod` names. There are few integration
//! programs, since each one is linked separately.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::tree::{files, files_ending, folder, parse, read, require_none};

/// Folders within a package in which cargo finds targets by itself.
const TARGET_FOLDERS: [&str; 4] = ["src/bin", "tests", "benches", "examples"];

fn manifest(file: &str) -> Table {
    read(file).parse().unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the roots that a manifest lists as targets of this kind.
fn listed(manifest: &Table, target: &str, package: &Path) -> Vec<PathBuf> {
    let entries = manifest.get(target).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| Some(package.join(entry.get("path")?.as_str()?))).collect()
}

/// Returns the roots that cargo finds in a folder of a package, unless the manifest switches that off.
fn found(manifest: &Table, target_folder: &str, package: &Path, all: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let not_looked_for = target_folder == "tests"
        && manifest["package"].get("autotests").is_some_and(|autotests| autotests.as_bool() == Some(false));
    let within = package.join(target_folder);
    let is_root = |file: &&PathBuf| {
        let parent = file.parent().unwrap_or(Path::new(""));
        parent == within || (file.ends_with("main.rs") && parent.parent() == Some(&within))
    };
    all.iter().filter(|_| !not_looked_for).filter(is_root).cloned().collect()
}

fn roots_of(manifest_file: &str, all: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let package = folder(manifest_file);
    let manifest = manifest(manifest_file);
    let mut roots: Vec<_> = ["src/lib.rs", "src/main.rs", "build.rs"].iter().map(|name| package.join(name)).collect();
    for target in ["bin", "test", "bench", "example"] {
        roots.extend(listed(&manifest, target, &package));
    }
    for target_folder in TARGET_FOLDERS {
        roots.extend(found(&manifest, target_folder, &package, all));
    }
    roots.retain(|root| all.contains(root));
    roots
}

/// Follows the `mod` declarations of `items`, whose own modules live in `dir`.
fn follow(items: &[syn::Item], dir: &Path, all: &BTreeSet<PathBuf>, reached: &mut BTreeSet<PathBuf>) {
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        match &module.content {
            Some((_, inner)) => follow(inner, &dir.join(&name), all, reached),
            None => {
                let candidates = match path_attribute(module) {
                    Some(path) => vec![dir.join(path)],
                    None => vec![dir.join(format!("{name}.rs")), dir.join(&name).join("mod.rs")],
                };
                candidates.iter().filter(|file| all.contains(*file)).for_each(|file| reach(file, all, reached));
            }
        }
    }
}

fn path_attribute(module: &syn::ItemMod) -> Option<String> {
    let attribute = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value else { return None };
    Some(path.value())
}

fn reach(file: &Path, all: &BTreeSet<PathBuf>, reached: &mut BTreeSet<PathBuf>) {
    if !reached.insert(file.to_path_buf()) {
        return;
    }
    let parent = file.parent().unwrap_or(Path::new(""));
    let stem = file.file_stem().unwrap_or_default();
    let dir = if stem == "mod" { parent.to_path_buf() } else { parent.join(stem) };
    follow(&parse(&file.to_string_lossy()).items, &dir, all, reached);
}

/// The root of a target has its modules beside it, whatever its name.
fn reach_root(root: &Path, all: &BTreeSet<PathBuf>, reached: &mut BTreeSet<PathBuf>) {
    reached.insert(root.to_path_buf());
    follow(&parse(&root.to_string_lossy()).items, root.parent().unwrap_or(Path::new("")), all, reached);
}

#[test]
fn every_rust_file_is_compiled() {
    let all: BTreeSet<_> = files_ending(".rs").into_iter().map(PathBuf::from).collect();
    let mut reached = BTreeSet::new();
    for manifest in files().iter().filter(|file| file.ends_with("/Cargo.toml")) {
        roots_of(manifest, &all).iter().for_each(|root| reach_root(root, &all, &mut reached));
    }
    let dead = all.difference(&reached).map(|file| file.display().to_string()).collect();
    require_none("a Rust file belongs to a target", dead);
}

/// A program is linked with everything it needs, which takes longer than compiling its own code.
#[test]
fn a_package_has_one_integration_program() {
    let all: BTreeSet<_> = files_ending(".rs").into_iter().map(PathBuf::from).collect();
    let mut breaches = Vec::new();
    for file in files().iter().filter(|file| file.ends_with("/Cargo.toml")) {
        let (package, manifest) = (folder(file), manifest(file));
        let mut programs = BTreeSet::from_iter(found(&manifest, "tests", &package, &all));
        programs.extend(listed(&manifest, "test", &package));
        if programs.len() > 1 {
            breaches.push(format!("{file}: {programs:?}"));
        }
    }
    require_none("the tests of a package are modules of one program, as in crates/transport/tests/main.rs", breaches);
}
