//! Random quantities of applications: sizes and times.

use units::Prng;

/// The distribution of a quantity. Its unit is up to the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always the same value.
    Constant(f64),
    /// Uniform in [`min`, `max`).
    Uniform {
        /// Minimum.
        min: f64,
        /// Exclusive upper bound.
        max: f64,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Pareto distribution, cut off at `max`: the sizes of files.
    Pareto {
        /// Minimum; must be above zero.
        min: f64,
        /// Upper bound.
        max: f64,
        /// Shape; must be above zero. Smaller values give a heavier tail.
        shape: f64,
    },
}

impl Draw {
    /// Draws a value, never negative, by inverting the distribution function at a uniform number. A constant draws
    /// nothing from the generator.
    pub fn draw(&self, prng: &mut Prng) -> f64 {
        let drawn = match *self {
            Self::Constant(value) => value,
            Self::Uniform { min, max } => min + (max - min) * prng.unit(),
            Self::Exponential { mean } => -mean * libm::log(1.0 - prng.unit()),
            Self::Pareto { min, max, shape } => {
                let cut_off = 1.0 - libm::pow(min / max, shape);
                min / libm::pow(1.0 - prng.unit() * cut_off, 1.0 / shape)
            }
        };
        drawn.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, minimum and maximum of many draws.
    fn moments(draw: Draw) -> (f64, f64, f64) {
        let mut prng = Prng::new(21);
        let drawn: Vec<f64> = (0..40_000).map(|_| draw.draw(&mut prng)).collect();
        let least = drawn.iter().copied().fold(f64::INFINITY, f64::min);
        (drawn.iter().sum::<f64>() / 40_000.0, least, drawn.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn constants_are_constant() {
        assert_eq!(moments(Draw::Constant(7.0)), (7.0, 7.0, 7.0));
        assert_eq!(Draw::Constant(-1.0).draw(&mut Prng::new(1)), 0.0);
    }

    #[test]
    fn uniform_quantities_fill_their_range() {
        // Mean 3, standard deviation 2 / sqrt(12): a standard error of 0.003.
        let (mean, least, most) = moments(Draw::Uniform { min: 2.0, max: 4.0 });
        assert!((mean - 3.0).abs() < 0.012 && (2.0..2.01).contains(&least) && (3.99..4.0).contains(&most));
    }

    #[test]
    fn exponential_quantities_have_their_mean() {
        // The standard deviation equals the mean: a standard error of 0.5 %.
        let (mean, least, most) = moments(Draw::Exponential { mean: 10.0 });
        assert!((mean - 10.0).abs() < 0.2 && least < 0.01 && most > 60.0, "{mean} {least} {most}");
    }

    #[test]
    fn pareto_quantities_are_cut_off() {
        // Shape 2 in [1, 2): density 8/3 x^-3, mean 8/3 * (1 - 1/2) = 4/3; second moment 8/3 ln 2 = 1.848, standard
        // deviation 0.266.
        let (mean, least, most) = moments(Draw::Pareto { min: 1.0, max: 2.0, shape: 2.0 });
        assert!((mean - 4.0 / 3.0).abs() < 0.006, "{mean}");
        assert!((1.0..1.001).contains(&least) && (1.99..=2.0).contains(&most), "{least} {most}");
    }
}
