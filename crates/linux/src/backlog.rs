//! Data that wait in the kernel to be sent.

use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl};

use crate::{Error, Result};

/// `SIOCOUTQNSD`: octets that no segment has carried yet.
const NOT_SENT: Opcode = 0x894b;

/// Returns the octets written to a TCP or MPTCP socket that have not been sent on any subflow.
///
/// # Errors
/// If the socket is of another kind, or not connected.
pub fn unsent_bytes(socket: impl AsFd) -> Result<u64> {
    // SAFETY: the kernel writes one `int` for this request, for any kind of socket.
    let unsent = unsafe { ioctl(socket.as_fd(), Getter::<NOT_SENT, i32>::new()) };
    let unsent = unsent.map_err(Error::system("query the unsent octets of a socket"))?;
    Ok(u64::try_from(unsent).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_the_peer_has_no_room_for_is_unsent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(unsent_bytes(&stream).unwrap(), 0);
        stream.set_nonblocking(true).unwrap();
        let piece = [0; 1 << 16];
        while stream.write(&piece).is_ok() {}
        assert!(unsent_bytes(&stream).unwrap() > 0, "nobody reads");
        assert!(unsent_bytes(&listener).is_err());
    }
}
