//! Creates, ends and reprioritises subflows of one connection.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

use super::attributes::Writer;
use super::events::Ends;
use super::netlink::{Family, Requests, generic, generic_family};
use crate::{Error, Result};

/// Names and numbers from `linux/mptcp.h` and `linux/mptcp_pm.h`.
const FAMILY: &str = "mptcp_pm";
const GROUP: &str = "mptcp_pm_events";
const SET_FLAGS: u8 = 7;
const ANNOUNCE: u8 = 8;
const REMOVE: u8 = 9;
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;
/// Attributes of requests.
const ADDR: u16 = 1;
const TOKEN: u16 = 4;
const LOCAL_ID: u16 = 5;
const ADDR_REMOTE: u16 = 6;
/// Attributes of addresses.
const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_V4: u16 = 3;
const ADDR_V6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const ADDR_INTERFACE: u16 = 7;
const FLAG_SIGNAL: u32 = 1;
const FLAG_BACKUP: u32 = 4;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Local end of a new subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub ip: IpAddr,
    /// Address identifier in this connection, not 0. Each address has only one.
    pub id: u8,
    /// Index of the interface that the subflow leaves through.
    pub interface: u32,
    /// Whether it carries data only when no regular subflow can.
    pub backup: bool,
}

/// Changes subflows of connections whose path manager is outside the kernel. Every call needs CAP_NET_ADMIN.
pub struct PathManager {
    requests: Requests,
    family: u16,
}

/// Looks up the family of the kernel's path managers.
pub(super) fn family() -> Result<(Requests, Family)> {
    let (requests, family) = generic_family(FAMILY, GROUP)?;
    let family = family.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Usage(
            "the kernel has no MPTCP: use Linux 5.19 or newer with CONFIG_MPTCP, or join without --kernel".into(),
        ),
        _ => Error::system("query the kernel's MPTCP")(error),
    })?;
    Ok((requests, family))
}

impl PathManager {
    /// Creates a path manager for the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the kernel has no MPTCP.
    pub fn new() -> Result<Self> {
        let (requests, family) = family()?;
        Ok(Self { requests, family: family.id })
    }

    /// Asks for a subflow of the connection `token`; an event reports whether it is established.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn create(&mut self, token: u32, from: Origin, to: SocketAddr) -> io::Result<()> {
        let interface = i32::try_from(from.interface).map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = if from.backup { FLAG_BACKUP } else { 0 };
        let local = address(from.ip)
            .with(ADDR_ID, &[from.id])
            .with(ADDR_FLAGS, &flags.to_ne_bytes())
            .with(ADDR_INTERFACE, &interface.to_ne_bytes());
        self.change(SUBFLOW_CREATE, token, &local, to)
    }

    /// Ends a subflow.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn destroy(&mut self, token: u32, ends: Ends) -> io::Result<()> {
        let done = self.change(SUBFLOW_DESTROY, token, &with_port(ends.local), ends.remote);
        let is_unknown = done.as_ref().is_err_and(|error| error.raw_os_error() == Some(Errno::SRCH.raw_os_error()));
        match (is_unknown, mapped(ends.local), mapped(ends.remote)) {
            // The kernel knows a subflow of an IPv6 socket that carries IPv4 only by its mapped addresses.
            (true, Some(local), Some(remote)) => self.change(SUBFLOW_DESTROY, token, &with_port(local), remote),
            _ => done,
        }
    }

    /// Makes a subflow a backup or a regular one, and tells the peer (MP_PRIO, RFC 8684 section 3.3.8).
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set_backup(&mut self, token: u32, ends: Ends, backup: bool) -> io::Result<()> {
        let flags = if backup { FLAG_BACKUP } else { 0 };
        self.change(SET_FLAGS, token, &with_port(ends.local).with(ADDR_FLAGS, &flags.to_ne_bytes()), ends.remote)
    }

    /// Announces an address of ours to the peer (ADD_ADDR, RFC 8684 section 3.4.1), which may then open a subflow to
    /// it.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn announce(&mut self, token: u32, ip: IpAddr, id: u8) -> io::Result<()> {
        let own = address(ip).with(ADDR_ID, &[id]).with(ADDR_FLAGS, &FLAG_SIGNAL.to_ne_bytes());
        let attributes = Writer::default().with(TOKEN, &token.to_ne_bytes()).with_nested(ADDR, &own);
        self.requests.change(self.family, &generic(ANNOUNCE, attributes))
    }

    /// Withdraws an announced address (REMOVE_ADDR, RFC 8684 section 3.4.2); its subflows end.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn withdraw(&mut self, token: u32, id: u8) -> io::Result<()> {
        let attributes = Writer::default().with(TOKEN, &token.to_ne_bytes()).with(LOCAL_ID, &[id]);
        self.requests.change(self.family, &generic(REMOVE, attributes))
    }

    fn change(&mut self, command: u8, token: u32, local: &Writer, remote: SocketAddr) -> io::Result<()> {
        let attributes = Writer::default()
            .with(TOKEN, &token.to_ne_bytes())
            .with_nested(ADDR, local)
            .with_nested(ADDR_REMOTE, &with_port(remote));
        self.requests.change(self.family, &generic(command, attributes))
    }
}

fn address(ip: IpAddr) -> Writer {
    let writer = Writer::default();
    match ip {
        IpAddr::V4(ip) => writer.with(ADDR_FAMILY, &AF_INET.to_ne_bytes()).with(ADDR_V4, &ip.octets()),
        IpAddr::V6(ip) => writer.with(ADDR_FAMILY, &AF_INET6.to_ne_bytes()).with(ADDR_V6, &ip.octets()),
    }
}

/// Returns an IPv4 address and port as IPv6 sockets name them.
fn mapped(place: SocketAddr) -> Option<SocketAddr> {
    match place {
        SocketAddr::V4(place) => Some((place.ip().to_ipv6_mapped(), place.port()).into()),
        SocketAddr::V6(_) => None,
    }
}

fn with_port(place: SocketAddr) -> Writer {
    // In the machine's byte order, unlike in events.
    address(place.ip()).with(ADDR_PORT, &place.port().to_ne_bytes())
}
