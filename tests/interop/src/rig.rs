//! An emulated network that runs beside a test.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lab::run::pcapng::{Capture, Direction};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};
use testbed::emulator::{Emulation, Passage, Switch, Tap, Topology};

use crate::available;
use crate::priority::go_first;

/// Tests measure time, so they run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for a turn, for a test without a rig that shares something with tests that have one.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running emulation; it ends on drop.
pub struct Rig {
    hosts: Vec<Arc<Namespace>>,
    switches: Vec<Switch>,
    stop: StopHandle,
    running: Option<JoinHandle<String>>,
    /// A twin uses the turn of its sibling.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Rig {
    /// Creates two hosts `a` and `b`, with a link for each element of `links`, which holds its fields in TOML. `None`
    /// if the tests cannot run here.
    ///
    /// # Panics
    /// If the topology is invalid, or the machine does not do what [`available`] promised.
    pub fn new(links: &[&str]) -> Option<Self> {
        let capture = std::env::var_os("INTEROP_PCAP").map(PathBuf::from);
        Self::start(&two_hosts(links), capture.as_deref())
    }

    /// Does the same as [`Self::new`], and writes a capture of every packet at every end of a link to `capture`.
    ///
    /// # Panics
    /// Those of [`Self::new`]; also if the capture cannot be written.
    pub fn captured(links: &[&str], capture: &Path) -> Option<Self> {
        Self::start(&two_hosts(links), Some(capture))
    }

    /// Creates the network of a topology file.
    ///
    /// # Panics
    /// Those of [`Self::new`].
    pub fn with_topology(text: &str) -> Option<Self> {
        let capture = std::env::var_os("INTEROP_PCAP").map(PathBuf::from);
        Self::start(text, capture.as_deref())
    }

    /// Creates the network of a topology file twice, for simultaneous use: both draw the same random values, and share
    /// the machine equally.
    ///
    /// # Panics
    /// Those of [`Self::new`].
    pub fn twins(text: &str) -> Option<[Self; 2]> {
        let first = Self::with_topology(text)?;
        Some([first, Self::build(text, None, None)])
    }

    /// Creates the network of a topology file, captured as in [`Self::captured`].
    ///
    /// # Panics
    /// Those of [`Self::captured`].
    pub fn captured_topology(text: &str, capture: &Path) -> Option<Self> {
        Self::start(text, Some(capture))
    }

    /// Starts the emulation. `INTEROP_PCAP` names a capture for investigating a failure.
    fn start(text: &str, capture: Option<&Path>) -> Option<Self> {
        if !available() {
            return None;
        }
        let turn = one_at_a_time();
        Some(Self::build(text, capture, Some(turn)))
    }

    fn build(text: &str, capture: Option<&Path>, turn: Option<MutexGuard<'static, ()>>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let topology = Topology::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let prefix = format!("t{}-{number}-", std::process::id());
        let mut emulation = Emulation::start(&topology, &prefix).unwrap_or_else(|error| panic!("{error}"));
        let hosts = (0..topology.hosts.len()).map(|index| emulation.host(index)).collect();
        let switches = (0..topology.links.len()).map(|index| emulation.switch(index)).collect();
        if let Some(path) = capture {
            emulation.set_tap(capture_tap(path, &emulation.devices()));
        }
        let stop = Stop::new().expect("a socket pair");
        let handle = stop.handle().expect("a socket");
        let running = std::thread::spawn(move || {
            go_first();
            emulation.run(&stop).unwrap_or_else(|error| panic!("{error}"));
            emulation.counters()
        });
        Self { hosts, switches, stop: handle, running: Some(running), _turn: turn }
    }

    /// Returns the namespace of a host.
    pub fn host(&self, index: usize) -> &Namespace {
        &self.hosts[index]
    }

    /// Cuts or restores a link.
    pub fn set_link(&self, link: usize, on: bool) {
        self.switches[link].set(on);
    }

    /// Ends the emulation and returns its counters as text.
    ///
    /// # Panics
    /// If the emulation had failed.
    pub fn finish(mut self) -> String {
        self.stop.stop();
        self.running.take().expect("runs until finished").join().expect("the emulation did not fail")
    }
}

/// Returns a topology of two hosts and `links` between them.
fn two_hosts(links: &[&str]) -> String {
    let hosts = ["a", "b"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
    let links: String = links.iter().map(|fields| format!("[[link]]\nbetween = ['a', 'b']\n{fields}\n")).collect();
    hosts + &links
}

/// Writes a capture of every packet to `path`.
fn capture_tap(path: &Path, devices: &[String]) -> Tap {
    let file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut capture = Capture::new(BufWriter::new(file), devices).expect("a capture can be written");
    Box::new(move |device, at, passage, octets| {
        let direction = match passage {
            Passage::Outbound => Direction::Outbound,
            Passage::Inbound => Direction::Inbound,
        };
        capture.record(device, at, direction, octets)
    })
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(running) = self.running.take() {
            let counters = running.join();
            if std::thread::panicking() {
                eprintln!("{}", counters.unwrap_or_else(|_| "the emulation failed too".into()));
            }
        }
    }
}
