//! Writes a stream that is made while it is sent to a socket of the kernel.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

use linux::backlog::unsent_bytes;
use linux::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use simulator::Source;
use simulator::traffic::{LiveStream, Script};
use socket2::Socket;
use units::Instant;

/// Maximum octets written to or read from the kernel at once.
const PIECE_BYTES: u64 = 1 << 16;

/// Writes the stream of `script`, as octets of `data`, until the peer ends its stream. Counts in `written_bytes`.
///
/// # Errors
/// If the connection fails.
pub fn follow(socket: &Socket, script: Script, data: &Source, written_bytes: &AtomicU64) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let clock = Clock::start();
    let mut following = Following { socket, stream: LiveStream::new(script, clock.now()), received: 0, written: 0 };
    while following.receive()? {
        let due = following.make(clock.now());
        following.write(due, data, written_bytes)?;
        following.wait(due, &clock)?;
    }
    Ok(())
}

struct Following<'a> {
    socket: &'a Socket,
    stream: LiveStream,
    received: u64,
    written: u64,
}

impl Following<'_> {
    /// Counts received octets; false after the last.
    fn receive(&mut self) -> io::Result<bool> {
        let (mut socket, mut octets) = (self.socket, [0; PIECE_BYTES as usize]);
        loop {
            match socket.read(&mut octets) {
                Ok(0) => return Ok(false),
                Ok(len) => self.received += len as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn make(&mut self, now: Instant) -> u64 {
        let waiting = self.stream.due_bytes() - self.written;
        // If the socket does not answer, it has failed, and the next write reports that.
        self.stream.make(self.received, || waiting + unsent_bytes(self.socket).unwrap_or(0), now)
    }

    fn write(&mut self, due: u64, data: &Source, written_bytes: &AtomicU64) -> io::Result<()> {
        let mut socket = self.socket;
        while self.written < due {
            let len = (due - self.written).min(PIECE_BYTES) as u32;
            match socket.write(&data.slice(self.written, len).to_bytes()) {
                Ok(len) => {
                    self.written += len as u64;
                    written_bytes.fetch_add(len as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until there is something to read or to make, or, if data wait, until the socket is writable.
    fn wait(&self, due: u64, clock: &Clock) -> io::Result<()> {
        let events = if self.written < due { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let timeout = self.stream.next_at().map(|at| {
            let nanos = at.saturating_since(clock.now()).as_nanos();
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
        });
        match poll(&mut [PollFd::from_borrowed_fd(self.socket.as_fd(), events)], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
