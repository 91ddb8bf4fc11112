//! Settings of the engine behind a device, from the options that `get`, `serve` and `join` share, and its recordings.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use lab::run::pcapng::Direction;
use linux::EngineOptions;
use linux::tap::{Tap, Way};
use qlog::{Header, Log};
use transport::observation::{Observation, Observer, SharedObserver};
use units::Duration;

use super::growing::{self, Format, Growing};
use super::tape::Tape;
use crate::arguments;
use crate::failure::Failure;
use crate::real_path::real_path;

/// What is recorded of an engine.
#[derive(Default)]
pub struct Recordings {
    capture: Option<Tape>,
    log: Option<Growing<Log<BufWriter<File>>>>,
}

impl Recordings {
    /// Writes the rest; what comes later is not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        let captured = self.capture.map_or(Ok(()), Tape::finish);
        let logged = self.log.map_or(Ok(()), Growing::finish);
        captured.and(logged)
    }
}

/// Returns the named policies, without recordings.
pub fn policies(arguments: &arguments::Engine) -> EngineOptions {
    EngineOptions {
        congestion: arguments.congestion.clone(),
        scheduler: arguments.scheduler.clone(),
        path_manager: arguments.path_manager.clone(),
        checksum: arguments.checksum,
        ..EngineOptions::default()
    }
}

/// Returns the settings of the engine of `command`, and its recordings, which the caller must finish at the end.
pub fn options(arguments: &arguments::Engine, command: &str) -> Result<(EngineOptions, Recordings), Failure> {
    check_apart(arguments)?;
    let capture = arguments.pcap.as_deref().map(|path| Tape::start(path, &["engine"])).transpose()?;
    let log = arguments.qlog.as_deref().map(|path| start_log(path, command)).transpose()?;
    let options = EngineOptions {
        tap: capture.clone().map(tap),
        observer: log.clone().map(|log| SharedObserver::new(Logger(log))),
        ..policies(arguments)
    };
    Ok((options, Recordings { capture, log }))
}

/// Checks that recordings could be made, without making them.
pub fn rehearse(arguments: &arguments::Engine) -> Result<(), Failure> {
    check_apart(arguments)?;
    arguments.pcap.iter().chain(&arguments.qlog).try_for_each(|path| growing::rehearse(path))
}

fn check_apart(arguments: &arguments::Engine) -> Result<(), Failure> {
    let files = arguments.pcap.as_deref().zip(arguments.qlog.as_deref());
    match files.filter(|(capture, log)| real_path(capture) == real_path(log)) {
        Some((file, _)) => {
            Err(Failure::Input(format!("--pcap and --qlog are both {}: choose another file for one", file.display())))
        }
        None => Ok(()),
    }
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

fn start_log(path: &Path, command: &str) -> Result<Growing<Log<BufWriter<File>>>, Failure> {
    Growing::start(path, format!("anabranch {command}"))
}

impl Format for Log<BufWriter<File>> {
    const NAME: &str = "log of the engine";
    /// Its title.
    type Header = String;

    fn begin(file: BufWriter<File>, title: &String, since_1970: Duration) -> io::Result<Self> {
        Self::new(file, Header { host: "engine", title, comments: &[], since_1970: Some(since_1970) })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer_mut().flush()
    }
}

struct Logger(Growing<Log<BufWriter<File>>>);

impl Observer for Logger {
    fn observe(&mut self, observation: &Observation) {
        self.0.record(observation.at, |log, _| log.record(observation));
    }
}
