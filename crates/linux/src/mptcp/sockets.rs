//! The kernel's TCP sockets: subflows, listeners, and the traffic over those that have ended (`sock_diag(7)`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use units::Duration;

use super::attributes::Attributes;
use super::events::Ends;
use super::netlink::{Requests, messages, retry};
use crate::{Error, Result};

/// Message type (`linux/sock_diag.h`).
const BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Attributes. A request asks for one by the bit of its number less one; that of the upper layer comes unasked to
/// processes that may see it.
const INFO: u16 = 2;
const UPPER_LAYER: u16 = 19;
const UPPER_LAYER_MPTCP: u16 = 3;
const LOCAL_TOKEN: u16 = 2;
/// Groups that report destroyed TCP sockets of IPv4 and of IPv6 (`SKNLGRP_INET_TCP_DESTROY`).
const DESTROYED: [u32; 2] = [1, 3];
/// Bits of the states with a connection: ESTABLISHED, FIN_WAIT1, FIN_WAIT2 and CLOSE_WAIT; below, LISTEN.
const LIVING: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;
const LISTEN: u8 = 10;
/// `struct inet_diag_msg`: four octets, the socket's identity, 20 octets of counters.
const HEADER_BYTES: usize = 72;

/// A subflow or a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its ends; the remote end of a listener is unspecified.
    pub ends: Ends,
    /// Index of the interface that it is bound to.
    pub interface: Option<u32>,
    /// Its state.
    pub state: State,
}

/// State of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for connections.
    Listens,
    /// Is a subflow.
    Subflow {
        /// Token of the connection.
        token: u32,
        /// Distinguishes this socket from all others that ever existed.
        cookie: u64,
        /// Its traffic.
        traffic: Traffic,
    },
}

/// Traffic over a subflow (`struct tcp_info` of `linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Minimum round-trip time of recent segments; zero before the first sample.
    pub rtt_min: Duration,
    /// Payload octets that the peer has acknowledged.
    pub up_bytes: u64,
    /// Payload octets received, plus one if the peer has ended its stream.
    pub down_bytes: u64,
    /// Segments sent with data.
    pub sent_segments: u64,
    /// Retransmitted segments among these.
    pub retransmitted_segments: u64,
    /// Segments received, with or without data. The counter wraps around.
    pub received_segments: u32,
}

/// Returns all current sockets in the network namespace of the calling thread. Without CAP_NET_ADMIN, subflows cannot
/// be recognised.
///
/// # Errors
/// If the kernel cannot list them.
pub fn sockets() -> Result<Vec<Socket>> {
    let mut requests = Requests::new(NETLINK_SOCK_DIAG)?;
    let mut all = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut body = vec![family, IPPROTO_TCP, 1 << (INFO - 1), 0];
        body.extend_from_slice(&(LIVING | 1 << LISTEN).to_ne_bytes());
        // An identity of zeros matches every socket.
        body.resize(body.len() + 48, 0);
        let told = requests.dump(BY_FAMILY, &body, |message| all.extend(parse(message)));
        told.map_err(Error::system("list TCP sockets (the kernel needs CONFIG_INET_TCP_DIAG)"))?;
    }
    Ok(all)
}

/// A TCP socket that has ended, whether a subflow or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The same cookie as in [`State::Subflow`].
    pub cookie: u64,
    /// Its ends.
    pub ends: Ends,
    /// Index of the interface that it was bound to.
    pub interface: Option<u32>,
    /// Its traffic. Zero if the kernel reused the socket before it released it: the kernel does so with a connection's
    /// first subflow if the peer ended it first.
    pub traffic: Traffic,
}

/// Receives reports of TCP sockets that end in the network namespace in which it was created.
pub struct EndedSockets(netlink_sys::Socket);

impl EndedSockets {
    /// Creates a receiver of reports from now on.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn new() -> Result<Self> {
        let socket = || {
            let mut socket = netlink_sys::Socket::new(NETLINK_SOCK_DIAG)?;
            socket.bind_auto()?;
            DESTROYED.iter().try_for_each(|group| socket.add_membership(*group))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        socket().map(Self).map_err(Error::system::<io::Error>("receive events of closed TCP sockets"))
    }

