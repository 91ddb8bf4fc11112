//! Finds private networks for engines: neither other networks of this host nor their gateways may be in them.

use std::net::IpAddr;

use super::Network;
use super::discover::Listing;
use crate::attachment::{DEVICES_MAX, PREFIX_LEN_V4, PREFIX_LEN_V6, private_v4, private_v6};

/// Returns the numbers of engines' devices whose private networks can be used on this host now, best first. Without
/// `ip` these are all numbers.
pub(crate) fn numbers_with_room() -> Vec<u8> {
    let listing = Listing::read().unwrap_or_default();
    let networks: Vec<Network> = listing.networks().into_iter().map(|(_, network)| network).collect();
    let uplinks = listing.uplinks();
    let gateways = uplinks.iter().flat_map(|uplink| uplink.ways()).filter_map(|way| way.gateway).collect::<Vec<_>>();
    choose(&networks, &gateways)
}

/// Returns first the numbers whose networks overlap with no other, then those that only wider networks contain.
fn choose(networks: &[Network], gateways: &[IpAddr]) -> Vec<u8> {
    let is_apart = |number: &u8| {
        let owns = own(*number);
        !networks.iter().any(|network| owns.iter().any(|own| own.overlaps(network)))
    };
    let is_usable = |number: &u8| {
        let owns = own(*number);
        let holds_gateway = owns.iter().any(|own| gateways.iter().any(|gateway| own.contains(*gateway)));
        !holds_gateway && !networks.iter().any(|network| owns.iter().any(|own| is_in_the_way(network, own)))
    };
    let (apart, others): (Vec<u8>, Vec<u8>) = (0..DEVICES_MAX).partition(is_apart);
    apart.into_iter().chain(others.into_iter().filter(is_usable)).collect()
}

/// Returns the private networks of the device of that number.
fn own(number: u8) -> [Network; 2] {
    [private_v4(number, 1), private_v6(number, 1)].map(private)
}

/// Returns the private network of a device that has this address.
pub(super) fn private(address: IpAddr) -> Network {
    Network { address, prefix_len: if address.is_ipv4() { PREFIX_LEN_V4 } else { PREFIX_LEN_V6 } }
}

/// Returns whether another network makes packets to the private network `own` go astray. A wider network does not, as
/// the kernel prefers the narrower route, unless this host's address in it is also in `own`.
pub(super) fn is_in_the_way(network: &Network, own: &Network) -> bool {
    network.overlaps(own) && (network.prefix_len >= own.prefix_len || own.contains(network.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, prefix_len: u8) -> Network {
        Network { address: address.parse().unwrap(), prefix_len }
    }

    #[test]
    fn an_engine_takes_the_first_network_that_nobody_has() {
        let phone = network("10.99.0.10", 24);
        assert_eq!(choose(&[], &[])[..3], [0, 1, 2]);
        assert_eq!(choose(&[phone], &[])[0], 1);
        assert_eq!(choose(&[phone, network("fd99:1::7", 64)], &[])[0], 2);
        assert_eq!(choose(&[network("10.99.0.200", 32)], &[])[0], 1);
        assert_eq!(choose(&[network("10.99.2.1", 22)], &[])[..2], [4, 5]);
        let everything: Vec<_> = (0..DEVICES_MAX).map(|number| network(&format!("10.99.{number}.9"), 24)).collect();
        assert!(choose(&everything, &[]).is_empty());
    }

    #[test]
    fn a_wide_network_leaves_room_except_where_its_hosts_are_known() {
        let company = network("10.1.2.3", 8);
        assert_eq!(choose(&[company], &["10.1.0.1".parse().unwrap()])[0], 0);
        let near = network("10.99.1.3", 16);
        assert_eq!(choose(&[near], &["10.99.0.1".parse().unwrap()])[..2], [2, 3]);
    }
}
