//! The mean of a sample with its confidence interval.

use serde::{Deserialize, Serialize};

use super::{CONFIDENCE, mean, standard_deviation, t_distribution, t_quantile};

/// A mean with its 95 % interval after Student, because samples are small.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Size of the sample.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation; `None` for one value.
    pub standard_deviation: Option<f64>,
    /// Half of the interval's width, t s / sqrt(n); `None` for one value, which allows no estimate.
    pub half_width: Option<f64>,
}

impl Interval {
    /// Computes the mean and interval of `sample`; `None` if it is empty.
    pub fn of(sample: &[f64]) -> Option<Self> {
        let (count, mean) = (sample.len(), mean(sample)?);
        // Sums of equal values may be rounded: a constant sample must not get a width from rounding.
        let is_constant = sample.iter().all(|value| *value == sample[0]);
        let mean = if is_constant { sample[0] } else { mean };
        let standard_deviation = standard_deviation(sample).map(|deviation| if is_constant { 0.0 } else { deviation });
        let t = t_quantile(CONFIDENCE, count as u64 - 1);
        let half_width = standard_deviation.zip(t).map(|(deviation, t)| t * deviation / (count as f64).sqrt());
        Some(Self { count, mean, standard_deviation, half_width })
    }

    /// Probability of a mean at least as far from zero, in either direction, if the true mean were zero (Student's t
    /// test, two-sided); `None` for one value.
    pub fn p_value(&self) -> Option<f64> {
        let error = self.standard_deviation? / (self.count as f64).sqrt();
        match error > 0.0 {
            // The sums of the distribution may round to slightly more than one.
            true => Some((1.0 - t_distribution(self.mean.abs() / error, self.count as u64 - 1)?).max(0.0)),
            false => Some(if self.mean == 0.0 { 1.0 } else { 0.0 }),
        }
    }

    /// Its lower bound.
    pub fn low(&self) -> Option<f64> {
        Some(self.mean - self.half_width?)
    }

    /// Its upper bound.
    pub fn high(&self) -> Option<f64> {
        Some(self.mean + self.half_width?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 to 5: mean 3, deviation sqrt(2.5), t with four degrees 2.7764: 2.7764 * 1.5811 / 2.2361 = 1.9633.
    #[test]
    fn the_interval_is_students() {
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((interval.count, interval.mean), (5, 3.0));
        assert!((interval.half_width.unwrap() - 1.9632).abs() < 1e-4, "{interval:?}");
        assert!((interval.low().unwrap() - 1.0368).abs() < 1e-4 && (interval.high().unwrap() - 4.9632).abs() < 1e-4);
    }

    /// NIST/SEMATECH e-Handbook 1.3.5.2, ZARR13.DAT: n 195, mean 9.261460, deviation 0.022789, 95 % interval [9.258242,
    /// 9.264679]. Only the moments of the data matter, so the test uses any sample that has them.
    #[test]
    fn a_published_interval() {
        let (mean, deviation) = (9.261_460, 0.022_789);
        // One value on the mean, 194 at a distance d = s from it: the squares sum to 194 s^2.
        let mut sample = vec![mean];
        (0..97).for_each(|_| sample.extend([mean - deviation, mean + deviation]));
        let interval = Interval::of(&sample).unwrap();
        assert!((interval.low().unwrap() - 9.258_242).abs() < 2e-6, "{interval:?}");
        assert!((interval.high().unwrap() - 9.264_679).abs() < 2e-6, "{interval:?}");
    }

    /// Student's sleep data (1908): t = 4.0621 with nine degrees of freedom, p = 0.002833.
    #[test]
    fn a_published_p_value() {
        let gains = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let p_value = Interval::of(&gains).unwrap().p_value().unwrap();
        assert!((p_value - 0.002_833).abs() < 1e-6, "{p_value}");
        let of = |sample: &[f64]| Interval::of(sample).and_then(|interval| interval.p_value());
        assert_eq!((of(&[1.0]), of(&[2.0, 2.0]), of(&[0.0, 0.0])), (None, Some(0.0), Some(1.0)));
    }

    #[test]
    fn a_probability_is_not_below_zero() {
        for spread in 1..100 {
            let sample: Vec<f64> = (0..21).map(|index| 1.0 + f64::from(index % 2 * spread) / 500.0).collect();
            let p_value = Interval::of(&sample).unwrap().p_value().unwrap();
            assert!((0.0..1e-9).contains(&p_value), "{spread}: {p_value}");
        }
    }

    /// Ten times 0.1 adds up to a little less than 1.
    #[test]
    fn what_is_the_same_every_time_has_no_width() {
        assert_ne!([0.1; 10].iter().sum::<f64>() / 10.0, 0.1);
        let interval = Interval::of(&[0.1; 10]).unwrap();
        assert_eq!((interval.mean, interval.half_width), (0.1, Some(0.0)));
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Interval::of(&[]), None);
        let one = Interval::of(&[7.0]).unwrap();
        assert_eq!((one.mean, one.half_width, one.low(), one.high()), (7.0, None, None, None));
    }
}
