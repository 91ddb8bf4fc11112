//! A policy that nobody can name is dead: every implementation of a policy trait is registered.

use crate::tree::{files_ending, is_test_only, parse, read, require_none};

const TRAITS: [(&str, &str, &str); 4] = [
    ("CongestionController", "CONTROLLERS", "crates/transport/src/congestion/"),
    ("Scheduler", "SCHEDULERS", "crates/transport/src/scheduler/"),
    ("PathManager", "PATH_MANAGERS", "crates/transport/src/path_manager/"),
    ("ResourceScheduler", "RESOURCE_SCHEDULERS", "crates/network/src/cell/scheduler/"),
];

/// The types for which a file implements `policy`, tests apart.
fn implementors(file: &syn::File, policy: &str) -> Vec<String> {
    let impls = file.items.iter().filter_map(|item| match item {
        syn::Item::Impl(item) if !is_test_only(&item.attrs) => Some(item),
        _ => None,
    });
    let of_policy = impls.filter(|item| {
        let path = item.trait_.as_ref().map(|(path, _)| path);
        path.and_then(|path| path.segments.last()).is_some_and(|last| last.ident == policy)
    });
    let names = of_policy.filter_map(|item| match &*item.self_ty {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    });
    names.collect()
}

/// The text of the list itself: from its name to the end of the item.
fn list_of(registry: &str, name: &str) -> String {
    let start = registry.find(&format!("const {name}:")).unwrap_or_else(|| panic!("{name} is not in its registry"));
    let end = registry[start..].find("\n];").map_or(registry.len(), |len| start + len);
    registry[start..end].to_owned()
}

#[test]
fn every_policy_is_registered() {
    let mut breaches = Vec::new();
    for (policy, list, folder) in TRAITS {
        let list = list_of(&read(&format!("{folder}registry.rs")), list);
        for file in files_ending(".rs").iter().filter(|file| file.starts_with(folder)) {
            let unlisted = implementors(&parse(file), policy).into_iter().filter(|name| !list.contains(name.as_str()));
            breaches.extend(unlisted.map(|name| format!("{file}: {name}")));
        }
    }
    require_none("a policy is in the registry of its folder", breaches);
}

#[test]
fn implementors_are_found() {
    let text = "impl a::Scheduler for Mine {} impl Other for Mine {} #[cfg(test)] impl Scheduler for Fake {}";
    assert_eq!(implementors(&syn::parse_file(text).unwrap(), "Scheduler"), ["Mine"]);
}
