//! Local traffic: flows that follow a demand in time, over UDP or TCP.
//!
//! ```text
//! demand       the octets asked for until now: constant, in steps, on a slope
//! modulation   multiplies a demand: on and off, or by random fractions
//! background   a demand shared by TCP and UDP
//! datagrams    a UDP flow and its sink
//! poisson      arrivals of packets at random times
//! paced        a TCP flow whose application follows a demand, and its sink
//! short_flows  one connection after the other
//! answers      requests and their answers on one connection
//! video        frames, and a player with its buffer
//! live_stream  a video, answers or data at a steady rate, produced while they are sent
//! live_server  a server of such streams
//! writer       the shared part of sources over TCP
//! draw         random sizes and times
//! ```

mod answers;
mod background;
mod datagrams;
mod demand;
mod draw;
mod live_server;
mod live_stream;
mod modulation;
mod pace;
mod paced;
mod poisson;
mod short_flows;
pub mod video;
mod writer;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub use answers::{Answers, Latencies, REQUEST_BYTES, Reader};
pub use background::Background;
pub use datagrams::{DatagramSizes, UdpFlow, UdpSink, UdpSource};
pub use demand::{Change, Demand, Slope, Step};
pub use draw::Draw;
pub use live_server::LiveServer;
pub use live_stream::{LiveStream, Script};
pub use modulation::OnOff;
pub use pace::Pace;
pub use paced::{PacedSource, TcpFlow, TcpSink};
pub use short_flows::{ShortFlowSource, ShortFlows};

/// Octets that an application counts, shared with the reader of measurements.
#[derive(Clone, Debug, Default)]
pub struct Octets(Arc<AtomicU64>);

impl Octets {
    /// Returns the octets counted so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds `octets` to the count.
    pub fn add(&self, octets: u64) {
        self.set(self.get() + octets);
    }

    /// Returns a count of its own that starts from this one.
    pub fn detached(&self) -> Self {
        let octets = Self::default();
        octets.set(self.get());
        octets
    }

    fn set(&self, octets: u64) {
        self.0.store(octets, Ordering::Relaxed);
    }
}
