//! Writes to pipes and devices, which may be slower than the network, without keeping the engine waiting.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::{Error, Result};

/// Called by the writing thread when octets have been written.
pub type Wake = Box<dyn Fn() + Send>;

/// Maximum of octets that wait to be written. Beyond this no more are taken from the engine, so its peer stops in turn.
const WAITING_BYTES_MAX: u64 = 1 << 20;

const STDOUT: &str = "the standard output";

/// A thread that writes.
pub struct Stream {
    /// Name of the pipe or device, for the user.
    place: String,
    pieces: Sender<Vec<u8>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    waiting_bytes: u64,
    written_bytes: u64,
    failure: Option<io::Error>,
}

impl Stream {
    pub fn to_stdout(wake: Wake) -> Result<Self> {
        let fd = io::stdout().as_fd().try_clone_to_owned().map_err(Error::system("write to standard output"))?;
        Ok(Self::new(STDOUT, fd.into(), wake))
    }

    pub fn to_path(path: &Path, wake: Wake) -> Result<Self> {
        let file = File::options().write(true).open(path).map_err(Error::output(path))?;
        Ok(Self::new(&path.display().to_string(), file, wake))
    }

    fn new(place: &str, file: File, wake: Wake) -> Self {
        let (pieces, to_write) = channel();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        // The thread is never joined: the reader of a pipe may never read again.
        thread::spawn(move || work(file, &to_write, &shared, &wake));
        Self { place: place.into(), pieces, state }
    }

    /// Returns the name of the pipe or device, for the user.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes octets, or returns the error of writing earlier ones.
    pub fn write(&self, octets: &[u8]) -> io::Result<()> {
        self.with(|state| {
            state.waiting_bytes += octets.len() as u64;
            state.failure.take().map_or(Ok(()), Err)
        })?;
        self.pieces.send(octets.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the number of octets written.
    pub fn written_bytes(&self) -> u64 {
        self.with(|state| state.written_bytes)
    }

    /// Returns whether the stream takes octets; after a failure it does, and reports the failure then.
    pub fn has_room(&self) -> bool {
        self.with(|state| state.waiting_bytes < WAITING_BYTES_MAX || state.failure.is_some())
    }

    /// Returns whether everything is written, or never will be.
    pub fn is_drained(&self) -> bool {
        self.with(|state| state.waiting_bytes == 0 || state.failure.is_some())
    }

    /// Returns the result of writing.
    pub fn outcome(&self) -> io::Result<()> {
        self.with(|state| state.failure.take().map_or(Ok(()), Err))
    }
}

fn work(mut file: File, to_write: &Receiver<Vec<u8>>, state: &Mutex<State>, wake: &Wake) {
    for octets in to_write {
        let (written, failure) = write_all(&mut file, &octets);
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting_bytes -= octets.len() as u64;
        state.written_bytes += written as u64;
        let failed = failure.is_some();
        state.failure = failure;
        drop(state);
        wake();
        if failed {
            return;
        }
    }
}

/// Writes as much as possible; returns the octets written, and the error that stopped it.
fn write_all(file: &mut File, octets: &[u8]) -> (usize, Option<io::Error>) {
    let mut written = 0;
    while written < octets.len() {
        match file.write(&octets[written..]) {
            Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
            Ok(len) => written += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Its other end, or who uses it beside this program, has set it so (`O_NONBLOCK`).
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match wait_for_room(file) {
                Ok(()) => {}
                Err(error) => return (written, Some(error)),
            },
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

/// Waits until a pipe or socket takes octets, or will never take any again.
fn wait_for_room(file: &File) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Returns a stream to the other end of a socket that blocks or does not, and the receiver of its wakes.
    fn stream(blocks: bool) -> (Stream, UnixStream, Receiver<()>) {
        let (reader, writer) = UnixStream::pair().unwrap();
        writer.set_nonblocking(!blocks).unwrap();
        let (woken, wakes) = channel();
        let wake = Box::new(move || {
            let _ = woken.send(());
        });
        (Stream::new("a socket", OwnedFd::from(writer).into(), wake), reader, wakes)
    }

    #[test]
    fn a_slow_reader_is_waited_for_and_gets_everything() {
        [true, false].into_iter().for_each(expect_a_slow_reader_to_get_everything);
    }

    fn expect_a_slow_reader_to_get_everything(blocks: bool) {
        let (stream, reader, wakes) = stream(blocks);
        let mut written = Vec::new();
        // More than the socket takes and the stream holds, before anyone reads.
        while stream.has_room() {
            let piece = [written.len() as u8; 100_000];
            stream.write(&piece).unwrap();
            written.extend_from_slice(&piece);
        }
        assert!(written.len() as u64 >= WAITING_BYTES_MAX && !stream.is_drained());
        let mut reader = reader.take(written.len() as u64);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        while !stream.is_drained() {
            wakes.recv().unwrap();
        }
        assert!(read == written && stream.has_room() && stream.outcome().is_ok());
    }

    #[test]
    fn a_reader_that_goes_while_it_is_waited_for_is_a_failure() {
        for blocks in [true, false] {
            let (stream, reader, wakes) = stream(blocks);
            while stream.has_room() {
                stream.write(&[7; 100_000]).unwrap();
            }
            drop(reader);
            while !stream.is_drained() {
                wakes.recv().unwrap();
            }
            assert_eq!(stream.outcome().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_a_failure_and_no_wait() {
        let (stream, reader, wakes) = stream(true);
        drop(reader);
        stream.write(b"x").unwrap();
        wakes.recv().unwrap();
        assert!(stream.has_room() && stream.is_drained());
        assert_eq!(stream.outcome().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
