//! The non-blocking socket of one client.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::net::sockopt;

use super::poller::Readiness;

/// Octets that the kernel buffers in each direction between a client and the proxy; it doubles this for its own
/// purposes.
const BUFFER_BYTES: usize = 256 << 10;

/// How long a client on another host may be silent before the kernel probes it, and the time between probes.
const ASKED_AFTER: Duration = Duration::from_secs(60);
const ASKED_EVERY: Duration = Duration::from_secs(15);
/// Unanswered probes after which the client is gone.
const ASKED_MAX: u32 = 4;

/// A client's socket, with its last known readiness.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    readable: bool,
    writable: bool,
    /// The end of its stream is near, or has been read.
    read_ended: bool,
    /// The end of its stream has been read.
    finished: bool,
    /// The proxy has ended its stream to the client.
    shut: bool,
}

impl Client {
    /// Sets up a socket that was just accepted.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // The client has gathered its octets or not, as it likes, and so has the server: the proxy in between does not.
        stream.set_nodelay(true)?;
        // The kernel would keep megabytes if the client or the proxy reads slowly; on the loopback less is as fast.
        let _ = sockopt::set_socket_send_buffer_size(&stream, BUFFER_BYTES);
        let _ = sockopt::set_socket_recv_buffer_size(&stream, BUFFER_BYTES);
        if stream.peer_addr().is_ok_and(|peer| !peer.ip().to_canonical().is_loopback()) {
            ask_now_and_then(&stream)?;
        }
        // If this program ends before the stream does, however it ends, the client sees a reset, not an end of stream.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(Self { stream, readable: true, writable: true, read_ended: false, finished: false, shut: false })
    }

    /// Returns the socket, for a poller.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Takes the readiness that the kernel reports.
    ///
    /// # Errors
    /// If the client has broken off.
    pub fn note(&mut self, readiness: Readiness) -> io::Result<()> {
        self.readable |= readiness.readable;
        self.writable |= readiness.writable;
        self.read_ended |= readiness.read_ended;
        match readiness.gone {
            true => self.check_gone(),
            false => Ok(()),
        }
    }

    /// Both directions are closed: in good order if the proxy has ended its own stream.
    fn check_gone(&self) -> io::Result<()> {
        match self.stream.take_error()? {
            Some(error) => Err(error),
            None if !self.shut => Err(ErrorKind::ConnectionReset.into()),
            None => Ok(()),
        }
    }

    /// Reads available octets. `None` if there are none now, or never again ([`Self::is_finished`]).
    ///
    /// # Errors
    /// If the client has broken off.
    pub fn read<'a>(&mut self, scratch: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        if !self.readable || self.finished {
            return Ok(None);
        }
        match self.stream.read(scratch) {
            Ok(0) => {
                self.finished = true;
                Ok(None)
            }
            Ok(len) => {
                // A short read means that nothing is left. The end of the stream must still be read.
                self.readable = len == scratch.len() || self.read_ended;
                Ok(Some(&scratch[..len]))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the end of the client's stream has arrived; octets before it may be unread.
    pub fn sends_no_more(&self) -> bool {
        self.read_ended || self.finished
    }

    /// Whether the client has ended its stream.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether it has not read yet what the kernel holds for it.
    pub fn is_behind(&self) -> bool {
        !self.writable
    }

    /// Writes as many octets as the kernel takes.
    ///
    /// # Errors
    /// If the client has broken off.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if !self.writable {
            return Ok(0);
        }
        match self.stream.write(octets) {
            Ok(len) => {
                self.writable = len == octets.len();
                Ok(len)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Ends the stream to the client.
    pub fn shutdown(&mut self) {
        if !core::mem::replace(&mut self.shut, true) {
            let _ = sockopt::set_socket_linger(&self.stream, None);
            // An error means that the client is gone, which its socket reports by itself.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Whether the stream to the client has ended.
    pub fn is_shut(&self) -> bool {
        self.shut
    }

    /// Closes the socket with a reset.
    pub fn reset(self) {
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Closes the socket in good order: written octets still arrive.
    pub fn close(self) {
        let _ = sockopt::set_socket_linger(&self.stream, None);
    }
}

/// Makes the kernel probe the client: another host may be switched off or leave the network silently, and nothing else
/// shows that while no octets are on their way to it. Octets on their way are sent again instead, for as long as the
/// kernel is set to do that. `TCP_USER_TIMEOUT` would shorten this, but it also ends a client that answers and merely
/// keeps its window closed, such as a paused film (Linux 6.18).
fn ask_now_and_then(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, ASKED_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, ASKED_EVERY)?;
    Ok(sockopt::set_tcp_keepcnt(stream, ASKED_MAX)?)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Client, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Client::new(listener.accept().unwrap().0).unwrap(), far)
    }

    #[test]
    fn a_reset_is_one_on_the_other_side() {
        let (client, mut far) = pair();
        client.reset();
        assert_eq!(far.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn who_is_not_closed_in_order_is_reset() {
        let (client, mut far) = pair();
        drop(client);
        assert_eq!(far.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        let (mut client, mut far) = pair();
        client.write(b"x").unwrap();
        client.close();
        assert_eq!((far.read(&mut [0; 1]).unwrap(), far.read(&mut [0; 1]).unwrap()), (1, 0));
    }

    #[test]
    fn nothing_is_read_or_written_in_vain() {
        let (mut client, mut far) = pair();
        let mut scratch = [0; 10];
        assert_eq!(client.read(&mut scratch).unwrap(), None);
        far.write_all(b"abc").unwrap();
        assert_eq!(client.read(&mut scratch).unwrap(), None, "nobody has said that there is something");
        client.note(Readiness { readable: true, ..Readiness::default() }).unwrap();
        assert_eq!(client.read(&mut scratch).unwrap(), Some(&b"abc"[..]));
        far.shutdown(Shutdown::Write).unwrap();
        client.note(Readiness { readable: true, read_ended: true, ..Readiness::default() }).unwrap();
        assert_eq!((client.read(&mut scratch).unwrap(), client.is_finished()), (None, true));
        while client.write(&[0; 1 << 16]).unwrap() > 0 {}
        assert!(!client.writable);
    }

    #[test]
    fn clients_of_other_hosts_are_asked_whether_they_are_there() {
        let (client, _far) = pair();
        assert!(!sockopt::socket_keepalive(client.stream()).unwrap(), "who is on this host is told of by the kernel");
        ask_now_and_then(client.stream()).unwrap();
        assert!(sockopt::socket_keepalive(client.stream()).unwrap());
        assert_eq!(sockopt::tcp_keepidle(client.stream()).unwrap(), ASKED_AFTER);
        assert_eq!(sockopt::tcp_keepcnt(client.stream()).unwrap(), ASKED_MAX);
    }

    #[test]
    fn a_client_that_closes_both_ways_is_gone_unless_we_have_closed_too() {
        let gone = Readiness { readable: true, writable: true, read_ended: true, gone: true };
        let (mut client, _far) = pair();
        assert!(client.note(gone).is_err());
        client.shutdown();
        assert!(client.note(gone).is_ok());
    }
}
