//! A recording that a running program writes, such as a capture: it can be read while it grows, and survives a crash.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::dispatcher;
use units::{Duration, Instant};

use crate::console;
use crate::failure::Failure;
use crate::real_path::real_path;

/// Maximum time until what was recorded is in the file, whether or not more is recorded.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// The format of a recording, once it has begun.
pub trait Format: Sized + Send + 'static {
    /// What readers of error messages call it.
    const NAME: &str;
    /// What it says of itself.
    type Header: Send + 'static;

    /// Begins a file whose times start `since_1970`.
    fn begin(file: BufWriter<File>, header: &Self::Header, since_1970: Duration) -> io::Result<Self>;

    /// Writes everything to the file.
    fn flush(&mut self) -> io::Result<()>;
}

/// A recording that grows while the program runs. A full disk ends only the recording. By default nothing is recorded.
pub struct Growing<F: Format>(Arc<Mutex<Option<Recorder<F>>>>);

impl<F: Format> Clone for Growing<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Format> Default for Growing<F> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

struct Recorder<F: Format> {
    file: File,
    path: PathBuf,
    /// The file did not exist before.
    is_new: bool,
    header: F::Header,
    /// Starts with the first record. Until then an existing file remains, for example if the user lacks rights for the
    /// actual work.
    begun: Option<F>,
    /// Offset from the program's time to that of recordings, which all hosts share.
    epoch: Duration,
    /// Whether something has been recorded that may not be in the file yet.
    is_behind: bool,
}

impl<F: Format> Recorder<F> {
    fn open(path: PathBuf, header: F::Header) -> Result<Self, Failure> {
        atomic_file::check_place(&path)?;
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(atomic_file::Error::at(&path))?;
        Ok(Self { file, path, is_new, header, begun: None, epoch: Duration::ZERO, is_behind: false })
    }

    fn record(&mut self, at: Instant, write: impl FnOnce(&mut F, Instant) -> io::Result<()>) -> io::Result<()> {
        if self.begun.is_none() {
            self.file.set_len(0)?;
            self.epoch = since_1970().saturating_sub(at.saturating_since(Instant::ZERO));
            let begun = F::begin(BufWriter::new(self.file.try_clone()?), &self.header, self.epoch)?;
            // Who reads it from now on finds a file of this format.
            self.begun.insert(begun).flush()?;
        }
        let Some(begun) = &mut self.begun else { return Ok(()) };
        self.is_behind = true;
        write(begun, at + self.epoch)
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = self.begun.as_mut().filter(|_| core::mem::take(&mut self.is_behind));
        begun.map_or(Ok(()), F::flush)
    }

