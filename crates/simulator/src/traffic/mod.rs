//! Local traffic: flows that follow a demand in time, over UDP or TCP.
//!
//! ```text
//! demand     how many octets are asked for until now: constant, in steps, on a slope
//! modulation on and off, or shares drawn anew
//! datagrams  a UDP flow and its sink
//! paced      a TCP flow whose application offers what is demanded, and its sink
//! ```

mod datagrams;
mod demand;
mod modulation;
mod paced;

use core::cell::Cell;
use std::rc::Rc;

pub use datagrams::{DatagramSizes, UdpFlow, UdpSink, UdpSource};
pub use demand::{Change, Demand, Step};
pub use modulation::OnOff;
pub use paced::{PacedSource, TcpFlow, TcpSink};

/// Octets counted by an application and read by whoever measures.
#[derive(Clone, Debug, Default)]
pub struct Octets(Rc<Cell<u64>>);

impl Octets {
    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.get()
    }

    fn add(&self, octets: u64) {
        self.0.set(self.0.get() + octets);
    }

    fn set(&self, octets: u64) {
        self.0.set(octets);
    }
}
