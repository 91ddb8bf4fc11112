//! A capture written by a running program.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use lab::run::pcapng::{Capture, Direction};
use units::{Duration, Instant};

use crate::console;
use crate::failure::Failure;
use crate::real_path::real_path;

/// Maximum time until captured packets are in the file while packets arrive: a capture can be read while it grows, and
/// survives a crash.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// A capture that grows while the program runs. A full disk ends only the capture. By default nothing is captured.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Option<Recorder>>>);

struct Recorder {
    file: File,
    path: PathBuf,
    /// The file did not exist before.
    is_new: bool,
    devices: Vec<String>,
    /// Starts with the first packet. Until then an existing file remains, for example if the user lacks rights for the
    /// actual work.
    capture: Option<Capture<BufWriter<File>>>,
    /// Offset from the program's time to the time of captures, which all hosts share.
    epoch: Duration,
    flushed_at: Instant,
}

impl Recorder {
    fn open(path: PathBuf, devices: Vec<String>) -> Result<Self, Failure> {
        atomic_file::check_place(&path)?;
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|source| atomic_file::Error { path: path.clone(), source })?;
        let (epoch, flushed_at) = (Duration::ZERO, Instant::ZERO);
        Ok(Self { file, path, is_new, devices, capture: None, epoch, flushed_at })
    }

    fn record(&mut self, device: usize, at: Instant, direction: Direction, packet: &[u8]) -> io::Result<()> {
        if self.capture.is_none() {
            self.file.set_len(0)?;
            self.capture = Some(Capture::new(BufWriter::new(self.file.try_clone()?), &self.devices)?);
            self.epoch = since_1970().saturating_sub(at.saturating_since(Instant::ZERO));
        }
        let Some(capture) = &mut self.capture else { return Ok(()) };
        capture.record(device, at + self.epoch, direction, packet)?;
        if at.saturating_since(self.flushed_at) >= FLUSH_EVERY {
            self.flushed_at = at;
            capture.writer_mut().flush()?;
        }
        Ok(())
    }

    fn cannot(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_new && self.capture.is_none() {
            // Nothing was captured, so leave no file behind.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Tape {
    /// Records the packets of `devices`, numbered in this order.
    pub fn start<D: AsRef<str>>(path: &Path, devices: &[D]) -> Result<Self, Failure> {
        let devices = devices.iter().map(|device| device.as_ref().to_owned()).collect();
        let recorder = Recorder::open(real_path(path), devices)?;
        Ok(Self(Arc::new(Mutex::new(Some(recorder)))))
    }

    /// Records a packet of the device with this number.
    pub fn record(&self, device: usize, at: Instant, direction: Direction, packet: &[u8]) {
        let mut tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorder) = tape.as_mut() else { return };
        if let Err(error) = recorder.record(device, at, direction, packet) {
            let why = recorder.cannot(&error);
            *tape = None;
            // Standard error may be closed.
            let _ = console::complain(&format!("the capture ends here, everything else continues: {why}\n"));
        }
    }

    /// Writes the rest; later packets are not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        let recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut recorder) = recorder else { return Ok(()) };
        let flushed = recorder.capture.as_mut().map_or(Ok(()), |capture| capture.writer_mut().flush());
        flushed.map_err(|error| Failure::Failed(recorder.cannot(&error)))
    }
}

/// Returns the time of day, as captures contain it.
#[expect(
    clippy::disallowed_methods,
    reason = "packets passed in real time, and are held beside those of other captures"
)]
fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

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
        let seen = times();
        assert!(seen.len() >= 3, "{}", seen.len());
        assert!(since_1970().as_nanos().abs_diff(seen[0]) < 60_000_000_000);
        tape.clone().finish().unwrap();
        let seen = times();
        let after: Vec<u64> = seen.iter().map(|time| (time - seen[0]) / 1_000_000).collect();
        assert_eq!(after, [0, 50, 150, 160]);
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
