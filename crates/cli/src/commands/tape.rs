//! A capture that a running program writes.

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

/// What was captured is in the file after so long at most, if packets go on: a capture is read while it grows, and is there after a crash.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// A capture that grows while the program runs. A disk that is full ends the capture, and nothing else. By default nothing is captured.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Option<Recorder>>>);

struct Recorder {
    capture: Capture<BufWriter<File>>,
    path: PathBuf,
    /// From the program's time to that of other captures, of this host and of others.
    epoch: Option<Duration>,
    flushed_at: Instant,
}

impl Recorder {
    fn record(&mut self, device: usize, at: Instant, direction: Direction, packet: &[u8]) -> io::Result<()> {
        let epoch = *self.epoch.get_or_insert_with(|| since_1970().saturating_sub(at.saturating_since(Instant::ZERO)));
        self.capture.record(device, at + epoch, direction, packet)?;
        if at.saturating_since(self.flushed_at) >= FLUSH_EVERY {
            self.flushed_at = at;
            self.capture.writer_mut().flush()?;
        }
        Ok(())
    }

    fn cannot(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

impl Tape {
    /// Records what passes `devices`, in this order.
    pub fn start<D: AsRef<str>>(path: &Path, devices: &[D]) -> Result<Self, Failure> {
        let path = real_path(path);
        let mut capture = Capture::new(BufWriter::new(atomic_file::create_growing(&path)?), devices)?;
        capture.writer_mut().flush()?;
        let recorder = Recorder { capture, path, epoch: None, flushed_at: Instant::ZERO };
        Ok(Self(Arc::new(Mutex::new(Some(recorder)))))
    }

    /// Notes a packet of the device with this number.
    pub fn record(&self, device: usize, at: Instant, direction: Direction, packet: &[u8]) {
        let mut tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorder) = tape.as_mut() else { return };
        if let Err(error) = recorder.record(device, at, direction, packet) {
            let why = recorder.cannot(&error);
            *tape = None;
            // Nobody may be there to hear it.
            let _ = console::complain(&format!("the capture ends here, all else goes on: {why}\n"));
        }
    }

    /// Writes what is left; what comes later is not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        let recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut recorder) = recorder else { return Ok(()) };
        let flushed = recorder.capture.writer_mut().flush();
        flushed.map_err(|error| Failure::Failed(recorder.cannot(&error)))
    }
}

/// Time of day, as captures have it.
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
    fn a_folder_or_a_device_is_no_place_for_a_capture() {
        let folder = tempfile::tempdir().unwrap();
        for place in [folder.path(), Path::new("/dev/null")] {
            assert!(Tape::start(place, &["engine"]).is_err(), "{}", place.display());
        }
    }
}
