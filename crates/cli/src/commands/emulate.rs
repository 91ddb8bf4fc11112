//! `anabranch emulate`: network namespaces whose links behave as a file describes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_file::AtomicFile;
use lab::run::pcapng::{Capture, Direction};
use linux::ability::{Needs, rehearse};
use linux::stop::Stop;
use testbed::emulator::{Emulation, Passage, Tap, Topology};

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Emulates until Ctrl-C; the namespaces go with the process, however it ends.
pub fn emulate(arguments: &arguments::Emulate) -> Result<(), Failure> {
    let topology = Topology::load(&arguments.topology)?;
    // All that is lacking at once, before anything is made.
    rehearse(Needs::default())?;
    let stop = Stop::on_signals()?;
    let mut emulation = Emulation::start(&topology, "")?;
    let capture = arguments.pcap.as_deref().map(|path| Tape::start(path, &emulation.devices())).transpose()?;
    if let Some(tape) = &capture {
        emulation.set_tap(tape.tap());
    }
    console::print(&format!("{}\nCtrl-C ends it and removes everything\n", emulation.describe()))?;
    emulation.run(&stop)?;
    console::print(&format!("\n{}", emulation.counters()))?;
    drop(emulation);
    capture.map_or(Ok(()), Tape::finish)
}

/// A capture that is whole when the emulation has ended, and absent if it was killed.
struct Tape(Arc<Mutex<Capture<AtomicFile>>>);

impl Tape {
    fn start(path: &Path, devices: &[String]) -> Result<Self, Failure> {
        let file = AtomicFile::create(path)?;
        Ok(Self(Arc::new(Mutex::new(Capture::new(file, devices)?))))
    }

    /// Records what passes; the emulation owns it.
    fn tap(&self) -> Tap {
        let capture = Arc::clone(&self.0);
        Box::new(move |device, at, passage, octets| {
            let direction = match passage {
                Passage::Outbound => Direction::Outbound,
                Passage::Inbound => Direction::Inbound,
            };
            let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
            capture.record(device, at, direction, octets)
        })
    }

    fn finish(self) -> Result<(), Failure> {
        let still_used = || Failure::Failed("the capture is still being written".into());
        let capture = Arc::into_inner(self.0).ok_or_else(still_used)?;
        capture.into_inner().unwrap_or_else(PoisonError::into_inner).finish().commit()?;
        Ok(())
    }
}
