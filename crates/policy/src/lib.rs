//! Policies by name: the contents of a registry, and the search for a policy in it.
//!
//! A registry is a constant list of [`Registration`]s. Each kind of policy has its own registry, beside its trait.
//! `Build` is whatever is needed to make a policy of this kind: a function, or a [`Build`] where policies may have
//! parameters.

mod build_error;
mod parameter;
mod spec;
mod unknown_name;

pub use build_error::BuildError;
pub use parameter::{Parameter, ParameterError, Values};
pub use spec::{Spec, SpecError};
pub use unknown_name::UnknownName;

/// A policy that can be selected by name.
#[derive(Clone, Copy, Debug)]
pub struct Registration<Build> {
    /// The name.
    pub name: &'static str,
    /// What the policy does, in one line.
    pub summary: &'static str,
    /// Makes an instance, or holds what is needed to make one.
    pub build: Build,
}

/// How to make a policy that may have parameters.
#[derive(Clone, Copy, Debug)]
pub enum Build<Plain, With> {
    /// Without parameters.
    Plain(Plain),
    /// From values for all its parameters, in order.
    With(&'static [Parameter], With),
}

impl<Plain, With> Build<Plain, With> {
    /// Returns its parameters, in order.
    pub const fn parameters(&self) -> &'static [Parameter] {
        match self {
            Self::Plain(_) => &[],
            Self::With(parameters, _) => parameters,
        }
    }
}

/// Returns the policy called `name` in `registry`. `kind` is what the registry contains, such as "scheduler".
///
/// # Errors
/// If there is no such policy; the error lists the available names.
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
