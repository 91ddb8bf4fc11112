//! Settings of the engine behind a device, from the options that `get`, `serve` and `join` share.

use lab::run::pcapng::Direction;
use linux::EngineOptions;
use linux::tap::{Tap, Way};

use super::tape::Tape;
use crate::arguments;
use crate::failure::Failure;

/// Returns the named policies, without a capture.
pub fn policies(arguments: &arguments::Engine) -> EngineOptions {
    EngineOptions {
        congestion: arguments.congestion.clone(),
        scheduler: arguments.scheduler.clone(),
        path_manager: arguments.path_manager.clone(),
        ..EngineOptions::default()
    }
}

/// Returns the settings and the capture; the caller must finish the capture at the end.
pub fn options(arguments: &arguments::Engine) -> Result<(EngineOptions, Tape), Failure> {
    let tape = arguments.pcap.as_deref().map(|path| Tape::start(path, &["engine"])).transpose()?;
    let tap = tape.clone().map(tap);
    Ok((EngineOptions { tap, ..policies(arguments) }, tape.unwrap_or_default()))
}

fn tap(tape: Tape) -> Tap {
    Tap::new(move |at, way, packet| {
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        tape.record(0, at, direction, packet);
        Ok(())
    })
}
