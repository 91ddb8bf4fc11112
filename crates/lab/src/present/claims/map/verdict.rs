//! Where a claim holds.

use serde::Serialize;

use super::{Square, State};

/// Where a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "holds", content = "conditions")]
pub enum Place {
    /// In the scenarios as shipped, regardless of other conditions.
    AsShipped,
    /// Under these conditions, but not in the scenarios as shipped.
    Under(Vec<&'static str>),
    /// Under none of the conditions measured.
    Nowhere,
    /// It cannot be right or wrong.
    Informative,
    /// Nothing was measured.
    NotMeasured,
}

impl Place {
    /// Derives the place from the squares of a claim; the first is that of the scenarios as shipped, if these were
    /// measured.
    pub(super) fn of(squares: &[Square]) -> Self {
        let holding = squares.iter().filter(|square| square.state == State::Holds);
        let holding: Vec<_> = holding.map(|square| square.condition).collect();
        let every = |state: State| !squares.is_empty() && squares.iter().all(|square| square.state == state);
        match holding.first() {
            Some(&"shipped") => Self::AsShipped,
            Some(_) => Self::Under(holding),
            None if every(State::Informative) => Self::Informative,
            None if every(State::NotMeasured) => Self::NotMeasured,
            None => Self::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{looked, map};
    use super::*;

    #[test]
    fn a_claim_holds_as_shipped_or_under_conditions_or_nowhere() {
        let (holds, not) = (|| looked(0.001, 0.001), || looked(0.9, 0.9));
        for (squares, expected) in [
            (vec![holds(), not()], Place::AsShipped),
            (vec![not(), holds(), not()], Place::Under(vec!["short-units"])),
            (vec![not(), not()], Place::Nowhere),
        ] {
            assert_eq!(map(&squares).claims[0].place, expected);
        }
    }
}
