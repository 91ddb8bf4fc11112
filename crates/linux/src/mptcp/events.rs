//! The kernel's events of connections and subflows (`linux/mptcp.h`, `enum mptcp_event_type`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_GENERIC;

use super::attributes::Attributes;
use super::netlink::{messages, parse_generic, retry};
use super::path_manager::family;
use crate::{Error, Result};

/// Octets of events that may wait, enough for some thousand. An overflow is reported as [`Event::Lost`].
const BUFFER_BYTES: u32 = 1 << 20;
const TOKEN: u16 = 1;
const REMOTE_ID: u16 = 4;
const LOCAL_V4: u16 = 5;
const LOCAL_V6: u16 = 6;
const REMOTE_V4: u16 = 7;
const REMOTE_V6: u16 = 8;
const LOCAL_PORT: u16 = 9;
const REMOTE_PORT: u16 = 10;
const BACKUP: u16 = 11;
const FLAGS: u16 = 13;
const INTERFACE: u16 = 15;
const SERVER_SIDE: u16 = 18;
/// Since Linux 6.18 both are flags.
const FLAG_NO_JOIN: u16 = 1;
const FLAG_SERVER_SIDE: u16 = 2;

/// The two ends of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// The local end.
    pub local: SocketAddr,
    /// The remote end.
    pub remote: SocketAddr,
}

/// An event of a connection or subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection is fully established: it may have more subflows from now on.
    Established {
        /// Token of the connection.
        token: u32,
        /// Ends of its first subflow.
        ends: Ends,
        /// Whether the peer opened the connection.
        is_server: bool,
        /// Whether the peer wants no more subflows to the address of the first (RFC 8684 section 3.1, flag C).
        no_join: bool,
    },
    /// A connection has ended.
    Closed {
        /// Token of the connection.
        token: u32,
    },
    /// The peer has announced another address.
    Announced {
        /// Token of the connection.
        token: u32,
        /// Address identifier.
        id: u8,
        /// The address.
        ip: IpAddr,
        /// Its port, if it differs from that of the first subflow.
        port: Option<u16>,
    },
    /// The peer has withdrawn an address.
    Removed {
        /// Token of the connection.
        token: u32,
        /// Address identifier.
        id: u8,
    },
    /// An additional subflow is established.
    SubflowEstablished {
        /// Token of the connection.
        token: u32,
        /// Ends of the subflow.
        ends: Ends,
        /// Index of the interface that it is bound to.
        interface: Option<u32>,
        /// Whether either end wants it to be a backup.
        backup: bool,
    },
    /// A subflow has ended; the first one is reported too.
    SubflowClosed {
        /// Token of the connection.
        token: u32,
        /// Ends of the subflow.
        ends: Ends,
    },
    /// More events occurred than the buffer could hold.
    Lost,
}

/// Receives the events of the network namespace in which it was created.
pub struct Monitor {
    socket: Socket,
    family: u16,
}

impl Monitor {
    /// Creates a monitor that receives events from now on.
    ///
    /// # Errors
    /// If the kernel has no MPTCP, or the process may not (it takes CAP_NET_ADMIN).
    pub fn new() -> Result<Self> {
        let (_, family) = family()?;
        let socket = || {
            let mut socket = Socket::new(NETLINK_GENERIC)?;
            socket.bind_auto()?;
            socket.add_membership(family.group)?;
            socket.set_non_blocking(true)?;
            // A smaller buffer works as well.
            let _ = socket.set_rx_buf_sz(BUFFER_BYTES);
            Ok(socket)
        };
        let socket = socket().map_err(Error::system::<io::Error>("receive the kernel's MPTCP events (try sudo)"))?;
        Ok(Self { socket, family: family.id })
    }

    /// Returns the events since the last call, without waiting.
    ///
    /// # Errors
    /// If the kernel no longer reports events.
    pub fn events(&self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            match retry(|| self.socket.recv_from_full()) {
                Ok((octets, _)) => {
                    let own = messages(&octets).filter(|message| message.kind == self.family);
                    events.extend(own.filter_map(|message| parse(message.body)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(events),
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                    events.push(Event::Lost);
                }
                Err(error) => return Err(Error::system("receive events of MPTCP connections")(error)),
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Parses an event; `None` if it is of no interest or not understood.
fn parse(body: &[u8]) -> Option<Event> {
    let (kind, attributes) = parse_generic(body)?;
    let token = attributes.u32(TOKEN)?;
    let flags = attributes.u16(FLAGS).unwrap_or(0);
    Some(match kind {
        2 => Event::Established {
            token,
            ends: ends(attributes)?,
            is_server: attributes.u8(SERVER_SIDE) == Some(1) || flags & FLAG_SERVER_SIDE != 0,
            no_join: flags & FLAG_NO_JOIN != 0,
        },
        3 => Event::Closed { token },
        6 => Event::Announced {
            token,
            id: attributes.u8(REMOTE_ID)?,
            ip: attributes.ip(REMOTE_V4, REMOTE_V6)?,
            port: attributes.be16(REMOTE_PORT).filter(|port| *port != 0),
        },
        7 => Event::Removed { token, id: attributes.u8(REMOTE_ID)? },
        10 => Event::SubflowEstablished {
            token,
            ends: ends(attributes)?,
            interface: attributes.u32(INTERFACE).filter(|index| *index != 0),
            backup: attributes.u8(BACKUP) == Some(1),
        },
        11 => Event::SubflowClosed { token, ends: ends(attributes)? },
        _ => return None,
    })
}

fn ends(attributes: Attributes<'_>) -> Option<Ends> {
    let place = |v4, v6, port| Some(SocketAddr::new(attributes.ip(v4, v6)?, attributes.be16(port)?));
    Some(Ends { local: place(LOCAL_V4, LOCAL_V6, LOCAL_PORT)?, remote: place(REMOTE_V4, REMOTE_V6, REMOTE_PORT)? })
}

#[cfg(test)]
mod tests {
    use super::super::attributes::Writer;
    use super::super::netlink::generic;
    use super::*;

    fn established() -> Vec<u8> {
        let attributes = Writer::default()
            .with(TOKEN, &7_u32.to_ne_bytes())
            .with(LOCAL_V4, &[192, 168, 42, 10])
            .with(REMOTE_V4, &[10, 9, 9, 9])
            .with(LOCAL_PORT, &40_000_u16.to_be_bytes())
            .with(REMOTE_PORT, &80_u16.to_be_bytes())
            .with(INTERFACE, &3_i32.to_ne_bytes())
            .with(BACKUP, &[1]);
        generic(10, attributes)
    }

    #[test]
    fn a_subflow_is_told_by_its_ends() {
        let ends = Ends { local: "192.168.42.10:40000".parse().unwrap(), remote: "10.9.9.9:80".parse().unwrap() };
        let expected = Event::SubflowEstablished { token: 7, ends, interface: Some(3), backup: true };
        assert_eq!(parse(&established()), Some(expected));
    }

    #[test]
    fn what_is_cut_or_unknown_is_no_event() {
        let octets = established();
        // The last octets are only padding.
        for cut in 0..octets.len() - 3 {
            let event = parse(&octets[..cut]);
            assert!(!matches!(event, Some(Event::SubflowEstablished { backup: true, .. })), "{cut}: {event:?}");
        }
        assert_eq!(parse(&generic(99, Writer::default().with(TOKEN, &[1; 4]))), None);
    }
}
