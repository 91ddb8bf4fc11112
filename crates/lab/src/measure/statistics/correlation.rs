//! Correlation of two samples.

use core::cmp::Ordering;

use super::mean;

/// Pearson's r of pairs by index, from -1 to 1. `None` for fewer than two pairs, samples of different sizes, or a
/// sample that does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let pairs = x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
    let sums = pairs.fold((0.0, 0.0, 0.0), |(xx, xy, yy), (x, y)| (xx + x * x, xy + x * y, yy + y * y));
    let (xx, xy, yy) = sums;
    (x.len() == y.len() && xx > 0.0 && yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// Kendall's tau-b of pairs by index, from -1 to 1; corrects for ties. `None` as for [`pearson`].
pub fn kendall_tau(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mut score, mut untied_x, mut untied_y) = (0_i64, 0_u64, 0_u64);
    for later in 1..x.len().min(y.len()) {
        for earlier in 0..later {
            let (sign_x, sign_y) = (sign(x[later], x[earlier]), sign(y[later], y[earlier]));
            score += sign_x * sign_y;
            untied_x += sign_x.unsigned_abs();
            untied_y += sign_y.unsigned_abs();
        }
    }
    let pairs = (untied_x as f64 * untied_y as f64).sqrt();
    (x.len() == y.len() && pairs > 0.0).then(|| score as f64 / pairs)
}

fn sign(later: f64, earlier: f64) -> i64 {
    match later.partial_cmp(&earlier) {
        Some(Ordering::Greater) => 1,
        Some(Ordering::Less) => -1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anscombe's quartet (1973), first set: r = 0.81642.
    #[test]
    fn anscombe() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        assert!((pearson(&x, &y).unwrap() - 0.816_420_5).abs() < 1e-7);
        let opposite: Vec<_> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        assert!((pearson(&x, &opposite).unwrap() + 1.0).abs() < 1e-15);
    }

    /// Five ranks, of which 8 pairs agree and 2 do not: 6 / 10. With a tie in x there are 5 untied pairs in x, 6 in y, 4
    /// agree and 1 does not: 3 / sqrt(30).
    #[test]
    fn tau_counts_pairs() {
        assert_eq!(kendall_tau(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 1.0, 3.0, 5.0, 4.0]), Some(0.6));
        let tied = kendall_tau(&[1.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 4.0, 3.0]).unwrap();
        assert!((tied - 3.0 / 30.0_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn what_does_not_vary_has_no_correlation() {
        for correlation in [pearson, kendall_tau] {
            assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
            assert_eq!(correlation(&[1.0, 2.0], &[1.0]), None);
            assert_eq!(correlation(&[1.0], &[1.0]), None);
            assert_eq!(correlation(&[], &[]), None);
        }
    }
}
