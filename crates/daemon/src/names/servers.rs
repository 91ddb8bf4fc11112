//! Selects the name servers to ask over each uplink.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use linux::uplink::Uplink;

use crate::scoped::ScopedAddress;

/// The port of name servers.
pub const PORT: u16 = 53;
/// File that names the name servers of this device's programs.
pub const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Files that name the system's name servers. The second has those behind the stub that systemd-resolved puts in the
/// first.
const FILES: [&str; 2] = [RESOLV_CONF, "/run/systemd/resolve/resolv.conf"];
/// Maximum number of name servers in a file: resolvers read three.
pub const SYSTEM_MAX: usize = 3;

/// A name server to be asked over one uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The uplink's interface.
    pub interface: String,
    /// The uplink's address from which it is asked; unspecified for a server on the link, whose address may be of a
    /// family that the uplink does not have.
    pub source: IpAddr,
    /// The server's address.
    pub place: SocketAddr,
}

/// Returns whether a name is a public one. An uplink's name server is not asked about others (RFC 6762 section 3).
pub fn may_be_asked(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.contains('.') && !name.to_ascii_lowercase().ends_with(".local")
}

/// Returns the name servers for each of these uplinks: its gateways and the system's servers.
pub fn list(uplinks: &[Uplink]) -> Vec<Server> {
    let texts = FILES.iter().filter_map(|file| fs::read_to_string(file).ok());
    let system: Vec<ScopedAddress> = texts.flat_map(|text| parse(&text)).collect();
    uplinks.iter().flat_map(|uplink| of(uplink, &system)).collect()
}

/// Returns the name servers in a text like `resolv.conf`, except those on this device: that is the stub, which was
/// asked before.
fn parse(text: &str) -> Vec<ScopedAddress> {
    let mut servers = named(text);
    servers.retain(|server| !server.ip().is_loopback());
    servers.truncate(SYSTEM_MAX);
    servers
}

/// Returns all name servers in such a text, each once.
pub fn named(text: &str) -> Vec<ScopedAddress> {
    let mut servers: Vec<ScopedAddress> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let server = (words.next() == Some("nameserver")).then(|| address(words.next()?)).flatten();
        servers.extend(server.filter(|server| !servers.contains(server)));
    }
    servers
}

/// Reads an address. A link-local one should have an interface; without one, it may be on any.
fn address(text: &str) -> Option<ScopedAddress> {
    text.parse::<IpAddr>().map(ScopedAddress::from).ok().or_else(|| text.parse().ok())
}

fn of(uplink: &Uplink, system: &[ScopedAddress]) -> Vec<Server> {
    let gateways = uplink.ways().filter_map(|way| way.gateway);
    let has_family = |ip: &IpAddr| uplink.ways().any(|way| way.address.is_ipv4() == ip.is_ipv4());
    let reachable = system.iter().filter(|server| server.may_be_on(&uplink.interface, uplink.index));
    let mut servers: Vec<Server> = Vec::new();
    for ip in gateways.chain(reachable.map(ScopedAddress::ip).filter(has_family)) {
        let (source, place) = (source(ip, uplink), place(ip, uplink.index));
        let server = Server { interface: uplink.interface.clone(), source, place };
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Returns the address from which the uplink asks `server`.
fn source(server: IpAddr, uplink: &Uplink) -> IpAddr {
    let is_on_link = matches!(server, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let any = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    uplink.way(server).filter(|_| !is_on_link).map_or(any, |way| way.address)
}

/// Adds the interface to a link-local address, which has no meaning without it.
fn place(ip: IpAddr, index: u32) -> SocketAddr {
    match ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, PORT, 0, index).into(),
        ip => (ip, PORT).into(),
    }
}

#[cfg(test)]
mod tests {
    use linux::uplink::Way;

    use super::*;

    #[test]
    fn the_internets_names_are_asked_for_alone() {
        for (name, may) in [
            ("a.example", true),
            ("A.Example.", true),
            ("printer", false),
            ("printer.local", false),
            ("x.LOCAL.", false),
        ] {
            assert_eq!(may_be_asked(name), may, "{name}");
        }
    }

    #[test]
    fn name_servers_are_those_of_the_files_and_the_gateways() {
        let text = "# a comment\nnameserver 127.0.0.53\nnameserver 198.51.100.1\noptions edns0\nnameserver nonsense\n\
                    nameserver 198.51.100.1\nnameserver 2001:db8::1\nnameserver fe80::1%\nnameserver 198.51.100.2\nnameserver 198.51.100.3\n";
        let system = parse(text);
        let texts: Vec<String> = system.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["198.51.100.1", "2001:db8::1", "198.51.100.2"]);
        let way = |address: &str, gateway: &str| {
            Some(Way { address: address.parse().unwrap(), prefix_len: 24, gateway: Some(gateway.parse().unwrap()) })
        };
        let mut uplink = Uplink {
            interface: "usb0".into(),
            index: 7,
            mtu: 1500,
            v4: way("192.168.42.10", "192.168.42.129"),
            v6: None,
        };
        let places = |uplink: &Uplink| {
            let all = of(uplink, &system).into_iter();
            all.map(|server| format!("{} from {}", server.place, server.source)).collect::<Vec<_>>()
        };
        let from_v4 =
            ["192.168.42.129", "198.51.100.1", "198.51.100.2"].map(|ip| format!("{ip}:53 from 192.168.42.10"));
        assert_eq!(places(&uplink), from_v4);
        uplink.v4 = None;
        uplink.v6 = way("2001:db8:1::10", "fe80::1");
        assert_eq!(places(&uplink), ["[fe80::1%7]:53 from ::", "[2001:db8::1]:53 from 2001:db8:1::10"]);
    }

    #[test]
    fn a_link_local_server_is_asked_over_its_own_uplink() {
        let system = parse("nameserver fe80::1%wlan0\nnameserver fe80::2%7\nnameserver fe80::3\n");
        let places = |interface: &str, index| {
            let v6 = Way { address: "2001:db8:1::10".parse().unwrap(), prefix_len: 64, gateway: None };
            let uplink = Uplink { interface: interface.into(), index, mtu: 1500, v4: None, v6: Some(v6) };
            of(&uplink, &system).iter().map(|server| server.place.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places("wlan0", 3), ["[fe80::1%3]:53", "[fe80::3%3]:53"]);
        assert_eq!(places("usb0", 7), ["[fe80::2%7]:53", "[fe80::3%7]:53"]);
    }
}
