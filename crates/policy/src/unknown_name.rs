//! The error of every registry.

use core::fmt;

/// Minimum similarity of two names for one to be a typing error of the other.
const SIMILARITY_MIN: f64 = 0.6;
/// Minimum length in characters of a part of a name that counts as an abbreviation.
const SHORT_MIN: usize = 3;

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    /// The kind of policy that was looked for, such as "scheduler".
    pub kind: &'static str,
    /// The name that was not found.
    pub name: String,
    /// All available names.
    pub known: Vec<&'static str>,
}

impl UnknownName {
    /// Returns the known name that was probably meant: the only one that contains the name, otherwise one with a
    /// similar spelling.
    pub fn nearest(&self) -> Option<&'static str> {
        let name = self.name.to_lowercase();
        let known = || self.known.iter().copied();
        let mut longer = known().filter(|known| name.len() >= SHORT_MIN && known.contains(&name));
        if let (Some(only), None) = (longer.next(), longer.next()) {
            return Some(only);
        }
        let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&name, known);
        let nearest = known().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
        (similarity(nearest) >= SIMILARITY_MIN).then_some(nearest)
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {:?}", self.kind, self.name)?;
        if let Some(nearest) = self.nearest() {
            write!(f, "; did you mean {nearest}?")?;
        }
        write!(f, " (there are: {})", self.known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_meant_and_nothing_far_fetched() {
        let unknown =
            |name: &str| UnknownName { kind: "scheduler", name: name.into(), known: vec!["lowest-rtt", "round-robin"] };
        let message = unknown("lowest_rtt").to_string();
        assert_eq!(
            message,
            "unknown scheduler \"lowest_rtt\"; did you mean lowest-rtt? (there are: lowest-rtt, round-robin)"
        );
        assert_eq!(unknown("Round-Robin").nearest(), Some("round-robin"));
        assert_eq!(unknown("blest").nearest(), None);
    }

    #[test]
    fn a_name_in_short_is_nearer_than_one_that_looks_like_it() {
        let unknown =
            |name: &str| UnknownName { kind: "controller", name: name.into(), known: vec!["newreno", "veno", "mveno"] };
        assert_eq!(
            ["reno", "Reno", "vego"].map(|name| unknown(name).nearest()),
            [Some("newreno"), Some("newreno"), Some("veno")]
        );
        assert_eq!(unknown("n").nearest(), None);
        // Both names contain it.
        let unknown =
            UnknownName { kind: "selector", name: "greedy".into(), known: vec!["greedy-thesis", "greedy-paper"] };
        assert_eq!(unknown.nearest(), None);
    }
}
