//! From samples to the desired rate (section 4.1, equations 2 to 4).
//!
//! ```text
//! rate   = phi * rate + (1 - phi) * s               if PLR < thresh
//!        = (1 - vartheta) * rate + vartheta * s     otherwise                           (2)
//! Rate_e = sum F_i rate_i / sum F_i                 over the last sigma rates, newest first   (3)
//! F_i    = 1                                        i <= sigma/2
//!        = 1 - (i - sigma/2) / (sigma/2 + 1)        otherwise                           (4)
//! ```
//!
//! `phi` = 1/2 and `sigma` = 8, so that `F` is 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2.

use arrayvec::ArrayVec;

/// phi of equation 2.
const PHI: f64 = 0.5;
/// sigma of equations 3 and 4.
const HISTORY: usize = 8;
/// F of equation 4.
const WEIGHTS: [f64; HISTORY] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The rate of one path, octets per second.
#[derive(Debug)]
pub(super) struct SmoothedRate {
    lossy_weight: f64,
    /// Latest rates, newest first.
    rates: ArrayVec<f64, HISTORY>,
}

impl SmoothedRate {
    /// `lossy_weight` is vartheta.
    pub(super) fn new(lossy_weight: f64) -> Self {
        Self { lossy_weight, rates: ArrayVec::new() }
    }

    /// Takes the sample of a round. The first sample becomes the rate.
    pub(super) fn on_sample(&mut self, sample_bytes_per_s: f64, is_lossy: bool) {
        let weight = if is_lossy { self.lossy_weight } else { 1.0 - PHI };
        let rate = match self.rates.first() {
            None => sample_bytes_per_s,
            Some(old) => (1.0 - weight) * old + weight * sample_bytes_per_s,
        };
        self.rates.truncate(HISTORY - 1);
        self.rates.insert(0, rate);
    }

    /// Returns Rate_e, once there is a sample.
    pub(super) fn smoothed(&self) -> Option<f64> {
        if self.rates.is_empty() {
            return None;
        }
        let weighted: f64 = self.rates.iter().zip(WEIGHTS).map(|(rate, weight)| rate * weight).sum();
        let weights: f64 = WEIGHTS[..self.rates.len()].iter().sum();
        Some(weighted / weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lossy_weight: f64, samples: &[(f64, bool)]) -> f64 {
        let mut rate = SmoothedRate::new(lossy_weight);
        assert_eq!(rate.smoothed(), None);
        samples.iter().for_each(|(sample, is_lossy)| rate.on_sample(*sample, *is_lossy));
        rate.smoothed().unwrap()
    }

    /// 800, then (800 + 400) / 2 = 600, then (600 + 200) / 2 = 400: their mean is 600.
    #[test]
    fn each_sample_counts_half_and_recent_rates_count_alike() {
        assert_eq!(after(0.5, &[(800.0, false)]), 800.0);
        assert_eq!(after(0.5, &[(800.0, false), (400.0, false), (200.0, true)]), 600.0);
    }

    /// With a weight of three quarters after a lossy round, 800 becomes (800 + 3 * 400) / 4 = 500: the mean is 650.
    #[test]
    fn a_lossy_round_can_weigh_more() {
        assert_eq!(after(0.75, &[(800.0, false), (400.0, true)]), 650.0);
    }

    /// Seven rates of 600 and an oldest of 1200: (600 * 5.8 + 1200 * 0.2) / 6 = 620.
    #[test]
    fn old_rates_fade() {
        let mut rate = SmoothedRate::new(0.5);
        rate.rates.extend([600.0; 7]);
        rate.rates.push(1200.0);
        assert!((rate.smoothed().unwrap() - 620.0).abs() < 1e-9);
        // One more sample pushes the oldest out: eight of 600.
        rate.on_sample(600.0, false);
        assert!((rate.smoothed().unwrap() - 600.0).abs() < 1e-9);
    }
}
