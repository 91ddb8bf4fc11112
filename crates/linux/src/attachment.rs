//! Attaches an engine to this host: a TUN device with the engine's addresses behind it.
//!
//! The engine is a host of its own, next to the kernel's stack, with addresses of its own. The kernel is its router.
//! Without addresses given, it gets 10.99.N.2 and fd99:N::2 of a private network on the device `anabranchN`, which is
//! reachable from this host only; to go further the kernel must forward (and usually translate) for it:
//!
//! ```text
//! sysctl -w net.ipv4.ip_forward=1
//! iptables -t nat -A POSTROUTING -s 10.99.0.0/16 -j MASQUERADE
//! ```
//!
//! Addresses given (`--via`) are routed to the device as they are. In namespaces of `anabranch emulate` every free
//! address of the host's half of a link does: packets from it take that link.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use transport::EndpointConfig;
use transport::path_manager::LocalAddress;

use crate::driver::Driver;
use crate::ip_command::{self, Family};
use crate::tun::{Tun, TunConfig};
use crate::{Error, Result};

/// Largest packet on the engine's device, octets: what every path of the Internet is expected to carry.
pub const MTU: u16 = 1500;
/// Devices with private networks on one host.
const DEVICES_MAX: u8 = 100;

/// An engine attached to this host.
pub struct Attachment {
    /// Runs it.
    pub driver: Driver,
    /// The device.
    pub device: String,
    /// The engine's addresses.
    pub addresses: Vec<IpAddr>,
}

impl Attachment {
    /// Creates the device in the calling thread's network namespace and an engine behind it with the addresses `via`,
    /// or private ones if there are none.
    ///
    /// # Errors
    /// Without root, or if an address is in use on this host.
    pub fn open(via: &[IpAddr]) -> Result<Self> {
        let number = (0..DEVICES_MAX)
            .find(|number| !fs::exists(format!("/sys/class/net/{}", device_name(*number))).unwrap_or(false))
            .ok_or_else(|| Error::Usage(format!("all of anabranch0 to anabranch{} exist already", DEVICES_MAX - 1)))?;
        let device = device_name(number);
        let (own, addresses) = if via.is_empty() { private_network(number) } else { (Vec::new(), via.to_vec()) };
        let tun = Tun::open(&TunConfig { name: device.clone(), mtu: MTU, offload: true, addresses: own })?;
        let routes: Vec<String> = via.iter().map(|address| format!("route add {address} dev {device}")).collect();
        ip_command::batch(None, Family::Named, &routes)?;
        let local_addresses = addresses.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
        let driver = Driver::new(tun, MTU, EndpointConfig { local_addresses, ..EndpointConfig::default() })?;
        Ok(Self { driver, device, addresses })
    }

    /// The first of the engine's addresses that is of the family of `remote`.
    pub fn address_for(&self, remote: IpAddr) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| address.is_ipv4() == remote.is_ipv4())
    }
}

/// Whether the kernel forwards packets between devices, which peers on other hosts need.
pub fn forwards(family_of: IpAddr) -> bool {
    let variable = match family_of {
        IpAddr::V4(_) => "/proc/sys/net/ipv4/ip_forward",
        IpAddr::V6(_) => "/proc/sys/net/ipv6/conf/all/forwarding",
    };
    fs::read_to_string(variable).is_ok_and(|value| value.trim() == "1")
}

fn device_name(number: u8) -> String {
    format!("anabranch{number}")
}

/// Addresses of the kernel's side with their lengths, and of the engine's.
fn private_network(number: u8) -> (Vec<(IpAddr, u8)>, Vec<IpAddr>) {
    let v4 = |host| IpAddr::from(Ipv4Addr::new(10, 99, number, host));
    let v6 = |host| IpAddr::from(Ipv6Addr::new(0xfd99, number.into(), 0, 0, 0, 0, 0, host));
    (vec![(v4(1), 24), (v6(1), 64)], vec![v4(2), v6(2)])
}
