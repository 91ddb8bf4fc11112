//! Output of a daemon, written by its own thread: the daemon never waits for a reader that pauses, such as a pager.

use std::io::{self, Write};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Maximum number of texts that wait for the reader; further ones are lost.
const WAITING_MAX: usize = 1000;
/// How long the program waits for the reader at its end.
const PATIENCE: Duration = Duration::from_millis(500);

/// Accepts text at any time, without blocking.
#[derive(Clone)]
pub struct Outlet(SyncSender<Piece>);

enum Piece {
    Text(Vec<u8>),
    /// Asks for a notice when everything before it is written.
    Mark(Sender<()>),
}

/// Dropping it waits until earlier text is written, unless the reader takes too long.
pub struct Drained(Outlet);

impl Outlet {
    /// Creates an outlet that writes to `out`.
    pub fn to(mut out: impl Write + Send + 'static) -> Self {
        let (queue, pieces) = sync_channel(WAITING_MAX);
        thread::spawn(move || {
            // The thread needs no rights over this host's network. If the kernel does not let it give them up, the
            // daemon, which does the same, reports it.
            let _ = daemon::join::rights::give_up_for_good();
            for piece in pieces {
                match piece {
                    // A closed output must not end a service.
                    Piece::Text(text) => drop(out.write_all(&text).and_then(|()| out.flush())),
                    Piece::Mark(written) => drop(written.send(())),
                }
            }
        });
        Self(queue)
    }

    /// Returns a guard for the end of the program.
    pub fn drained(&self) -> Drained {
        Drained(self.clone())
    }
}

impl Write for Outlet {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let _ = self.0.try_send(Piece::Text(text.to_vec()));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        let (tell, written) = channel();
        if self.0.0.try_send(Piece::Mark(tell)).is_ok() {
            let _ = written.recv_timeout(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn nobody_waits_for_a_reader_who_has_stopped() {
        let (mut read, write) = UnixStream::pair().unwrap();
        let mut outlet = Outlet::to(write);
        let line = [b'x'; 1000];
        // Far more than a socket and the queue hold.
        (0..20_000).for_each(|_| outlet.write_all(&line).unwrap());
        let mut some = vec![0; 1_000_000];
        read.read_exact(&mut some).unwrap();
        assert!(some.iter().all(|octet| *octet == b'x'));
    }

    #[test]
    fn the_last_words_are_written() {
        let (mut read, write) = UnixStream::pair().unwrap();
        let mut outlet = Outlet::to(write);
        outlet.write_all(b"last").unwrap();
        drop(outlet.drained());
        drop(outlet);
        let mut said = String::new();
        read.read_to_string(&mut said).unwrap();
        assert_eq!(said, "last");
    }
}
