//! The device of a relay at its destination: what is sent into it, the relay sends on, if it is there.
//!
//! It is a point-to-point link with a default route of its own, so it is discovered, watched and plumbed as any other uplink is. While the
//! relay is not there, it has no carrier.

use std::net::IpAddr;

use super::lending_plan::{LENDER, slot_addresses};
use crate::attachment::has_ipv6;
use crate::ip_command::{self, Family};
use crate::tun::{self, Tun, TunConfig};
use crate::{Error, Result};

/// Its name begins with this.
pub const PREFIX: &str = "via-";
/// Octets of an interface's name at most.
const NAME_BYTES_MAX: usize = 15;
/// Its routes are the last ones that the main table takes.
const METRIC_FIRST: u32 = 90_000;

/// The names of the devices of relays, which are called so by their owners: as much of that as fits, all different.
pub fn names<'a>(relays: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for relay in relays {
        let mut number = 1_u32;
        let name = loop {
            let end = if number == 1 { String::new() } else { format!("-{number}") };
            let room = NAME_BYTES_MAX - PREFIX.len() - end.len();
            let begin: String = relay.chars().take(room).collect();
            let name = format!("{PREFIX}{begin}{end}");
            if !names.contains(&name) {
                break name;
            }
            number += 1;
        };
        names.push(name);
    }
    names
}

/// Whether the calling thread's network namespace has a device of that name.
pub fn exists(name: &str) -> bool {
    tun::exists(name)
}

/// Makes the device `name` for a destination in `slot` of a relay, the `index`th one here. It has no carrier yet.
///
/// # Errors
/// If the process may not make a TUN device, or if the name is taken.
pub fn open(name: &str, slot: u8, ipv6: bool, mtu: u16, index: usize) -> Result<Tun> {
    if tun::exists(LENDER) {
        return Err(Error::Usage(
            "this device lends its own link (anabranch relay), and cannot use a relay's at the same time: end that, or name interfaces only \
             (--interface)"
                .into(),
        ));
    }
    if tun::exists(name) {
        return Err(Error::Usage(format!(
            "there is an interface {name} already: does another `anabranch join` use that relay?"
        )));
    }
    let wanted = |address: &IpAddr| address.is_ipv4() || (ipv6 && has_ipv6());
    let addresses: Vec<IpAddr> = slot_addresses(slot).into_iter().filter(wanted).collect();
    let of_host = |address: &IpAddr| (*address, if address.is_ipv4() { 32 } else { 128 });
    let config =
        TunConfig { name: name.into(), mtu, offload: false, addresses: addresses.iter().map(of_host).collect() };
    let tun = Tun::open(&config)?;
    let metric = METRIC_FIRST + index as u32;
    let route = |address: &IpAddr| {
        let all = if address.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        format!("route add {all} dev {name} metric {metric}")
    };
    ip_command::batch(None, Family::Named, &addresses.iter().map(route).collect::<Vec<_>>())?;
    tun.set_carrier(false).map_err(Error::system(format!("take the carrier from {name}")))?;
    Ok(tun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_after_their_relays() {
        assert_eq!(names(["anna", "bert"]), ["via-anna", "via-bert"]);
        let long = ["annas-telephone", "annas-telephone-2", "annas-telep"];
        assert_eq!(names(long), ["via-annas-telep", "via-annas-tel-2", "via-annas-tel-3"]);
    }
}
