//! Jitter (MPTCP-rec): mean change of the delay from one packet to the next.

use units::Duration;

use super::Delay;

/// Mean of `abs(d_i - d_(i-1))` over packets in order of arrival, whichever subflows they take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    last: Option<Duration>,
    changes: Delay,
}

impl Jitter {
    /// A packet with new data took `delay`.
    pub fn sample(&mut self, delay: Duration) {
        if let Some(last) = self.last.replace(delay) {
            self.changes.sample(delay.abs_diff(last));
        }
    }

    /// Ends the window: its mean, seconds; `None` without a change. A change belongs to the window of its later packet.
    pub fn close(&mut self) -> Option<f64> {
        self.changes.close()
    }

    /// Mean, seconds; `None` for fewer than two packets.
    pub fn mean_s(&self) -> Option<f64> {
        self.changes.mean_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes of 500, 250 and 250 ms, then one of 1000 ms across the border of the windows.
    #[test]
    fn changes_count_without_their_sign() {
        let mut jitter = Jitter::default();
        [1000, 500, 750, 500].map(Duration::from_millis).into_iter().for_each(|span| jitter.sample(span));
        assert_eq!(jitter.close(), Some(1.0 / 3.0));
        jitter.sample(Duration::from_millis(1500));
        assert_eq!((jitter.close(), jitter.mean_s()), (Some(1.0), Some(0.5)));
    }
}
