//! A capture that a running program writes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_file::AtomicFile;
use lab::run::pcapng::{Capture, Direction};
use units::Instant;

use crate::console;
use crate::failure::Failure;
use crate::real_path::real_path;

/// A capture that is whole once it is finished, and absent if the program was killed before. A disk that is full ends the capture, and
/// nothing else. By default nothing is captured.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Option<Capture<AtomicFile>>>>);

impl Tape {
    /// Records what passes `devices`, in this order.
    pub fn start<D: AsRef<str>>(path: &Path, devices: &[D]) -> Result<Self, Failure> {
        // A link is followed, so that it stays one and what it leads to is replaced.
        let file = AtomicFile::create(&real_path(path))?;
        Ok(Self(Arc::new(Mutex::new(Some(Capture::new(file, devices)?)))))
    }

    /// Notes a packet of the device with this number.
    pub fn record(&self, device: usize, at: Instant, direction: Direction, packet: &[u8]) {
        let mut capture = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = capture.as_mut().map(|capture| capture.record(device, at, direction, packet));
        if let Some(Err(error)) = recorded {
            *capture = None;
            // Nobody may be there to hear it.
            let _ = console::complain(&format!("the capture is given up and removed, all else goes on: {error}\n"));
        }
    }

    /// Gives the file its name; what comes later is not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        let capture = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        capture.map_or(Ok(()), |capture| Ok(capture.finish().commit()?))
    }
}
