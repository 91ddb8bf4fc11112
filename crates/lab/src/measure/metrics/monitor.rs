//! Windows of analysis, and the monitor points in them.

use units::{Duration, Instant};

/// A window of analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// Its start.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

impl Analysis {
    /// The thesis' falling window: local traffic grows, the available bandwidth falls.
    pub const FALLING: Self = Self { from: Instant::from_secs(5), to: Instant::from_secs(25) };
    /// The thesis' rising window.
    pub const RISING: Self = Self { from: Instant::from_secs(28), to: Instant::from_secs(50) };
    /// All of the time.
    pub const WHOLE: Self = Self { from: Instant::ZERO, to: Instant::FAR_FUTURE };

    /// Returns whether `at` lies in `[from, to)`.
    pub fn covers(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }

    /// Returns whether a monitor point belongs to this window of analysis. The window of length F that ends at `point`
    /// covers the time just before `point`; that time must lie in `[from, to)`.
    pub fn has_point(&self, point: Instant) -> bool {
        self.from < point && point <= self.to
    }
}

/// Ends of the windows of length F, counted from the start of the run, that belong to a window of analysis.
#[derive(Clone, Debug)]
pub struct MonitorPoints {
    window: Duration,
    next: Instant,
    to: Instant,
}

impl MonitorPoints {
    /// The points in `analysis` with F = `window`; none if F is zero.
    pub fn new(window: Duration, analysis: Analysis) -> Self {
        let before = analysis.from.as_nanos() / window.as_nanos().max(1);
        let next = Instant::from_nanos((before + 1).saturating_mul(window.as_nanos()));
        Self { window, next, to: analysis.to }
    }
}

impl Iterator for MonitorPoints {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let point = self.next;
        if self.window.is_zero() || point > self.to || point == Instant::FAR_FUTURE {
            return None;
        }
        self.next = point + self.window;
        Some(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(analysis: Analysis) -> Vec<u64> {
        MonitorPoints::new(Duration::from_secs(2), analysis).map(|point| point.as_millis() / 1000).collect()
    }

    #[test]
    fn the_papers_windows_have_ten_and_eleven_points() {
        assert_eq!(seconds(Analysis::FALLING), [6, 8, 10, 12, 14, 16, 18, 20, 22, 24]);
        assert_eq!(seconds(Analysis::RISING), [30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50]);
    }

    #[test]
    fn a_point_belongs_where_its_window_ended() {
        let analysis = Analysis { from: Instant::from_secs(4), to: Instant::from_secs(8) };
        assert_eq!(seconds(analysis), [6, 8]);
        let has = |secs| analysis.has_point(Instant::from_secs(secs));
        assert_eq!([3, 4, 5, 8, 9].map(has), [false, false, true, true, false]);
        let covers = |secs| analysis.covers(Instant::from_secs(secs));
        assert_eq!([3, 4, 5, 8, 9].map(covers), [false, true, true, false, false]);
        assert_eq!(MonitorPoints::new(Duration::ZERO, analysis).count(), 0);
    }
}
