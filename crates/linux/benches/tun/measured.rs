//! What one transfer took.

use rustix::time::{ClockId, clock_gettime};

/// One transfer.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub bytes: u64,
    /// At the receiver, from the first octet to the end of the stream.
    pub seconds: f64,
    /// Processor time of the thread in question: the engine's, or the sender's between kernels.
    pub cpu_s: f64,
}

impl Measured {
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    /// On a machine of one's own this is the rate at which the thread would be the bottleneck.
    pub fn gbit_per_cpu_s(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.cpu_s
    }
}

/// Processor time of the calling thread, system calls included.
pub struct CpuTime(f64);

impl CpuTime {
    pub fn start() -> Self {
        Self(Self::now_s())
    }

    pub fn seconds(&self) -> f64 {
        Self::now_s() - self.0
    }

    fn now_s() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }
}
