//! The clock of `bpf_ktime_get_ns`, by which the kernel's programs tell what still holds.

use rustix::time::{ClockId, clock_gettime};
use units::{Duration, Instant};

/// What it shows.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// A span as the standard library has it.
pub(crate) const fn wall(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}
