//! The monotonic clock, as the sans-IO crates count time.

use units::Instant;

/// The machine's monotonic clock. All threads of a process share its zero, so their times compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "the one place where real time enters")]
    pub fn start() -> Self {
        Self { zero: std::time::Instant::now() }
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.zero.elapsed().into()
    }
}
