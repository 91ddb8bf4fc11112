//! Policies by name: what a registry holds, and how a policy is found in it.
//!
//! A registry is a constant list of [`Registration`]s. Each kind of policy has its own, beside its trait, and says itself what
//! making one takes: `Build` is a function, or whatever else its `build` needs to know.

mod unknown_name;

pub use unknown_name::UnknownName;

/// A policy that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct Registration<Build> {
    /// The name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Makes one.
    pub build: Build,
}

/// The policy called `name` in `registry`, where all are of one `kind`: "scheduler".
///
/// # Errors
/// If there is none, with the names that there are.
pub fn find<Build>(
    kind: &'static str,
    registry: &'static [Registration<Build>],
    name: &str,
) -> Result<&'static Registration<Build>, UnknownName> {
    registry.iter().find(|known| known.name == name).ok_or_else(|| UnknownName {
        kind,
        name: name.into(),
        known: registry.iter().map(|known| known.name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAITS: &[Registration<fn() -> u32>] = &[
        Registration { name: "walk", summary: "four beats", build: || 4 },
        Registration { name: "trot", summary: "two beats", build: || 2 },
    ];

    #[test]
    fn a_policy_is_found_by_its_whole_name() {
        assert_eq!((find("gait", GAITS, "trot").unwrap().build)(), 2);
        let error = find("gait", GAITS, "trott").unwrap_err();
        assert_eq!(error.to_string(), "unknown gait \"trott\"; did you mean trot? (there are: walk, trot)");
    }
}
