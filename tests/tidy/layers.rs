//! Dependencies point downward only. The table in ARCHITECTURE.md is the rule itself: this test reads it.

use std::collections::BTreeMap;

use toml::Table;

use crate::tree::{files, read, require_none};

/// Returns the layer of each package, from the rows `| 2 | transport, network | ... |`.
fn layers() -> BTreeMap<String, usize> {
    let document = read("ARCHITECTURE.md");
    let mut layers = BTreeMap::new();
    for row in document.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, number, packages, ..] = cells[..] else { continue };
        let Ok(layer) = number.parse::<usize>() else { continue };
        for package in packages.split(',') {
            layers.insert(package.trim().trim_matches('`').to_owned(), layer);
        }
    }
    layers
}

/// Returns name and manifest of every package of the product.
fn packages() -> Vec<(String, Table)> {
    let manifests = files().into_iter().filter(|file| file.starts_with("crates/") && file.ends_with("Cargo.toml"));
    manifests
        .map(|file| {
            let manifest: Table = read(&file).parse().unwrap_or_else(|error| panic!("{file}: {error}"));
            let name = manifest["package"]["name"].as_str().expect("a package has a name").to_owned();
            (name, manifest)
        })
        .collect()
}

/// Returns the packages on which a package is built; its tests may use any package.
fn dependencies(manifest: &Table) -> Vec<String> {
    let tables = ["dependencies", "build-dependencies"].iter().filter_map(|table| manifest.get(*table)?.as_table());
    tables.flat_map(|table| table.keys().cloned()).collect()
}

#[test]
fn every_package_has_a_layer() {
    let layers = layers();
    let names: Vec<_> = packages().into_iter().map(|(name, _)| name).collect();
    let without = names.iter().filter(|name| !layers.contains_key(*name)).cloned().collect();
    require_none("the layer table of ARCHITECTURE.md lacks these packages", without);
    let gone = layers.into_keys().filter(|name| !names.contains(name)).collect();
    require_none("the layer table of ARCHITECTURE.md names packages that do not exist", gone);
}

#[test]
fn dependencies_point_downward() {
    let layers = layers();
    let mut breaches = Vec::new();
    for (name, manifest) in packages() {
        for dependency in dependencies(&manifest) {
            if layers.get(&dependency).is_some_and(|below| *below >= layers[&name]) {
                breaches.push(format!("{name} depends on {dependency}"));
            }
        }
    }
    require_none("a package depends on lower layers only (ARCHITECTURE.md)", breaches);
}

#[test]
fn every_package_obeys_the_workspace_lints() {
    let lints = |manifest: &Table| manifest.get("lints")?.get("workspace")?.as_bool();
    let lax = packages().into_iter().filter(|(_, manifest)| lints(manifest) != Some(true));
    require_none("a manifest says [lints] workspace = true", lax.map(|(name, _)| name).collect());
}

/// The folders of `lab`, each of which may use those before it, as its `lib.rs` states.
const LAB: [&str; 4] = ["scenario", "measure", "run", "present"];

#[test]
fn folders_of_lab_use_those_before_them() {
    let mut breaches = Vec::new();
    for file in files().into_iter().filter(|file| file.starts_with("crates/lab/src/") && file.ends_with(".rs")) {
        let folder = file["crates/lab/src/".len()..].split('/').next().unwrap_or_default();
        if folder == "lib.rs" {
            continue;
        }
        let Some(own) = LAB.iter().position(|name| *name == folder) else {
            breaches.push(format!("{file}: in none of {LAB:?}"));
            continue;
        };
        let text = read(&file);
        for above in LAB[own + 1..].iter().filter(|above| text.contains(&format!("crate::{above}"))) {
            breaches.push(format!("{file}: uses {above}"));
        }
    }
    require_none("lab's folders use those before them in its lib.rs", breaches);
}
