//! Delay ratio eta (thesis 5.2): the slowest path's mean delay over the fastest path's, by window.

use units::Duration;

/// Mean delay of every path in the window. A path is active if a packet arrived over it.
#[derive(Clone, Debug, Default)]
pub struct DelayRatio {
    /// Sum of the delays in nanoseconds, and number of packets, by subflow.
    paths: Vec<(u128, u64)>,
    max: Option<f64>,
}

impl DelayRatio {
    /// A packet took `delay` over `subflow`, since the source first sent it there.
    pub fn sample(&mut self, subflow: usize, delay: Duration) {
        if self.paths.len() <= subflow {
            self.paths.resize(subflow + 1, (0, 0));
        }
        let (nanos, count) = &mut self.paths[subflow];
        (*nanos, *count) = (*nanos + u128::from(delay.as_nanos()), *count + 1);
    }

    /// Ends the window: the ratio; `None` with fewer than two active paths, or a path without delay.
    pub fn close(&mut self) -> Option<f64> {
        let means =
            self.paths.iter().filter(|(_, count)| *count > 0).map(|(nanos, count)| *nanos as f64 / *count as f64);
        let (active, min, max) = means
            .fold((0, f64::INFINITY, 0.0_f64), |(active, min, max), mean| (active + 1, min.min(mean), max.max(mean)));
        self.paths.fill((0, 0));
        let ratio = (active > 1 && min > 0.0).then(|| max / min);
        self.max = self.max.into_iter().chain(ratio).reduce(f64::max);
        ratio
    }

    /// The largest ratio of all windows.
    pub fn max(&self) -> Option<f64> {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_paths_do_not_count() {
        let mut ratio = DelayRatio::default();
        let ms = Duration::from_millis;
        ratio.sample(0, ms(100));
        ratio.sample(0, ms(300));
        assert_eq!(ratio.close(), None);
        [(0, 100), (0, 300), (2, 1000), (3, 500)].iter().for_each(|(path, delay)| ratio.sample(*path, ms(*delay)));
        assert_eq!(ratio.close(), Some(5.0));
        [(2, 300), (3, 200)].iter().for_each(|(path, delay)| ratio.sample(*path, ms(*delay)));
        assert_eq!((ratio.close(), ratio.max()), (Some(1.5), Some(5.0)));
    }
}
