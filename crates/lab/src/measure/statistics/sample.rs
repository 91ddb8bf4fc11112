//! Mean and standard deviation of a sample.

/// Arithmetic mean; `None` for an empty sample.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// Sample standard deviation, with n - 1 in the denominator; `None` for fewer than two values.
pub fn standard_deviation(sample: &[f64]) -> Option<f64> {
    let mean = mean(sample)?;
    // Two passes: for large means, the sum of squares less the square of the sum would lose precision.
    let squares: f64 = sample.iter().map(|value| (value - mean) * (value - mean)).sum();
    (sample.len() > 1).then(|| (squares / (sample.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_mean_and_one_value_no_deviation() {
        assert_eq!((mean(&[]), standard_deviation(&[])), (None, None));
        assert_eq!((mean(&[3.0]), standard_deviation(&[3.0])), (Some(3.0), None));
        // Distances 1, 2, 3 and their opposites: 28 / 7 = 4 in eight values, two of them at the mean.
        let sample = [4.0, 6.0, 3.0, 7.0, 2.0, 8.0, 5.0, 5.0];
        assert_eq!((mean(&sample), standard_deviation(&sample)), (Some(5.0), Some(2.0)));
    }

    /// NIST's StRD data set NumAcc3: 1000000.2 and 500 pairs of 1000000.1 and .3; certified deviation exactly 0.1.
    #[test]
    fn a_large_mean_does_not_hide_a_small_deviation() {
        let mut sample = vec![1_000_000.2];
        (0..500).for_each(|_| sample.extend([1_000_000.1, 1_000_000.3]));
        assert!((standard_deviation(&sample).unwrap() - 0.1).abs() < 1e-9);
    }
}
