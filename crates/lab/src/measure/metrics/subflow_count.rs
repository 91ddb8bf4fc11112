//! Number of subflows: size of the active set at the monitor points.

/// Samples the size of the active set. Sums are integers, so the order does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubflowCount {
    count: u64,
    points: u64,
    sum: u64,
    sum_of_squares: u64,
}

impl SubflowCount {
    /// The active set has `count` members from now on.
    pub fn active(&mut self, count: u64) {
        self.count = count;
    }

    /// Adds a monitor point; returns the size there.
    pub fn point(&mut self) -> u64 {
        self.points += 1;
        self.sum += self.count;
        self.sum_of_squares += self.count * self.count;
        self.count
    }

    /// Mean over the points; `None` without points.
    pub fn mean(&self) -> Option<f64> {
        (self.points > 0).then(|| self.sum as f64 / self.points as f64)
    }

    /// Sample standard deviation over the points; `None` for fewer than two.
    pub fn standard_deviation(&self) -> Option<f64> {
        let (n, sum) = (u128::from(self.points), u128::from(self.sum));
        let numerator = n * u128::from(self.sum_of_squares) - sum * sum;
        (n > 1).then(|| (numerator as f64 / (n * (n - 1)) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares of the distances sum to 32; 32 / 7 is the sample variance.
    #[test]
    fn mean_and_deviation_are_of_the_points() {
        let mut subflows = SubflowCount::default();
        assert_eq!((subflows.mean(), subflows.standard_deviation()), (None, None));
        for count in [2, 4, 4, 4, 5, 5, 7, 9] {
            subflows.active(100);
            subflows.active(count);
            assert_eq!(subflows.point(), count);
        }
        assert_eq!(subflows.mean(), Some(5.0));
        assert!((subflows.standard_deviation().unwrap() - 2.138_089_935).abs() < 1e-9);
    }
}
