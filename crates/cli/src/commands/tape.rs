//! A capture written by a running program.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use lab::run::pcapng::{Capture, Direction};
use units::{Duration, Instant};

use super::growing::{Format, Growing};
use crate::failure::Failure;

/// A capture that grows while the program runs.
#[derive(Clone, Default)]
pub struct Tape(Growing<Capture<BufWriter<File>>>);

impl Format for Capture<BufWriter<File>> {
    const NAME: &str = "capture";
    /// Names of the devices.
    type Header = Vec<String>;

    fn begin(file: BufWriter<File>, devices: &Vec<String>, _: Duration) -> io::Result<Self> {
        Self::new(file, devices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer_mut().flush()
    }
}

impl Tape {
    /// Records the packets of `devices`, numbered in this order.
    pub fn start<D: AsRef<str>>(path: &Path, devices: &[D]) -> Result<Self, Failure> {
        let devices = devices.iter().map(|device| device.as_ref().to_owned()).collect();
        Growing::start(path, devices).map(Self)
    }

    /// Records a packet of the device with this number.
    pub fn record(&self, device: usize, at: Instant, direction: Direction, packet: &[u8]) {
        self.0.record(at, |capture, at| capture.record(device, at, direction, packet));
    }

    /// Writes the rest; later packets are not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use crate::commands::growing::since_1970;

    #[test]
    fn a_capture_can_be_read_while_it_grows_and_has_the_time_of_day() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("growing.pcapng");
        let tape = Tape::start(&path, &["engine"]).unwrap();
        let at = Instant::from_millis;
        for millis in [5000, 5050, 5150, 5160] {
            tape.record(0, at(millis), Direction::Inbound, &[0x45; 40]);
        }
        let times = || {
            let octets = std::fs::read(&path).unwrap();
            let mut reader = PcapNgReader::new(octets.as_slice()).unwrap();
            let mut times = Vec::new();
            while let Some(Ok(block)) = reader.next_block() {
                if let Block::EnhancedPacket(packet) = block {
                    times.push(packet.timestamp.as_nanos() as u64);
                }
            }
            times
        };
        let in_file = (0..500).find_map(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            Some(times()).filter(|times| times.len() == 4)
        });
        let seen = in_file.expect("within 10 s");
        assert!(since_1970().as_nanos().abs_diff(seen[0]) < 60_000_000_000);
        let after: Vec<u64> = seen.iter().map(|time| (time - seen[0]) / 1_000_000).collect();
        assert_eq!(after, [0, 50, 150, 160]);
        tape.clone().finish().unwrap();
        tape.record(0, at(6000), Direction::Inbound, &[0x45; 40]);
        assert_eq!(times().len(), 4, "it is finished");
    }

    #[test]
    fn what_captures_nothing_leaves_all_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        std::fs::write(&old, b"of yesterday").unwrap();
        for path in [&old, &new] {
            Tape::start(path, &["engine"]).unwrap().finish().unwrap();
            drop(Tape::start(path, &["engine"]).unwrap());
        }
        assert_eq!(std::fs::read(&old).unwrap(), b"of yesterday");
        assert!(!new.exists());
    }

    #[test]
    fn a_folder_or_a_device_is_no_place_for_a_capture() {
        let folder = tempfile::tempdir().unwrap();
        for place in [folder.path(), Path::new("/dev/null")] {
            assert!(Tape::start(place, &["engine"]).is_err(), "{}", place.display());
        }
    }
}
