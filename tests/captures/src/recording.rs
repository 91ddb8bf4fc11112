//! Captures of simulated connections whose statistics are known.

use core::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lab::run::pcapng::{self, Capture};
use simulator::{CLIENT, Direction, EndpointHost, Interface, Simulation, Tap};
use transport::ConnectionStats;
use units::Instant;
use wire::Segment;

/// A capture, and the client engine's statistics of the same connections.
#[derive(Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The client's connections, in order.
    pub connections: Vec<ConnectionStats>,
}

struct Tape {
    capture: Rc<RefCell<Option<Capture<BufWriter<File>>>>>,
    octets: Vec<u8>,
}

impl Tap for Tape {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        if interface.host != CLIENT {
            return;
        }
        let way = match direction {
            Direction::Sent => pcapng::Direction::Outbound,
            Direction::Received => pcapng::Direction::Inbound,
        };
        self.octets.clear();
        segment.emit(&mut self.octets);
        if let Some(capture) = self.capture.borrow_mut().as_mut() {
            capture.record(0, at, way, &self.octets).expect("the disk takes a small file");
        }
    }
}

/// Runs `simulation` until `end`, and writes a capture of its client's packets to `directory`.
///
/// # Panics
/// If the file cannot be written, or the run has faults.
pub fn record(mut simulation: Simulation<EndpointHost>, end: Instant, directory: &Path) -> Recording {
    let path = directory.join("client.pcapng");
    let file = BufWriter::new(File::create(&path).expect("a temporary directory takes files"));
    let capture = Capture::new(file, &["client"]).expect("the disk takes a small file");
    let capture = Rc::new(RefCell::new(Some(capture)));
    simulation.add_tap(Box::new(Tape { capture: Rc::clone(&capture), octets: Vec::new() }));
    simulation.run_until(end);
    assert_eq!(simulation.faults(), [""; 0]);
    let endpoint = &simulation.host(CLIENT).endpoint;
    let connections = endpoint.connections().filter_map(|connection| endpoint.stats(connection)).collect();
    let writer = capture.borrow_mut().take().map(Capture::finish).expect("nobody else takes it");
    writer.into_inner().map_err(|error| error.into_error()).expect("the disk takes a small file");
    Recording { path, connections }
}