    /// Returns the sockets that have ended since the last call, as far as the buffer could hold them; does not wait.
    ///
    /// # Errors
    /// If the kernel no longer reports them.
    pub fn ended(&self) -> Result<Vec<Ended>> {
        let mut ended = Vec::new();
        loop {
            match retry(|| self.0.recv_from_full()) {
                Ok((octets, _)) => {
                    let told = messages(&octets).filter(|message| message.kind == BY_FAMILY);
                    ended.extend(told.filter_map(|message| parse_ended(message.body)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(ended),
                // Some reports were lost: for these sockets, the last listing remains the latest information.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {}
                Err(error) => return Err(Error::system("receive events of closed TCP sockets")(error)),
            }
        }
    }
}

impl AsFd for EndedSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn parse_ended(message: &[u8]) -> Option<Ended> {
    let (ends, interface, cookie) = identity(message)?;
    let info = Attributes(&message[HEADER_BYTES..]).get(INFO)?;
    Some(Ended { cookie, ends, interface, traffic: traffic(info) })
}

/// Parses ends, interface and cookie, if the message is at least as long as its header.
fn identity(message: &[u8]) -> Option<(Ends, Option<u32>, u64)> {
    let header = message.get(..HEADER_BYTES)?;
    let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let place = |address: usize, port: usize| {
        let octets = &header[address..address + 16];
        let ip = match header[0] {
            AF_INET => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
            _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?).to_canonical(),
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes([header[port], header[port + 1]])))
    };
    let ends = Ends { local: place(8, 4)?, remote: place(24, 6)? };
    let interface = Some(word(40)).filter(|index| *index != 0);
    Some((ends, interface, u64::from(word(44)) | u64::from(word(48)) << 32))
}

/// Parses a socket; `None` if it is neither a subflow nor a listener.
fn parse(message: &[u8]) -> Option<Socket> {
    let (ends, interface, cookie) = identity(message)?;
    if message[1] == LISTEN {
        return Some(Socket { ends, interface, state: State::Listens });
    }
    let attributes = Attributes(&message[HEADER_BYTES..]);
    let mptcp = Attributes(Attributes(attributes.get(UPPER_LAYER)?).get(UPPER_LAYER_MPTCP)?);
    let state = State::Subflow {
        token: mptcp.u32(LOCAL_TOKEN)?,
        cookie,
        traffic: traffic(attributes.get(INFO).unwrap_or_default()),
    };
    Some(Socket { ends, interface, state })
}

/// Parses `struct tcp_info`, which older kernels truncate.
fn traffic(info: &[u8]) -> Traffic {
    let u32_at =
        |at: usize| info.get(at..at + 4).and_then(|octets| octets.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let u64_at =
        |at: usize| info.get(at..at + 8).and_then(|octets| octets.try_into().ok()).map_or(0, u64::from_ne_bytes);
    // The kernel's value before the first sample.
    let rtt_min = Some(u32_at(148)).filter(|micros| *micros != u32::MAX).unwrap_or(0);
    Traffic {
        rtt: Duration::from_micros(u32_at(68).into()),
        rtt_min: Duration::from_micros(rtt_min.into()),
        // The kernel also counts SYN and FIN as acknowledged octets. The counters of octets sent and retransmitted
        // (since 4.19) include neither.
        up_bytes: u64_at(120).min(u64_at(200).saturating_sub(u64_at(208))),
        down_bytes: u64_at(128),
        sent_segments: u32_at(156).into(),
        retransmitted_segments: u32_at(100).into(),
        received_segments: u32_at(140),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_round_trip_time_that_was_not_measured_is_unknown() {
        let mut info = [0; 232];
        let least = |info: &[u8]| traffic(info).rtt_min;
        info[148..152].copy_from_slice(&20_000_u32.to_ne_bytes());
        assert_eq!(least(&info), Duration::from_millis(20));
        info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(least(&info), Duration::ZERO);
    }

    #[test]
    fn a_listener_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let all = sockets().unwrap();
        assert!(all.iter().any(|socket| socket.ends.local == place && socket.state == State::Listens), "{all:#?}");
    }

    #[test]
    fn a_socket_that_ends_is_told_of_with_what_passed() {
        use std::io::{Read as _, Write as _};

        let ended_sockets = EndedSockets::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, place) = listener.accept().unwrap();
        ours.write_all(b"request").unwrap();
        theirs.read_exact(&mut [0; 7]).unwrap();
        theirs.write_all(b"answer").unwrap();
        ours.read_exact(&mut [0; 6]).unwrap();
        drop((ours, theirs));
        let mut all = Vec::new();
        let found = |all: &[Ended]| all.iter().find(|ended| ended.ends.local == place).map(|ended| ended.traffic);
        while found(&all).is_none() {
            // Sockets of other tests are reported too.
            rustix::event::poll(&mut [rustix::event::PollFd::new(&ended_sockets, rustix::event::PollFlags::IN)], None)
                .unwrap();
            all.extend(ended_sockets.ended().unwrap());
        }
        let traffic = found(&all).unwrap();
        assert_eq!(traffic.up_bytes, 7, "neither SYN nor FIN");
        assert!((6..=7).contains(&traffic.down_bytes), "{traffic:?}");
    }

    #[test]
    fn whatever_arrives_is_read() {
        for len in 0..200 {
            for octet in [0, 2, 10, 255] {
                parse(&vec![octet; len]);
                parse_ended(&vec![octet; len]);
            }
        }
    }
}
