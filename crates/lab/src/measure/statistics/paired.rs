//! Two variants on the same seeds.

use serde::{Deserialize, Serialize};

use super::{Interval, mean};

/// Outcome of a comparison at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The new variant has the larger mean: the interval of the difference lies above zero.
    Larger,
    /// The new variant has the smaller mean.
    Smaller,
    /// The interval of the difference contains zero, or there are too few seeds for an interval, or all seeds yielded
    /// the same run.
    Undecided,
    /// Runs had faults, so they are no valid samples.
    Withheld,
}

/// A paired comparison of a new variant with an old one, seed by seed: effects of a seed on both cancel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// new - old.
    pub difference: Interval,
    /// Mean of the new over mean of the old, with the interval of a ratio of means; `None` if the latter is zero.
    pub ratio: Option<Interval>,
    /// Seeds on which the new value is larger.
    pub larger: usize,
    /// Seeds on which the new value is smaller.
    pub smaller: usize,
    /// The verdict from the interval of the difference.
    pub verdict: Verdict,
}

impl Paired {
    /// Compares `new` with `old`; values at the same index come from the same seed. `None` if the lists are empty or
    /// differ in length.
    pub fn compare(new: &[f64], old: &[f64]) -> Option<Self> {
        if new.len() != old.len() {
            return None;
        }
        let pairs = || new.iter().zip(old);
        let difference = Interval::of(&pairs().map(|(new, old)| new - old).collect::<Vec<_>>())?;
        Some(Self {
            difference,
            ratio: ratio_of_means(new, old),
            larger: pairs().filter(|(new, old)| new > old).count(),
            smaller: pairs().filter(|(new, old)| new < old).count(),
            verdict: verdict(&difference),
        })
    }

    /// Returns the comparison without its verdict.
    pub fn withheld(self) -> Self {
        Self { verdict: Verdict::Withheld, ..self }
    }
}

/// The ratio of two means on paired seeds. Its interval is that of the linearised ratio, the mean of (new - R old) over
/// the mean of old around R (Cochran, Sampling Techniques, 6.3); this keeps the ratio within its own interval.
fn ratio_of_means(new: &[f64], old: &[f64]) -> Option<Interval> {
    let below = mean(old).filter(|below| *below != 0.0)?;
    let ratio = mean(new)? / below;
    let around: Vec<f64> = new.iter().zip(old).map(|(new, old)| ratio + (new - ratio * old) / below).collect();
    Some(Interval { mean: ratio, ..Interval::of(&around)? })
}

fn verdict(difference: &Interval) -> Verdict {
    match (difference.low(), difference.high()) {
        (Some(low), _) if low > 0.0 => Verdict::Larger,
        (_, Some(high)) if high < 0.0 => Verdict::Smaller,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's own data (1908), extra hours of sleep of ten patients under two drugs: mean difference 1.58,
    /// 95 % interval [0.7001, 2.4599] (t = 4.0621 with nine degrees).
    #[test]
    fn sleep() {
        let old = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let new = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let paired = Paired::compare(&new, &old).unwrap();
        assert!((paired.difference.mean - 1.58).abs() < 1e-12);
        assert!((paired.difference.low().unwrap() - 0.700_114_2).abs() < 1e-6, "{paired:?}");
        assert!((paired.difference.high().unwrap() - 2.459_885_8).abs() < 1e-6, "{paired:?}");
        assert_eq!((paired.larger, paired.smaller, paired.verdict), (9, 0, Verdict::Larger));
        assert!((paired.ratio.unwrap().mean - 23.3 / 7.5).abs() < 1e-12);
        assert_eq!(Paired::compare(&old, &new).unwrap().verdict, Verdict::Smaller);
    }

    /// Means 2 and 4: ratio 0.5. Around it (3 - 1) / 4, (2 - 2) / 4 and (1 - 3) / 4: deviation 0.5, t with two degrees
    /// 4.3027, so 4.3027 * 0.5 / sqrt(3) = 1.2421 each way. The ratios by seed are 1.5, 0.5 and 1/6, with a different
    /// mean.
    #[test]
    fn a_ratio_is_that_of_the_means_within_its_interval() {
        let paired = Paired::compare(&[3.0, 2.0, 1.0], &[2.0, 4.0, 6.0]).unwrap();
        let ratio = paired.ratio.unwrap();
        assert!((ratio.mean - 0.5).abs() < 1e-12 && (ratio.half_width.unwrap() - 1.2421).abs() < 1e-4, "{ratio:?}");
        assert_eq!((paired.larger, paired.smaller, paired.verdict), (1, 2, Verdict::Undecided));
        assert_eq!(Paired::compare(&[1.0, 2.0], &[1.0, -1.0]).unwrap().ratio, None);
    }

    /// Every seed agrees exactly, and the interval has no width: decided, unless there is no difference or only one
    /// seed.
    #[test]
    fn verdicts_at_the_edge() {
        let verdict = |new: &[f64], old: &[f64]| Paired::compare(new, old).map(|paired| paired.verdict);
        assert_eq!(verdict(&[2.0, 3.0], &[1.0, 2.0]), Some(Verdict::Larger));
        assert_eq!(verdict(&[2.0, 3.0], &[2.0, 3.0]), Some(Verdict::Undecided));
        assert_eq!(verdict(&[2.0], &[1.0]), Some(Verdict::Undecided));
        assert_eq!((verdict(&[], &[]), verdict(&[1.0], &[])), (None, None));
    }
}
