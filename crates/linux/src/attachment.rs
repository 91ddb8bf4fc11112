//! Attaches an engine to this host: a TUN device with the engine's addresses behind it.
//!
//! The engine is a host of its own, next to the kernel's stack, with addresses of its own. The kernel is its router and
//! forwards the device's packets, so two engines on one host reach each other. Without given addresses, the engine gets
//! 10.99.N.2 and fd99:N::2 of a private network on the device `anabranchN`, which only this host can reach. N is the
//! first number whose device does not exist yet and whose network no other one is in the way of. To reach further, the
//! kernel must forward for other devices too (and usually translate):
//!
//! ```text
//! sysctl -w net.ipv4.ip_forward=1
//! iptables -t nat -A POSTROUTING -s 10.99.0.0/16 -j MASQUERADE
//! ```
//!
//! Given addresses (`--via`) are routed to the device unchanged. In namespaces of `anabranch emulate` any free address
//! of the host's half of a link can be given: packets from it take that link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::{fs, io};

use rustix::io::Errno;
use transport::path_manager::LocalAddress;
use transport::{Endpoint, EndpointConfig};

use crate::driver::random_seed;
use crate::ip_command::{self, Family};
use crate::tun::{self, Tun, TunConfig};
use crate::{Error, Result, uplink};

/// Largest packet on the engine's device, octets: a size that every path of the Internet is expected to carry.
pub const MTU: u16 = 1500;
/// Number of bits that identify a private network of ours.
pub(crate) const PREFIX_LEN_V4: u8 = 24;
pub(crate) const PREFIX_LEN_V6: u8 = 64;
/// Maximum number of engines with private networks on one host; the device of `anabranch relay` has the next number.
pub(crate) const DEVICES_MAX: u8 = 98;

/// An engine attached to this host.
pub struct Attachment {
    /// The engine, without connections yet.
    pub endpoint: Endpoint,
    /// The device, whose largest packet is [`MTU`].
    pub tun: Tun,
    /// The engine's addresses.
    pub addresses: Vec<IpAddr>,
}

impl Attachment {
    /// Creates the device in the calling thread's network namespace, and behind it an engine with the addresses `via`,
    /// or with private ones if `via` is empty.
    ///
    /// # Errors
    /// If the process may not make a TUN device, or if an address cannot be used or is in use on this host.
    pub fn open(via: &[IpAddr]) -> Result<Self> {
        check(via)?;
        let (tun, own) = create(via.is_empty(), &private_addresses)?;
        let addresses = if via.is_empty() { own } else { via.to_vec() };
        let device = tun.name().to_owned();
        let routes: Vec<String> = via.iter().map(|address| format!("route add {address} dev {device}")).collect();
        ip_command::batch(None, Family::Named, &routes)?;
        Self::new(tun, addresses)
    }

    /// Like [`Self::open`] without addresses, but the engine has the addresses of its private network that `addresses`
    /// returns for the device's number. Where devices have no IPv6, IPv6 addresses are left out.
    ///
    /// # Errors
    /// If the process may not make a TUN device.
    pub fn open_with(addresses: &dyn Fn(u8) -> Vec<IpAddr>) -> Result<Self> {
        let (tun, mut addresses) = create(true, addresses)?;
        addresses.retain(|address| address.is_ipv4() || has_ipv6());
        Self::new(tun, addresses)
    }

    fn new(tun: Tun, addresses: Vec<IpAddr>) -> Result<Self> {
        forward_from(tun.name());
        let local_addresses = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
        let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
        Ok(Self { endpoint: Endpoint::new(config, random_seed()?), tun, addresses })
    }
}

/// Returns whether the kernel forwards packets between devices, which peers on other hosts need.
pub fn forwards(family_of: IpAddr) -> bool {
    let variable = format!("/proc/sys/{}", forwarding_variable(family_of).replace('.', "/"));
    fs::read_to_string(variable).is_ok_and(|value| value.trim() == "1")
}

/// Returns the variable (sysctl) that lets the kernel forward packets of this address's family.
pub(crate) fn forwarding_variable(family_of: IpAddr) -> &'static str {
    match family_of {
        IpAddr::V4(_) => "net.ipv4.ip_forward",
        IpAddr::V6(_) => "net.ipv6.conf.all.forwarding",
    }
}

/// Returns whether answers of `remote` reach an engine with private addresses, as far as forwarding decides: they come
/// from this host itself, or from a device whose packets the kernel forwards, such as that of another engine.
pub(crate) fn can_answer(remote: IpAddr) -> bool {
    let is_on = |variable: String| fs::read_to_string(variable).is_ok_and(|value| value.trim() == "1");
    let Some(device) = uplink::unbound_interface(remote).filter(|_| !is_own(remote)) else { return true };
    match remote {
        IpAddr::V4(_) => is_on(format!("/proc/sys/net/ipv4/conf/{device}/forwarding")),
        IpAddr::V6(_) => forwards(remote) || is_on(format!("/proc/sys/net/ipv6/conf/{device}/force_forwarding")),
    }
}

/// Returns the number of the next device.
///
/// # Errors
/// If all are taken.
pub fn free_number() -> Result<u8> {
    free_numbers().next().ok_or_else(no_number)
}

fn free_numbers() -> impl Iterator<Item = u8> {
    uplink::numbers_with_room().into_iter().filter(|number| !tun::exists(&device_name(*number)))
}