    fn cannot(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

impl<F: Format> Drop for Recorder<F> {
    fn drop(&mut self) {
        if self.is_new && self.begun.is_none() {
            // Nothing was recorded, so leave no file behind.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl<F: Format> Growing<F> {
    /// Records to this file.
    pub fn start(path: &Path, header: F::Header) -> Result<Self, Failure> {
        let recorder = Recorder::open(real_path(path), header)?;
        Ok(Self(Arc::new(Mutex::new(Some(recorder)))))
    }

    /// Lets `write` add what happened `at` this time of the program; it gets the time of recordings.
    pub fn record(&self, at: Instant, write: impl FnOnce(&mut F, Instant) -> io::Result<()>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorder) = slot.as_mut() else { return };
        let begins = recorder.begun.is_none();
        let recorded = recorder.record(at, write);
        end_if_failed(&mut slot, recorded);
        if begins {
            // Not earlier: by now the program has given up the rights that it does not need, and so has the thread. Without
            // a thread the file falls behind until the end.
            let shared = Arc::downgrade(&self.0);
            let _ = thread::Builder::new().name("recording".into()).spawn(move || keep_up(&shared));
        }
    }

    /// Writes the rest; what comes later is not recorded.
    pub fn finish(self) -> Result<(), Failure> {
        let recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut recorder) = recorder else { return Ok(()) };
        recorder.flush().map_err(|error| Failure::Failed(recorder.cannot(&error)))
    }
}

/// Writes to the file what has been recorded, until the recording ends.
fn keep_up<F: Format>(shared: &Weak<Mutex<Option<Recorder<F>>>>) {
    loop {
        thread::park_timeout(FLUSH_EVERY.into());
        let Some(shared) = shared.upgrade() else { return };
        let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorder) = slot.as_mut() else { return };
        let flushed = recorder.flush();
        end_if_failed(&mut slot, flushed);
    }
}

/// Ends a recording that cannot be written, and says so.
fn end_if_failed<F: Format>(slot: &mut Option<Recorder<F>>, written: io::Result<()>) {
    let Err(error) = written else { return };
    let Some(recorder) = slot.take() else { return };
    let ended = format!("the {} ends here, everything else continues: {}", F::NAME, recorder.cannot(&error));
    // Daemons log, in the format and from the level that their users chose. Other commands have standard error alone.
    if dispatcher::has_been_set() {
        tracing::warn!("{ended}");
    } else {
        // It may be closed.
        let _ = console::complain(&format!("{ended}\n"));
    }
}

/// Checks that a recording could be made at `path`. Changes nothing.
pub fn rehearse(path: &Path) -> Result<(), Failure> {
    atomic_file::check_place(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::options().write(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => Ok(atomic_file::rehearse(folder)?),
        Err(error) => Err(atomic_file::Error::at(path)(error).into()),
    }
}

/// Returns the time of day, as recordings contain it.
#[expect(
    clippy::disallowed_methods,
    reason = "what is recorded happened in real time, and is held beside other recordings"
)]
pub fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    struct Lines(BufWriter<File>);

    impl Format for Lines {
        const NAME: &str = "list";
        type Header = ();

        fn begin(file: BufWriter<File>, (): &(), _: Duration) -> io::Result<Self> {
            Ok(Self(file))
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    /// Keeps what is logged.
    struct Logged(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Logged {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(octets);
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged from `level` on when a recording ends because the disk is full.
    fn logged_of_a_full_disk(level: tracing::level_filters::LevelFilter) -> String {
        let folder = tempfile::tempdir().unwrap();
        let logged = Arc::new(Mutex::new(Vec::new()));
        let writer = {
            let logged = logged.clone();
            move || Logged(logged.clone())
        };
        let log = tracing_subscriber::fmt().json().with_max_level(level).with_writer(writer).finish();
        tracing::subscriber::with_default(log, || {
            let recording = Growing::<Lines>::start(&folder.path().join("list"), ()).unwrap();
            recording.record(Instant::from_millis(1), |_, _| Err(io::ErrorKind::StorageFull.into()));
        });
        let logged = logged.lock().unwrap();
        String::from_utf8(logged.clone()).unwrap()
    }

    #[test]
    fn a_daemon_logs_that_a_recording_ends() {
        use tracing::level_filters::LevelFilter;
        let said = logged_of_a_full_disk(LevelFilter::INFO);
        let event: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(event["level"], "WARN");
        assert!(event["fields"]["message"].as_str().unwrap().starts_with("the list ends here"), "{said}");
        assert_eq!(logged_of_a_full_disk(LevelFilter::OFF), "");
    }

    #[test]
    fn what_was_recorded_last_is_soon_in_the_file_though_nothing_follows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let recording = Growing::<Lines>::start(&path, ()).unwrap();
        recording.record(Instant::from_millis(1), |lines, _| writeln!(lines.0, "one"));
        recording.record(Instant::from_millis(2), |lines, _| writeln!(lines.0, "two"));
        let is_there = || std::fs::read_to_string(&path).unwrap() == "one\ntwo\n";
        assert!(
            (0..500).any(|_| {
                thread::park_timeout(std::time::Duration::from_millis(20));
                is_there()
            }),
            "within 10 s"
        );
        recording.finish().unwrap();
    }
}
