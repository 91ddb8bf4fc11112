//! Sockets of links and pairings.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, SockRef, Socket, Type};

/// A burst of datagrams must not be lost in a socket, octets.
const BUFFER_BYTES: usize = 4 << 20;

/// A socket on `port` of all addresses of this host, of both families if it has both, which does not block. `prepare` sees it before it is
/// bound.
///
/// # Errors
/// If somebody else has the port, or `prepare` fails.
pub fn bind_all(kind: Type, port: u16, prepare: impl Fn(&Socket) -> io::Result<()>) -> io::Result<Socket> {
    let open = |domain: Domain, all: SocketAddr| {
        let socket = Socket::new(domain, kind, None)?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(false)?;
        }
        socket.set_nonblocking(true)?;
        prepare(&socket)?;
        socket.bind(&all.into())?;
        Ok(socket)
    };
    open(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into())
        .or_else(|_: io::Error| open(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()))
}

/// Gives a socket as much memory as the kernel lets it have, up to [`BUFFER_BYTES`] each way.
pub fn widen<'a>(socket: impl Into<SockRef<'a>>) {
    let socket: SockRef<'_> = socket.into();
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
}
