//! Poisson arrivals: packets of one size with independent, exponentially distributed gaps.
//!
//! ```text
//! packet n is due when the demand reaches  X_1 + ... + X_n        X_i ~ Exp(mean = size), octets
//! ```
//!
//! At a constant rate r the gaps X_i / r are exponential with mean size / r: a Poisson process. Where the rate changes,
//! or a random process modulates it, the same rule gives a Poisson process whose intensity follows the rate.

use units::Prng;

use super::Draw;

/// Unit of [`Poisson::next_q16`]: a part of an octet.
const ONE_Q16: u64 = 1 << 16;

/// The arrivals of packets of `size` octets.
#[derive(Clone, Debug)]
pub(super) struct Poisson {
    size: u64,
    prng: Prng,
    /// The demand at which the next packet is due, in 2^-16 octets.
    next_q16: u64,
    /// Octets of the packets that were due so far.
    due_bytes: u64,
}

impl Poisson {
    /// Creates arrivals that draw from `prng`.
    pub fn new(size: u64, prng: Prng) -> Self {
        let mut poisson = Self { size, prng, next_q16: 0, due_bytes: 0 };
        poisson.draw();
        poisson
    }

    fn draw(&mut self) {
        let gap_bytes = Draw::Exponential { mean: self.size as f64 }.draw(&mut self.prng);
        self.next_q16 = self.next_q16.saturating_add((gap_bytes * ONE_Q16 as f64) as u64);
    }

    /// Returns the octets of all packets that are due once `demanded_bytes` were demanded.
    pub fn due_bytes(&mut self, demanded_bytes: u64) -> u64 {
        while self.next_bytes() <= demanded_bytes {
            self.due_bytes += self.size;
            self.draw();
        }
        self.due_bytes
    }

    /// Returns the demand, in octets, at which the next packet is due.
    pub fn next_bytes(&self) -> u64 {
        self.next_q16.div_ceil(ONE_Q16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps in octets between the packets of 1000 octets that are due in `demanded_bytes`.
    fn gaps(demanded_bytes: u64) -> Vec<f64> {
        let mut poisson = Poisson::new(1000, Prng::new(17));
        let (mut last, mut gaps) = (0, Vec::new());
        while poisson.next_bytes() <= demanded_bytes {
            gaps.push((poisson.next_bytes() - last) as f64);
            last = poisson.next_bytes();
            let before = poisson.due_bytes;
            assert!(poisson.due_bytes(last) > before);
        }
        gaps
    }

    #[test]
    fn gaps_are_exponential() {
        let gaps = gaps(40_000_000);
        let count = gaps.len() as f64;
        // A Poisson number with mean 40,000: a standard deviation of 200.
        assert!((count - 40_000.0).abs() < 800.0, "{count}");
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / count;
        // The deviation of an exponential quantity is its mean; the standard error of its estimate is 0.7 %.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance} {mean}");
        // P(X > 2 mean) = e^-2 = 0.135, with a standard error of 0.0017.
        let long = gaps.iter().filter(|gap| **gap > 2000.0).count() as f64 / count;
        assert!((long - 0.1353).abs() < 0.007, "{long}");
    }

    #[test]
    fn neighbouring_gaps_are_independent() {
        let gaps = gaps(40_000_000);
        let products = gaps.windows(2).map(|pair| (pair[0] - 1000.0) * (pair[1] - 1000.0));
        // The correlation of 40,000 independent pairs has a standard error of 0.005.
        let correlation = products.sum::<f64>() / 1e6 / gaps.len() as f64;
        assert!(correlation.abs() < 0.02, "{correlation}");
    }

    #[test]
    fn packets_are_due_whole_and_none_is_forgotten() {
        let (mut once, mut often) = (Poisson::new(700, Prng::new(2)), Poisson::new(700, Prng::new(2)));
        let many = (0..=1_000_000).step_by(13).map(|demanded| often.due_bytes(demanded)).last();
        let whole = once.due_bytes(1_000_000);
        assert!(whole % 700 == 0 && many == Some(whole), "{many:?} {whole}");
    }
}
