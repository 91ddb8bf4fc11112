//! Addresses of hosts.

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::Complaint;
use crate::scenario::Scenario;

pub(super) fn check_addresses(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let addresses = scenario.addresses();
    let mut seen: BTreeSet<IpAddr> = BTreeSet::from([addresses.source]);
    let remedy = |address: IpAddr| match address {
        IpAddr::V4(_) => "write the address of a host, like \"10.9.0.2\"",
        IpAddr::V6(_) => "write the address of a host, like \"fd09::2\"",
    };
    if let Some(problem) = of_no_host(addresses.source) {
        found.push(Complaint::new("source.address", problem, remedy(addresses.source)));
    }
    for (index, address) in addresses.paths.iter().enumerate() {
        let field = format!("relays[{index}].address");
        if let Some(problem) = of_no_host(*address) {
            found.push(Complaint::new(&field, problem, remedy(*address)));
        }
        if address.is_ipv6() != addresses.source.is_ipv6() {
            let problem =
                format!("{address} and the source's {} belong to different address families", addresses.source);
            found.push(Complaint::new(&field, problem, "give all hosts IPv4 or all hosts IPv6 addresses"));
        }
        if !seen.insert(*address) {
            let problem = format!("{address} is already in use");
            found.push(Complaint::new(&field, problem, "give every path its own address"));
        }
    }
}

/// Explains why other hosts of a scenario cannot reach a host at `address`.
fn of_no_host(address: IpAddr) -> Option<String> {
    let why = match address.to_canonical() {
        ip if ip.is_unspecified() => "is the unspecified address",
        ip if ip.is_multicast() => "is a multicast address",
        ip if ip.is_loopback() => "is a loopback address",
        IpAddr::V4(ip) if ip.is_broadcast() => "is the broadcast address",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "is valid only on its link",
        _ => return None,
    };
    Some(format!("{address} {why}"))
}
