//! The tree builds with the oldest toolchain that it promises: that of Debian 13, which few developers use daily.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use toml::Table;

use crate::tree::{files_ending, parse, read, require_none};

/// Conditions like `if let A = b && c` came with Rust 1.88.
const LET_CHAINS_SINCE: (u32, u32) = (1, 88);

/// Lines on which a `let` is part of `&&`.
#[derive(Default)]
struct LetChains(Vec<usize>);

impl<'ast> Visit<'ast> for LetChains {
    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let has_let = [&expr.left, &expr.right].iter().any(|side| matches!(***side, syn::Expr::Let(_)));
        if has_let {
            self.0.push(expr.span().start().line);
        }
        visit::visit_expr_binary(self, expr);
    }
}

fn let_chains(syntax: &syn::File) -> Vec<usize> {
    let mut chains = LetChains::default();
    chains.visit_file(syntax);
    chains.0
}

/// Returns major and minor version of `rust-version` in the workspace's manifest.
fn promised() -> (u32, u32) {
    let manifest: Table = read("Cargo.toml").parse().expect("the workspace's manifest is TOML");
    let version = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version is text");
    let mut numbers = version.split('.').map(|number| number.parse().expect("a version is made of numbers"));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[test]
fn no_syntax_is_newer_than_promised() {
    if promised() >= LET_CHAINS_SINCE {
        return;
    }
    let breaches = files_ending(".rs").into_iter().flat_map(|file| {
        let lines = let_chains(&parse(&file));
        lines.into_iter().map(move |line| format!("{file}:{line}"))
    });
    require_none("rust-version does not know `let` within `&&` yet", breaches.collect());
}

#[test]
fn let_chains_are_found() {
    let chains = |text| let_chains(&syn::parse_file(text).unwrap());
    assert_eq!(chains("fn f() {\n if let Some(x) = y && x {}\n}"), [2]);
    assert!(chains("fn f() { if let Some(x) = y { if x && z {} } }").is_empty());
}
