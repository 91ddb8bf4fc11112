//! TCP is separate from MPTCP (docs/decisions/0010): its files name nothing of the level above.

use syn::visit::{self, Visit};

use crate::tree::{files_ending, parse, require_none};

const FOLDER: &str = "crates/transport/src/tcp/";

/// Names that belong to the level above or lead to it.
const ABOVE: [&str; 9] =
    ["mptcp", "connection", "relay", "scheduler", "path_manager", "receiver_centric", "Dsn", "SubflowId", "PathView"];

/// Every name that is part of a path, an import, a field or a method.
#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.0.push(path.ident.to_string()),
            syn::UseTree::Name(name) => self.0.push(name.ident.to_string()),
            syn::UseTree::Rename(rename) => self.0.push(rename.ident.to_string()),
            syn::UseTree::Group(_) | syn::UseTree::Glob(_) => {}
        }
        visit::visit_use_tree(self, tree);
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Member::Named(name) = &field.member {
            self.0.push(name.to_string());
        }
        visit::visit_expr_field(self, field);
    }
}

fn names_above(syntax: &syn::File) -> Vec<String> {
    let mut names = Names::default();
    names.visit_file(syntax);
    names.0.retain(|name| ABOVE.contains(&name.as_str()));
    names.0
}

#[test]
fn tcp_names_nothing_of_mptcp() {
    let files: Vec<_> = files_ending(".rs").into_iter().filter(|file| file.starts_with(FOLDER)).collect();
    assert!(!files.is_empty(), "{FOLDER} has moved");
    let breaches =
        files.iter().flat_map(|file| names_above(&parse(file)).into_iter().map(move |name| format!("{file}: {name}")));
    require_none(
        "tcp knows nothing of MPTCP; what both levels need is in label.rs and exceptions.rs",
        breaches.collect(),
    );
}

#[test]
fn names_of_the_level_above_are_found() {
    let found = |text| names_above(&syn::parse_file(text).unwrap());
    assert_eq!(found("use wire::mptcp::{Dss, Mapping};"), ["mptcp"]);
    assert_eq!(found("fn f(dsn: units::Dsn) -> bool { segment.options.mptcp.is_empty() }"), ["Dsn", "mptcp"]);
    assert!(found("fn f() { self.config.mtu; }").is_empty());
}
