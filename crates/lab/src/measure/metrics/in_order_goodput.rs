//! Goodput G3: octets delivered in order to the application, by window.

use units::Instant;

use super::rate_bps;

/// Goodput that is conserved: over the run, it adds up to all that the application received. Always reported.
#[derive(Clone, Debug, Default)]
pub struct InOrderGoodput {
    began: Instant,
    window_bytes: u64,
    total_bytes: u64,
}

impl InOrderGoodput {
    /// The application receives `bytes` octets.
    pub fn delivered(&mut self, bytes: u64) {
        self.window_bytes += bytes;
        self.total_bytes += bytes;
    }

    /// Ends the window and begins the next: bit/s. `None` if the window is empty.
    pub fn close(&mut self, at: Instant) -> Option<f64> {
        let rate = rate_bps(self.window_bytes, at.saturating_since(self.began));
        (self.began, self.window_bytes) = (at, 0);
        rate
    }

    /// Number of octets delivered.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing in the first 2 s (a hole), 250000 + 500000 octets in the next 2 s: 6 Mbit / 2 s.
    #[test]
    fn a_hole_delays_goodput_but_loses_none() {
        let mut goodput = InOrderGoodput::default();
        assert_eq!(goodput.close(Instant::from_secs(2)), Some(0.0));
        goodput.delivered(250_000);
        goodput.delivered(500_000);
        assert_eq!(goodput.close(Instant::from_secs(4)), Some(3e6));
        assert_eq!(goodput.close(Instant::from_secs(4)), None);
        assert_eq!(goodput.total_bytes(), 750_000);
    }
}
