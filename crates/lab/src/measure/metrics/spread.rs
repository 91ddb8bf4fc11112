//! How unequal shares are.

/// The largest share over the smallest: 1 if all are equal. `None` without shares, or if one of them is zero.
pub fn max_over_min(shares: &[f64]) -> Option<f64> {
    let max = shares.iter().copied().reduce(f64::max)?;
    let min = shares.iter().copied().reduce(f64::min)?;
    (min > 0.0).then(|| max / min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_give_one() {
        assert_eq!(max_over_min(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(max_over_min(&[4.0, 5.0, 4.5]), Some(1.25));
        assert_eq!((max_over_min(&[]), max_over_min(&[1.0, 0.0])), (None, None));
    }
}
