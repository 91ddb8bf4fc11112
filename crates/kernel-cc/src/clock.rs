//! The clock of `bpf_ktime_get_ns`, by which the kernel's programs decide what is still valid.

use rustix::time::{ClockId, clock_gettime};
use units::{Duration, Instant};

/// Returns the time of this clock.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// Converts a duration to one of the standard library.
pub(crate) const fn wall(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}
