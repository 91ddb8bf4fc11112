//! The sans-IO crates use no clock, file, socket, process or thread: simulated and deployed code are the same.

use syn::visit::{self, Visit};

use crate::tree::{files_ending, is_test_only, parse, require_none};

const SANS_IO: [&str; 8] = ["units", "policy", "wire", "transport", "network", "host", "simulator", "cooperation"];

/// Banned paths, by their first segments.
const IMPURE: [&str; 8] =
    ["std::time", "std::fs", "std::io", "std::thread", "std::process", "std::env", "std::net::Tcp", "std::net::Udp"];

/// Collects every path that code outside tests names.
#[derive(Default)]
struct Paths(Vec<String>);

impl Paths {
    fn note_use(&mut self, prefix: &str, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.note_use(&format!("{prefix}{}::", path.ident), &path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.note_use(prefix, item)),
            syn::UseTree::Name(name) => self.0.push(format!("{prefix}{}", name.ident)),
            syn::UseTree::Rename(rename) => self.0.push(format!("{prefix}{}", rename.ident)),
            syn::UseTree::Glob(_) => self.0.push(prefix.to_owned()),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_use("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.0.push(names.join("::"));
        visit::visit_path(self, path);
    }
}

fn impure_paths(syntax: &syn::File) -> Vec<String> {
    let mut paths = Paths::default();
    paths.visit_file(syntax);
    paths.0.retain(|path| IMPURE.iter().any(|impure| path.starts_with(impure)));
    paths.0
}

#[test]
fn sans_io_crates_are_pure() {
    let mut breaches = Vec::new();
    for file in files_ending(".rs") {
        if SANS_IO.iter().any(|name| file.starts_with(&format!("crates/{name}/src/"))) {
            breaches.extend(impure_paths(&parse(&file)).into_iter().map(|path| format!("{file}: {path}")));
        }
    }
    require_none("a sans-IO crate is handed the time and the octets, and asks for nothing", breaches);
}

#[test]
fn impurity_is_found_wherever_it_hides() {
    let impure = |text| impure_paths(&syn::parse_file(text).unwrap());
    assert_eq!(impure("use std::{fmt, fs::File};"), ["std::fs::File"]);
    assert_eq!(impure("fn f() -> std::time::Duration { std::thread::yield_now() }").len(), 2);
    assert_eq!(impure("use std::net::{IpAddr, TcpStream};"), ["std::net::TcpStream"]);
    assert!(impure("#[cfg(test)] mod tests { use std::fs; } use core::net::IpAddr;").is_empty());
}
