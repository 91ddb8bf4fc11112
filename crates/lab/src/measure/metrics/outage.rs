//! Outages: monitor points at which the aggregate throughput is out of range.

use units::{Duration, Instant};

/// A monitor point out of range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// The monitor point.
    pub at: Instant,
    /// Aggregate throughput of the window that ends there.
    pub throughput_bps: f64,
}

/// Counts outages. The list grows by at most one entry a window: it is part of the metric.
#[derive(Clone, Debug)]
pub struct Outages {
    bounds_bps: (f64, f64),
    points: u64,
    list: Vec<Outage>,
    time: Duration,
}

impl Outages {
    /// Counts throughput outside `[(1 - theta) TBR, (1 + theta) TBR]` as out of range.
    pub fn new(tbr_bps: f64, theta: f64) -> Self {
        let half = theta * tbr_bps;
        Self { bounds_bps: (tbr_bps - half, tbr_bps + half), points: 0, list: Vec::new(), time: Duration::ZERO }
    }

    /// The bounds; both are in range.
    pub fn bounds_bps(&self) -> (f64, f64) {
        self.bounds_bps
    }

    /// Adds a monitor point at the end of a window of length `window`. Returns whether it is an outage.
    pub fn point(&mut self, at: Instant, window: Duration, throughput_bps: f64) -> bool {
        self.points += 1;
        let out = throughput_bps < self.bounds_bps.0 || throughput_bps > self.bounds_bps.1;
        if out {
            self.list.push(Outage { at, throughput_bps });
            self.time += window;
        }
        out
    }

    /// The outages, in chronological order; their number is the papers' count.
    pub fn list(&self) -> &[Outage] {
        &self.list
    }

    /// Outages over monitor points; `None` without points.
    pub fn fraction(&self) -> Option<f64> {
        (self.points > 0).then(|| self.list.len() as f64 / self.points as f64)
    }

    /// Length of all windows that ended in an outage.
    pub fn time(&self) -> Duration {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TBR 3 Mbit/s and theta 0.1: in range from 2.7 to 3.3 Mbit/s, both included.
    #[test]
    fn bounds_are_in_range() {
        let window = Duration::from_secs(2);
        let mut outages = Outages::new(3e6, 0.1);
        assert_eq!(outages.fraction(), None);
        assert_eq!(outages.bounds_bps(), (2.7e6, 3.3e6));
        let throughput_bps = [2_699_999.0, 2.7e6, 3e6, 3.3e6, 3_300_001.0];
        let points = throughput_bps.iter().zip(1..);
        let out: Vec<_> = points.map(|(bps, n)| outages.point(Instant::from_secs(2 * n), window, *bps)).collect();
        assert_eq!(out, [true, false, false, false, true]);
        let at: Vec<_> = outages.list().iter().map(|outage| outage.at).collect();
        assert_eq!(at, [Instant::from_secs(2), Instant::from_secs(10)]);
        assert_eq!((outages.fraction(), outages.time()), (Some(0.4), Duration::from_secs(4)));
    }
}
