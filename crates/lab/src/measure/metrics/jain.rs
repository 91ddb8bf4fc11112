//! Jain's fairness index.

/// `(sum x)^2 / (n sum x^2)`: 1 if all are equal, 1/n if one has everything. `None` if there are no shares or all are
/// zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_give_one_and_a_monopoly_one_nth() {
        assert_eq!(jain_index(&[2.0; 4]), Some(1.0));
        assert_eq!(jain_index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 3)^2 / (2 (1 + 9)) = 16 / 20
        assert_eq!(jain_index(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain_index(&[]), jain_index(&[0.0, 0.0])), (None, None));
    }
}
