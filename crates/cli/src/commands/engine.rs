//! How the engine works behind a device, by the options that `get`, `serve` and `join` share.

use std::sync::{Arc, Mutex, PoisonError};

use atomic_file::AtomicFile;
use lab::run::pcapng::{Capture, Direction};
use linux::EngineOptions;
use linux::tap::{Tap, Way};

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// A capture that is whole once it is finished, and absent if the program was killed before. A disk that is full ends the capture, and
/// nothing else.
pub struct Tape(Arc<Mutex<Option<Capture<AtomicFile>>>>);

/// The policies that are named; no capture.
pub fn policies(arguments: &arguments::Engine) -> EngineOptions {
    EngineOptions {
        congestion: arguments.congestion.clone(),
        scheduler: arguments.scheduler.clone(),
        path_manager: arguments.path_manager.clone(),
        tap: None,
    }
}

/// What the options say, and the capture, which is to be finished at the end.
pub fn options(arguments: &arguments::Engine) -> Result<(EngineOptions, Tape), Failure> {
    let capture = match &arguments.pcap {
        None => None,
        Some(path) => {
            let file = AtomicFile::create(path)?;
            Some(Capture::new(file, &["engine"])?)
        }
    };
    let is_wanted = capture.is_some();
    let capture = Arc::new(Mutex::new(capture));
    let tap = is_wanted.then(|| tap(Arc::clone(&capture)));
    Ok((EngineOptions { tap, ..policies(arguments) }, Tape(capture)))
}

fn tap(capture: Arc<Mutex<Option<Capture<AtomicFile>>>>) -> Tap {
    Tap::new(move |at, way, packet| {
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = capture.as_mut().map(|capture| capture.record(0, at, direction, packet));
        if let Some(Err(error)) = recorded {
            *capture = None;
            // Nobody may be there to hear it.
            let _ = console::complain(&format!("the capture is given up and removed, all else goes on: {error}\n"));
        }
        Ok(())
    })
}

impl Tape {
    /// Gives the file its name; nobody may write to it any more.
    pub fn finish(self) -> Result<(), Failure> {
        let capture = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        capture.map_or(Ok(()), |capture| Ok(capture.finish().commit()?))
    }
}
