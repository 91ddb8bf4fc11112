//! Captures what both hosts send and receive: one file per host, one interface per relay.

use core::cell::RefCell;
use core::net::IpAddr;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use atomic_file::AtomicFile;
use simulator::{Direction, HostId, Interface, Tap};
use units::Instant;
use wire::Segment;

use crate::run::pcapng::{self, Capture};
use crate::scenario::Scenario;

/// The captures of one run, until they are committed.
pub(super) struct Captures {
    /// By host, in the order in which they were attached.
    hosts: Vec<(PathBuf, Rc<RefCell<HostCapture>>)>,
}

struct HostCapture {
    capture: Capture<AtomicFile>,
    octets: Vec<u8>,
    /// The first error; a tap cannot stop a run.
    error: Option<io::Error>,
}

impl Captures {
    /// Starts `source.pcapng` and `destination.pcapng` in `directory`; comments in them state changes to the scenario.
    pub fn create(directory: &Path, scenario: &Scenario) -> io::Result<Self> {
        let names: Vec<&str> = scenario.relays.iter().map(|relay| relay.name.as_str()).collect();
        let comments = comments(scenario);
        let mut hosts = Vec::new();
        for host in ["source", "destination"] {
            let path = directory.join(format!("{host}.pcapng"));
            let capture = Capture::with_comments(AtomicFile::create_with_folders(&path)?, &names, &comments)?;
            hosts.push((path, Rc::new(RefCell::new(HostCapture { capture, octets: Vec::new(), error: None }))));
        }
        Ok(Self { hosts })
    }

    /// The tap that writes to the files. `paths` are the destination's addresses in the relays' order.
    pub fn tap(&self, paths: &[IpAddr]) -> Box<dyn Tap> {
        let hosts = self.hosts.iter().map(|(_, capture)| Rc::clone(capture)).collect();
        Box::new(CaptureTap { hosts, paths: paths.to_vec() })
    }

    /// Moves the files to their places. Returns their paths, or why a file is missing. The tap must be gone.
    pub fn commit(self) -> Vec<Result<PathBuf, String>> {
        self.hosts.into_iter().map(|(path, capture)| commit(path, capture)).collect()
    }
}

/// What the files say about changes to the scenario.
pub(super) fn comments(scenario: &Scenario) -> Vec<String> {
    let variant = scenario.variant.iter().map(|name| format!("variant {name}"));
    variant.chain(scenario.overrides.iter().map(|change| format!("--set {change}"))).collect()
}

fn commit(path: PathBuf, capture: Rc<RefCell<HostCapture>>) -> Result<PathBuf, String> {
    let host = Rc::try_unwrap(capture).map_err(|_| "a capture is still being written")?.into_inner();
    if let Some(error) = host.error {
        let path = path.display();
        return Err(format!(
            "cannot write {path}: {error}; this capture is discarded, but the run is complete\n  \
             help: choose a folder on a disk with enough space"
        ));
    }
    host.capture.finish().commit().map_err(|error| error.to_string())?;
    Ok(path)
}

struct CaptureTap {
    hosts: Vec<Rc<RefCell<HostCapture>>>,
    paths: Vec<IpAddr>,
}

impl Tap for CaptureTap {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        let HostId(number) = interface.host;
        let Some(host) = self.hosts.get(number as usize) else { return };
        let on_path = |address: &IpAddr| *address == segment.src.ip() || *address == segment.dst.ip();
        let Some(path) = self.paths.iter().position(on_path) else { return };
        let way = match direction {
            Direction::Sent => pcapng::Direction::Outbound,
            Direction::Received => pcapng::Direction::Inbound,
        };
        let HostCapture { capture, octets, error } = &mut *host.borrow_mut();
        if error.is_none() {
            octets.clear();
            segment.emit(octets);
            *error = capture.record(path, at, way, octets).err();
        }
    }
}
