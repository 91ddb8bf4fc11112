//! The cost of delay differences in goodput: the model of section 5.1 of the thesis, for two paths.
//!
//! ```text
//! Upsilon = 1 / tau_1 + 1 / tau_2                                       (5.4)
//! G       = (tau_2 / tau_1 + 1) / T
//!         = Upsilon * min(1, tau_2 / dD)            with T = max(dD, tau_2)
//!
//! tau_i     interval between two packets on path i, s; path 1 is the one with the shorter delay
//! dD        d_2 - d_1, difference of the delays, s
//! T         time in which one unit arrives: one packet on path 2 and tau_2 / tau_1 on path 1, s
//! G         goodput, packets/s
//! Upsilon   throughput, packets/s
//! ```
//!
//! The thesis prints equation (5.2) for dD > tau_1, with T = dD. Between tau_1 and tau_2 that would exceed the
//! throughput: a unit cannot arrive faster than its packets are sent.

/// The two paths of the model, all values in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPaths {
    /// Interval between packets on the path with the shorter delay (tau_1), above 0.
    pub interval_1_s: f64,
    /// Interval between packets on the other path (tau_2), above 0.
    pub interval_2_s: f64,
    /// Difference by which the delay of the other path is longer (dD), at least 0.
    pub delay_gap_s: f64,
}

impl TwoPaths {
    /// Returns the throughput of both paths together (Upsilon), packets/s: the upper bound of goodput.
    pub fn throughput(&self) -> f64 {
        1.0 / self.interval_1_s + 1.0 / self.interval_2_s
    }

    /// Returns the goodput (G), packets/s.
    pub fn goodput(&self) -> f64 {
        self.unit_packets() / self.delay_gap_s.max(self.interval_2_s)
    }

    /// Returns the goodput by equations (5.2) and (5.3) as printed, packets/s; above the throughput if tau_1 < dD <
    /// tau_2.
    pub fn printed_goodput(&self) -> f64 {
        let is_gap_longer = self.delay_gap_s > self.interval_1_s;
        self.unit_packets() / if is_gap_longer { self.delay_gap_s } else { self.interval_2_s }
    }

    fn unit_packets(&self) -> f64 {
        self.interval_2_s / self.interval_1_s + 1.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(interval_1_s: f64, interval_2_s: f64, delay_gap_s: f64) -> TwoPaths {
        TwoPaths { interval_1_s, interval_2_s, delay_gap_s }
    }

    /// One packet on path 2 for every four on path 1, 5 in 4 s. A gap of 8 s doubles the time of a unit, one of 20 s
    /// makes it five times as long.
    #[test]
    fn goodput_falls_with_the_gap_once_that_exceeds_the_slower_interval() {
        let goodput = |gap| paths(1.0, 4.0, gap).goodput();
        assert_eq!(paths(1.0, 4.0, 0.0).throughput(), 1.25);
        assert_eq!([0.0, 1.0, 4.0, 8.0, 20.0].map(goodput), [1.25, 1.25, 1.25, 0.625, 0.25]);
    }

    /// As printed, 2 packets per second arrive although only 4/3 are sent.
    #[test]
    fn as_printed_goodput_can_exceed_the_throughput() {
        let example = paths(1.0, 2.0, 1.25);
        assert_eq!((example.throughput(), example.goodput(), example.printed_goodput()), (1.5, 1.5, 2.4));
        assert_eq!(paths(1.0, 3.0, 2.0).printed_goodput(), 2.0);
        assert_eq!(paths(1.0, 3.0, 2.0).goodput(), 4.0 / 3.0);
        assert_eq!([1.0, 2.0, 4.0].map(|gap| paths(1.0, 2.0, gap).printed_goodput()), [1.5, 1.5, 0.75]);
    }

    proptest! {
        #[test]
        fn goodput_never_exceeds_the_throughput(tau_1 in 0.001_f64..1.0, ratio in 1.0_f64..50.0, gap in 0.0_f64..10.0) {
            let paths = paths(tau_1, tau_1 * ratio, gap);
            let bound = paths.throughput() * (paths.interval_2_s / gap).min(1.0);
            prop_assert!(paths.goodput() <= paths.throughput() * (1.0 + 1e-12));
            prop_assert!((paths.goodput() - bound).abs() <= 1e-12 * bound);
        }
    }
}
