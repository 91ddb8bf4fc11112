//! Targets that clients name, and those that the proxy refuses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linux::uplink::Network;

/// Maximum octets of a name (RFC 1035 section 2.3.4, without the dot at the end).
const NAME_BYTES_MAX: usize = 253;

/// A host as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name to be resolved: ASCII, lower case. A dot at the end keeps the resolver from trying search domains.
    Name(String),
    /// An address.
    Ip(IpAddr),
}

/// Host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port; never zero.
    pub port: u16,
}

impl Host {
    /// Parses a name, or an address in its usual notation, with or without brackets.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self::Ip(ip.to_canonical()));
        }
        let name = without_dot(text);
        let usual = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(usual) || text.contains("..") {
            return Err("the host is neither a name nor an address (names that are not ASCII are written as xn--...)");
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

/// Returns a name without the dot that marks it as absolute, to compare it with another one. For a look-up the dot
/// matters: without it, the name may mean another one in a search domain.
pub fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

impl Target {
    /// Parses host and port as they are written in a URL. The port may be missing if there is a usual one.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(authority: &str, usual_port: Option<u16>) -> Result<Self, &'static str> {
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are inside its brackets.
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, ""),
        };
        if host.contains(':') && !host.starts_with('[') {
            return Err("an IPv6 address must be in brackets, as in [2001:db8::1]:80");
        }
        let digits = !port.is_empty() && port.bytes().all(|octet| octet.is_ascii_digit());
        let port = if port.is_empty() { usual_port } else { port.parse().ok().filter(|_| digits) };
        let port = port.filter(|port| *port != 0).ok_or("the port is missing, or is not a number from 1 to 65535")?;
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Returns why the proxy does not connect to an address, if so. The engine is a host of its own, so a loopback address
/// never means what the client intends; and a page in a browser must not reach through the proxy what only this device
/// may reach.
pub fn why_not(ip: IpAddr) -> Option<&'static str> {
    match ip.to_canonical() {
        ip if ip.is_loopback() => Some("is a loopback address: configure the program to bypass the proxy for it"),
        ip if ip.is_unspecified() => Some("stands for all addresses of a host"),
        ip if ip.is_multicast() => Some("is a multicast address"),
        IpAddr::V4(ip) => why_not_v4(ip),
        IpAddr::V6(ip) => why_not_v6(ip),
    }
}

fn why_not_v4(ip: Ipv4Addr) -> Option<&'static str> {
    match ip {
        ip if ip.is_broadcast() => Some("is the broadcast address"),
        ip if ip.is_link_local() => Some("is a link-local address, which is not routed"),
        ip if ip.octets()[0] == 0 => Some("is in 0.0.0.0/8 (\"this network\"), which is not routed"),
        ip if ip.octets()[0] >= 240 => Some("is reserved (240.0.0.0/4)"),
        _ => None,
    }
}

fn why_not_v6(ip: Ipv6Addr) -> Option<&'static str> {
    if ip.is_unicast_link_local() {
        return Some("is a link-local address, which is not routed");
    }
    // The forms of IPv6 that hold an IPv4 address: IPv4-compatible (RFC 4291 section 2.5.5.1), NAT64 (RFC 6052), 6to4 (RFC 3056).
    let parts = ip.segments();
    let embedded = match parts {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let [a, b] = embedded.0.to_be_bytes();
    let [c, d] = embedded.1.to_be_bytes();
    why_not(Ipv4Addr::new(a, b, c, d).into()).map(|_| "contains an IPv4 address that the proxy does not connect to")
}

/// Returns whether an address is unreachable from outside its network.
pub fn is_private(ip: IpAddr) -> bool {
    private_range(ip).is_some()
}

/// Returns the range of an address that is unreachable from outside its network: private (RFC 1918), shared (RFC 6598),
/// unique local (RFC 4193) or link-local.
pub(super) fn private_range(ip: IpAddr) -> Option<Network> {
    let v4 = |a, b, prefix_len| Network { address: Ipv4Addr::new(a, b, 0, 0).into(), prefix_len };
    let v6 = |a, prefix_len| Network { address: Ipv6Addr::new(a, 0, 0, 0, 0, 0, 0, 0).into(), prefix_len };
    let ranges = [
        v4(10, 0, 8),
        v4(100, 64, 10),
        v4(169, 254, 16),
        v4(172, 16, 12),
        v4(192, 168, 16),
        v6(0xfc00, 7),
        v6(0xfe80, 10),
    ];
    ranges.into_iter().find(|range| range.contains(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_written() {
        for (text, usual, expected) in [
            ("example.org:443", None, "example.org:443"),
            ("EXAMPLE.org", Some(80), "example.org:80"),
            ("EXAMPLE.org.:443", None, "example.org.:443"),
            ("10.0.0.1:8080", None, "10.0.0.1:8080"),
            ("[2001:db8::1]", Some(80), "[2001:db8::1]:80"),
            ("[2001:db8::1]:22", None, "[2001:db8::1]:22"),
            ("[::ffff:10.0.0.1]:22", None, "10.0.0.1:22"),
            ("host:", Some(80), "host:80"),
        ] {
            assert_eq!(Target::parse(text, usual).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        let long = format!("{}:80", "a".repeat(254));
        for text in [
            "",
            ":80",
            "h",
            "h:0",
            "h:65536",
            "h:+1",
            "2001:db8::1:80",
            "a b:80",
            "b\u{fc}cher:80",
            "a..b:80",
            "a..:80",
            ".:80",
            &long,
        ] {
            assert!(Target::parse(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn nobody_is_taken_to_this_device_itself() {
        for ip in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "169.254.169.254",
            "fe80::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "240.0.0.1",
        ] {
            assert!(why_not(ip.parse().unwrap()).is_some(), "{ip}");
        }
        for ip in ["10.0.0.1", "192.168.1.1", "8.8.8.8", "2001:db8::1", "fd00::1", "64:ff9b::808:808", "100.64.0.1"] {
            assert_eq!(why_not(ip.parse().unwrap()), None, "{ip}");
        }
    }

    #[test]
    fn private_addresses_are_those_that_are_translated() {
        for ip in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.42.10",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.1.1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(is_private(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["100.128.0.1", "100.63.255.255", "192.0.2.1", "172.32.0.1", "2001:db8::1"] {
            assert!(!is_private(ip.parse().unwrap()), "{ip}");
        }
    }
}
