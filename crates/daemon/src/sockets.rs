//! Sockets of links and pairings, and those over one uplink.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, SockRef, Socket, Type};

/// Buffer size, octets: enough for a burst of datagrams.
const BUFFER_BYTES: usize = 4 << 20;

/// Opens a non-blocking socket on `port` of all addresses of this host, in both families if it has both. `prepare` is
/// called before the socket is bound.
///
/// # Errors
/// If another program has the port, or `prepare` fails.
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

/// Opens a socket that sends over `interface` from `source`, which may be unspecified. Where the main table has no route,
/// the kernel would choose an IPv6 address of any interface, and rules for that of `interface` (`ip rule add from
/// ADDRESS`) would not apply.
///
/// # Errors
/// If the interface is gone, or has lost the address. Binding to an interface needs no privilege since Linux 5.7.
pub fn open_over(interface: &str, source: IpAddr, kind: Type) -> io::Result<Socket> {
    let from = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(from), kind, None)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&from.into())?;
    Ok(socket)
}

/// Sets the socket's buffers to [`BUFFER_BYTES`] each way, or to the kernel's limit.
pub fn widen<'a>(socket: impl Into<SockRef<'a>>) {
    let socket: SockRef<'_> = socket.into();
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
}

/// A UDP socket for peers of both families, as far as this host has both. IPv4 addresses appear as such on both sides
/// of this interface, even if the socket maps them to IPv6.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    is_v6: bool,
}

impl Datagrams {
    /// Opens a non-blocking socket on a free port.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn open() -> io::Result<Self> {
        let socket: UdpSocket = bind_all(Type::DGRAM, 0, |_| Ok(()))?.into();
        widen(&socket);
        let is_v6 = socket.local_addr()?.is_ipv6();
        Ok(Self { socket, is_v6 })
    }

    /// As [`UdpSocket::send_to`].
    ///
    /// # Errors
    /// The same.
    pub fn send_to(&self, octets: &[u8], place: SocketAddr) -> io::Result<usize> {
        match place {
            SocketAddr::V4(v4) if self.is_v6 => self.socket.send_to(octets, (v4.ip().to_ipv6_mapped(), v4.port())),
            place => self.socket.send_to(octets, place),
        }
    }

    /// As [`UdpSocket::recv_from`].
    ///
    /// # Errors
    /// The same.
    pub fn recv_from(&self, room: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, place) = self.socket.recv_from(room)?;
        Ok(match place.ip().to_canonical() {
            IpAddr::V4(ip) => (len, (ip, place.port()).into()),
            // With its scope.
            IpAddr::V6(_) => (len, place),
        })
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_both_families_are_reached_and_told_apart() {
        let socket = Datagrams::open().unwrap();
        socket.socket.set_nonblocking(false).unwrap();
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let peer = match UdpSocket::bind(place) {
                Ok(peer) => peer,
                // Not every host has IPv6.
                Err(why) if place.starts_with('[') => return left_out::leave_out("datagrams over IPv6", why),
                Err(why) => panic!("{place}: {why}"),
            };
            let place = peer.local_addr().unwrap();
            socket.send_to(b"there?", place).unwrap();
            let (_, from) = peer.recv_from(&mut [0; 9]).unwrap();
            assert_eq!(from.is_ipv4(), place.is_ipv4());
            peer.send_to(b"yes", from).unwrap();
            assert_eq!(socket.recv_from(&mut [0; 9]).unwrap(), (3, place));
        }
    }
}
