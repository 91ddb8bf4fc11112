//! An observer of every packet of a device, such as a capture.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use units::Instant;

/// Direction of a packet, as the engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the engine.
    In,
    /// From the engine.
    Out,
}

type See = dyn FnMut(Instant, Way, &[u8]) -> io::Result<()> + Send;

/// Sees every packet with its time: whole IP packets, as large as the kernel passes and takes them.
#[derive(Clone)]
pub struct Tap(Arc<Mutex<See>>);

impl Tap {
    /// Creates a tap that calls `see` for each packet; an error of `see` ends the driver.
    pub fn new(see: impl FnMut(Instant, Way, &[u8]) -> io::Result<()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(see)))
    }

    /// Shows the tap a packet.
    ///
    /// # Errors
    /// Those of the function given to [`Self::new`].
    pub fn see(&self, at: Instant, way: Way, packet: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(at, way, packet)
    }
}

impl Debug for Tap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}
