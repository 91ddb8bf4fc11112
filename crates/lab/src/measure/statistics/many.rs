//! Many tests at once.

/// Which of tests with these p-values show something, if among those that seem to a share of at most `rate` may not (Benjamini and
/// Hochberg 1995): the k smallest, with the largest k whose p-value is at most k / n of the rate.
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let allowed = |index: usize| rate * (index + 1) as f64 / sorted.len() as f64;
    let largest = (0..sorted.len()).rev().find(|index| sorted[*index] <= allowed(*index));
    p_values.iter().map(|p_value| largest.is_some_and(|index| *p_value <= sorted[index])).collect()
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
        let shown = discoveries(&p_values, 0.05);
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 4);
        assert!(shown[..4].iter().all(|shown| *shown));
    }

    #[test]
    fn the_order_does_not_matter_and_nothing_shows_nothing() {
        assert_eq!(discoveries(&[0.9, 0.001, 0.04], 0.05), [false, true, false]);
        // 0.04 is below 2/2 of the rate, so the larger of the two carries the smaller one.
        assert_eq!(discoveries(&[0.04, 0.03], 0.05), [true, true]);
        assert_eq!(discoveries(&[], 0.05), Vec::<bool>::new());
        assert_eq!(discoveries(&[0.6, 1.0], 0.05), [false, false]);
    }
}
