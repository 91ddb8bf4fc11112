//! Detects that the receive buffer is about to block (section 4.2, equations 5 to 7).
//!
//! ```text
//! avg   = 1/m sum awnd_j                                          (6)
//! Delta = 0                              if max = min
//!       = (awnd - avg) / (max - min)     otherwise                (5)
//! near  = Delta < 0  and  Delta(t_k) < Delta(t_(k-1))             (7)
//! ```
//!
//! `awnd` is the window that the receiver announces, sampled once a round; `m` = 8 rounds, including the present one.

use arrayvec::ArrayVec;

/// m of equation 6.
const ROUNDS: usize = 8;

/// Watches the announced window.
#[derive(Debug, Default)]
pub(super) struct BlockingMonitor {
    /// Oldest first.
    windows: ArrayVec<u64, ROUNDS>,
    delta: Option<f64>,
}

impl BlockingMonitor {
    /// Takes the window announced at the end of a round. Returns true if blocking is near.
    pub(super) fn on_round(&mut self, window_bytes: u64) -> bool {
        if self.windows.is_full() {
            self.windows.remove(0);
        }
        self.windows.push(window_bytes);
        let (min, max) =
            self.windows.iter().fold((u64::MAX, 0), |(min, max), window| (min.min(*window), max.max(*window)));
        let delta = if max == min { 0.0 } else { (window_bytes as f64 - self.average()) / (max - min) as f64 };
        let before = self.delta.replace(delta);
        delta < 0.0 && before.is_some_and(|before| delta < before)
    }

    fn average(&self) -> f64 {
        self.windows.iter().map(|window| *window as f64).sum::<f64>() / self.windows.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100, 100: 0. Then 80: avg 93.3, -13.3/20 = -0.67, lower than before: near. Then 90: avg 92.5, -2.5/20 = -0.125:
    /// recovering. Then 70: avg 88, -18/30 = -0.6: near.
    #[test]
    fn a_window_that_falls_below_its_average_and_falls_on() {
        let mut monitor = BlockingMonitor::default();
        let near: Vec<bool> = [100, 100, 80, 90, 70].map(|window| monitor.on_round(window)).to_vec();
        assert_eq!(near, [false, false, true, false, true]);
        assert!((monitor.delta.unwrap() - -0.6).abs() < 1e-12);
    }

    #[test]
    fn eight_rounds_are_remembered() {
        let mut monitor = BlockingMonitor::default();
        monitor.on_round(1_000_000);
        assert!(monitor.on_round(100));
        (0..7).for_each(|_| assert!(!monitor.on_round(100), "it falls no further"));
        assert_eq!(monitor.delta, Some(0.0), "the large window is forgotten");
    }
}
