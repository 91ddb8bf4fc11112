//! Functions and files stay small enough to be understood at a glance.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::tree::{files_ending, parse, read, require_none};

/// Nine functions in ten have at most this many lines.
const FUNCTION_LINES_P90: usize = 30;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;

/// Name and lines of every function, from its signature to its closing brace.
struct Functions {
    file: String,
    found: Vec<(usize, String)>,
}

impl Functions {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (first, last) = (signature.span().start().line, block.span().end().line);
        self.found.push((last - first + 1, format!("{}:{first} {}", self.file, signature.ident)));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn functions_of(file: &str, syntax: &syn::File) -> Vec<(usize, String)> {
    let mut functions = Functions { file: file.into(), found: Vec::new() };
    functions.visit_file(syntax);
    functions.found
}

#[test]
fn functions_are_short() {
    let mut functions: Vec<_> = files_ending(".rs").iter().flat_map(|file| functions_of(file, &parse(file))).collect();
    functions.sort();
    let (p90, name) = &functions[(functions.len() - 1) * 9 / 10];
    assert!(*p90 <= FUNCTION_LINES_P90, "one function in ten has more than {p90} lines, from {name} on");
    let long = functions.iter().filter(|(lines, _)| *lines > FUNCTION_LINES_MAX);
    let breaches = long.map(|(lines, name)| format!("{name}: {lines} lines")).collect();
    require_none(&format!("a function has at most {FUNCTION_LINES_MAX} lines: split it"), breaches);
}

#[test]
fn files_are_short() {
    let sources = [".rs", ".c", ".sh", ".md"].iter().flat_map(|suffix| files_ending(suffix));
    let counted = sources.map(|file| (read(&file).lines().count(), file));
    let breaches = counted
        .filter(|(lines, _)| *lines > FILE_LINES_MAX)
        .map(|(lines, file)| format!("{file}: {lines} lines"))
        .collect();
    require_none(&format!("a file has at most {FILE_LINES_MAX} lines: one idea a file"), breaches);
}

#[test]
fn lines_are_counted_from_signature_to_brace() {
    let text =
        "/// Doc.\n#[inline]\nfn outer(\n    x: u8,\n) {\n    fn inner() {}\n}\n\ntrait T {\n    fn none();\n}\n";
    let found = functions_of("f", &syn::parse_file(text).unwrap());
    assert_eq!(found, [(5, "f:3 outer".to_string()), (1, "f:6 inner".to_string())]);
}
