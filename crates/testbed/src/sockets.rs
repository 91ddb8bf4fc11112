//! Sockets of a run's threads: they end with the run, and with them the threads.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::Socket;

use crate::kernel_view::lock;

/// The sockets, or `None` once they have ended: a thread may only then get to its first socket.
#[derive(Debug)]
pub struct Sockets(Mutex<Option<Vec<Socket>>>);

impl Default for Sockets {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Sockets {
    /// Adds a socket, before the thread waits for it.
    ///
    /// # Errors
    /// If the sockets have ended, and this one with them; if the process has no file descriptors left.
    pub fn add(&self, socket: &Socket) -> io::Result<()> {
        match &mut *lock(&self.0) {
            Some(sockets) => sockets.push(socket.try_clone()?),
            None => {
                end(socket);
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    /// Connects a socket, and adds it before waiting for the peer. Were it added earlier, it could begin to connect
    /// after the end, and wait for minutes.
    ///
    /// # Errors
    /// Those of [`Self::add`], and if there is no connection.
    pub fn connect(&self, socket: &Socket, to: SocketAddr) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => return Err(error),
            _ => self.add(socket)?,
        }
        while poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)], None) == Err(Errno::INTR) {}
        socket.set_nonblocking(false)?;
        socket.take_error()?.map_or(Ok(()), Err)
    }

    /// Ends all sockets, also those that are added later. Threads that wait for them wake up.
    pub fn end(&self) {
        let sockets = lock(&self.0).take();
        sockets.iter().flatten().for_each(end);
    }
}

/// Aborts a connection, or stops listening. A socket that has ended is unaffected.
fn end(socket: &Socket) {
    let _ = socket.set_linger(Some(Duration::ZERO));
    let _ = socket.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use socket2::{Domain, Protocol, Type};

    use super::*;

    /// More than any of these threads needs, and less than a connection without an answer.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Returns the protocols that this kernel has.
    fn protocols() -> impl Iterator<Item = Protocol> {
        let is_there = |protocol: &Protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(*protocol)).is_ok();
        [Protocol::TCP, Protocol::MPTCP].into_iter().filter(is_there)
    }

    fn socket(protocol: Protocol) -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap()
    }

    fn listener(protocol: Protocol) -> (Socket, SocketAddr) {
        let listener = socket(protocol);
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        (listener, address)
    }

    /// Returns whether `work` on another thread fails once the sockets have ended: before it begins, or while it waits.
    fn failed(
        sockets: &Arc<Sockets>,
        is_late: bool,
        work: impl FnOnce(&Sockets) -> io::Result<()> + Send + 'static,
    ) -> bool {
        let (result, results) = channel();
        let shared = Arc::clone(sockets);
        if is_late {
            sockets.end();
        }
        std::thread::spawn(move || result.send(work(&shared)));
        if !is_late {
            assert!(results.recv_timeout(Duration::from_millis(300)).is_err(), "it waits");
            sockets.end();
        }
        results.recv_timeout(PATIENCE).expect("the thread has ended").is_err()
    }

    #[test]
    fn who_waits_for_a_client_ends_however_late_it_begins() {
        for is_late in [false, true] {
            let (listener, _) = listener(Protocol::TCP);
            assert!(failed(&Arc::default(), is_late, move |sockets| {
                sockets.add(&listener)?;
                listener.accept().map(drop)
            }));
        }
    }

    #[test]
    fn who_connects_or_reads_ends_however_late_it_begins() {
        for protocol in protocols() {
            for (is_late, is_full) in [(false, false), (true, false), (false, true), (true, true)] {
                let (listener, address) = listener(protocol);
                let sockets = Arc::new(Sockets::default());
                // A listener with a client that waits ignores others.
                let first = socket(protocol);
                if is_full {
                    sockets.connect(&first, address).unwrap();
                }
                let ended = failed(&sockets, is_late, move |sockets| {
                    let socket = socket(protocol);
                    sockets.connect(&socket, address)?;
                    (&socket).read_exact(&mut [0])
                });
                assert!(ended);
                drop(listener);
            }
        }
    }

    #[test]
    fn a_connection_that_is_refused_is_an_error() {
        for protocol in protocols() {
            let (listener, address) = listener(protocol);
            drop(listener);
            let refused = Sockets::default().connect(&socket(protocol), address).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
