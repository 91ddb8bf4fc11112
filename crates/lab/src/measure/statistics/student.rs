//! Student's t distribution with an integer number of degrees of freedom.

use core::f64::consts::PI;

/// Probability that |T| <= `t` with `freedom` degrees of freedom, for t >= 0. The sums are finite (Abramowitz and
/// Stegun 26.7.3 and 26.7.4). `None` for zero degrees of freedom.
pub fn t_distribution(t: f64, freedom: u64) -> Option<f64> {
    let freedom = Some(freedom).filter(|freedom| *freedom > 0)?;
    let theta = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = libm::sincos(theta);
    let square = cosine * cosine;
    if freedom % 2 == 1 {
        // cos + 2/3 cos^3 + (2 4)/(3 5) cos^5 + ..., up to the power freedom - 2
        let (mut term, mut sum) = (cosine, 0.0);
        for power in (1..freedom.saturating_sub(1)).step_by(2) {
            sum += term;
            term *= square * (power + 1) as f64 / (power + 2) as f64;
        }
        return Some(2.0 / PI * (theta + sine * sum));
    }
    // 1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 + ..., up to the power freedom - 2
    let (mut term, mut sum) = (1.0, 0.0);
    for power in (0..freedom - 1).step_by(2) {
        sum += term;
        term *= square * (power + 1) as f64 / (power + 2) as f64;
    }
    Some(sine * sum)
}

/// Two-sided quantile: the t for which |T| <= t with probability `confidence`, between 0 and 1. `None` for zero degrees
/// of freedom.
pub fn t_quantile(confidence: f64, freedom: u64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0);
    while t_distribution(high, freedom)? < confidence && high < 1e12 {
        (low, high) = (high, 2.0 * high);
    }
    // Each step halves the interval: 60 steps exhaust the precision of a double.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if t_distribution(middle, freedom)? < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From any printed table: two-sided 95 % and 99 %.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        let of_95 = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228)];
        let more_95 = [(19, 2.093), (20, 2.086), (29, 2.045), (30, 2.042), (120, 1.980), (100_000, 1.960)];
        for (freedom, t) in of_95.into_iter().chain(more_95) {
            let quantile = t_quantile(0.95, freedom).unwrap();
            assert!((quantile - t).abs() < 0.0006, "{freedom}: {quantile} instead of {t}");
        }
        for (freedom, t) in [(1, 63.657), (5, 4.032), (10, 3.169), (29, 2.756)] {
            let quantile = t_quantile(0.99, freedom).unwrap();
            assert!((quantile - t).abs() < 0.0006, "{freedom}: {quantile} instead of {t}");
        }
        assert_eq!((t_quantile(0.95, 0), t_distribution(1.0, 0)), (None, None));
    }

    /// One degree of freedom is Cauchy's distribution: |T| <= 1 with probability 1/2. Two: t / sqrt(2 + t^2).
    #[test]
    fn small_freedoms_have_closed_forms() {
        assert!((t_distribution(1.0, 1).unwrap() - 0.5).abs() < 1e-15);
        assert!((t_distribution(1.0, 2).unwrap() - 1.0 / 3.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(t_distribution(0.0, 7), Some(0.0));
    }
}
