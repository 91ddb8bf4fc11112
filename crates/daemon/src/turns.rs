//! An order in which several parties take turns, for lists that are cut at some length.

/// Returns the positions of `parties` in the order of turns: the first of each party, then the second of each, and so
/// on. Within a turn they keep their order.
pub fn in_turns<P: PartialEq>(parties: &[P]) -> Vec<usize> {
    let turn = |position: &usize| parties[..*position].iter().filter(|other| **other == parties[*position]).count();
    let mut positions: Vec<usize> = (0..parties.len()).collect();
    positions.sort_by_cached_key(turn);
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_take_turns_and_keep_their_order() {
        assert_eq!(in_turns(&["a", "a", "a", "b", "c", "b"]), [0, 3, 4, 1, 5, 2]);
        assert!(in_turns::<u8>(&[]).is_empty());
    }
}
