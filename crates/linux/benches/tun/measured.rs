//! Measurement of one transfer.

use rustix::time::{ClockId, clock_gettime};

/// One transfer.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub bytes: u64,
    /// Octets among these that fit into a packet of the largest size.
    pub packet_bytes: u16,
    /// At the receiver, from the first octet to the end of the stream.
    pub seconds: f64,
    /// Processor time of the measured thread: the engine's, the sender's between kernels, or all that read or write.
    pub cpu_s: f64,
}

impl Measured {
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    /// On an otherwise idle machine this is the rate at which the thread would be the bottleneck.
    pub fn gbit_per_cpu_s(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.cpu_s
    }

    /// Packets of the largest size.
    pub fn packets(&self) -> f64 {
        self.bytes as f64 / f64::from(self.packet_bytes)
    }

    pub fn packets_per_s(&self) -> f64 {
        self.packets() / self.seconds
    }

    pub fn cpu_ns_per_packet(&self) -> f64 {
        self.cpu_s * 1e9 / self.packets()
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
