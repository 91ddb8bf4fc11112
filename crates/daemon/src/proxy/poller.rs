//! Tells which of many descriptors can be read or written. It is an epoll instance, and so itself a descriptor that a
//! driver can wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Maximum number of events taken at a time, before others get their turn.
const EVENTS: usize = 256;

/// Reports changes only: the owner must remember what it does not do at once.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// What became possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There are octets to read, or the end of the stream.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The other side sends no more.
    pub read_ended: bool,
    /// Both directions are closed.
    pub gone: bool,
}

impl Poller {
    /// Creates a poller without descriptors.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS) })
    }

    /// Returns another handle of the same instance, which is readable while events wait.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.epoll.try_clone()
    }

    /// Watches a descriptor until it is closed. Its events carry `token`.
    ///
    /// # Errors
    /// If the kernel watches no more descriptors.
    pub fn add(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), flags)?)
    }

    /// Appends the waiting events to `taken`, with their tokens.
    ///
    /// # Errors
    /// Only if this instance is broken.
    pub fn take(&mut self, taken: &mut Vec<(u64, Readiness)>) -> io::Result<()> {
        self.events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        taken.extend(self.events.iter().map(|event| {
            // The structure is packed, so its fields must be copied first.
            let (flags, data) = (event.flags, event.data);
            let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            let read_ended = gone || flags.contains(EventFlags::RDHUP);
            let readable = read_ended || flags.contains(EventFlags::IN);
            (data.u64(), Readiness { readable, writable: gone || flags.contains(EventFlags::OUT), read_ended, gone })
        }));
        Ok(())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn changes_are_told_once() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&near, 7).unwrap();
        let mut take = || {
            let mut taken = Vec::new();
            poller.take(&mut taken).unwrap();
            taken
        };
        assert_eq!(take(), [(7, Readiness { writable: true, ..Readiness::default() })]);
        assert_eq!(take(), []);
        far.write_all(b"x").unwrap();
        assert!(take()[0].1.readable);
        assert_eq!(take(), [], "unread octets are no news");
        drop(far);
        assert!(take()[0].1.gone);
    }
}
