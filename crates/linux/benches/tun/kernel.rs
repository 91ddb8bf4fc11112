//! The kernel's sockets, and the loops that use them.

use core::net::SocketAddr;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use linux::clock::Clock;
use linux::netns::Namespace;
use linux::{Error, Result};
use socket2::{Domain, Socket, Type};
use units::Duration;

use crate::measured::{CpuTime, Measured};

/// Octets that one call reads or writes.
const CALL_BYTES: usize = 256 << 10;
/// Data in an Ethernet packet, the unit of packet rates, whatever the options.
pub const PACKET_BYTES: u16 = 1448;
/// Maximum time without progress, after which a bench that hangs fails.
const PATIENCE: core::time::Duration = core::time::Duration::from_secs(20);

/// Protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Mptcp,
}

/// Opens a listening socket inside `namespace`.
pub fn listen(namespace: &Namespace, protocol: Protocol, address: SocketAddr) -> Result<Socket> {
    namespace.run(|| {
        let socket = open(protocol)?;
        socket.set_reuse_address(true).map_err(Error::system("set up a socket"))?;
        socket.bind(&address.into()).map_err(Error::system(format!("bind to {address}")))?;
        socket.listen(1).map_err(Error::system("listen"))?;
        Ok(socket)
    })?
}

/// Returns the next connection of a listening socket.
pub fn accept(listener: &Socket) -> Result<TcpStream> {
    listener.set_read_timeout(Some(PATIENCE)).map_err(Error::system("set up a socket"))?;
    let (socket, _) = listener.accept().map_err(Error::system("accept a connection"))?;
    patient(socket)
}

/// Opens a connection from inside `namespace`.
pub fn connect(namespace: &Namespace, protocol: Protocol, remote: SocketAddr) -> Result<TcpStream> {
    namespace.run(|| {
        let socket = open(protocol)?;
        socket.connect(&remote.into()).map_err(Error::system(format!("connect to {remote}")))?;
        patient(socket)
    })?
}

/// Opens a socket with Linux's default congestion controller. A host's own default may be one that paces, which would
/// slow down the kernel and flatter the engine; and a socket that has once begun to pace never stops.
fn open(protocol: Protocol) -> Result<Socket> {
    let number = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(number)).map_err(Error::system("open a socket"))?;
    socket.set_tcp_congestion(b"cubic").map_err(Error::system("set the congestion controller"))?;
    Ok(socket)
}

fn patient(socket: Socket) -> Result<TcpStream> {
    for set in [Socket::set_read_timeout, Socket::set_write_timeout] {
        set(&socket, Some(PATIENCE)).map_err(Error::system("set up a socket"))?;
    }
    Ok(socket.into())
}

/// Sends one octet there and back, after which both ends know that MPTCP is in use.
pub fn exchange_octet(mut sender: &TcpStream, mut receiver: &TcpStream) -> Result<()> {
    let mut octet = [7];
    sender.write_all(&octet).map_err(Error::system("send"))?;
    receiver.read_exact(&mut octet).map_err(Error::system("receive"))?;
    receiver.write_all(&octet).map_err(Error::system("send"))?;
    sender.read_exact(&mut octet).map_err(Error::system("receive"))
}

/// Sends for `span`, then ends the stream.
pub fn send(mut stream: &TcpStream, span: Duration) -> Result<Measured> {
    let (octets, clock, cpu) = (vec![7; CALL_BYTES], Clock::start(), CpuTime::start());
    let (begin, mut bytes) = (clock.now(), 0);
    while clock.now().saturating_since(begin) < span {
        bytes += stream.write(&octets).map_err(Error::system("send"))? as u64;
    }
    stream.shutdown(Shutdown::Write).map_err(Error::system("end a stream"))?;
    Ok(Measured {
        bytes,
        packet_bytes: PACKET_BYTES,
        seconds: clock.now().saturating_since(begin).as_secs_f64(),
        cpu_s: cpu.seconds(),
    })
}

/// Receives until the stream ends; the time starts with the first octet.
pub fn receive(mut stream: &TcpStream) -> Result<Measured> {
    let mut octets = vec![0; CALL_BYTES];
    let mut read = || stream.read(&mut octets).map_err(Error::system("receive"));
    let mut bytes = read()? as u64;
    let (clock, cpu) = (Clock::start(), CpuTime::start());
    let begin = clock.now();
    loop {
        match read()? {
            0 => break,
            more => bytes += more as u64,
        }
    }
    Ok(Measured {
        bytes,
        packet_bytes: PACKET_BYTES,
        seconds: clock.now().saturating_since(begin).as_secs_f64(),
        cpu_s: cpu.seconds(),
    })
}
