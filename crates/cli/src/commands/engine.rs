//! How the engine works behind a device, by the options that `get`, `serve` and `join` share.

use std::sync::{Arc, Mutex, PoisonError};

use atomic_file::AtomicFile;
use lab::run::pcapng::{Capture, Direction};
use linux::EngineOptions;
use linux::tap::{Tap, Way};

use crate::arguments;
use crate::failure::Failure;

/// A capture that is whole once it is finished, and absent if the program was killed before.
pub struct Tape(Option<Arc<Mutex<Capture<AtomicFile>>>>);

/// What the options say, and the capture, which is to be finished at the end.
pub fn options(arguments: &arguments::Engine) -> Result<(EngineOptions, Tape), Failure> {
    let capture = match &arguments.pcap {
        None => None,
        Some(path) => {
            let file = AtomicFile::create_with_folders(path)?;
            Some(Arc::new(Mutex::new(Capture::new(file, &["engine"])?)))
        }
    };
    let options = EngineOptions {
        congestion: arguments.congestion.clone(),
        scheduler: arguments.scheduler.clone(),
        path_manager: arguments.path_manager.clone(),
        tap: capture.clone().map(tap),
    };
    Ok((options, Tape(capture)))
}

fn tap(capture: Arc<Mutex<Capture<AtomicFile>>>) -> Tap {
    Tap::new(move |at, way, packet| {
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        capture.lock().unwrap_or_else(PoisonError::into_inner).record(0, at, direction, packet)
    })
}

impl Tape {
    /// Gives the file its name; nobody may write to it any more.
    pub fn finish(self) -> Result<(), Failure> {
        let Self(Some(capture)) = self else { return Ok(()) };
        let still_used = || Failure::Failed("the capture is still being written".into());
        let capture = Arc::into_inner(capture).ok_or_else(still_used)?;
        Ok(capture.into_inner().unwrap_or_else(PoisonError::into_inner).finish().commit()?)
    }
}
