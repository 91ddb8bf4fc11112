//! The kernel's TCP sockets that are subflows, and those that listen (`sock_diag(7)`).

use std::net::{IpAddr, SocketAddr};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use units::Duration;

use super::attributes::Attributes;
use super::events::Ends;
use super::netlink::Requests;
use crate::{Error, Result};

/// Message type (`linux/sock_diag.h`).
const BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Attributes, each asked for by the bit of its number less one; that of the upper layer comes unasked to those who may see it.
const INFO: u16 = 2;
const UPPER_LAYER: u16 = 19;
const UPPER_LAYER_MPTCP: u16 = 3;
const LOCAL_TOKEN: u16 = 2;
/// Bits of states: ESTABLISHED to CLOSE_WAIT without TIME_WAIT and CLOSE, which have no connection; LISTEN.
const LIVING: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8;
const LISTEN: u8 = 10;
/// `struct inet_diag_msg`: four octets, the socket's identity, 20 octets of counters.
const HEADER_BYTES: usize = 72;

/// A subflow or a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its ends; a listener's remote one is unspecified.
    pub ends: Ends,
    /// The number of the interface that it is bound to.
    pub interface: Option<u32>,
    /// What it is.
    pub state: State,
}

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for connections.
    Listens,
    /// It is a subflow.
    Subflow {
        /// Of the connection with this name.
        token: u32,
        /// Tells this socket from all others that ever were.
        cookie: u64,
        /// What passed.
        traffic: Traffic,
    },
}

/// What passed over a subflow (`struct tcp_info` of `linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Least round-trip time of late.
    pub rtt_min: Duration,
    /// Payload octets that the peer has acknowledged.
    pub up_bytes: u64,
    /// Payload octets received.
    pub down_bytes: u64,
    /// Segments with data sent.
    pub sent_segments: u64,
    /// Of these, segments sent again.
    pub retransmitted_segments: u64,
}

/// All that there are now in the network namespace of the calling thread. Without CAP_NET_ADMIN no subflow is known as such.
///
/// # Errors
/// If the kernel cannot tell.
pub fn sockets() -> Result<Vec<Socket>> {
    let mut requests = Requests::new(NETLINK_SOCK_DIAG)?;
    let mut all = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut body = vec![family, IPPROTO_TCP, 1 << (INFO - 1), 0];
        body.extend_from_slice(&(LIVING | 1 << LISTEN).to_ne_bytes());
        // Whatever its identity is.
        body.resize(body.len() + 48, 0);
        let told = requests.dump(BY_FAMILY, &body, |message| all.extend(parse(message)));
        told.map_err(Error::system("list TCP sockets (the kernel needs CONFIG_INET_TCP_DIAG)"))?;
    }
    Ok(all)
}

/// `None`: it is no subflow and does not listen.
fn parse(message: &[u8]) -> Option<Socket> {
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
    if header[1] == LISTEN {
        return Some(Socket { ends, interface, state: State::Listens });
    }
    let attributes = Attributes(&message[HEADER_BYTES..]);
    let mptcp = Attributes(Attributes(attributes.get(UPPER_LAYER)?).get(UPPER_LAYER_MPTCP)?);
    let state = State::Subflow {
        token: mptcp.u32(LOCAL_TOKEN)?,
        cookie: u64::from(word(44)) | u64::from(word(48)) << 32,
        traffic: traffic(attributes.get(INFO).unwrap_or_default()),
    };
    Some(Socket { ends, interface, state })
}

/// From `struct tcp_info`, which older kernels cut.
fn traffic(info: &[u8]) -> Traffic {
    let u32_at =
        |at: usize| info.get(at..at + 4).and_then(|octets| octets.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let u64_at =
        |at: usize| info.get(at..at + 8).and_then(|octets| octets.try_into().ok()).map_or(0, u64::from_ne_bytes);
    Traffic {
        rtt: Duration::from_micros(u32_at(68).into()),
        rtt_min: Duration::from_micros(u32_at(148).into()),
        up_bytes: u64_at(120),
        down_bytes: u64_at(128),
        sent_segments: u32_at(156).into(),
        retransmitted_segments: u32_at(100).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let all = sockets().unwrap();
        assert!(all.iter().any(|socket| socket.ends.local == place && socket.state == State::Listens), "{all:#?}");
    }

    #[test]
    fn whatever_arrives_is_read() {
        for len in 0..200 {
            for octet in [0, 2, 10, 255] {
                parse(&vec![octet; len]);
            }
        }
    }
}