fn no_number() -> Error {
    let last = DEVICES_MAX - 1;
    Error::Usage(match tun::exists(&device_name(0)) {
        true => format!("anabranch0 to anabranch{last} all exist already: end some of their programs"),
        false => format!(
            "this host's interfaces are in all networks from 10.99.0.0/24 to 10.99.{last}.0/24, one of which an engine \
             needs: give them others"
        ),
    })
}

/// Creates a device with a free number, in a private network if `is_private`. Returns it with the engine's addresses
/// for that number.
fn create(is_private: bool, engines: &dyn Fn(u8) -> Vec<IpAddr>) -> Result<(Tun, Vec<IpAddr>)> {
    for number in free_numbers() {
        let addresses = if is_private { private_network(number) } else { Vec::new() };
        let config = TunConfig { name: device_name(number), mtu: MTU, offload: true, addresses };
        match Tun::open(&config) {
            Err(Error::System { source, .. }) if is_taken(&source) => {}
            tun => return Ok((tun?, engines(number))),
        }
    }
    Err(no_number())
}

/// Returns whether a device could not be made because its name belongs to another one.
fn is_taken(error: &io::Error) -> bool {
    error.raw_os_error().map(Errno::from_raw_os_error) == Some(Errno::BUSY)
}

/// Refuses addresses for which a route to a device does not help.
fn check(via: &[IpAddr]) -> Result<()> {
    for (position, address) in via.iter().enumerate() {
        let why = match address {
            ip if ip.is_loopback() => "is a loopback address, which the kernel routes to itself only",
            ip if ip.is_unspecified() => "stands for all addresses",
            ip if ip.is_multicast() => "is a multicast address",
            IpAddr::V4(ip) if ip.is_broadcast() => "is the broadcast address",
            IpAddr::V4(ip) if ip.is_link_local() => "is a link-local address, which is not routed",
            IpAddr::V6(ip) if ip.is_unicast_link_local() => "is a link-local address, which is not routed",
            ip if via[..position].contains(ip) => "is named twice",
            ip if is_own(*ip) => "is an address of this host, and the engine is a separate host",
            _ => continue,
        };
        return Err(Error::Usage(format!(
            "--via {address} {why}: name a free address that is routed to this host, like 10.1.0.3, or leave out --via for \
             a private network"
        )));
    }
    Ok(())
}

/// Returns whether the kernel has the address: only then can a socket be bound to it.
pub(crate) fn is_own(address: IpAddr) -> bool {
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let binds_any = fs::read_to_string(format!("/proc/sys/net/{family}/ip_nonlocal_bind"));
    UdpSocket::bind((address, 0)).is_ok() && !binds_any.is_ok_and(|value| value.trim() == "1")
}

/// Lets the kernel forward packets from `device`, for example to other engines on this host. Where this fails (no write
/// access to /proc/sys in a container; IPv6 before Linux 6.17), everything else works.
pub(crate) fn forward_from(device: &str) {
    let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{device}/forwarding"), "1");
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/force_forwarding"), "1");
}

/// Returns whether devices made from now on may have IPv6 addresses.
pub(crate) fn has_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6").is_ok_and(|value| value.trim() == "0")
}

fn device_name(number: u8) -> String {
    format!("anabranch{number}")
}

/// Returns the kernel's addresses in the private network of a device, with their prefix lengths.
pub(crate) fn private_network(number: u8) -> Vec<(IpAddr, u8)> {
    let mut network = vec![(private_v4(number, 1), PREFIX_LEN_V4), (private_v6(number, 1), PREFIX_LEN_V6)];
    network.truncate(if has_ipv6() { 2 } else { 1 });
    network
}

/// Returns the engine's addresses in the private network of a device.
fn private_addresses(number: u8) -> Vec<IpAddr> {
    let mut addresses = vec![private_v4(number, 2), private_v6(number, 2)];
    addresses.truncate(if has_ipv6() { 2 } else { 1 });
    addresses
}

/// Returns an address of the private network of a device; host 1 is the kernel.
pub(crate) fn private_v4(number: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(10, 99, number, host).into()
}

/// Like [`private_v4`].
pub(crate) fn private_v6(number: u8, host: u8) -> IpAddr {
    Ipv6Addr::new(0xfd99, number.into(), 0, 0, 0, 0, 0, host.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_work_are_refused_with_the_reason() {
        let refusal = |via: &[&str]| {
            let via: Vec<IpAddr> = via.iter().map(|ip| ip.parse().unwrap()).collect();
            check(&via).err().map(|error| error.to_string())
        };
        for (via, why) in [
            (["10.1.0.3", "127.0.0.1"], "loopback"),
            (["10.1.0.3", "::1"], "loopback"),
            (["10.1.0.3", "0.0.0.0"], "all addresses"),
            (["10.1.0.3", "224.0.0.1"], "multicast"),
            (["10.1.0.3", "255.255.255.255"], "broadcast"),
            (["10.1.0.3", "169.254.1.1"], "link-local"),
            (["10.1.0.3", "fe80::1"], "link-local"),
            (["10.1.0.3", "10.1.0.3"], "twice"),
        ] {
            let refusal = refusal(&via).unwrap();
            assert!(refusal.contains(&format!("--via {}", via[1])) && refusal.contains(why), "{refusal}");
        }
        // Addresses reserved for documentation (RFC 5737): no host has them.
        assert_eq!(refusal(&["203.0.113.3", "203.0.113.4"]), None);
        assert!(is_own("127.0.0.1".parse().unwrap()) && !is_own("203.0.113.3".parse().unwrap()));
    }
}
