//! Addresses of devices on the same network. A link-local address only has a meaning with an interface (RFC 4007).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::str::FromStr;

use rustix::net::netdevice::{index_to_name, name_to_index};

/// An address, with its interface if it needs one: `192.168.43.1`, `fe80::1%wlan0` (RFC 4007 section 11).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedAddress {
    ip: IpAddr,
    interface: Option<String>,
}

impl ScopedAddress {
    /// The address.
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The interface, if the address needs one.
    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// Whether it is on the network of an interface with this name and index, or on any.
    pub fn may_be_on(&self, interface: &str, index: u32) -> bool {
        self.interface.as_ref().is_none_or(|own| own == interface || own.parse() == Ok(index))
    }

    /// Creates an address; only a link-local one keeps the interface.
    pub fn new(ip: IpAddr, interface: &str) -> Self {
        Self { ip, interface: is_link_local(ip).then(|| interface.into()) }
    }

    /// Creates the address of a datagram's sender, in the calling thread's network namespace.
    pub fn of(place: SocketAddr) -> Self {
        let interface = match place {
            SocketAddr::V6(place) if is_link_local((*place.ip()).into()) => Some(name_of(place.scope_id())),
            _ => None,
        };
        Self { ip: place.ip(), interface }
    }

    /// Returns the socket address of a port there, in the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn at(&self, port: u16) -> io::Result<SocketAddr> {
        match (self.ip, &self.interface) {
            (IpAddr::V6(ip), Some(interface)) => {
                let number = interface.parse().or_else(|_| index_of(interface))?;
                Ok(SocketAddrV6::new(ip, port, 0, number).into())
            }
            (ip, _) => Ok(SocketAddr::new(ip, port)),
        }
    }
}

/// Returns whether an address only has a meaning with an interface.
fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
}

fn index_of(interface: &str) -> io::Result<u32> {
    let missing = |_| io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {interface}"));
    name_to_index(socket()?, interface).map_err(missing)
}

/// Returns an interface's name, or its index if it is gone.
fn name_of(index: u32) -> String {
    let name = socket().ok().and_then(|socket| index_to_name(socket, index).ok());
    name.unwrap_or_else(|| index.to_string())
}

impl From<IpAddr> for ScopedAddress {
    /// Creates an address without an interface; a link-local one is not reachable then.
    fn from(ip: IpAddr) -> Self {
        Self { ip, interface: None }
    }
}

impl FromStr for ScopedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, interface) = text.split_once('%').map_or((text, None), |(ip, interface)| (ip, Some(interface)));
        let ip: IpAddr = ip
            .parse()
            .map_err(|_| format!("{text:?} is not an IP address: write it like 192.168.43.1 or fe80::1%wlan0"))?;
        // The text is scanned or typed, and appears in messages: only characters of interface names are allowed.
        let is_fit = |name: &str| {
            (1..16).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:@".contains(c))
        };
        match interface {
            None if is_link_local(ip) => {
                Err(format!("{ip} is link-local and needs an interface: write it like {ip}%wlan0"))
            }
            Some(_) if !is_link_local(ip) => {
                Err(format!("{ip} needs no interface: leave out the % and what follows it"))
            }
            Some(name) if !is_fit(name) => Err(format!("{name:?} is not an interface name: write it like {ip}%wlan0")),
            interface => Ok(Self { ip, interface: interface.map(str::to_owned) }),
        }
    }
}

impl fmt::Display for ScopedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "{}%{interface}", self.ip),
            None => self.ip.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ScopedAddress, String> {
        text.parse()
    }

    #[test]
    fn link_local_addresses_have_an_interface_and_others_have_none() {
        for text in ["192.168.43.1", "fd00::1", "fe80::1%wlan0", "fe80::1%7"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for (text, why) in [
            ("fe80::1", "fe80::1%wlan0"),
            ("192.168.43.1%wlan0", "no interface"),
            ("fd00::1%wlan0", "no interface"),
            ("fe80::1%", "not an interface name"),
            ("fe80::1%a/b", "not an interface name"),
            ("fe80::1%a\u{1b}[2J", "not an interface name"),
            ("fe80::1%a-name-that-is-too-long", "not an interface name"),
            ("anna", "not an IP address"),
            ("", "not an IP address"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn an_interface_has_a_number() {
        let loopback = read("fe80::1%lo").unwrap().at(7).unwrap();
        assert_eq!(loopback, SocketAddrV6::new("fe80::1".parse().unwrap(), 7, 0, 1).into());
        assert_eq!(ScopedAddress::of(loopback).to_string(), "fe80::1%lo");
        assert_eq!(read("fe80::1%1").unwrap().at(7).unwrap(), loopback);
        for (text, is_there) in [("fe80::1%lo", true), ("fe80::1%1", true), ("fe80::1%2", false), ("10.0.0.1", true)] {
            assert_eq!(read(text).unwrap().may_be_on("lo", 1), is_there, "{text}");
        }
        assert!(read("fe80::1%none").unwrap().at(7).unwrap_err().to_string().contains("no interface none"));
        assert_eq!(read("10.0.0.1").unwrap().at(7).unwrap(), "10.0.0.1:7".parse().unwrap());
    }
}
