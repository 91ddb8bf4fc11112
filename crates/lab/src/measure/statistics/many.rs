//! Many tests at once.

/// Largest p-value that counts as significant if at most a share of `rate` of the apparently significant tests may be
/// false. With n tests, it is the largest k-th smallest p-value that is at most k / n of the rate; all p-values up to
/// it are significant (Benjamini and Hochberg 1995). `None` if none is.
pub fn largest_discovery(p_values: &[f64], rate: f64) -> Option<f64> {
    let mut sorted = p_values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let allowed = |index: usize| rate * (index + 1) as f64 / sorted.len() as f64;
    (0..sorted.len()).rev().find(|index| sorted[*index] <= allowed(*index)).map(|index| sorted[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fifteen p-values of the paper's own example (section 3.2): four are rejected at 0.05, where Bonferroni rejects three.
    #[test]
    fn the_example_of_the_paper() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_eq!(largest_discovery(&p_values, 0.05), Some(0.0095));
    }

    #[test]
    fn the_order_does_not_matter_and_nothing_shows_nothing() {
        assert_eq!(largest_discovery(&[0.9, 0.001, 0.04], 0.05), Some(0.001));
        // 0.04 is below 2/2 of the rate, so the larger p-value makes the smaller one significant, too.
        assert_eq!(largest_discovery(&[0.04, 0.03], 0.05), Some(0.04));
        assert_eq!((largest_discovery(&[], 0.05), largest_discovery(&[0.6, 1.0], 0.05)), (None, None));
    }
}
